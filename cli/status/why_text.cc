// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/jobs/run_outcome.h"
#include "cli/terminal/format.h"

namespace tributary {
namespace {

// Without an end of a step for so long, every worker has said since then how
// far it is: heartbeats come at least every second.
constexpr double kSettledSeconds = 2.5;

// The steps of the other workers that are further than the open step, by rank.
std::map<uint32_t, int64_t> Ahead(const v1::JobStatusResponse& status,
                                  const v1::MemberStatus& member) {
  std::map<uint32_t, int64_t> steps;
  if (member.role() != v1::ROLE_WORKER) return steps;
  for (const v1::MemberStatus& other : status.members()) {
    if (other.role() == v1::ROLE_WORKER && other.index() != member.index() &&
        other.step() > status.step() + 1) {
      steps[other.index()] = other.step();
    }
  }
  return steps;
}

// How far others have come who do not wait for this member; 0: they wait.
int64_t StepWithout(const WhyFacts& facts, const v1::MemberStatus& member) {
  const v1::JobStatusResponse& first = facts.samples.front();
  if (first.step() != facts.now().step() ||
      first.step_wait_seconds() < kSettledSeconds) {
    return 0;
  }
  const std::map<uint32_t, int64_t> before = Ahead(first, member);
  int64_t furthest = 0;
  for (const auto& [rank, step] : Ahead(facts.now(), member)) {
    const auto found = before.find(rank);
    if (found != before.end() && found->second < step) {
      furthest = std::max(furthest, step);
    }
  }
  return furthest;
}

}  // namespace

absl::string_view CauseWord(WhyCause cause) {
  switch (cause) {
    case WhyCause::kNone:
      return "none";
    case WhyCause::kStoppedProcess:
      return "stopped-process";
    case WhyCause::kEndedProcess:
      return "ended-process";
    case WhyCause::kSilentHost:
      return "silent-host";
    case WhyCause::kMissingMember:
      return "missing-member";
    case WhyCause::kNoProgram:
      return "no-program";
    case WhyCause::kFullDisk:
      return "full-disk";
    case WhyCause::kFailingDisk:
      return "failing-disk";
    case WhyCause::kSlowLink:
      return "slow-link";
    case WhyCause::kSlowWorker:
      return "slow-worker";
    case WhyCause::kSlowData:
      return "slow-data";
    case WhyCause::kSlowServer:
      return "slow-server";
    case WhyCause::kDiverges:
      return "diverges";
    case WhyCause::kStoppedCoordinator:
      return "stopped-coordinator";
    case WhyCause::kNoCoordinator:
      return "no-coordinator";
    case WhyCause::kDone:
      return "done";
    case WhyCause::kInterrupted:
      return "interrupted";
    case WhyCause::kFailed:
      return "failed";
    case WhyCause::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string MemberText(const v1::MemberStatus& member) {
  return absl::StrCat(member.role() == v1::ROLE_SERVER ? "server " : "worker ",
                      member.index(), " (", member.host(), ", pid ",
                      member.pid(), ")");
}

std::string OpenStepText(const v1::JobStatusResponse& status) {
  return absl::StrCat("step ", WithThousands(status.step() + 1));
}

std::string WaitText(const WhyFacts& facts, const v1::MemberStatus& member) {
  const int64_t others = StepWithout(facts, member);
  return absl::StrCat(
      others > 0
          ? absl::StrCat("goes on to step ", WithThousands(others), " without ")
          : absl::StrCat("does not advance: ", OpenStepText(facts.now()),
                         " waits for "),
      MemberText(member));
}

bool MayGoOnWithout(const WhyFacts& facts, const v1::MemberStatus& member) {
  return !Ahead(facts.now(), member).empty();
}

std::string AgeText(double seconds) { return FormatElapsed(seconds); }

std::string PaceText(double seconds_a_step) {
  if (seconds_a_step <= 0) return "no step has ended yet";
  if (seconds_a_step > 1) {
    return absl::StrCat("one step in ", AgeText(seconds_a_step));
  }
  const double rate = 1 / seconds_a_step;
  return absl::StrCat(
      rate < 10 ? absl::StrFormat("%.1f", rate) : FormatCount(rate),
      " steps a second");
}

bool IsFullDisk(absl::string_view error) {
  return absl::StrContains(error, "No space left on device") ||
         absl::StrContains(error, "Disk quota exceeded") ||
         absl::StrContains(error, "the disk is full");
}

}  // namespace tributary
