#include "worker/trainer/run_worker.h"

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/control/member.h"
#include "common/cost/planned_parameters.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/job/model_parameters.h"
#include "common/model_cut.h"
#include "common/run/safetensors.h"
#include "common/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "common/wire/plan_codec.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/data/open_data.h"
#include "worker/model/initializer.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/trainer/make_synchronizer.h"
#include "worker/trainer/replica.h"
#include "worker/trainer/trainer.h"
#include "worker/trainer/worker_metrics.h"

namespace tributary {
namespace {

// How long the news that a plan is over may take to come by heartbeat.
constexpr absl::Duration kNewsOfPlan = absl::Seconds(15);

// Passes the end of the job, or of the plan, on to what waits for others,
// whichever comes first.
class Canceller {
 public:
  using Cancels = std::function<void(const std::string& why)>;

  void Attach(Cancels cancel, uint64_t plan_epoch) {
    absl::MutexLock lock(&mu_);
    cancel_ = std::move(cancel);
    plan_epoch_ = plan_epoch;
    CancelLocked();
  }
  void Detach() {
    absl::MutexLock lock(&mu_);
    cancel_ = nullptr;
  }
  void Cancel(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    why_ = std::string(status.message());
    CancelLocked();
  }
  void CancelBefore(uint64_t plan_epoch) {
    absl::MutexLock lock(&mu_);
    newest_epoch_ = plan_epoch;
    CancelLocked();
  }

 private:
  void CancelLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (cancel_ == nullptr) return;
    if (!why_.empty()) {
      cancel_(why_);
    } else if (plan_epoch_ < newest_epoch_) {
      cancel_("a new plan is in force");
    }
  }

  absl::Mutex mu_;
  Cancels cancel_ ABSL_GUARDED_BY(mu_);
  uint64_t plan_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t newest_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  std::string why_ ABSL_GUARDED_BY(mu_);
};

// Runs other ranks beside this process's own, of lost workers or because all of
// the job's are threads of one process, each as a worker of its own on a
// thread, so that each computes what it always would have.
class Adoptions {
 public:
  explicit Adoptions(const WorkerOptions& options) : options_(options) {}
  ~Adoptions() { Join(); }

  void Adopt(const std::vector<uint32_t>& ranks) {
    absl::MutexLock lock(&mu_);
    for (uint32_t rank : ranks) {
      Adopted& adopted = adopted_[rank];
      if (adopted.thread.joinable() && !adopted.ended) continue;
      // One that has ended has lost its lease: it is taken over anew.
      if (adopted.thread.joinable()) adopted.thread.join();
      spdlog::info("taking on rank {}", rank);
      adopted.ended = false;
      adopted.thread = std::thread([this, rank] { Work(rank); });
    }
  }

  // Waits until their jobs have ended, each by itself as this process's own.
  void Join() {
    std::map<uint32_t, std::thread> threads;
    {
      absl::MutexLock lock(&mu_);
      for (auto& [rank, adopted] : adopted_) {
        threads[rank] = std::move(adopted.thread);
      }
    }
    for (auto& [rank, thread] : threads) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  struct Adopted {
    std::thread thread;
    bool ended = false;  // it takes no lock any more
  };

  void Work(uint32_t rank) {
    WorkerOptions options = options_;
    options.index = rank;
    options.adopted = true;
    options.metrics_listen.clear();
    options.die_at.reset();
    const absl::Status status = RunWorker(options);
    if (!status.ok()) {
      spdlog::error("rank {}: {}", rank, std::string(status.message()));
    }
    absl::MutexLock lock(&mu_);
    adopted_[rank].ended = true;
  }

  const WorkerOptions options_;
  absl::Mutex mu_;
  std::map<uint32_t, Adopted> adopted_ ABSL_GUARDED_BY(mu_);
};

TargetKind TargetKindOf(const v1::LossSpec& loss) {
  switch (loss.kind_case()) {
    case v1::LossSpec::kBceWithLogits:
      return TargetKind::kBinary;
    case v1::LossSpec::kMse:
      return TargetKind::kReal;
    default:
      return TargetKind::kClass;
  }
}

absl::StatusOr<std::unique_ptr<Ops>> MakeOps(v1::Device device) {
  const DeviceChoice choice = device == v1::DEVICE_CPU    ? DeviceChoice::kCpu
                              : device == v1::DEVICE_CUDA ? DeviceChoice::kCuda
                                                          : DeviceChoice::kAuto;
  std::string why;
  std::unique_ptr<Ops> ops = CreateOps(choice, &why);
  if (!ops) return absl::FailedPreconditionError(why);
  if (!why.empty()) spdlog::info("{}", why);
  return ops;
}

// Everything that a worker builds from its job, in the order of construction.
struct Workplace {
  std::unique_ptr<Ops> ops;
  TrainTest data;
  std::unique_ptr<Replica> replica;  // of the plan in force
  BatchCut cut;
  std::optional<StepPlan> plan;
};

// An error unless the model takes these samples and gives what they want.
absl::Status CheckFits(const Dataset& data, const Replica& replica) {
  const Model& model = *replica.model();
  if (model.num_tokens() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckTokens(model.num_tokens()));
  }
  if (data.target_kind() != TargetKind::kClass || replica.loss() == nullptr) {
    return absl::OkStatus();
  }
  const int64_t outputs = model.output_shape().back();
  const int64_t positions = model.output_size() / outputs;
  if (data.target_width() != positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.name(), ": a sample has ", data.target_width(),
        " labels, but the model gives outputs of shape ",
        ShapeText(model.output_shape()), " for it, wanted ",
        data.target_width() == 1
            ? "one row of outputs; a flatten or global_avg_pool makes one"
            : "one row of outputs for each"));
  }
  const OutputCut& cut = model.output_cut();
  return data.CheckClasses(cut.group == nullptr ? outputs : cut.range.total);
}

// How the data is cut over the replicas and the steps.
absl::Status OpenSteps(const v1::JobSpec& job, Workplace* place) {
  const int64_t replicas = DeviceMeshOf(job).data;
  const v1::DataSpec& data = job.data();
  place->cut.rows = place->data.train->rows();
  place->cut.global_batch = data.batch_case() == v1::DataSpec::kGlobalBatchSize
                                ? data.global_batch_size()
                                : data.batch_size() * replicas;
  place->cut.world = static_cast<int>(replicas);
  TRIBUTARY_ASSIGN_OR_RETURN(
      place->plan,
      StepPlan::Create({.cut = place->cut,
                        .accumulation = job.training().gradient_accumulation(),
                        .epochs = job.training().epochs(),
                        .steps = job.training().steps()}));
  return absl::OkStatus();
}

// This worker's part of the model: all of it, or what the plan's groups make.
absl::Status MakeReplica(const GroupParts& parts, const v1::Plan* plan,
                         Workplace* place) {
  const v1::JobSpec& job = parts.member->job();
  const int64_t replicas = place->cut.world;
  const Replica::Options options{
      .job = &job,
      .ops = parts.ops,
      .train = place->data.train.get(),
      .max_rows = (place->cut.global_batch + replicas - 1) / replicas,
      .rank = static_cast<int>(parts.member->index())};
  TRIBUTARY_ASSIGN_OR_RETURN(place->replica,
                             plan == nullptr
                                 ? Replica::CreateWhole(options)
                                 : Replica::Connect(options, parts, *plan));
  for (const Dataset* set : {place->data.train.get(), place->data.test.get()}) {
    if (set) TRIBUTARY_RETURN_IF_ERROR(CheckFits(*set, *place->replica));
  }
  return absl::OkStatus();
}

// The whole model's weights before the first step, on the host.
absl::StatusOr<Tensors> InitialWeightsOf(const v1::JobSpec& job) {
  const ParameterSpecs parameters = ModelParameters(job.model());
  if (!job.model().initialize_from().empty()) {
    return ReadSafetensors(job.model().initialize_from(), parameters);
  }
  Tensors weights;
  for (size_t p = 0; p < parameters.size(); ++p) {
    weights.emplace_back(parameters[p].size());
    InitialWeights(parameters, job.model(), job.seed(), static_cast<int>(p),
                   absl::MakeSpan(weights.back()));
  }
  return weights;
}

// Rank 0 makes the weights that training starts from: of all the plan's
// parameters for servers, else the first replica each rank's own.
absl::StatusOr<int64_t> StartWeights(Member& member, const Replica& replica,
                                     const v1::Plan& plan,
                                     GradientSynchronizer* synchronizer) {
  const auto tell = [&](const GradientSynchronizer::Position& position) {
    member.StartAt(plan.epoch(), position.finished, position.begun);
  };
  const v1::JobSpec& job = member.job();
  if (UsesServers(job) ? member.index() != 0 : replica.place().data != 0) {
    return synchronizer->Start(nullptr, tell);
  }
  return synchronizer->Start(
      [&]() -> absl::StatusOr<Tensors> {
        TRIBUTARY_ASSIGN_OR_RETURN(const Tensors whole, InitialWeightsOf(job));
        const ParameterSpecs planned = FromProto(plan.parameters());
        Tensors cut = CutWhole(planned, whole);
        if (UsesServers(job)) return cut;
        TRIBUTARY_ASSIGN_OR_RETURN(
            const std::vector<int> places,
            PlacesInPlan(replica.model()->parameters(), planned, replica.mesh(),
                         static_cast<int>(member.index())));
        Tensors own;
        for (int place : places) own.push_back(std::move(cut[place]));
        return own;
      },
      tell);
}

// For tests: ends the process at a point of a step, as a crash would.
void DieAt(const WorkerOptions::DieAt& where, int64_t step, TrainPoint point,
           GradientSynchronizer& synchronizer) {
  if (step + 1 != where.step || point != where.point) return;
  if (point == TrainPoint::kPushed) (void)synchronizer.WaitUntilPushed();
  raise(SIGKILL);
}

absl::Status TrainAndReport(Member& member, Workplace& place,
                            const WorkerOptions& options,
                            GradientSynchronizer* synchronizer,
                            WorkerMetrics* metrics, int64_t* step) {
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(
          job.training().learning_rate_schedule(),
          OptimizerOptionsOf(job.training().optimizer()).learning_rate,
          place.plan->total_steps()));
  const auto traffic = [&] {
    GradientSynchronizer::Traffic sum = synchronizer->traffic();
    sum.bytes_sent += place.replica->bytes_sent();
    sum.bytes_received += place.replica->bytes_received();
    return sum;
  };
  Trainer trainer({
      .job = &job,
      .rank = place.replica->place().data,
      .num_workers = place.replica->mesh().data,
      .ops = place.ops.get(),
      .model = place.replica->model(),
      .loss = place.replica->loss(),
      .stage = place.replica->stage(),
      .micro_batches = job.strategy().pipeline_parallel().micro_batches(),
      .reports = place.replica->reports(),
      .train = place.data.train.get(),
      .test = place.data.test.get(),
      .plan = *place.plan,
      .cut = place.cut,
      .schedule = std::move(schedule),
      .synchronizer = synchronizer,
      .traffic = traffic,
      .slow_down = options.slow_down,
      .begin_step = [&](int64_t step) { return member.BeginStep(step); },
      .at_point =
          [&](int64_t step, TrainPoint point) {
            if (options.die_at) {
              DieAt(*options.die_at, step, point, *synchronizer);
            }
          },
      .report_step =
          [&](const v1::StepReport& report, int64_t prefetched) {
            *step = report.step();
            const GradientSynchronizer::Traffic sum = traffic();
            member.SetBytes(sum.bytes_sent, sum.bytes_received);
            metrics->SetPrefetched(prefetched);
            metrics->CountStep(
                report, {sum.bytes_sent, sum.bytes_received, sum.retries});
            member.ReportStep(report);
          },
      .report_evaluation =
          [&](int64_t step, int64_t epoch, const v1::EvaluationPart& part) {
            return member.ReportEvaluation(step, epoch, part);
          },
  });
  return trainer.Run(*step);
}

// Without servers the ranks have the weights that the job ends with; the first
// that holds a parameter gives it.
absl::Status GiveWeights(Member& member, const Replica& replica, Ops& ops,
                         const v1::Plan& plan, int64_t step) {
  if (UsesServers(member.job())) return absl::OkStatus();
  const ParameterSpecs planned = FromProto(plan.parameters());
  const int rank = static_cast<int>(member.index());
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int> places,
                             PlacesInPlan(replica.model()->parameters(),
                                          planned, replica.mesh(), rank));
  for (size_t p = 0; p < places.size(); ++p) {
    const ParameterSpec& spec = planned[places[p]];
    if (FirstHolder(spec.holders, replica.mesh()) != rank) continue;
    std::vector<float> tensor(spec.size());
    ops.CopyOut(tensor.data(), replica.model()->weight(static_cast<int>(p)),
                tensor.size() * sizeof(float));
    TRIBUTARY_RETURN_IF_ERROR(
        member.PutWeights(plan.epoch(), step, places[p], tensor));
  }
  return absl::OkStatus();
}

// Trains under one plan until the job is done, or the plan is over.
absl::Status TrainPlan(Member& member, Workplace& place, Canceller& canceller,
                       const WorkerOptions& options, const v1::Plan& plan,
                       WorkerMetrics* metrics) {
  const GroupParts parts{.member = &member,
                         .ops = place.ops.get(),
                         .coordinator = options.coordinator,
                         .local_meshes = options.local_meshes};
  if (DeviceMeshOf(member.job()).model_size() > 1) {
    TRIBUTARY_RETURN_IF_ERROR(MakeReplica(parts, &plan, &place));
  }
  Replica& replica = *place.replica;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<GradientSynchronizer> synchronizer,
      MakeSynchronizer(
          {.group = parts,
           .replica = &replica,
           .steps = &*place.plan,
           .on_silent_shard =
               [metrics](int shard) { metrics->SetSilentShard(shard); },
           .delay_micros = options.delay_micros},
          plan));
  canceller.Attach(
      [&](const std::string& why) {
        synchronizer->Cancel(why);
        replica.Cancel(why);
      },
      plan.epoch());
  absl::StatusOr<int64_t> start =
      StartWeights(member, replica, plan, synchronizer.get());
  absl::Status status = start.status();
  if (start.ok()) {
    if (*start > 0) spdlog::info("going on after step {}", *start);
    metrics->SetSilentShard(-1);
    member.SetWaitingFor("");
    int64_t step = *start;
    status = TrainAndReport(member, place, options, synchronizer.get(), metrics,
                            &step);
    if (status.ok()) {
      status = GiveWeights(member, replica, *place.ops, plan, step);
    }
  }
  // What this rank has broken off the others shall not wait for.
  if (!status.ok()) replica.Cancel(std::string(status.message()));
  canceller.Detach();
  TRIBUTARY_RETURN_IF_ERROR(status);
  TRIBUTARY_RETURN_IF_ERROR(member.Finish());
  // What the synchronizer still writes is wanted. A server, or without servers
  // a worker, that is lost before the job is done takes everybody back.
  return member.WaitForDone(plan.epoch());
}

std::vector<uint32_t> OtherRanks(const Member& member) {
  std::vector<uint32_t> others;
  const auto workers = static_cast<uint32_t>(member.job().cluster().workers());
  for (uint32_t rank = 0; rank < workers; ++rank) {
    if (rank != member.index()) others.push_back(rank);
  }
  return others;
}

// What ends a plan ends the calls of its workers first, with whatever error:
// waits, where it may be so, for the news.
bool PlanIsOver(Member& member, uint64_t epoch, const absl::Status& status) {
  const bool may_be = absl::IsFailedPrecondition(status) ||
                      absl::IsCancelled(status) || absl::IsUnavailable(status);
  return member
      .WaitForPlanAfter(epoch, may_be ? kNewsOfPlan : absl::ZeroDuration())
      .ok();
}

absl::Status Train(Member& member, Workplace& place, Canceller& canceller,
                   const WorkerOptions& options, WorkerMetrics* metrics) {
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      place.data, OpenData(job.data(), TargetKindOf(job.training().loss())));
  for (const std::string& warning : place.data.warnings) {
    spdlog::warn("{}", warning);
  }
  TRIBUTARY_RETURN_IF_ERROR(OpenSteps(job, &place));
  if (DeviceMeshOf(job).model_size() == 1) {
    TRIBUTARY_RETURN_IF_ERROR(MakeReplica(
        {.member = &member, .ops = place.ops.get()}, nullptr, &place));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      ParameterSpecs parameters,
      PlannedParameters(job, place.data.train->feature_shape()));
  TRIBUTARY_RETURN_IF_ERROR(
      member.DeclareModel({.parameters = std::move(parameters),
                           .total_steps = place.plan->total_steps(),
                           .steps_per_epoch = place.plan->steps_per_epoch()}));
  uint64_t epoch = 0;
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const v1::Plan plan,
                               member.GetPlan(epoch + 1, options.join_timeout));
    epoch = plan.epoch();
    const absl::Status status =
        TrainPlan(member, place, canceller, options, plan, metrics);
    if (status.ok()) return status;
    // Its connections are closed: who waits for this rank learns that it ended.
    if (DeviceMeshOf(job).model_size() > 1) place.replica.reset();
    if (!PlanIsOver(member, epoch, status)) return status;
    spdlog::info("plan epoch {} is over: {}", epoch,
                 std::string(status.message()));
  }
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& given) {
  LocalMeshes local_meshes;
  WorkerOptions options = given;
  if (options.local_meshes == nullptr) options.local_meshes = &local_meshes;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Exporter> exporter,
      Exporter::Start({.listen = options.metrics_listen, .role = "worker"}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  Canceller canceller;
  Adoptions adoptions(options);
  Workplace place;
  WorkerMetrics metrics;
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Member> member,
      Member::Join({.coordinator = options.coordinator,
                    .role = v1::ROLE_WORKER,
                    .metrics_address = exporter->address(),
                    .wanted_index = options.index,
                    .join_timeout = options.join_timeout,
                    .on_end =
                        [&](const absl::Status& status) {
                          canceller.Cancel(status.ok() ? absl::CancelledError(
                                                             "the job is done")
                                                       : status);
                        },
                    .on_new_plan =
                        [&](uint64_t epoch) { canceller.CancelBefore(epoch); },
                    .on_adopt =
                        [&](const std::vector<uint32_t>& ranks) {
                          adoptions.Adopt(ranks);
                        }}));
  if (!options.adopted) SetLogIndex(member->index());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck(
      [&member] { return HealthOf(member->Contact(), member->waiting_for()); });
  const Exporter::Handle source =
      exporter->AddSource([&](MetricsWriter* writer) {
        metrics.Write(member->index(), member->job().cluster().servers(),
                      !member->waiting_for().empty(), writer);
      });
  spdlog::info("rank {} of {}", member->index(),
               member->job().cluster().workers());
  const v1::Device device = options.device == v1::DEVICE_AUTO
                                ? member->job().device()
                                : options.device;
  absl::StatusOr<std::unique_ptr<Ops>> ops = MakeOps(device);
  absl::Status status = ops.status();
  if (status.ok()) {
    if (member->job().strategy().has_data_parallel() && !options.adopted) {
      adoptions.Adopt(OtherRanks(*member));
    }
    place.ops = *std::move(ops);
    spdlog::info("device: {}", place.ops->device_name());
    member->SetDevice(place.ops->device_name());
    status = Train(*member, place, canceller, options, &metrics);
  }
  const absl::Status end = member->end();
  // Told first: the ranks that were taken over wait for this one.
  if (!status.ok() && end.ok()) member->Fail(status);
  adoptions.Join();
  // The job's own end says more than what it broke off here.
  return status.ok() || end.ok() ? status : end;
}

}  // namespace tributary
