#include "worker/trainer/run_worker.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/control/member.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/run/safetensors.h"
#include "common/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/data/open_data.h"
#include "worker/model/initializer.h"
#include "worker/parallel/parameter_server_synchronizer.h"
#include "worker/trainer/trainer.h"
#include "worker/trainer/worker_metrics.h"

namespace tributary {
namespace {

// Passes the end of the job on to the synchronizer, whichever comes first.
class Canceller {
 public:
  void Attach(GradientSynchronizer* synchronizer) {
    absl::MutexLock lock(&mu_);
    synchronizer_ = synchronizer;
    if (synchronizer_ && !why_.empty()) synchronizer_->Cancel(why_);
  }
  void Cancel(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    why_ = std::string(status.message());
    if (synchronizer_) synchronizer_->Cancel(why_);
  }

 private:
  absl::Mutex mu_;
  GradientSynchronizer* synchronizer_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::string why_ ABSL_GUARDED_BY(mu_);
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
  std::unique_ptr<Model> model;
  std::unique_ptr<Loss> loss;
  BatchCut cut;
  std::optional<StepPlan> plan;
};

absl::Status OpenModel(const v1::JobSpec& job, Workplace* place) {
  const int64_t workers = job.cluster().workers();
  const v1::DataSpec& data = job.data();
  place->cut.rows = place->data.train->rows();
  place->cut.global_batch = data.batch_case() == v1::DataSpec::kGlobalBatchSize
                                ? data.global_batch_size()
                                : data.batch_size() * workers;
  place->cut.world = static_cast<int>(workers);
  TRIBUTARY_ASSIGN_OR_RETURN(
      place->plan,
      StepPlan::Create({.cut = place->cut,
                        .accumulation = job.training().gradient_accumulation(),
                        .epochs = job.training().epochs(),
                        .steps = job.training().steps()}));
  const int64_t max_rows = (place->cut.global_batch + workers - 1) / workers;
  TRIBUTARY_ASSIGN_OR_RETURN(
      place->model,
      Model::Create(
          job.model(), place->data.train->feature_shape(),
          {.ops = place->ops.get(), .max_rows = max_rows, .seed = job.seed()}));
  TRIBUTARY_ASSIGN_OR_RETURN(
      place->loss, Loss::Create(job.training().loss(),
                                {.ops = place->ops.get(),
                                 .max_rows = max_rows,
                                 .outputs = place->model->output_size()}));
  if (place->data.train->target_kind() == TargetKind::kClass) {
    for (const Dataset* set :
         {place->data.train.get(), place->data.test.get()}) {
      if (!set) continue;
      TRIBUTARY_RETURN_IF_ERROR(set->CheckClasses(place->model->output_size()));
    }
  }
  return absl::OkStatus();
}

// Rank 0's initial weights, on the host.
absl::StatusOr<std::vector<std::vector<float>>> MakeInitialWeights(
    const v1::JobSpec& job, const ParameterSpecs& parameters) {
  std::vector<std::vector<float>> weights;
  if (!job.model().initialize_from().empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        weights, ReadSafetensors(job.model().initialize_from(), parameters));
    return weights;
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    weights.emplace_back(parameters[p].size());
    InitialWeights(parameters, job.model(), job.seed(), static_cast<int>(p),
                   absl::MakeSpan(weights.back()));
  }
  return weights;
}

absl::Status StartWeights(const Member& member, const Workplace& place,
                          GradientSynchronizer* synchronizer) {
  std::vector<std::vector<float>> initial;
  if (member.index() == 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        initial, MakeInitialWeights(member.job(), place.model->parameters()));
  }
  std::vector<const float*> tensors;
  for (const std::vector<float>& tensor : initial) {
    tensors.push_back(tensor.data());
  }
  return synchronizer->Start(tensors);
}

absl::Status TrainAndReport(Member& member, Workplace& place,
                            GradientSynchronizer* synchronizer,
                            WorkerMetrics* metrics) {
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(
          job.training().learning_rate_schedule(),
          OptimizerOptionsOf(job.training().optimizer()).learning_rate,
          place.plan->total_steps()));
  Trainer trainer({
      .job = &job,
      .rank = static_cast<int>(member.index()),
      .num_workers = job.cluster().workers(),
      .ops = place.ops.get(),
      .model = place.model.get(),
      .loss = place.loss.get(),
      .train = place.data.train.get(),
      .test = place.data.test.get(),
      .plan = *place.plan,
      .cut = place.cut,
      .schedule = std::move(schedule),
      .synchronizer = synchronizer,
      .begin_step = [&](int64_t step) { return member.BeginStep(step); },
      .report_step =
          [&](const v1::StepReport& report, int64_t prefetched) {
            const GradientSynchronizer::Traffic traffic =
                synchronizer->traffic();
            member.SetBytes(traffic.bytes_sent, traffic.bytes_received);
            member.ReportStep(report);
            metrics->SetPrefetched(prefetched);
            metrics->CountStep(
                report,
                {traffic.bytes_sent, traffic.bytes_received, traffic.retries});
          },
      .report_evaluation =
          [&](int64_t step, int64_t epoch, const v1::EvaluationPart& part) {
            return member.ReportEvaluation(step, epoch, part);
          },
  });
  return trainer.Run();
}

absl::Status Train(Member& member, Workplace& place, Canceller& canceller,
                   const WorkerOptions& options, WorkerMetrics* metrics) {
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      place.data, OpenData(job.data(), TargetKindOf(job.training().loss())));
  for (const std::string& warning : place.data.warnings) {
    spdlog::warn("{}", warning);
  }
  TRIBUTARY_RETURN_IF_ERROR(OpenModel(job, &place));
  TRIBUTARY_RETURN_IF_ERROR(
      member.DeclareModel({.parameters = place.model->parameters(),
                           .total_steps = place.plan->total_steps(),
                           .steps_per_epoch = place.plan->steps_per_epoch()}));
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::Plan plan,
                             member.GetPlan(options.join_timeout));
  const v1::ParameterServerSpec& strategy = job.strategy().parameter_server();
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterClient> client,
      ParameterClient::Connect(
          {.plan = plan,
           .rank = member.index(),
           .incarnation = member.incarnation(),
           .step_timeout = absl::Seconds(strategy.sync_timeout_seconds()),
           .on_waiting =
               [&member](const std::string& whom) {
                 member.SetWaitingFor(whom);
               },
           .delay_micros = options.delay_micros}));
  ParameterServerSynchronizer synchronizer(std::move(client), place.model.get(),
                                           place.ops.get());
  canceller.Attach(&synchronizer);
  absl::Status status = StartWeights(member, place, &synchronizer);
  if (status.ok()) {
    status = TrainAndReport(member, place, &synchronizer, metrics);
  }
  canceller.Attach(nullptr);
  return status;
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Exporter> exporter,
      Exporter::Start({.listen = options.metrics_listen, .role = "worker"}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  Canceller canceller;
  Workplace place;
  WorkerMetrics metrics;
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Member> member,
      Member::Join({.coordinator = options.coordinator,
                    .role = v1::ROLE_WORKER,
                    .metrics_address = exporter->address(),
                    .wanted_index = options.index,
                    .join_timeout = options.join_timeout,
                    .on_failure = [&](const absl::Status& status) {
                      canceller.Cancel(status);
                    }}));
  SetLogIndex(member->index());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck(
      [&member] { return HealthOf(member->Contact(), member->waiting_for()); });
  const Exporter::Handle source =
      exporter->AddSource([&](MetricsWriter* writer) {
        metrics.Write(member->index(), !member->waiting_for().empty(), writer);
      });
  spdlog::info("rank {} of {}", member->index(),
               member->job().cluster().workers());
  const v1::Device device = options.device == v1::DEVICE_AUTO
                                ? member->job().device()
                                : options.device;
  absl::StatusOr<std::unique_ptr<Ops>> ops = MakeOps(device);
  absl::Status status = ops.status();
  if (status.ok()) {
    place.ops = *std::move(ops);
    spdlog::info("device: {}", place.ops->device_name());
    member->SetDevice(place.ops->device_name());
    status = Train(*member, place, canceller, options, &metrics);
  }
  if (status.ok()) return member->Finish();
  // The job's own end says more than what it broke off here.
  if (!member->end().ok()) return member->end();
  member->Fail(status);
  return status;
}

}  // namespace tributary
