#include "server/coordinator/job_control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/job/job_options.h"
#include "common/model_cut.h"
#include "common/partition_plan.h"
#include "common/status_macros.h"
#include "common/wire/plan_codec.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// A call holds a thread of the server for no longer.
constexpr uint32_t kLongestWaitMs = 10'000;
// Notices that may wait to be shown; the log has all.
constexpr size_t kMaxNotices = 1000;
// Of one heartbeat; the others come again.
constexpr int kMaxCheckpointReports = 64;

const char* PhaseName(v1::JobPhase phase) {
  switch (phase) {
    case v1::JOB_PHASE_WAITING:
      return "waiting for members";
    case v1::JOB_PHASE_RUNNING:
      return "running";
    case v1::JOB_PHASE_STOPPING:
      return "stopping";
    case v1::JOB_PHASE_DONE:
      return "done";
    case v1::JOB_PHASE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

// The shards that hold any block of the plan.
std::vector<uint32_t> HoldersOf(const v1::JobSpec& job, const v1::Plan& plan) {
  std::vector<uint32_t> holders;
  if (!UsesServers(job)) {
    // Replicas are alike: one writes. Cuts of the state are each rank's.
    const uint32_t ranks = job.strategy().all_reduce().sharded()
                               ? plan.num_workers()
                               : DeviceMeshOf(job).model_size();
    for (uint32_t rank = 0; rank < ranks; ++rank) holders.push_back(rank);
    return holders;
  }
  const absl::StatusOr<PartitionPlan> cut = MakePartitionPlan(plan);
  for (int shard = 0; cut.ok() && shard < cut->num_shards(); ++shard) {
    if (!cut->blocks(shard).empty()) holders.push_back(shard);
  }
  return holders;
}

}  // namespace

JobControl::JobControl(Options options)
    : clock_(options.clock),
      save_(std::move(options.save)),
      state_(options.restored != nullptr
                 ? JobState(options.state, *options.restored,
                            options.clock->NowMicros())
                 : JobState(options.state, options.clock->NowMicros())),
      progress_(options.state.job.cluster().workers(),
                std::max(options.state.start_step, options.recorded_step)),
      evaluations_(options.state.job.training().loss(),
                   options.state.job.cluster().workers()),
      rendezvous_(options.state.job.cluster().workers()) {
  if (options.restored == nullptr) return;
  absl::MutexLock lock(&mu_);
  for (int rank = 0; rank < options.state.job.cluster().workers(); ++rank) {
    unheard_.insert(rank);
  }
  logged_phase_ = state_.phase();
  progress_micros_ = clock_->NowMicros();
}

absl::StatusOr<v1::RegisterResponse> JobControl::Register(
    const v1::RegisterRequest& request) {
  absl::MutexLock lock(&mu_);
  absl::StatusOr<v1::RegisterResponse> place =
      state_.Register(request, clock_->NowMicros());
  if (place.ok()) {
    spdlog::info("{} {} is {} (pid {}){}{}, incarnation {}",
                 request.role() == v1::ROLE_SERVER ? "server" : "worker",
                 place->index(), request.host(), request.pid(),
                 request.address().empty() ? "" : " at ", request.address(),
                 place->incarnation());
  }
  NotePhaseLocked();
  return place;
}

absl::Status JobControl::DeclareModel(const v1::DeclareModelRequest& request) {
  absl::MutexLock lock(&mu_);
  absl::Status status = state_.DeclareModel(request, clock_->NowMicros());
  NotePhaseLocked();
  return status;
}

absl::StatusOr<v1::Plan> JobControl::GetPlan(
    const v1::GetPlanRequest& request) {
  absl::MutexLock lock(&mu_);
  const auto there = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return state_.plan() != nullptr && !state_.wants_new_plan() &&
           state_.plan()->epoch() >= request.min_epoch();
  };
  const auto decided = [this, &there]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || state_.over() || there();
  };
  mu_.AwaitWithTimeout(
      absl::Condition(&decided),
      absl::Milliseconds(std::min(request.wait_ms(), kLongestWaitMs)));
  if (state_.phase() == v1::JOB_PHASE_FAILED) {
    return absl::AbortedError(state_.message());
  }
  if (state_.over()) return absl::FailedPreconditionError("the job is done");
  if (there()) return *state_.plan();
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  if (state_.plan() != nullptr && !state_.wants_new_plan()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job has plan epoch ", state_.plan()->epoch(),
                     ", wanted ", request.min_epoch(), " or later"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the job still waits for ", state_.Missing()));
}

absl::StatusOr<v1::HeartbeatResponse> JobControl::Heartbeat(
    const v1::HeartbeatRequest& request) {
  absl::MutexLock lock(&mu_);
  // Its place and incarnation may well be somebody's here.
  if (request.job_id() != state_.options().job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("a heartbeat of job ", request.job_id(),
                     "; this is the coordinator of job ",
                     state_.options().job_id, ": its job has ended"));
  }
  if (state_.over()) return state_.Farewell(request);
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(request, clock_->NowMicros()));
  uint32_t taken = 0;
  int64_t last_step = 0;
  if (request.role() == v1::ROLE_WORKER) {
    if (request.plan_epoch() > 0) {
      TRIBUTARY_RETURN_IF_ERROR(
          progress_.StartAt(request.index(), request.start_step()));
    }
    TRIBUTARY_RETURN_IF_ERROR(FindReportsLocked(request));
    TRIBUTARY_ASSIGN_OR_RETURN(taken,
                               progress_.Add(request.index(), request.steps()));
    NoteProgressLocked();
    last_step = progress_.last_step(request.index());
  }
  if (UsesServers(state_.options().job) ==
      (request.role() == v1::ROLE_SERVER)) {
    TakeCheckpointsLocked(request);
  }
  v1::HeartbeatResponse response = state_.Apply(request, taken, last_step);
  response.set_checkpoints_taken(
      std::min(request.checkpoints_size(), kMaxCheckpointReports));
  NotePhaseLocked();
  return response;
}

absl::Status JobControl::FindReportsLocked(
    const v1::HeartbeatRequest& request) {
  if (request.steps().empty() || unheard_.count(request.index()) == 0) {
    return absl::OkStatus();
  }
  if (request.steps(0).step() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.index(), " reports step ",
                     request.steps(0).step(), "; steps count from 1"));
  }
  unheard_.erase(request.index());
  return progress_.StartAt(request.index(), request.steps(0).step() - 1);
}

void JobControl::TakeCheckpointsLocked(const v1::HeartbeatRequest& request) {
  if (state_.plan() == nullptr) return;
  const int count = std::min(request.checkpoints_size(), kMaxCheckpointReports);
  for (int i = 0; i < count; ++i) {
    const v1::CheckpointReport& report = request.checkpoints(i);
    // A file of an earlier plan's step is of another way there.
    if (report.plan_epoch() != state_.plan()->epoch()) continue;
    ledger_.Add(request.index(), report);
  }
}

std::optional<PendingManifest> JobControl::NextManifest() {
  absl::MutexLock lock(&mu_);
  const std::optional<CheckpointLedger::Complete> next = ledger_.Next();
  if (!next || state_.plan() == nullptr) return std::nullopt;
  const v1::Plan& plan = *state_.plan();
  const v1::JobSpec& job = state_.options().job;
  PendingManifest pending;
  pending.directory = plan.checkpoint_directory();
  pending.plan_epoch = plan.epoch();
  v1::CheckpointManifest& manifest = pending.manifest;
  manifest.set_name(job.name());
  manifest.set_job_id(plan.job_id());
  *manifest.mutable_job() = job;
  manifest.set_step(next->step);
  manifest.set_epoch((next->step - 1) / state_.steps_per_epoch() + 1);
  manifest.set_total_steps(state_.total_steps());
  manifest.set_steps_per_epoch(state_.steps_per_epoch());
  *manifest.mutable_parameters() = plan.parameters();
  for (const std::string& name : next->state_names) {
    manifest.add_state_names(name);
  }
  for (int rank = 0; rank < plan.num_workers(); ++rank) {
    manifest.add_workers()->set_steps(next->step);
  }
  manifest.set_created_micros(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  for (const v1::CheckpointFile& file : next->files) {
    *manifest.add_files() = file;
  }
  return pending;
}

bool JobControl::ManifestWritten(const PendingManifest& pending,
                                 const std::string& folder,
                                 const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (state_.plan()->epoch() != pending.plan_epoch) return false;
  const int64_t step = pending.manifest.step();
  ledger_.Settle(step, status, clock_->NowMicros());
  if (status.ok()) {
    checkpoint_seconds_.Observe(ledger_.write_seconds());
    state_.SetRestorePoint(step, folder);
    spdlog::info("checkpoint of step {}: {}", step, folder);
  }
  NotePhaseLocked();
  return true;
}

std::vector<std::string> JobControl::TakeFailedCheckpoints() {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> folders;
  for (int64_t step : ledger_.TakeFailed()) {
    if (state_.plan() == nullptr) continue;
    folders.push_back(absl::StrCat(state_.plan()->checkpoint_directory(), "/",
                                   CheckpointFolderName(step)));
  }
  return folders;
}

bool JobControl::CheckpointOpen() const {
  absl::MutexLock lock(&mu_);
  const int64_t every = state_.options().job.checkpoint().every_steps();
  if (every == 0 || state_.plan() == nullptr) return false;
  const int64_t last = progress_.merged_step() / every * every;
  return last > state_.options().start_step && ledger_.Open(last);
}

absl::Status JobControl::ReportEvaluation(
    const v1::ReportEvaluationRequest& request) {
  absl::MutexLock lock(&mu_);
  v1::HeartbeatRequest place;
  place.set_role(v1::ROLE_WORKER);
  place.set_index(request.rank());
  place.set_incarnation(request.incarnation());
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(place, clock_->NowMicros()));
  return evaluations_.Add(request);
}

v1::MemberStatus JobControl::StatusOfLocked(const Place& place) const {
  v1::MemberStatus status;
  status.set_role(place.role);
  status.set_index(place.index);
  status.set_alive(place.alive);
  if (place.incarnation == 0) return status;
  status.set_host(place.holder.host());
  status.set_pid(place.holder.pid());
  status.set_address(place.holder.address());
  status.set_step(place.role == v1::ROLE_WORKER
                      ? progress_.last_step(place.index)
                      : progress_.merged_step());
  status.set_seconds_since_heartbeat(
      static_cast<double>(clock_->NowMicros() - place.last_heartbeat_micros) /
      1e6);
  status.set_waiting_for(place.latest.waiting_for());
  status.set_device(place.latest.device());
  status.set_peak_memory_bytes(place.latest.peak_memory_bytes());
  status.set_bytes_sent(place.latest.bytes_sent());
  status.set_bytes_received(place.latest.bytes_received());
  status.set_optimizer_seconds(place.latest.optimizer_seconds());
  status.set_finished(place.finished);
  status.set_holders(place.holders);
  status.set_losses(place.losses);
  status.set_metrics_address(place.holder.metrics_address());
  *status.mutable_waiting_for_ranks() = place.latest.waiting_for_ranks();
  return status;
}

absl::StatusOr<v1::ExchangeResponse> JobControl::Exchange(
    const v1::ExchangeRequest& request) {
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  TRIBUTARY_RETURN_IF_ERROR(rendezvous_.Put(request));
  const auto is_over = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return state_.over() || state_.wants_new_plan() ||
           state_.plan()->epoch() != request.plan_epoch();
  };
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || is_over() ||
           rendezvous_.Complete(request.group()) != nullptr;
  };
  mu_.AwaitWithTimeout(
      absl::Condition(&decided),
      absl::Milliseconds(std::min(request.wait_ms(), kLongestWaitMs)));
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  if (is_over()) {
    return absl::AbortedError(
        absl::StrCat("plan epoch ", request.plan_epoch(), " is over"));
  }
  const v1::ExchangeResponse* all = rendezvous_.Complete(request.group());
  if (all != nullptr) return *all;
  return absl::DeadlineExceededError(
      absl::StrCat("group ", request.group(), " waits for its members ",
                   rendezvous_.Missing(request.group())));
}

absl::Status JobControl::Put(const v1::PutWeightsRequest& request) {
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (UsesServers(state_.options().job)) {
    return absl::FailedPreconditionError(
        "weights are put by the ranks of a job without servers");
  }
  const v1::Plan& plan = *state_.plan();
  if (request.parameter() < static_cast<uint32_t>(plan.parameters_size())) {
    const v1::ParameterSpec& spec =
        plan.parameters(static_cast<int>(request.parameter()));
    const int first =
        FirstHolder({spec.stage() - 1, spec.tensor() - 1}, MeshOf(plan));
    if (request.rank() != static_cast<uint32_t>(first)) {
      return absl::FailedPreconditionError(
          absl::StrCat("parameter ", spec.name(), " is put by rank ", first,
                       ", got rank ", request.rank()));
    }
  }
  return put_weights_.Put(request);
}

absl::StatusOr<FinalWeights> JobControl::TakePutWeights(int64_t step) const {
  absl::MutexLock lock(&mu_);
  if (put_weights_.complete() && put_weights_.weights().step == step) {
    return put_weights_.weights();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("worker 0 has not given the weights after step ", step));
}

v1::JobStatusResponse JobControl::Snapshot() const {
  absl::MutexLock lock(&mu_);
  v1::JobStatusResponse status;
  status.set_name(state_.options().job.name());
  status.set_phase(state_.phase());
  status.set_message(MessageLocked());
  status.set_step(progress_.merged_step());
  status.set_total_steps(state_.total_steps());
  if (state_.steps_per_epoch() > 0) {
    status.set_epoch(static_cast<double>(progress_.merged_step()) /
                     static_cast<double>(state_.steps_per_epoch()));
  }
  status.set_loss(progress_.latest().loss);
  status.set_samples_per_second(progress_.latest().samples_per_second);
  status.set_learning_rate(progress_.latest().learning_rate);
  status.set_samples(progress_.total_samples());
  if (state_.plan() != nullptr && !state_.over()) {
    status.set_step_wait_seconds(
        static_cast<double>(clock_->NowMicros() - progress_micros_) / 1e6);
  }
  for (const auto& [name, value] : evaluations_.latest().metrics) {
    (*status.mutable_test())[name] = value;
  }
  status.set_strategy(StrategyName(state_.options().job));
  status.set_checkpoint_step(
      std::max(ledger_.newest_step(), state_.restore_step()));
  status.set_checkpoint_every_steps(
      state_.options().job.checkpoint().every_steps());
  if (state_.plan() != nullptr) {
    const int64_t since = std::max(ledger_.newest_micros(), begin_micros_);
    status.set_seconds_since_checkpoint(
        1e-6 * static_cast<double>(clock_->NowMicros() - since));
  }
  status.set_checkpoint_failures(ledger_.failures());
  status.set_checkpoint_pause_seconds(ledger_.pause_seconds());
  status.set_checkpoint_write_seconds(ledger_.write_seconds());
  status.set_rollbacks(state_.rollbacks());
  status.set_workers_lost(state_.workers_lost());
  status.set_servers_lost(state_.servers_lost());
  for (const Place& place : state_.membership().servers()) {
    *status.add_members() = StatusOfLocked(place);
  }
  for (const Place& place : state_.membership().workers()) {
    *status.add_members() = StatusOfLocked(place);
  }
  return status;
}

std::string JobControl::MessageLocked() const {
  if (state_.phase() == v1::JOB_PHASE_WAITING) {
    return absl::StrCat("waiting for ", state_.Missing());
  }
  return state_.over() ? state_.message()
                       : state_.WaitsFor(clock_->NowMicros());
}

bool JobControl::HasUpdateLocked() const {
  return progress_.HasRecords() || !notices_.empty() ||
         evaluations_.HasRecords(progress_.merged_step()) ||
         state_.phase() != shown_phase_;
}

JobUpdate JobControl::WaitForUpdate(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || HasUpdateLocked();
  };
  mu_.AwaitWithTimeout(absl::Condition(&ready), timeout);
  JobUpdate update;
  update.steps = progress_.Take();
  update.evaluations = evaluations_.Take(progress_.merged_step());
  update.notices = std::exchange(notices_, {});
  update.phase = shown_phase_ = state_.phase();
  update.message = MessageLocked();
  update.total_steps = state_.total_steps();
  update.steps_per_epoch = state_.steps_per_epoch();
  return update;
}

JobTotals JobControl::Totals() const {
  absl::MutexLock lock(&mu_);
  JobTotals totals;
  totals.steps = progress_.merged_step();
  totals.epochs = progress_.latest().epoch;
  totals.samples = progress_.total_samples();
  totals.training_seconds = progress_.training_seconds();
  totals.final_loss = progress_.latest().loss;
  totals.start_step = state_.options().start_step;
  totals.checkpoint_step = ledger_.newest_step();
  totals.rollbacks = state_.rollbacks();
  totals.workers_lost = state_.workers_lost();
  totals.servers_lost = state_.servers_lost();
  totals.stopped =
      state_.stop_requested() && totals.steps < state_.total_steps();
  for (const Place& worker : state_.membership().workers()) {
    totals.bytes_sent += worker.latest.bytes_sent();
    totals.bytes_received += worker.latest.bytes_received();
  }
  return totals;
}

void JobControl::AllowStart(const std::string& checkpoint_directory) {
  absl::MutexLock lock(&mu_);
  state_.AllowStart(checkpoint_directory);
  NotePhaseLocked();
}

LossVerdict JobControl::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                   absl::string_view how) {
  absl::MutexLock lock(&mu_);
  const LossVerdict verdict =
      state_.MemberLost(role, index, pid, how, clock_->NowMicros());
  NotePhaseLocked();
  return verdict;
}

void JobControl::RequestStop() {
  absl::MutexLock lock(&mu_);
  state_.RequestStop();
  NotePhaseLocked();
}

void JobControl::Fail(absl::string_view why) {
  absl::MutexLock lock(&mu_);
  state_.Fail(why);
  NotePhaseLocked();
}

bool JobControl::WaitUntilEveryoneKnowsEnd(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (state_.over() && state_.EveryoneKnowsEnd());
  };
  return mu_.AwaitWithTimeout(absl::Condition(&known), timeout);
}

void JobControl::Tick(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&closed_), timeout);
  state_.Tick(clock_->NowMicros());
  NotePhaseLocked();
}

void JobControl::AwaitWork(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || ReadyToSaveLocked() || ledger_.Next().has_value();
  };
  mu_.AwaitWithTimeout(absl::Condition(&there), timeout);
}

bool JobControl::InForceLocked() const {
  return !state_.over() && state_.plan() != nullptr && !state_.wants_new_plan();
}

bool JobControl::InForce(uint64_t plan_epoch) const {
  absl::MutexLock lock(&mu_);
  return InForceLocked() && state_.plan()->epoch() == plan_epoch;
}

bool JobControl::ReadyToSaveLocked() const {
  return InForceLocked() && state_.AllWorkersFinished();
}

bool JobControl::ReadyToSave(v1::Plan* plan, int64_t* step) const {
  absl::MutexLock lock(&mu_);
  if (!ReadyToSaveLocked()) return false;
  *plan = *state_.plan();
  *step = state_.final_step();
  return true;
}

void JobControl::Saved(uint64_t plan_epoch, const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (status.ok()) {
    state_.MarkDone();
  } else if (InForceLocked() && state_.plan()->epoch() == plan_epoch) {
    state_.Fail(absl::StrCat("the final weights could not be saved: ",
                             status.message()));
  }
  NotePhaseLocked();
}

void JobControl::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

bool JobControl::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

void JobControl::NoteProgressLocked() {
  if (progress_.merged_step() == noted_step_) return;
  noted_step_ = progress_.merged_step();
  progress_micros_ = clock_->NowMicros();
}

void JobControl::SaveStateLocked() {
  if (!save_) return;
  const v1::CoordinatorState state = state_.Save();
  std::string bytes = state.SerializeAsString();
  if (bytes == saved_state_) return;
  saved_state_ = std::move(bytes);
  if (absl::Status status = save_(state); !status.ok()) {
    spdlog::error("a coordinator in this one's place could not go on: {}",
                  std::string(status.message()));
  }
}

void JobControl::NotePhaseLocked() {
  SaveStateLocked();
  if (state_.plan() != nullptr && state_.plan()->epoch() != ledger_epoch_) {
    ledger_epoch_ = state_.plan()->epoch();
    const v1::JobSpec& job = state_.options().job;
    ledger_.Begin(state_.restore_step(), HoldersOf(job, *state_.plan()),
                  UsesServers(job) ? "server" : "rank");
    rendezvous_.Begin(ledger_epoch_);
    put_weights_.Begin(FromProto(state_.plan()->parameters()));
  }
  std::vector<std::string> notices = state_.TakeNotices();
  for (std::string& notice : ledger_.TakeNotices()) {
    notices.push_back(std::move(notice));
  }
  for (std::string& notice : notices) {
    spdlog::warn("{}", notice);
    if (notices_.size() < kMaxNotices) notices_.push_back(std::move(notice));
  }
  if (state_.phase() == logged_phase_) return;
  if (state_.phase() == v1::JOB_PHASE_RUNNING) {
    progress_micros_ = clock_->NowMicros();
    if (begin_micros_ == 0) begin_micros_ = progress_micros_;
  }
  logged_phase_ = state_.phase();
  spdlog::info("the job is {}{}{}", PhaseName(logged_phase_),
               state_.message().empty() ? "" : ": ", state_.message());
}

}  // namespace tributary
