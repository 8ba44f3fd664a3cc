// SPDX-License-Identifier: Apache-2.0
#include "cli/run/members/watch_members.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"

namespace tributary {
namespace {

// How long a member that has given its place back (Member::Leave) may take to
// end, counted from its last heartbeat.
constexpr double kLeaveSeconds = 3;

bool Indirect(const WatchOptions& options) {
  return options.launched || options.programs;
}

// The job's status at `micros` or slightly later.
struct Known {
  explicit Known(const JobControl& job)
      : micros(Clock::Real().NowMicros()), status(job.Snapshot()) {}

  const int64_t micros;  // read before the status
  const v1::JobStatusResponse status;
};

// Whether the child was started for this place.
bool IsPlaceOf(const ChildProcess& child, const v1::MemberStatus& member) {
  return member.role() == child.options().role &&
         member.index() == child.options().index;
}

// The member that a child has registered as; null: it has not registered. If
// the child has started the member, the member's pid differs, and it may run on
// another machine. Then a heartbeat identifies it: since the child started, no
// other process has been heard in its place, because the previous holder was
// expelled by then.
const v1::MemberStatus* MemberOf(const ChildProcess& child, bool indirect,
                                 const Known& known) {
  const double age_seconds =
      static_cast<double>(known.micros - child.started_micros()) / 1e6;
  for (const v1::MemberStatus& member : known.status.members()) {
    if (!IsPlaceOf(child, member)) continue;
    const bool own = indirect
                         ? member.pid() != 0 &&
                               member.seconds_since_heartbeat() < age_seconds
                         : member.pid() == child.pid();
    return own ? &member : nullptr;
  }
  return nullptr;
}

// Whether another process holds the rank that this child was started for. If
// lost ranks are taken over, that can happen before the loss is noticed here.
bool TakenOver(const ChildProcess& child, const Known& known) {
  for (const v1::MemberStatus& member : known.status.members()) {
    if (IsPlaceOf(child, member)) {
      return member.role() == v1::ROLE_WORKER && member.alive() &&
             member.pid() != child.pid();
    }
  }
  return false;
}

// Kills children that are alive but have lost their place: they are stopped or
// stuck. Their work is lost already, and killing them lets another process
// start.
void KillLost(JobRun& run, const WatchOptions& options, Children& children) {
  const Known known(run.coordinator().control());
  const bool launched = options.launched;
  children.KillIf([&](const ChildProcess& child) {
    if (options.shrinks && !Indirect(options) && TakenOver(child, known)) {
      run.console().Note(
          absl::StrFormat("%s (pid %d) is killed: another process has its rank",
                          child.name(), child.pid()));
      return true;
    }
    const v1::MemberStatus* const member =
        MemberOf(child, Indirect(options), known);
    if (member == nullptr || member->alive() || member->finished()) {
      return false;
    }
    // The child has given its place back, and is about to end.
    if (member->seconds_since_heartbeat() < kLeaveSeconds) return false;
    run.console().Note(absl::StrFormat(
        "%s (%spid %d) has not been heard for %.1f s and is killed",
        child.name(), launched ? "its launcher, " : "", child.pid(),
        member->seconds_since_heartbeat()));
    return true;
  });
}

// Asks the coordinator what the end of a child such as "worker-1" means.
Children::Loss Judge(JobControl& job, const WatchOptions& options,
                     const ChildProcess& child, const std::string& obituary) {
  constexpr int64_t kNobody = 0;
  const Known known(job);
  const v1::MemberStatus* const member =
      MemberOf(child, Indirect(options), known);
  const int64_t pid = member == nullptr ? kNobody : member->pid();
  const JobTotals totals = job.Totals();
  const std::optional<Children::Loss> loss =
      LossOf({.phase = known.status.phase(),
              .trained = totals.steps > totals.start_step,
              .killed = child.killed(),
              .has_place = child.options().role != v1::ROLE_UNSPECIFIED});
  if (loss) return *loss;
  switch (job.MemberLost(child.options().role, child.options().index, pid,
                         obituary)) {
    case LossVerdict::kReplace:
      return Children::Loss::kReplace;
    case LossVerdict::kGoesOn:
      return Children::Loss::kNotMissed;
    case LossVerdict::kFatal:
      break;
  }
  return Children::Loss::kFatal;
}

// The message about a program that has ended well, although the job still needs
// it; empty: there is none.
std::string LeftEarly(JobRun& run, const WatchOptions& options,
                      Children& children) {
  if (!options.programs) return "";
  const Known known(run.coordinator().control());
  if (known.status.phase() == v1::JOB_PHASE_DONE ||
      known.status.phase() == v1::JOB_PHASE_FAILED) {
    return "";
  }
  const bool all_finished = std::all_of(
      known.status.members().begin(), known.status.members().end(),
      [](const v1::MemberStatus& member) {
        return member.role() != v1::ROLE_WORKER || member.finished();
      });
  const std::string left = children.FirstLeft([&](const ChildProcess& child) {
    if (child.options().role == v1::ROLE_SERVER) return false;
    if (child.options().role == v1::ROLE_UNSPECIFIED) return !all_finished;
    const v1::MemberStatus* const member = MemberOf(child, true, known);
    return member == nullptr || !member->finished();
  });
  return left.empty() ? "" : absl::StrCat(left, " (the job still needs it)");
}

}  // namespace

std::optional<Children::Loss> LossOf(const EndedChild& child) {
  // A child that exits before training begins has found an error, so the run
  // fails. A child that is killed is treated as lost, as during training.
  if (child.phase == v1::JOB_PHASE_WAITING && !child.killed) {
    return Children::Loss::kFatal;
  }
  // There is nothing to save, and the next child may be lost in the same way.
  if (child.phase == v1::JOB_PHASE_STOPPING && !child.trained) {
    return Children::Loss::kFatal;
  }
  if (child.has_place) return std::nullopt;
  const bool over =
      child.phase == v1::JOB_PHASE_DONE || child.phase == v1::JOB_PHASE_FAILED;
  return over ? Children::Loss::kFatal : Children::Loss::kReplace;
}

std::string WatchMembers(JobRun& run, const WatchOptions& options,
                         Children& children) {
  std::string not_started;
  run.Follow([&] {
    if (options.look) options.look();
    KillLost(run, options, children);
    const absl::Status tended = children.Tend(
        [&](const ChildProcess& child, const std::string& obituary) {
          return Judge(run.coordinator().control(), options, child, obituary);
        });
    if (!tended.ok()) {
      not_started = std::string(tended.message());
      return not_started;
    }
    const std::string failure = children.FirstFailure();
    return failure.empty() ? LeftEarly(run, options, children) : failure;
  });
  if (!run.failed()) return "";
  if (!not_started.empty()) return not_started;
  // The coordinator's sentence on a lost member names its host and step, too.
  return children.FirstKilled(run.message());
}

}  // namespace tributary
