// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/run/job/job_run.h"
#include "cli/run/processes/children.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

struct WatchOptions {
  bool shrinks = false;   // cluster.on_worker_loss; false for programs
  bool launched = false;  // the children are launchers of other hosts
  // The workers are programs of the user. A program may start other processes,
  // and must not leave before the job is over.
  bool programs = false;
  // Called about ten times a second; may be empty.
  std::function<void()> look = nullptr;
};

// A child that has ended without success.
struct EndedChild {
  v1::JobPhase phase = v1::JOB_PHASE_UNSPECIFIED;  // of the job
  bool trained = false;   // the job has finished a step since it began
  bool killed = false;    // by a signal
  bool has_place = true;  // false: it starts the ranks itself
};

// Whether the job needs another process in the child's place. nullopt: only the
// coordinator knows, from its record of the member. A pure function.
std::optional<Children::Loss> LossOf(const EndedChild& child);

// Follows the run until the job is over, and replaces or kills children as the
// coordinator decides. Fails the job when that is not possible. Returns a
// better reason for a failure than the coordinator's; empty: there is none.
std::string WatchMembers(JobRun& run, const WatchOptions& options,
                         Children& children);

}  // namespace tributary
