#include "worker/trainer/run_worker.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/member/member.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/planned_parameters.h"
#include "common/status/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/trainer/adoptions.h"
#include "worker/trainer/canceller.h"
#include "worker/trainer/hand_over_weights.h"
#include "worker/trainer/make_synchronizer.h"
#include "worker/trainer/plan_is_over.h"
#include "worker/trainer/replica.h"
#include "worker/trainer/trainer.h"
#include "worker/trainer/worker_metrics.h"

namespace tributary {
namespace {

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

// index: the machine's device, modulo the number of its devices.
absl::StatusOr<std::unique_ptr<Ops>> MakeOps(v1::Device device, int64_t index,
                                             v1::Precision precision) {
  const DeviceChoice choice = device == v1::DEVICE_CPU    ? DeviceChoice::kCpu
                              : device == v1::DEVICE_CUDA ? DeviceChoice::kCuda
                                                          : DeviceChoice::kAuto;
  std::string why;
  std::unique_ptr<Ops> ops = CreateOps(choice, &why, index,
                                       precision == v1::PRECISION_BFLOAT16
                                           ? ProductPrecision::kBfloat16
                                           : ProductPrecision::kFloat32);
  if (!ops) return absl::FailedPreconditionError(why);
  if (!why.empty()) spdlog::info("{}", why);
  return ops;
}

// The worker's index on its machine, for choosing a device. Defaults to the
// job's rank, which spreads ranks over devices when one machine runs all ranks,
// or each machine runs a block of as many ranks as it has devices.
int64_t LocalRank(const WorkerOptions& options, const Member& member) {
  if (member.job().strategy().has_data_parallel()) return member.index();
  return options.local_rank.value_or(member.index());
}

// Everything that a worker builds for its job, in the order of construction.
struct Workplace {
  std::unique_ptr<Ops> ops;
  bool recomputes = false;  // Member::DeclareArithmetic
  std::shared_ptr<const TrainTest> data;
  std::unique_ptr<Replica> replica;  // of the current plan
  BatchCut cut;
  std::optional<StepPlan> plan;
};

// OK when the model accepts these samples and has outputs for their targets.
absl::Status CheckFits(const Dataset& data, const Replica& replica) {
  const Model& model = *replica.model();
  if (model.num_tokens() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckTokens(model.num_tokens()));
  }
  if (replica.loss() == nullptr) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(data.CheckTargets(model.output_shape()));
  if (data.target_kind() != TargetKind::kClass) return absl::OkStatus();
  const OutputCut& cut = model.output_cut();
  return data.CheckClasses(cut.group == nullptr ? model.output_shape().back()
                                                : cut.range.total);
}

// Splits the data over the replicas and the steps.
absl::Status OpenSteps(const v1::JobSpec& job, Workplace* place) {
  const int64_t replicas = DeviceMeshOf(job).data;
  const v1::DataSpec& data = job.data();
  place->cut.rows = place->data->train->rows();
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

// Builds this worker's part of the model: the whole, or its part in the plan's
// groups.
absl::Status MakeReplica(const GroupParts& parts, const v1::Plan* plan,
                         Workplace* place) {
  const v1::JobSpec& job = parts.member->job();
  const int64_t replicas = place->cut.world;
  const Replica::Options options{
      .job = &job,
      .ops = parts.ops,
      .train = place->data->train.get(),
      .max_rows = (place->cut.global_batch + replicas - 1) / replicas,
      .rank = static_cast<int>(parts.member->index())};
  TRIBUTARY_ASSIGN_OR_RETURN(place->replica,
                             plan == nullptr
                                 ? Replica::CreateWhole(options)
                                 : Replica::Connect(options, parts, *plan));
  for (const Dataset* set :
       {place->data->train.get(), place->data->test.get()}) {
    if (set) TRIBUTARY_RETURN_IF_ERROR(CheckFits(*set, *place->replica));
  }
  return absl::OkStatus();
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
      .tensor_group = place.replica->tensor_group(),
      .micro_batches = job.strategy().pipeline_parallel().micro_batches(),
      .reports = place.replica->reports(),
      .train = place.data->train.get(),
      .test = place.data->test.get(),
      .plan = *place.plan,
      .cut = place.cut,
      .schedule = std::move(schedule),
      .synchronizer = synchronizer,
      .traffic = traffic,
      .slow_down = options.slow_down,
      .begin_step = [&](int64_t step) { return member.BeginStep(step); },
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

// Trains under one plan until the job is done or the plan is over.
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
           .recomputes = place.recomputes,
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
  int64_t last_step = 0;
  const auto give_weights = [&] {
    return GiveWeights(member, replica, *place.ops, plan, last_step);
  };
  if (start.ok()) {
    if (*start > 0) spdlog::info("going on after step {}", *start);
    metrics->SetSilentShard(-1);
    member.SetWaitingFor("");
    int64_t step = *start;
    status = TrainAndReport(member, place, options, synchronizer.get(), metrics,
                            &step);
    last_step = step;
    if (status.ok()) status = give_weights();
  }
  // Tells other ranks that this rank aborted, so that they stop waiting for it.
  if (!status.ok()) {
    const std::string why(status.message());
    if (!UsesServers(member.job())) synchronizer->Cancel(why);
    replica.Cancel(why);
  }
  canceller.Detach();
  TRIBUTARY_RETURN_IF_ERROR(status);
  TRIBUTARY_RETURN_IF_ERROR(member.Finish());
  // Keeps the synchronizer, which may still write checkpoints. If a server (or
  // a worker, without servers) is lost before the job is done, all ranks train
  // again under a new plan.
  return member.WaitForDone(plan.epoch(), give_weights);
}

std::vector<uint32_t> OtherRanks(const Member& member) {
  std::vector<uint32_t> others;
  const auto workers = static_cast<uint32_t>(member.job().cluster().workers());
  for (uint32_t rank = 0; rank < workers; ++rank) {
    if (rank != member.index()) others.push_back(rank);
  }
  return others;
}

// 0 for generated data: the job determines the samples, but their last bits may
// depend on the machine.
uint32_t DataChecksum(const v1::JobSpec& job, const Workplace& place) {
  return job.data().train().has_synthetic() ? 0 : place.data->train->checksum();
}

absl::Status Train(Member& member, Workplace& place, Canceller& canceller,
                   const WorkerOptions& options, WorkerMetrics* metrics) {
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      place.data, options.shared_data->Open(
                      job.data(), TargetKindOf(job.training().loss())));
  for (const std::string& warning : place.data->warnings) {
    spdlog::warn("{}", warning);
  }
  TRIBUTARY_RETURN_IF_ERROR(OpenSteps(job, &place));
  if (DeviceMeshOf(job).model_size() == 1) {
    TRIBUTARY_RETURN_IF_ERROR(MakeReplica(
        {.member = &member, .ops = place.ops.get()}, nullptr, &place));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      ParameterSpecs parameters,
      PlannedParameters(job, place.data->train->feature_shape()));
  TRIBUTARY_RETURN_IF_ERROR(
      member.DeclareModel({.parameters = std::move(parameters),
                           .total_steps = place.plan->total_steps(),
                           .steps_per_epoch = place.plan->steps_per_epoch(),
                           .data_checksum = DataChecksum(job, place)}));
  uint64_t epoch = 0;
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const v1::Plan plan, member.GetPlan(epoch + 1));
    epoch = plan.epoch();
    const absl::Status status =
        TrainPlan(member, place, canceller, options, plan, metrics);
    if (status.ok()) return status;
    // Closes the connections, so that ranks that wait for this one learn that
    // it ended.
    if (DeviceMeshOf(job).model_size() > 1) place.replica.reset();
    if (IsUnreadable(status)) {
      TRIBUTARY_RETURN_IF_ERROR(ReportUnreadable(status, plan, &member));
    } else if (!PlanIsOver(member, epoch, status)) {
      return status;
    }
    spdlog::info("plan epoch {} is over: {}", epoch,
                 std::string(status.message()));
  }
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& given) {
  LocalMeshes local_meshes;
  SharedData shared_data;
  WorkerOptions options = given;
  if (options.local_meshes == nullptr) options.local_meshes = &local_meshes;
  if (options.shared_data == nullptr) options.shared_data = &shared_data;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Exporter> exporter,
      Exporter::Start({.listen = options.metrics_listen, .role = "worker"}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  if (!options.adopted) TRIBUTARY_FAILPOINT("worker-started");
  Canceller canceller;
  Adoptions adoptions([&options](uint32_t rank) {
    WorkerOptions adopted = options;
    adopted.index = rank;
    adopted.adopted = true;
    adopted.metrics_listen.clear();
    return RunWorker(adopted);
  });
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
  absl::StatusOr<std::unique_ptr<Ops>> ops =
      MakeOps(device, LocalRank(options, *member),
              member->job().training().precision());
  absl::Status status = ops.status();
  if (status.ok()) {
    if (member->job().strategy().has_data_parallel() && !options.adopted) {
      adoptions.Adopt(OtherRanks(*member));
    }
    place.ops = *std::move(ops);
    spdlog::info("device: {}", place.ops->device_name());
    member->SetDevice(place.ops->device_name());
    const absl::StatusOr<bool> recomputes =
        member->DeclareArithmetic(ArithmeticOf(*place.ops));
    status = recomputes.status();
    if (recomputes.ok()) {
      place.recomputes = *recomputes;
      if (*recomputes) {
        spdlog::info(
            "rank {} computes with other bits than a process before it: a step "
            "that is still open is computed anew",
            member->index());
      }
      status = Train(*member, place, canceller, options, &metrics);
    }
  }
  const absl::Status end = member->end();
  // Reported before Join, because the adopted ranks wait for this rank.
  if (!status.ok() && end.ok()) member->Fail(status);
  adoptions.Join();
  // The job's end explains more than the error that it caused here.
  return status.ok() || end.ok() ? status : end;
}

}  // namespace tributary
