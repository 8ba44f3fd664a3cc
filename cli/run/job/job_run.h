// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/jobs/job_register.h"
#include "cli/run/job/job_run_options.h"
#include "cli/run/job/run_checkpoints.h"
#include "cli/run/job/run_pages.h"
#include "cli/run/job/run_screen.h"
#include "common/host/machine.h"
#include "common/wire/identity/access.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/page/run_history.h"
#include "coordinator/run/describe_model.h"
#include "coordinator/run/run_directory.h"
#include "coordinator/run/run_record.h"
#include "coordinator/service/coordinator.h"

namespace tributary {

// The number of files and connections that a job's coordinator needs: its own,
// two for each member's connection, and one to each server for the weights.
inline uint64_t FilesOf(const v1::ClusterSpec& cluster) {
  constexpr uint64_t kOwn = 16;
  return kOwn +
         static_cast<uint64_t>(3 * cluster.servers() + 2 * cluster.workers());
}

// One run as a person sees it: the coordinator, the run directory and the
// output on the screen. `tributary train` and `tributary-coordinator` share it;
// each has its own way to start the members.
class JobRun {
 public:
  using Options = JobRunOptions;

  // Listens, then creates the run directory, unless one is given. After an
  // error neither exists. InvalidArgument: a key would travel in clear text.
  static absl::StatusOr<std::unique_ptr<JobRun>> Start(
      Options options, std::unique_ptr<RunDirectory> directory = nullptr);

  Coordinator& coordinator() { return *coordinator_; }
  const RunDirectory& directory() const { return *directory_; }
  Console& console() { return screen_.console(); }
  // host:port of the coordinator's metrics; empty: none.
  const std::string& metrics_address() const { return pages_->address(); }
  std::string pages_url() const { return pages_->url(); }

  // Records and shows the run until the job is over. Calls `watch` about ten
  // times a second; a text from it fails the job with that message. The first
  // SIGINT or SIGTERM stops the job at the next common step.
  void Follow(const std::function<std::string()>& watch);

  // Writes the summary and the last lines. Call it after Follow, when the
  // members have left. `cause` replaces the coordinator's reason for a failure
  // when the caller knows a better one. Returns the exit code.
  int Conclude(const std::string& cause = "");

  bool failed() const { return update_.phase == v1::JOB_PHASE_FAILED; }
  // Why the coordinator has ended the job as failed; empty: it did not fail.
  std::string message() const { return failed() ? update_.message : ""; }

 private:
  explicit JobRun(Options options);

  static double WallSeconds();  // since 1970

  // The stages of Start, in this order. earlier: the state that an earlier
  // coordinator has left; null: there was no earlier coordinator.
  Coordinator::Options OptionsOfCoordinator(
      const v1::CoordinatorState* earlier);
  // Creates the run directory, unless the caller or Continue has provided it.
  absl::Status OpenDirectory(std::unique_ptr<RunDirectory> directory);
  // Opens the log, and makes the job visible to commands of other terminals.
  absl::Status Announce();
  void TellTakeover();
  // Rewrites prometheus-targets.json when members have joined or changed.
  void SaveTargets(const std::string& targets);
  // Reads the state that an earlier coordinator left in run_dir and opens the
  // directory; nullopt: this is a new run.
  absl::StatusOr<std::optional<v1::CoordinatorState>> FindEarlier();
  // Absolute; empty: the job writes no checkpoints.
  std::string CheckpointDirectory() const;
  // Calls RunCheckpoints::Claim, but only once.
  absl::Status ClaimCheckpoints(bool begins);
  void Record(const JobUpdate& update);
  // Handles the result of a write: on a full disk the records wait until there
  // is space, and any other error fails the job.
  void HeedDisk(const absl::Status& written);
  void LookAfterDirectory();
  // Writes coordinator.totals every few seconds; an error is only logged.
  void SaveTotals();
  // Writes model.json if it is known and not written yet.
  absl::Status SaveModel();
  // Writes environment.json once the ranks have joined, and when it changes.
  absl::Status SaveEnvironment();
  // Calls SaveEnvironment when the training begins, and after the first step:
  // then all ranks have reported their arithmetic.
  void RecordEnvironment();
  absl::Status SaveSummary(const RunSummary& summary);
  void StopWhenAsked();
  RunSummary Summarize(const std::string& cause);
  // best: a line about the best evaluation; empty: none.
  void PrintResult(const RunSummary& summary, const std::string& best);
  // The command that continues a run that was stopped or has failed; empty: the
  // run is done, or there is no checkpoint to continue from. `anywhere`: the
  // command works in any folder, for summary.json.
  std::string ResumeCommand(const RunSummary& summary, bool anywhere) const;

  // Continues from the state and files of an earlier coordinator.
  absl::Status Continue(const v1::CoordinatorState& earlier);
  // Sets evaluations_ to the evaluations of the earlier coordinator.
  absl::Status FindEvaluations(const v1::CoordinatorState& earlier);
  // Enters the job into the register; an error is only logged.
  void Register();
  // Waits, for a limited time, until the steps up to `step` are in
  // metrics.jsonl.
  void AwaitRecord(int64_t step);

  const Options options_;
  int64_t start_micros_;       // of the job, by the clock
  double start_wall_seconds_;  // of the job
  RunScreen screen_;
  RunCheckpoints checkpoints_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<JobRegister::Entry> registered_;
  std::atomic<RunDirectory*> saving_{nullptr};  // null: none yet
  std::string weights_sha256_;  // set by the coordinator's thread
  std::unique_ptr<Coordinator> coordinator_;
  RunHistory history_;  // for the status page
  std::unique_ptr<RunPages> pages_;
  std::string saved_targets_ = RunPages::kNoTargets;
  int64_t look_micros_ = 0;    // last check of targets and files
  int64_t totals_micros_ = 0;  // when coordinator.totals was written last
  bool disk_full_ = false;
  int64_t given_up_ = 0;  // dropped records announced so far

  std::optional<v1::ModelRecord> model_;  // of model.json, once known
  bool model_saved_ = false;
  const Machine machine_ = ThisMachine();
  std::string saved_environment_;
  bool environment_settled_ = false;
  JobUpdate update_;  // the newest, without records
  int64_t last_step_ = 0;
  absl::Mutex record_mu_;
  int64_t recorded_step_ ABSL_GUARDED_BY(record_mu_) = 0;
  bool recording_ ABSL_GUARDED_BY(record_mu_) = true;
  std::vector<EvaluationRecord> evaluations_;
  bool stop_asked_ = false;
};

}  // namespace tributary
