// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/rank_work.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/tensor.h"
#include "common/files/folder_roots.h"
#include "common/host/memory/available_memory.h"
#include "common/host/processors/near_processors.h"
#include "common/job/files/job_files.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/job/optimizer_spec.h"
#include "common/layers/model_costs.h"
#include "common/plan/planned_parameters.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "kernels/nccl_arithmetic.h"
#include "spdlog/spdlog.h"
#include "worker/rank/session/rank_driver.h"
#include "worker/train/data/batches/training_batches.h"
#include "worker/train/data/class_weights.h"
#include "worker/train/data/raw_checksum.h"
#include "worker/train/trainer/device_claim.h"
#include "worker/train/trainer/make_synchronizer.h"
#include "worker/train/trainer/start_weights.h"
#include "worker/train/trainer/trainer.h"

namespace tributary {
namespace {

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
  if (StrategyOf(member.job()).one_process()) return member.index();
  return options.local_rank.value_or(member.index());
}

// Whether one of the job's groups may use NCCL.
bool AllowsNccl(const v1::JobSpec& job) {
  const v1::StrategySpec& spec = job.strategy();
  const Strategy strategy = StrategyOf(job);
  std::vector<v1::CollectiveBackend> backends;
  if (!strategy.uses_servers()) {
    backends.push_back(spec.has_data_parallel() ? spec.data_parallel().backend()
                                                : spec.all_reduce().backend());
  }
  if (strategy.tensor > 1) backends.push_back(spec.tensor_parallel().backend());
  if (strategy.stages > 1) {
    backends.push_back(spec.pipeline_parallel().backend());
  }
  return absl::c_any_of(backends, [](v1::CollectiveBackend backend) {
    return backend != v1::COLLECTIVE_BACKEND_GLOO;
  });
}

std::vector<uint32_t> OtherRanks(const Member& member) {
  std::vector<uint32_t> others;
  const auto workers = static_cast<uint32_t>(member.job().cluster().workers());
  for (uint32_t rank = 0; rank < workers; ++rank) {
    if (rank != member.index()) others.push_back(rank);
  }
  return others;
}

}  // namespace

absl::Status RankWork::OpenDevice() {
  const v1::Device device =
      options_.device == v1::DEVICE_AUTO ? job_.device() : options_.device;
  TRIBUTARY_ASSIGN_OR_RETURN(ops_, MakeOps(device, LocalRank(options_, member_),
                                           job_.training().precision()));
  if (StrategyOf(job_).one_process() && !options_.in_process.adopted) {
    tools_.adoptions.Adopt(OtherRanks(member_));
  }
  spdlog::info("device: {}", ops_->device_name());
  device_claim_ = ClaimDevice(*ops_);
  if (const std::string near = StayNear(ops_->device_id()); !near.empty()) {
    spdlog::info("computes on processors {}, which are near the device", near);
  }
  member_.display().SetDevice(ops_->device_name());
  std::string arithmetic = ArithmeticOf(*ops_);
  if (AllowsNccl(job_)) arithmetic += NcclArithmeticOf(*ops_);
  TRIBUTARY_ASSIGN_OR_RETURN(recomputes_,
                             member_.DeclareArithmetic(arithmetic));
  if (recomputes_) {
    spdlog::info(
        "rank {} computes with other bits than a process before it: a step "
        "that is still open is computed anew",
        member_.index());
  }
  return absl::OkStatus();
}

absl::Status RankWork::Declare() {
  for (const std::string& file : FilesOfJob(job_)) {
    TRIBUTARY_RETURN_IF_ERROR(
        CheckBelow(file, options_.roots.data, "--data-root"));
  }
  TRIBUTARY_RETURN_IF_ERROR(OpenDevice());
  TRIBUTARY_ASSIGN_OR_RETURN(
      data_, options_.in_process.shared_data->Open(
                 job_.data(), TargetKindOf(job_.training().loss())));
  for (const std::string& warning : data_->warnings) {
    spdlog::warn("{}", warning);
  }
  TRIBUTARY_RETURN_IF_ERROR(OpenSteps());
  if (!HasModelGroups()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckMemory());
    TRIBUTARY_RETURN_IF_ERROR(MakeReplica(nullptr));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      ParameterSpecs parameters,
      PlannedParameters(job_, data_->train->feature_shape()));
  Declaration declaration{.parameters = std::move(parameters),
                          .total_steps = steps_->total_steps(),
                          .steps_per_epoch = steps_->steps_per_epoch(),
                          .course = steps_->course(),
                          .data_checksum = DataChecksum(),
                          .evaluation_checksum = EvaluationChecksum(),
                          .evaluated_checksum = EvaluatedChecksum(),
                          .training_rows = data_->train->rows()};
  if (member_.index() == 0) {
    TRIBUTARY_RETURN_IF_ERROR(DescribeInputs(&declaration));
  }
  return member_.DeclareModel(declaration);
}

// A model that does not fit its data is refused elsewhere.
absl::Status RankWork::CheckMemory() const {
  const auto parameters =
      PlannedParameters(job_, data_->train->feature_shape());
  if (!parameters.ok() || !ops_->is_host()) return absl::OkStatus();
  uint64_t weights = 0;
  for (const ParameterSpec& parameter : *parameters) {
    weights += static_cast<uint64_t>(NumElements(parameter.shape));
  }
  // Weights and gradients, and with a delay those of ExchangeMemory.
  const uint64_t copies = SyncTraitsOf(job_).delay > 0 ? 5 : 2;
  return CheckClaim(
      {.who = absl::StrCat("worker ", member_.index()),
       .bytes = copies * weights * sizeof(float),
       .purpose = "weights and gradients",
       .remedy = "use a smaller model or a machine with more memory"},
      ReadAvailableMemory());
}

uint32_t RankWork::EvaluationChecksum() const {
  const bool validates = data_->validation != nullptr &&
                         !IsGenerated(job_.data().validation().source()) &&
                         DataChecksum() != 0;
  const bool tests = data_->test != nullptr && !IsGenerated(job_.data().test());
  if (!validates && !tests) return 0;
  RawChecksum checksum;
  if (validates) checksum.AddValue(data_->validation->checksum());
  if (tests) checksum.AddValue(data_->test->checksum());
  return checksum.value();
}

uint32_t RankWork::EvaluatedChecksum() const {
  const bool validates = data_->validation != nullptr;
  const Dataset* const evaluated = data_->evaluated();
  const bool generated = validates
                             ? IsGenerated(job_.data().validation().source())
                             : IsGenerated(job_.data().test());
  // A fraction of generated rows has no checksum either.
  const bool of_training = job_.data().validation().has_fraction();
  return evaluated == nullptr || generated ||
                 (of_training && DataChecksum() == 0)
             ? 0
             : evaluated->checksum();
}

// Describes the inputs for model.json. All ranks read the same data, so only
// rank 0 describes it.
absl::Status RankWork::DescribeInputs(Declaration* declaration) const {
  if (job_.training().loss().cross_entropy().balanced()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        const ModelCosts costs,
        CostsOfModel(job_.model(), data_->train->feature_shape()));
    TRIBUTARY_ASSIGN_OR_RETURN(
        const v1::LossSpec loss,
        WithClassWeights(job_.training().loss(), *data_->train,
                         costs.layers.back().output_shape.back()));
    declaration->class_weights = {loss.cross_entropy().class_weights().begin(),
                                  loss.cross_entropy().class_weights().end()};
  }
  const size_t bytes = data_->preprocessing.ByteSizeLong();
  if (bytes <= kMaxPreprocessingBytes) {
    declaration->preprocessing = &data_->preprocessing;
    return absl::OkStatus();
  }
  declaration->no_preprocessing = absl::StrCat(
      "the preprocessing has ", bytes, " bytes, and model.json holds at most ",
      kMaxPreprocessingBytes,
      ": does a categorical column have a category for "
      "nearly every row?");
  spdlog::warn("{}", declaration->no_preprocessing);
  return absl::OkStatus();
}

// Splits the data over the replicas and the steps.
absl::Status RankWork::OpenSteps() {
  const int64_t replicas = StrategyOf(job_).mesh().data;
  const v1::DataSpec& data = job_.data();
  BatchCut cut;
  cut.rows = data_->train->rows();
  cut.world = static_cast<int>(replicas);
  DataStretch stretch = StretchOf(job_, cut.rows);
  stretch.order += WindowsOf(*data_->train, data);
  TRIBUTARY_ASSIGN_OR_RETURN(const DataCourse before, member_.Course());
  TRIBUTARY_ASSIGN_OR_RETURN(DataCourse course,
                             GoOn(job_, before, member_.start_step(), stretch));
  cut.global_batch = stretch.global_batch;
  TRIBUTARY_ASSIGN_OR_RETURN(
      steps_, StepPlan::Create({.cut = cut,
                                .accumulation = stretch.accumulation,
                                .epochs = job_.training().epochs(),
                                .steps = job_.training().steps(),
                                .course = std::move(course)}));
  return absl::OkStatus();
}

absl::Status RankWork::MakeReplica(const v1::Plan* plan) {
  const BatchCut& cut = steps_->cut();
  const Replica::Options options{
      .job = &job_,
      .ops = ops_.get(),
      .train = data_->train.get(),
      .max_rows = (cut.global_batch + cut.world - 1) / cut.world,
      .rank = static_cast<int>(member_.index())};
  TRIBUTARY_ASSIGN_OR_RETURN(
      replica_, plan == nullptr
                    ? Replica::CreateWhole(options)
                    : Replica::Connect(options, group_parts(), *plan));
  for (const Dataset* set :
       {data_->train.get(), data_->validation.get(), data_->test.get()}) {
    if (set) TRIBUTARY_RETURN_IF_ERROR(replica_->CheckFits(*set));
  }
  return absl::OkStatus();
}

GradientSynchronizer::Traffic RankWork::traffic() const {
  GradientSynchronizer::Traffic sum = synchronizer_->traffic();
  sum.bytes_sent += replica_->bytes_sent();
  sum.bytes_received += replica_->bytes_received();
  return sum;
}

void RankWork::ReportStep(const v1::StepReport& report, int64_t prefetched) {
  step_ = report.step();
  const GradientSynchronizer::Traffic sum = traffic();
  member_.display().SetBytes(sum.bytes_sent, sum.bytes_received);
  tools_.metrics.SetPrefetched(prefetched);
  tools_.metrics.CountStep(report,
                           {sum.bytes_sent, sum.bytes_received, sum.retries});
  if (probe_ != nullptr) probe_->Report(report);
  member_.ReportStep(report);
}

absl::Status RankWork::TrainSteps() {
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateScheduleOf(job_, steps_->total_steps()));
  Trainer trainer({.spec = &job_,
                   .job = this,
                   .ops = ops_.get(),
                   .replica = replica_.get(),
                   .data = data_.get(),
                   .plan = *steps_,
                   .schedule = std::move(schedule),
                   .synchronizer = synchronizer_.get(),
                   .trace = member_.trace(),
                   .slow_down = options_.for_tests.slow_down});
  return trainer.Run(step_);
}

absl::Status RankWork::TrainFromStart() {
  TRIBUTARY_ASSIGN_OR_RETURN(
      step_, StartWeights(member_, *replica_, plan_, synchronizer_.get()));
  if (step_ > 0) spdlog::info("going on after step {}", step_);
  tools_.metrics.SetSilentShard(-1);
  member_.display().SetWaitingFor({});
  TRIBUTARY_RETURN_IF_ERROR(TrainSteps());
  return GiveWeights();
}

absl::Status RankWork::TrainPlan() {
  if (HasModelGroups()) TRIBUTARY_RETURN_IF_ERROR(MakeReplica(&plan_));
  TRIBUTARY_ASSIGN_OR_RETURN(
      synchronizer_,
      MakeSynchronizer(
          {.group = group_parts(),
           .replica = replica_.get(),
           .steps = &*steps_,
           .recomputes = recomputes_,
           .on_silent_shard =
               [this](int shard) { tools_.metrics.SetSilentShard(shard); },
           .delay_micros = options_.for_tests.delay_micros},
          plan_));
  TRIBUTARY_RETURN_IF_ERROR(AddProbe());
  tools_.canceller.Attach(
      [this](const std::string& why) {
        synchronizer_->Cancel(why);
        replica_->Cancel(why);
      },
      plan_.epoch());
  const absl::Status status = TrainFromStart();
  if (const uint64_t again = synchronizer_->traffic().retries; again > 0) {
    spdlog::info("{} calls to servers were made again", again);
  }
  // Tells other ranks that this rank aborted, so that they stop waiting for it.
  if (!status.ok()) {
    const std::string why(status.message());
    if (!StrategyOf(job_).uses_servers()) synchronizer_->Cancel(why);
    replica_->Cancel(why);
  }
  tools_.canceller.Detach();
  return status;
}

absl::Status RankWork::AddProbe() {
  const WorkerOptions::Probe& wanted = options_.probe;
  if (wanted.folder.empty()) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<StepProbe> probe,
      StepProbe::Create({.folder = wanted.folder,
                         .first_step = wanted.first_step,
                         .last_step = wanted.last_step,
                         .rank = static_cast<int>(member_.index()),
                         .ops = ops_.get(),
                         .model = replica_->model()},
                        std::move(synchronizer_)));
  probe_ = probe.get();
  synchronizer_ = std::move(probe);
  return absl::OkStatus();
}

void RankWork::EndPlan() {
  probe_ = nullptr;
  synchronizer_.reset();
  // Closes the connections, so that ranks that wait for this one learn that it
  // ended.
  if (HasModelGroups()) replica_.reset();
}

absl::Status RankWork::Run() {
  // The ranks of a data-parallel job are threads of one process, which are lost
  // together.
  RankDriver driver(
      {.life = {.group_breaks = StrategyOf(job_).has_groups() &&
                                !StrategyOf(job_).one_process(),
                .lease_micros = absl::ToInt64Microseconds(member_.lease())}},
      &member_, this);
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const bool trains, driver.Follow());
    if (!trains) return driver.status();
    plan_ = driver.plan();
    driver.Trained(TrainPlan());
  }
}

}  // namespace tributary
