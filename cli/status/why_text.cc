// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/jobs/run_outcome.h"
#include "cli/terminal/format.h"
#include "common/wire/identity/role_name.h"

namespace tributary {
namespace {

// If no step has ended for this long, every worker has reported its progress
// since then: heartbeats come at least every second.
constexpr double kSettledSeconds = 1.5;
// This many samples (ask_job.cc) span more time than lies between heartbeats.
constexpr size_t kSettledSamples = 5;

// The steps of the workers that are beyond the open step, by rank.
std::map<uint32_t, int64_t> Ahead(const v1::JobStatusResponse& status) {
  std::map<uint32_t, int64_t> steps;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == v1::ROLE_WORKER && member.step() > status.step() + 1) {
      steps[member.index()] = member.step();
    }
  }
  return steps;
}

// The first step for which a server waits for this rank. It may be later than
// the open one: a late worker's last steps can be unreported.
int64_t AwaitedStep(const v1::JobStatusResponse& status,
                    const v1::MemberStatus& late) {
  int64_t awaited = 0;
  if (late.role() != v1::ROLE_WORKER) return status.step() + 1;
  for (const v1::MemberStatus& member : status.members()) {
    const auto& ranks = member.wait().ranks();
    if (member.role() == v1::ROLE_SERVER && member.wait().step() > 0 &&
        !member.wait().text().empty() &&
        std::find(ranks.begin(), ranks.end(), late.index()) != ranks.end()) {
      awaited = awaited == 0 ? member.wait().step()
                             : std::min(awaited, member.wait().step());
    }
  }
  return std::max(awaited, status.step() + 1);
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
    case WhyCause::kSilentCoordinator:
      return "silent-coordinator";
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
  return absl::StrCat(RoleName(member.role()), " ", member.index(), " (",
                      member.host(), ", pid ", member.pid(), ")");
}

std::string OpenStepText(const v1::JobStatusResponse& status) {
  return absl::StrCat("step ", WithThousands(status.step() + 1));
}

int64_t StepWithoutLate(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const auto settled =
      std::find_if(facts.samples.begin(), facts.samples.end(),
                   [&](const v1::JobStatusResponse& sample) {
                     return sample.step() == now.step() &&
                            sample.step_wait_seconds() >= kSettledSeconds;
                   });
  if (settled == facts.samples.end()) return 0;
  const std::map<uint32_t, int64_t> before = Ahead(*settled);
  int64_t furthest = 0;
  for (const auto& [rank, step] : Ahead(now)) {
    const auto found = before.find(rank);
    if (found != before.end() && found->second < step) {
      furthest = std::max(furthest, step);
    }
  }
  return furthest;
}

bool MayGoOnWithoutLate(const WhyFacts& facts) {
  const std::map<uint32_t, int64_t> ahead = Ahead(facts.now());
  if (ahead.empty() || StepWithoutLate(facts) > 0) return false;
  const size_t samples = facts.samples.size();
  return samples < kSettledSamples ||
         Ahead(facts.samples[samples - kSettledSamples]) != ahead;
}

std::string WaitText(const WhyFacts& facts, const v1::MemberStatus& member) {
  const int64_t others = StepWithoutLate(facts);
  return absl::StrCat(
      others > 0
          ? absl::StrCat("goes on to step ", WithThousands(others), " without ")
          : absl::StrCat("does not advance: step ",
                         WithThousands(AwaitedStep(facts.now(), member)),
                         " waits for "),
      MemberText(member));
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

}  // namespace tributary
