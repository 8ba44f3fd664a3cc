#include "coordinator/service/job_control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutation.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/host/steady_waits.h"
#include "common/job/job_options.h"
#include "common/plan/plan_codec.h"
#include "coordinator/core/state_file.h"
#include "coordinator/service/checkpoint_holders.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Limit of notices that wait to be shown; the log has all of them.
constexpr size_t kMaxNotices = 1000;

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

}  // namespace

JobControl::JobControl(Options options)
    : clock_(options.clock),
      save_(std::move(options.save)),
      term_(options.restored != nullptr ? options.restored->term() + 1 : 1),
      started_micros_(options.restored != nullptr
                          ? options.restored->started_micros()
                          : options.started_micros),
      state_(options.restored != nullptr
                 ? JobState(options.state, *options.restored,
                            options.clock->NowMicros())
                 : JobState(options.state, options.clock->NowMicros())),
      progress_(options.state.job.cluster().workers(),
                options.state.start_step),
      evaluations_(options.state.job.training().loss(),
                   options.state.job.cluster().workers()),
      rendezvous_(options.state.job.cluster().workers()) {
  absl::MutexLock lock(&mu_);
  published_.set_phase(state_.phase());
  saving_.allowed = options.restored != nullptr || !options.state.hold_start;
  if (options.restored == nullptr) return;
  progress_.Continue(options.recorded);
  state_.KnowBegun(options.recorded.step);
  evaluations_.Restore(EvaluationsOf(*options.restored));
  for (int rank = 0; rank < options.state.job.cluster().workers(); ++rank) {
    unheard_.insert(rank);
  }
  logged_phase_ = state_.phase();
  progress_micros_ = clock_->NowMicros();
  if (state_.plan() != nullptr) taken_over_epoch_ = state_.plan()->epoch();
  PublishLocked();  // publishes the term
}

std::optional<PendingManifest> JobControl::NextManifest() {
  absl::MutexLock lock(&mu_);
  const std::optional<CheckpointLedger::Complete> next = ledger_.Next();
  if (!next || state_.plan() == nullptr || !HeldLocked().ok()) {
    return std::nullopt;
  }
  const v1::Plan& plan = *state_.plan();
  const v1::JobSpec& job = state_.options().job;
  PendingManifest pending;
  pending.directory = plan.checkpoint_directory();
  pending.plan_epoch = plan.epoch();
  v1::CheckpointManifest& manifest = pending.manifest;
  manifest.set_name(job.name());
  manifest.set_job_id(plan.job_id());
  manifest.set_lineage(plan.lineage());
  manifest.set_plan_epoch(plan.epoch());
  *manifest.mutable_job() = job;
  manifest.set_step(next->step);
  manifest.set_epoch((next->step - 1) / state_.steps_per_epoch() + 1);
  manifest.set_total_steps(state_.total_steps());
  manifest.set_steps_per_epoch(state_.steps_per_epoch());
  manifest.set_data_checksum(state_.data_checksum());
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
  if (TRIBUTARY_MUTATED("restore-point-before-manifest")) {
    state_.SetRestorePoint(next->step,
                           absl::StrCat(plan.checkpoint_directory(), "/",
                                        CheckpointFolderName(next->step)));
  }
  return pending;
}

bool JobControl::ManifestWritten(const PendingManifest& pending,
                                 const std::string& folder,
                                 const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (deposed_by_ > 0) return true;
  if (state_.plan()->epoch() != pending.plan_epoch) return false;
  const int64_t step = pending.manifest.step();
  ledger_.Settle(step, status, clock_->NowMicros());
  if (status.ok()) {
    checkpoint_seconds_.Observe(ledger_.write_seconds());
    state_.SetRestorePoint(step, folder);
    spdlog::info("checkpoint of step {}: {}", step, folder);
  }
  PublishLocked();
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

std::optional<UnreadableCheckpoint> JobControl::TakeUnreadable() {
  absl::MutexLock lock(&mu_);
  std::optional<UnreadableCheckpoint> lost =
      std::exchange(unreadable_, std::nullopt);
  // If the plan has already ended for another reason (a lost member or a broken
  // group), the next plan starts from the same checkpoint, and its members
  // report the error again.
  if (lost && (state_.over() || state_.plan()->epoch() != lost->plan_epoch)) {
    return std::nullopt;
  }
  return lost;
}

void JobControl::GoBack(const UnreadableCheckpoint& lost, int64_t step,
                        const std::string& folder) {
  absl::MutexLock lock(&mu_);
  if (state_.plan()->epoch() != lost.plan_epoch) return;
  state_.GoBack(step, folder,
                absl::StrCat("the checkpoint of step ", lost.step,
                             " cannot be read, ", lost.why));
  PublishLocked();
}

std::string JobControl::CheckpointDirectoryAtEnd() const {
  absl::MutexLock lock(&mu_);
  if (!state_.over() || state_.plan() == nullptr || deposed_by_ > 0) return "";
  return state_.plan()->checkpoint_directory();
}

bool JobControl::CheckpointOpen() const {
  absl::MutexLock lock(&mu_);
  const int64_t every = state_.options().job.checkpoint().every_steps();
  if (every == 0 || state_.plan() == nullptr) return false;
  return ledger_.Awaits(progress_.merged_step(), every);
}

std::string JobControl::MessageLocked() const {
  if (const absl::Status held = HeldLocked(); !held.ok()) {
    return std::string(held.message());
  }
  if (state_.phase() == v1::JOB_PHASE_WAITING) {
    return absl::StrCat("waiting for ", state_.Missing());
  }
  if (const auto ranks = WeightsWantedLocked(); !ranks.empty()) {
    return absl::StrCat("waiting for the weights after step ",
                        state_.final_step(), " from worker ",
                        absl::StrJoin(ranks, ", "));
  }
  if (state_.over()) return state_.message();
  const std::string members = state_.WaitsFor(clock_->NowMicros());
  return members.empty() ? waits_ : members;
}

bool JobControl::HasUpdateLocked() const {
  return progress_.HasRecords() || !notices_.empty() ||
         evaluations_.HasRecords(progress_.merged_step()) ||
         PhaseLocked() != shown_phase_;
}

JobUpdate JobControl::WaitForUpdate(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || HasUpdateLocked();
  };
  AwaitFor(&mu_, absl::Condition(&ready), timeout);
  JobUpdate update;
  update.steps = progress_.Take();
  update.evaluations = evaluations_.Take(progress_.merged_step());
  update.notices = std::exchange(notices_, {});
  update.phase = shown_phase_ = PhaseLocked();
  update.message = MessageLocked();
  update.total_steps = state_.total_steps();
  update.steps_per_epoch = state_.steps_per_epoch();
  if (deposed_by_ > 0) update.deposed = std::string(HeldLocked().message());
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
  if (state_.restore_step() > totals.start_step) {
    totals.checkpoint_step = state_.restore_step();
  }
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
  saving_.allowed = true;
  state_.AllowStart(checkpoint_directory);
  PublishLocked();
}

LossVerdict JobControl::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                   absl::string_view how) {
  absl::MutexLock lock(&mu_);
  const LossVerdict verdict =
      state_.MemberLost(role, index, pid, how, clock_->NowMicros());
  PublishLocked();
  return verdict;
}

void JobControl::RequestStop() {
  absl::MutexLock lock(&mu_);
  state_.RequestStop();
  PublishLocked();
}

void JobControl::Fail(absl::string_view why) {
  absl::MutexLock lock(&mu_);
  state_.Fail(why);
  PublishLocked();
}

bool JobControl::WaitUntilEveryoneKnowsEnd(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ ||
           (state_.over() && HeldLocked().ok() && state_.EveryoneKnowsEnd());
  };
  return AwaitFor(&mu_, absl::Condition(&known), timeout);
}

void JobControl::Tick(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  AwaitFor(&mu_, absl::Condition(&closed_), timeout);
  if (deposed_by_ > 0) return;
  const int64_t now = clock_->NowMicros();
  state_.Tick(now);
  GiveUpReportsLocked();
  WantWeightsLocked();
  PublishLocked();
  if (!saving_.held ||
      now - saving_.held_micros < state_.options().loss_timeout_micros) {
    return;
  }
  state_.Fail(HeldLocked().message());
  saving_.given_up = true;
  PublishLocked();
}

void JobControl::AwaitWork(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || ReadyToSaveLocked() || ledger_.Next().has_value() ||
           unreadable_.has_value();
  };
  AwaitFor(&mu_, absl::Condition(&there), timeout);
}

void JobControl::SetWaits(const std::string& what) {
  absl::MutexLock lock(&mu_);
  if (waits_.empty() && !what.empty()) NoteLocked(what);
  waits_ = what;
}

void JobControl::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

bool JobControl::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

bool JobControl::deposed() const {
  absl::MutexLock lock(&mu_);
  return deposed_by_ > 0;
}

bool JobControl::saved() const {
  absl::MutexLock lock(&mu_);
  return saving_.error.ok();
}

void JobControl::NoteProgressLocked() {
  if (progress_.merged_step() == noted_step_) return;
  noted_step_ = progress_.merged_step();
  progress_micros_ = clock_->NowMicros();
}

void JobControl::BeginPlanLocked() {
  if (state_.plan() == nullptr || state_.plan()->epoch() == ledger_epoch_) {
    return;
  }
  ledger_epoch_ = state_.plan()->epoch();
  const v1::JobSpec& job = state_.options().job;
  ledger_.Begin(state_.restore_step(), CheckpointHolders(job, *state_.plan()),
                UsesServers(job) ? "server" : "rank");
  rendezvous_.Begin(ledger_epoch_);
  put_weights_.Begin(FromProto(state_.plan()->parameters()));
}

void JobControl::NoteLocked(std::string notice) {
  spdlog::warn("{}", notice);
  if (notices_.size() < kMaxNotices) notices_.push_back(std::move(notice));
}

void JobControl::PublishLocked() {
  if (deposed_by_ > 0) return;
  SaveStateLocked();
  if (!HeldLocked().ok()) return;
  published_ = state_.Orders();
  published_.set_term(term_);
  BeginPlanLocked();
  for (std::string& notice : state_.TakeNotices()) NoteLocked(notice);
  for (std::string& notice : ledger_.TakeNotices()) NoteLocked(notice);
  for (std::string& notice : evaluations_.TakeNotices()) NoteLocked(notice);
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
