// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_recorder.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "cli/jobs/run_outcome.h"
#include "cli/run/job/run_pages.h"
#include "common/host/steady_waits.h"
#include "common/job/job_options.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "coordinator/run/environment_record.h"
#include "coordinator/run/export_tensors.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// How long the last steps may take to be written before the job is done.
constexpr absl::Duration kLastRecords = absl::Seconds(10);
// How often coordinator.totals is written.
constexpr int64_t kTotalsMicros = 5'000'000;

// Adds the result of a write to that of others. A full disk is the mildest
// error: the stopped writes wait for room.
absl::Status Both(const absl::Status& a, const absl::Status& b) {
  return a.ok() || (absl::IsResourceExhausted(a) && !b.ok()) ? b : a;
}

void Add(const absl::Status& written, std::optional<absl::Status>* all) {
  *all = all->has_value() ? Both(**all, written) : written;
}

}  // namespace

double WallSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void RecordedStep::Set(int64_t step) {
  absl::MutexLock lock(&mu_);
  step_ = step;
}

void RecordedStep::End() {
  absl::MutexLock lock(&mu_);
  recording_ = false;
}

void RecordedStep::Await(int64_t step) {
  absl::MutexLock lock(&mu_);
  const auto recorded = [this, step]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return step_ >= step || !recording_;
  };
  AwaitFor(&mu_, absl::Condition(&recorded), kLastRecords);
}

RunRecorder::RunRecorder(const JobRunOptions* options)
    : options_(*options),
      last_step_(options->start.step),
      recorded_(options->start.step),
      targets_(RunPages::kNoTargets) {}

absl::Status RunRecorder::Reopen(std::unique_ptr<RunLock> lock,
                                 double started) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      directory_,
      RunDirectory::Open(std::move(lock), static_cast<std::time_t>(started),
                         {.on_shown =
                              [this](const v1::StepsShown& shown) {
                                history_.RestoreSteps(shown);
                              },
                          .on_step =
                              [this](const StepRecord& record) {
                                history_.AddStep(record);
                              }}));
  return absl::OkStatus();
}

absl::Status RunRecorder::Continue(const v1::CoordinatorState& earlier) {
  saving_ = directory_.get();
  last_step_ = std::max(last_step_, directory_->recorded().step);
  TRIBUTARY_RETURN_IF_ERROR(FindEvaluations(earlier));
  for (const EvaluationRecord& e : evaluations_) history_.AddEvaluation(e);
  recorded_.Set(last_step_);
  if (earlier.phase() != v1::JOB_PHASE_DONE) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(weights_sha256_,
                             directory_->ReadWeightsSha256(WholeParameters(
                                 FromProto(earlier.plan().parameters()))));
  return absl::OkStatus();
}

// The evaluation file lacks evaluations of the saved state if an older program
// wrote that state, or if the file is damaged.
absl::Status RunRecorder::FindEvaluations(const v1::CoordinatorState& earlier) {
  evaluations_ = directory_->earlier_evaluations();
  std::map<std::string, int64_t> last;  // step of each set
  for (const EvaluationRecord& e : evaluations_) last[e.set] = e.step;
  std::vector<EvaluationRecord> saved =
      EvaluationsOf(earlier.evaluations(), EvaluatedSet(options_.job));
  for (EvaluationRecord& test : EvaluationsOf(earlier.tests(), "test")) {
    saved.push_back(std::move(test));
  }
  std::vector<EvaluationRecord> missing;
  for (EvaluationRecord& evaluation : saved) {
    const auto found = last.find(evaluation.set);
    if (found != last.end() && evaluation.step <= found->second) continue;
    missing.push_back(std::move(evaluation));
  }
  evaluations_.insert(evaluations_.end(), missing.begin(), missing.end());
  return missing.empty() ? absl::OkStatus()
                         : directory_->SaveEvaluations(missing);
}

absl::Status RunRecorder::Open(std::unique_ptr<RunDirectory> given,
                               double started) {
  if (given != nullptr) {
    directory_ = std::move(given);
    TRIBUTARY_RETURN_IF_ERROR(directory_->SaveJob(options_.job));
  } else if (!directory_) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        directory_, RunDirectory::Create(options_.folder.run_dir, options_.job,
                                         static_cast<std::time_t>(started)));
  }
  saving_ = directory_.get();
  return absl::OkStatus();
}

absl::Status RunRecorder::SaveState(const v1::CoordinatorState& state) {
  RunDirectory* const directory = saving_;
  return directory ? directory->SaveState(state) : absl::OkStatus();
}

absl::Status RunRecorder::SaveEvaluations(
    const std::vector<EvaluationRecord>& evaluations) {
  RunDirectory* const directory = saving_;
  return directory ? directory->SaveEvaluations(evaluations) : absl::OkStatus();
}

absl::Status RunRecorder::SaveWeights(const FinalWeights& weights) {
  TRIBUTARY_ASSIGN_OR_RETURN(weights_sha256_, directory_->SaveWeights(weights));
  recorded_.Await(weights.step);
  return directory_->SyncSteps();
}

std::optional<absl::Status> RunRecorder::Record(const JobUpdate& update) {
  std::optional<absl::Status> written;
  if (update.model && !options_.job.has_program()) {
    model_ = DescribeModel(options_.job, *update.model);
    Add(SaveModel(), &written);
  }
  for (const StepRecord& record : update.steps) {
    last_step_ = record.step;
    history_.AddStep(record);
  }
  for (const EvaluationRecord& e : update.evaluations) {
    history_.AddEvaluation(e);
  }
  evaluations_.insert(evaluations_.end(), update.evaluations.begin(),
                      update.evaluations.end());
  if (!update.events.empty()) {
    Add(directory_->AddEvents(update.events), &written);
  }
  if (!update.trace.empty()) Add(directory_->AddTrace(update.trace), &written);
  if (update.steps.empty() && update.evaluations.empty()) return written;
  const double now = WallSeconds();
  Add(directory_->AddSteps(update.steps, now), &written);
  Add(directory_->AddEvaluations(update.evaluations, now), &written);
  recorded_.Set(last_step_);
  return written;
}

absl::Status RunRecorder::SaveModel() {
  if (!model_ || model_saved_) return absl::OkStatus();
  const absl::Status saved = directory_->SaveModel(*model_, std::nullopt);
  model_saved_ = saved.ok();
  return saved;
}

bool RunRecorder::EnvironmentIsDue() const {
  const bool settled = last_step_ > options_.start.step;
  return environment_.empty() || settled != environment_settled_;
}

absl::Status RunRecorder::RecordEnvironment(
    const std::vector<v1::RegisterRequest>& workers) {
  if (workers.empty()) return absl::OkStatus();
  EnvironmentRecord record{.machine = machine_,
                           .workers = workers,
                           .data = options_.data_record,
                           .start = options_.start};
  if (model_) {
    record.training_rows = model_->training_data().rows();
    record.training_checksum = model_->training_data().checksum();
  }
  environment_settled_ = last_step_ > options_.start.step;
  const std::string json = EnvironmentJson(record);
  if (json == environment_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(directory_->SaveEnvironment(json));
  environment_ = json;
  return absl::OkStatus();
}

absl::Status RunRecorder::LookAfter(
    const std::vector<v1::RegisterRequest>& workers,
    const std::string& targets) {
  const absl::Status written =
      Both(Both(directory_->Flush(), SaveModel()), RecordEnvironment(workers));
  SaveTotals();
  SaveTargets(targets);
  return written;
}

// Without these totals a successor reads all of metrics.jsonl.
void RunRecorder::SaveTotals() {
  const int64_t now = options_.clock->NowMicros();
  if (now - totals_micros_ < kTotalsMicros) return;
  totals_micros_ = now;
  const absl::Status saved = directory_->SaveTotals(history_.SaveSteps());
  if (!saved.ok()) spdlog::warn("{}", std::string(saved.message()));
}

void RunRecorder::SaveTargets(const std::string& targets) {
  if (targets == targets_) return;
  const absl::Status status = directory_->SaveTargets(targets);
  if (absl::IsResourceExhausted(status)) return;  // the next look retries
  targets_ = targets;
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

absl::Status RunRecorder::SaveSummary(const RunSummary& summary,
                                      bool whatever) {
  absl::Status status = directory_->Flush();
  // The summary is written even if another record has no room or its file was
  // removed. Nothing is written if the directory is another run's or a new one.
  if ((whatever || !absl::IsResourceExhausted(status)) &&
      directory_->lock().Check().ok()) {
    if (model_) {
      status.Update(directory_->SaveModel(*model_, MetricsOf(summary)));
    }
    status.Update(directory_->SaveSummary(summary));
  }
  return status;
}

}  // namespace tributary
