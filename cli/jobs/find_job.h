// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/jobs/job_register.h"
#include "common/command_line/command_line.h"
#include "common/member/coordinator_client.h"
#include "common/wire/identity/access.h"

namespace tributary {

// How a person names a job on the command line.
struct JobChoice {
  std::string job;          // a run directory or a name; empty: the only job
  std::string coordinator;  // host:port instead
  AccessOptions access;     // by default as the run directory says
};

// Adds the argument JOB, and the options --coordinator, --tls and --token-file.
void AddJobChoice(CommandLine& command, JobChoice* choice);

// A job that a command works with.
struct FoundJob {
  // Unknown fields are empty or 0, except the coordinator of a running job.
  KnownJob known;
  // Null: no coordinator runs, because the job has ended or its coordinator was
  // killed.
  std::unique_ptr<CoordinatorClient> client;
  bool encrypted = false;  // the client shows a certificate or a token

  const std::string& run_directory() const { return known.job.run_directory; }
  // "digits (runs/digits)", for messages.
  std::string Title() const;
};

// Prepares calls to the job's coordinator, unless it is gone; does not connect
// yet. This is the only place where the command line makes its client of a job.
// Without --tls the client proves to be the operator with the keys that `train`
// and `run` have put into the run directory. Errors as Access::Read.
absl::StatusOr<FoundJob> ConnectJob(KnownJob known,
                                    const AccessOptions& access = {});

// Finds the job that the choice means, and connects as ConnectJob.
// InvalidArgument: the choice names no job, a path that cannot be read, or
// several jobs; the text says what can be named. NotFound: no job of this user
// runs on this machine.
absl::StatusOr<FoundJob> FindJob(const JobChoice& choice,
                                 const JobRegister& jobs);

// Chooses among the jobs of the register; a pure function. Nullopt:
// --coordinator names a job that is not among them. Jobs whose coordinator is
// gone count only when no other job fits. Errors as FindJob.
absl::StatusOr<std::optional<KnownJob>> ChooseJob(
    const JobChoice& choice, const std::vector<KnownJob>& jobs);

// Returns the job of a run directory: from the register or, if it is not there,
// as the directory describes it. InvalidArgument: it is not a run directory.
absl::StatusOr<KnownJob> JobOfRun(const std::string& run_directory,
                                  const std::vector<KnownJob>& jobs);

// Whether the path is a run directory: it has a file of the coordinator, or two
// of the other files that a run writes (any folder may have one).
bool IsRunDirectory(const std::string& path);

}  // namespace tributary
