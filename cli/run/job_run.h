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
#include "cli/run/last_scrape.h"
#include "cli/run/run_keys.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/progress_line.h"
#include "common/checkpoint/checkpoint_claim.h"
#include "common/host/listen_socket.h"
#include "common/host/machine.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "common/wire/access.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/page/run_history.h"
#include "coordinator/run/describe_model.h"
#include "coordinator/run/run_directory.h"
#include "coordinator/run/run_record.h"
#include "coordinator/service/coordinator.h"

namespace tributary {

// Files and connections that the coordinator of such a job needs: its own, two
// for each member's connection, and one to each server for the final weights.
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
  // Stands for the checkpoint in a resume_command.
  static constexpr char kCheckpoint[] = "CHECKPOINT";

  struct Options {
    v1::JobSpec job;      // resolved
    std::string run_dir;  // empty: runs/NAME-DATE-TIME
    std::string listen = "127.0.0.1:0";
    ListeningSockets listening;  // as Coordinator::Options
    absl::Duration start_timeout = absl::Minutes(10);
    std::string metrics_listen;  // host:port for HTTP; empty: none
    LogOptions log;              // its file is in the run directory
    JobStart start;
    // The data as `tributary-worker --check-data` has described them, for
    // environment.json; empty: unknown.
    std::string data_record;
    bool quiet = false;       // prints errors alone
    Access access;            // of the coordinator
    PageAccess pages;         // of its metrics
    bool reflection = false;  // as Coordinator::Options
    // With which its checkpoints get keyed checksums; empty: they get none. The
    // members learn it, so `access` must be encrypted.
    std::string checkpoint_key;
    // Of a run whose processes this process starts; null: they have others, or
    // none. The operator's are saved in the run directory.
    std::shared_ptr<const RunKeys> keys;
    // The words of the command that continues this run from a checkpoint, which
    // it gets as the word "CHECKPOINT".
    std::vector<std::string> resume_command = {"tributary", "train", "--resume",
                                               kCheckpoint};
    // The same while the only checkpoint is the one that this run began with,
    // which lacks the command's changes of the job. Empty: resume_command.
    std::vector<std::string> restart_command = {};
    // Its error about the declared model fails the job; may be empty.
    std::function<absl::Status(const v1::DeclareModelRequest&)> check_model;
    // Where the job is registered as running; empty: nowhere.
    std::string register_folder;
    // Continues the job in run_dir if its coordinator ended before the job did.
    bool take_over = false;
    const Clock* clock = &Clock::Real();
  };

  // Listens, then creates the run directory, unless one is given. After an
  // error there is neither. InvalidArgument: a key would travel in clear text.
  static absl::StatusOr<std::unique_ptr<JobRun>> Start(
      Options options, std::unique_ptr<RunDirectory> directory = nullptr);

  Coordinator& coordinator() { return *coordinator_; }
  const RunDirectory& directory() const { return *directory_; }
  Console& console() { return console_; }
  // host:port of the coordinator's metrics; empty: none.
  const std::string& metrics_address() const { return exporter_->address(); }
  // "http://host:port", or https.
  std::string pages_url() const;

  // Records and shows the run until the job is over. Calls `watch` about ten
  // times a second; a text from it fails the job with that message. The first
  // SIGINT or SIGTERM stops the job at the next common step.
  void Follow(const std::function<std::string()>& watch);

  // Writes the summary and the last lines. Call it after Follow, when the
  // members have left. `cause` replaces the coordinator's reason for a failure
  // when the caller knows a better one. Returns the exit code.
  int Conclude(const std::string& cause = "");

  bool failed() const { return update_.phase == v1::JOB_PHASE_FAILED; }
  // Why the coordinator has ended the job as failed; empty: it has not.
  std::string message() const { return failed() ? update_.message : ""; }

 private:
  static constexpr char kNoTargets[] = "[]\n";

  explicit JobRun(Options options);

  static double WallSeconds();  // since 1970

  // The stages of Start, in this order. earlier: the state that an earlier
  // coordinator has left; null: there was none.
  Coordinator::Options OptionsOfCoordinator(
      const v1::CoordinatorState* earlier);
  absl::Status StartExporter();
  // Creates the run directory where the caller has not, and Continue neither.
  absl::Status OpenDirectory(std::unique_ptr<RunDirectory> directory);
  // Opens the log, and lets the commands of other terminals find the job.
  absl::Status Announce();
  void TellTakeover();
  // Prepares the checkpoint directory of a resumed run: copies the best
  // checkpoint and removes those of steps that the run trains again.
  absl::Status ResumeIn(const std::string& checkpoints);
  // The status for the pages; after the end of the job, its last status.
  v1::JobStatusResponse StatusNow();
  void KeepLastStatus(const v1::JobStatusResponse& status);
  // Lets a regular reader of the pages see the end (LastScrape).
  void AwaitLastScrape();
  // Rewrites prometheus-targets.json when members have joined or changed.
  void SaveTargets(const std::string& targets);
  // Reads the state that an earlier coordinator left in run_dir and opens the
  // directory; nullopt: this is a new run.
  absl::StatusOr<std::optional<v1::CoordinatorState>> FindEarlier();
  // Absolute; empty: the job writes no checkpoints.
  std::string CheckpointDirectory() const;
  // Locks the checkpoint directory and checks that it holds no other run's
  // checkpoints.
  absl::Status ClaimCheckpoints(bool begins);
  // Copies the checkpoint of the best evaluation so far from beside the one
  // that a run is resumed from.
  absl::Status BringBest(const std::string& checkpoints);
  // Writes best.safetensors, and says what was the best. A job without
  // evaluation.keep_best has none.
  void SaveBest(const JobTotals::Best& best);
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
  // The same when the training begins, and after the first step: then all ranks
  // have told their arithmetic.
  void RecordEnvironment();
  absl::Status SaveSummary(const RunSummary& summary);
  void Show(const JobUpdate& update);
  void ShowStep(const StepRecord& record);
  bool CountsSteps(uint64_t samples, int64_t steps) const;
  ProgressView PositionOf(int64_t step, int64_t epoch) const;
  void StopWhenAsked();
  RunSummary Summarize(const std::string& cause);
  void NoteEvaluation(const RunSummary& summary, const char* set);
  void PrintResult(const RunSummary& summary);
  // The command that continues a run that was stopped or has failed; empty: the
  // run is done, or there is no checkpoint to continue from. `anywhere`: in any
  // folder, for summary.json.
  std::string ResumeCommand(const RunSummary& summary, bool anywhere) const;
  int64_t Epochs() const;

  // Continues from the state and files of an earlier coordinator.
  absl::Status Continue(const v1::CoordinatorState& earlier);
  // Sets evaluations_ to those of the earlier coordinator.
  absl::Status FindEvaluations(const v1::CoordinatorState& earlier);
  // Enters the job into the register; an error is only logged.
  void Register();
  // Waits, for a limited time, until the steps up to `step` are in
  // metrics.jsonl.
  void AwaitRecord(int64_t step);

  const Options options_;
  int64_t start_micros_;       // of the job, by the clock
  double start_wall_seconds_;  // of the job
  Console console_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<JobRegister::Entry> registered_;
  std::atomic<RunDirectory*> saving_{nullptr};  // null until it exists
  std::string weights_sha256_;              // set by the coordinator's thread
  std::unique_ptr<CheckpointClaim> claim_;  // held as long as the coordinator
  std::unique_ptr<Coordinator> coordinator_;
  RunHistory history_;  // for the status page
  LastScrape last_scrape_;
  absl::Mutex last_mu_;
  std::optional<v1::JobStatusResponse> last_status_ ABSL_GUARDED_BY(last_mu_);
  std::unique_ptr<Exporter> exporter_;
  std::vector<Exporter::Handle> handles_;  // callbacks that use the coordinator
  std::string saved_targets_ = kNoTargets;
  int64_t look_micros_ = 0;    // last check of targets and files
  int64_t totals_micros_ = 0;  // when coordinator.totals was written last
  bool disk_full_ = false;
  int64_t given_up_ = 0;  // dropped records that were announced

  std::optional<v1::ModelRecord> model_;  // of model.json, once it is known
  bool model_saved_ = false;
  const Machine machine_ = ThisMachine();
  std::string saved_environment_;
  bool environment_settled_ = false;
  JobUpdate update_;  // the newest, without its records
  int64_t last_step_ = 0;
  absl::Mutex record_mu_;
  int64_t recorded_step_ ABSL_GUARDED_BY(record_mu_) = 0;
  bool recording_ ABSL_GUARDED_BY(record_mu_) = true;
  std::vector<EvaluationRecord> evaluations_;
  uint64_t samples_ = 0;
  bool stop_asked_ = false;
};

}  // namespace tributary
