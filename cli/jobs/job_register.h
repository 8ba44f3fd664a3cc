// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// The values of RegisteredJob::command.
inline constexpr char kTrainCommand[] = "tributary train";
inline constexpr char kRunCommand[] = "tributary run";
inline constexpr char kCoordinatorCommand[] = "tributary-coordinator";

// A job that this user has started, as the register knows it.
struct RegisteredJob {
  std::string name;
  uint64_t job_id = 0;        // 0: the job's program has not submitted it yet
  std::string coordinator;    // host:port
  bool encrypted = false;     // the coordinator wants certificates or a token
  std::string run_directory;  // absolute; empty: there is none yet
  std::string command;        // the one that started it; empty: unknown
  std::string host;           // of the coordinator's process
  int64_t pid = 0;
  // When the process started (common/host/process_state.h); 0: unknown.
  uint64_t start_ticks = 0;
  int64_t started_micros = 0;  // of the job, since 1970, UTC
};

// The coordinator's process of a registered job.
enum class CoordinatorLife {
  kRuns,
  kStopped,  // by SIGSTOP
  kEnds,     // has closed its port; only LookAgain (ask_job.h) finds this out
  kGone,
  kElsewhere,  // on another host, so it cannot be looked at
};

struct KnownJob {
  RegisteredJob job;
  CoordinatorLife life = CoordinatorLife::kElsewhere;
  bool directory_is_gone = false;  // only WhyGone and `stop` find this out

  bool gone() const { return life == CoordinatorLife::kGone; }
};

// The register of one user: a folder with a JSON file for each job that runs. A
// killed process leaves its file behind; Read recognizes such files.
class JobRegister {
 public:
  // A job's file. The destructor removes it.
  class Entry {
   public:
    explicit Entry(std::string path) : path_(std::move(path)) {}
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // A later entry of this process has replaced the file and owns it now.
    void Leave() { path_.clear(); }

   private:
    std::string path_;
  };

  // `folder` empty: nothing is registered.
  explicit JobRegister(std::string folder) : folder_(std::move(folder)) {}

  // Writes the file of a job of this process, in place of an earlier one. Sets
  // host, pid and start_ticks. Creates the folder, which only this user may
  // enter, and removes files that killed processes left there more than a day
  // ago. Null if `folder` is empty.
  absl::StatusOr<std::unique_ptr<Entry>> Add(RegisteredJob job) const;

  // The jobs, oldest first. Files that cannot be read are left out.
  std::vector<KnownJob> Read() const;
  // Removes the file of a job whose process is gone.
  void Drop(const RegisteredJob& job) const;

 private:
  std::string PathOf(const RegisteredJob& job) const;

  const std::string folder_;
};

// Returns $XDG_STATE_HOME/tributary/jobs or ~/.local/state/tributary/jobs (XDG
// Base Directory Specification 0.8); empty: the environment names neither.
std::string JobRegisterFolder();

// Looks at the coordinator's process, if it runs on this host.
CoordinatorLife LookAtCoordinator(const RegisteredJob& job);

// Convert a job to its file's text and back. InvalidArgument: invalid text.
std::string RegisteredJobJson(const RegisteredJob& job);
absl::StatusOr<RegisteredJob> ReadRegisteredJob(absl::string_view json);

}  // namespace tributary
