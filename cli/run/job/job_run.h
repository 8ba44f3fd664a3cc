// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/jobs/job_register.h"
#include "cli/run/job/job_run_options.h"
#include "cli/run/job/run_checkpoints.h"
#include "cli/run/job/run_pages.h"
#include "cli/run/job/run_recorder.h"
#include "cli/run/job/run_screen.h"
#include "common/wire/identity/access.h"
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
  const RunDirectory& directory() const { return recorder_.directory(); }
  Console& console() { return screen_.console(); }
  // host:port of the coordinator's metrics; empty: none.
  const std::string& metrics_address() const { return pages_->address(); }
  std::string pages_url() const { return pages_->url(); }

  // Records and shows the run until the job is over. Calls `watch` about ten
  // times a second; if it returns a text, the job fails with that message. The
  // first SIGINT or SIGTERM stops the job at the next common step.
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

  // The stages of Start, in this order. earlier: the state that an earlier
  // coordinator has left; null: there was no earlier coordinator.
  Coordinator::Options OptionsOfCoordinator(
      const v1::CoordinatorState* earlier);
  // Opens the log, and makes the job visible to commands of other terminals.
  absl::Status Announce();
  void TellTakeover();
  // Reads the state that an earlier coordinator left in run_dir and opens the
  // directory; nullopt: this is a new run.
  absl::StatusOr<std::optional<v1::CoordinatorState>> FindEarlier();
  // Continues from the state and files of an earlier coordinator.
  absl::Status Continue(const v1::CoordinatorState& earlier);
  // Absolute; empty: the job writes no checkpoints.
  std::string CheckpointDirectory() const;
  // Calls RunCheckpoints::Claim, but only once.
  absl::Status ClaimCheckpoints(bool begins);
  // Enters the job into the register; an error is only logged.
  void Register();

  void Record(const JobUpdate& update);
  // Handles the result of a write: on a full disk the records wait until there
  // is space, and any other error fails the job.
  void HeedDisk(const absl::Status& written);
  // The processes that hold the ranks; none before the training begins.
  std::vector<v1::RegisterRequest> Workers() const;
  void LookAfterDirectory();
  void StopWhenAsked();

  RunSummary Summarize(const std::string& cause);
  absl::Status SaveSummary(const RunSummary& summary);
  // best: a line about the best evaluation; empty: none.
  void PrintResult(const RunSummary& summary, const std::string& best);
  // The command that continues a run that was stopped or has failed; empty: the
  // run is done, or there is no checkpoint to continue from. `anywhere`: the
  // command works in any folder, for summary.json.
  std::string ResumeCommand(const RunSummary& summary, bool anywhere) const;

  const Options options_;
  int64_t start_micros_;       // of the job, by the clock
  double start_wall_seconds_;  // of the job, since 1970
  RunScreen screen_;
  RunCheckpoints checkpoints_;
  RunRecorder recorder_;
  std::unique_ptr<JobRegister::Entry> registered_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<RunPages> pages_;
  JobUpdate update_;         // the newest, without records
  int64_t look_micros_ = 0;  // last check of targets and files
  bool disk_full_ = false;
  int64_t given_up_ = 0;  // dropped records announced so far
  bool stop_asked_ = false;
};

}  // namespace tributary
