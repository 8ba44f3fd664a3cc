// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/status/lost_end.h"
#include "cli/status/why_pace.h"
#include "cli/status/why_stuck.h"
#include "cli/status/why_text.h"
#include "cli/terminal/format.h"
#include "common/member/coordinator_client.h"
#include "common/status/cause.h"

namespace tributary {
namespace {

// A member that was not heard for this long has missed several heartbeats,
// which come at least every second.
constexpr double kSilentSeconds = 2.5;
// A step is late once it takes this many times as long as the last one.
constexpr double kLateSteps = 3;
constexpr double kLateSeconds = 1;
// The first step takes longer: caches, pages and devices are cold.
constexpr double kLateFirstSeconds = 5;

// The process of a member, if it is one of this host.
std::optional<ProcessState> ProcessOf(const WhyFacts& facts,
                                      const v1::MemberStatus& member) {
  const auto found = facts.processes.find({member.role(), member.index()});
  if (found == facts.processes.end()) return std::nullopt;
  return found->second;
}

// Whether the job needs this member, and a process has held its place.
bool IsNeeded(const v1::MemberStatus& member) {
  return !member.finished() && !member.host().empty();
}

std::string Heard(const v1::MemberStatus& member) {
  return absl::StrCat("was last heard ",
                      AgeText(member.seconds_since_heartbeat()), " ago");
}

// Says that the job is also held for a checkpoint; empty: it is not held.
std::string HeldText(const v1::JobStatusResponse& now) {
  return now.wait().cause() == v1::CAUSE_CHECKPOINT
             ? absl::StrCat("; ", now.wait().text())
             : "";
}

// The stopped processes on this host, the one furthest behind first.
std::vector<const v1::MemberStatus*> StoppedMembers(const WhyFacts& facts) {
  std::vector<const v1::MemberStatus*> stopped;
  for (const v1::MemberStatus& member : facts.now().members()) {
    if (IsNeeded(member) &&
        ProcessOf(facts, member) == ProcessState::kStopped) {
      stopped.push_back(&member);
    }
  }
  const auto key = [](const v1::MemberStatus* member) {
    return member->role() == v1::ROLE_SERVER ? -1 : member->step();
  };
  std::stable_sort(
      stopped.begin(), stopped.end(),
      [&](const auto* a, const auto* b) { return key(a) < key(b); });
  return stopped;
}

// Explains a member whose process on this host is stopped or has ended.
std::optional<WhyAnswer> ExplainProcess(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  if (const auto stopped = StoppedMembers(facts); !stopped.empty()) {
    const v1::MemberStatus& member = *stopped[0];
    std::vector<std::string> others;
    for (size_t i = 1; i < stopped.size(); ++i) {
      others.push_back(MemberText(*stopped[i]));
    }
    return WhyAnswer{
        .cause = WhyCause::kStoppedProcess,
        .sentence = absl::StrCat(
            WaitText(facts, member),
            ", whose process is stopped (SIGSTOP) and ", Heard(member),
            member.alive() ? "" : ", so it has lost its place",
            "; `kill -CONT ", member.pid(), "` continues it",
            others.empty() ? "" : "; stopped as well: ",
            absl::StrJoin(others, ", "), HeldText(now)),
        .wants_more = MayGoOnWithoutLate(facts)};
  }
  for (const v1::MemberStatus& member : now.members()) {
    if (!IsNeeded(member) || ProcessOf(facts, member) != ProcessState::kGone) {
      continue;
    }
    return WhyAnswer{
        .cause = WhyCause::kEndedProcess,
        .sentence = absl::StrCat(
            WaitText(facts, member), ", whose process has ended and ",
            Heard(member), "; no other process has taken its place",
            HeldText(now)),
        .wants_more = MayGoOnWithoutLate(facts)};
  }
  return std::nullopt;
}

// Explains members that are not heard. Members of one host are named together.
std::optional<WhyAnswer> ExplainSilence(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const v1::MemberStatus* longest = nullptr;
  std::vector<std::string> others;
  for (const v1::MemberStatus& member : now.members()) {
    if (!IsNeeded(member) || !member.alive() ||
        member.seconds_since_heartbeat() < kSilentSeconds) {
      continue;
    }
    if (longest == nullptr ||
        member.seconds_since_heartbeat() > longest->seconds_since_heartbeat()) {
      longest = &member;
    }
  }
  if (longest == nullptr) return std::nullopt;
  bool all = true;
  for (const v1::MemberStatus& member : now.members()) {
    if (&member == longest || member.host() != longest->host()) continue;
    const bool silent = member.seconds_since_heartbeat() >= kSilentSeconds;
    if (silent) others.push_back(MemberText(member));
    all = all && (silent || member.finished());
  }
  const bool here = ProcessOf(facts, *longest).has_value();
  return WhyAnswer{
      .cause = WhyCause::kSilentHost,
      .sentence = absl::StrCat(
          WaitText(facts, *longest), ", which ", Heard(*longest),
          others.empty()
              ? ""
              : absl::StrCat(others.size() == 1 ? ", as was " : ", as were ",
                             absl::StrJoin(others, " and ")),
          here  ? ": its process runs on this machine, but does not reach the "
                  "coordinator"
          : all ? absl::StrCat(": the host ", longest->host(),
                               " is silent; it or the network to it is down, "
                               "or its processes are stopped")
                : absl::StrCat(": its process on ", longest->host(),
                               " is silent, although others there are heard"),
          HeldText(now)),
      .wants_more = MayGoOnWithoutLate(facts)};
}

// Explains the wait that the coordinator itself reports.
std::optional<WhyAnswer> ExplainWait(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  if (!now.has_wait()) return std::nullopt;
  const std::string& what = now.wait().text();
  const v1::Cause cause = now.wait().cause();
  const std::string since = AgeText(now.wait().seconds());
  if (cause == v1::CAUSE_FULL_DISK || cause == v1::CAUSE_DISK) {
    return WhyAnswer{
        .cause = cause == v1::CAUSE_DISK ? WhyCause::kFailingDisk
                                         : WhyCause::kFullDisk,
        .sentence = absl::StrCat("does not advance: ", OpenStepText(now),
                                 ", for ", since, ": ", what)};
  }
  if (cause == v1::CAUSE_PROGRAM) {
    return WhyAnswer{
        .cause = WhyCause::kNoProgram,
        .sentence = absl::StrCat(
            "has not begun: for ", since, " it has been ", what,
            " (tributary.torch.connect or Session::Connect has not been "
            "called, or not finished)")};
  }
  if (now.phase() == v1::JOB_PHASE_WAITING) {
    return WhyAnswer{.cause = WhyCause::kMissingMember,
                     .sentence = absl::StrCat("has not begun: it has been ",
                                              what, " for ", since)};
  }
  const bool missing = cause == v1::CAUSE_PLACE;
  const int64_t others = StepWithoutLate(facts);
  return WhyAnswer{
      .cause = missing ? WhyCause::kMissingMember : WhyCause::kUnknown,
      .sentence = others > 0
                      ? absl::StrCat("goes on to step ", WithThousands(others),
                                     " while it is ", what)
                      : absl::StrCat("does not advance: ", OpenStepText(now),
                                     ": ", what),
      .wants_more = missing && MayGoOnWithoutLate(facts)};
}

bool IsLate(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const double usual = SecondsAStep(facts);
  return now.has_step_wait_seconds() &&
         now.step_wait_seconds() >=
             (usual > 0 ? std::max(kLateSeconds, kLateSteps * usual)
                        : kLateFirstSeconds);
}

bool AllWorkersFinished(const v1::JobStatusResponse& now) {
  return std::all_of(now.members().begin(), now.members().end(),
                     [](const v1::MemberStatus& member) {
                       return member.role() != v1::ROLE_WORKER ||
                              member.finished();
                     });
}

std::string Advances(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const double pace = MeanSecondsAStep(facts);
  if (pace == 0) {
    return absl::StrCat("has begun: ", OpenStepText(now),
                        " is the first one, for ",
                        AgeText(now.step_wait_seconds()));
  }
  return absl::StrCat(
      now.phase() == v1::JOB_PHASE_STOPPING ? "is stopping, and advances: "
                                            : "advances: ",
      "step ", WithThousands(now.step()),
      now.total_steps() > 0
          ? absl::StrCat(" of ", WithThousands(now.total_steps()))
          : "",
      ", ", PaceText(pace), ", last finished ",
      AgeText(now.step_wait_seconds()), " ago");
}

// Explains a job whose steps end.
WhyAnswer ExplainAdvance(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  if (AllWorkersFinished(now)) {
    return {.cause = WhyCause::kNone,
            .sentence = absl::StrCat("ends: all steps up to ",
                                     WithThousands(now.step()),
                                     " are trained, and it saves the weights")};
  }
  std::string sentence = Advances(facts);
  if (now.wait().cause() == v1::CAUSE_FULL_DISK) {
    return {.cause = WhyCause::kFullDisk,
            .sentence = absl::StrCat(sentence, ", but ", now.wait().text())};
  }
  if (!now.checkpoint_error().empty()) {
    const bool full = now.checkpoint_cause() == v1::CAUSE_FULL_DISK;
    return {
        .cause = full ? WhyCause::kFullDisk : WhyCause::kFailingDisk,
        .sentence = absl::StrCat(
            sentence, ", but its newest checkpoint failed",
            full ? ", because a disk is full: " : ": ", now.checkpoint_error(),
            now.checkpoint_step() > 0
                ? absl::StrCat("; the last complete one is of step ",
                               WithThousands(now.checkpoint_step()))
                : "")};
  }
  if (now.step() > 0 && now.has_loss() && !std::isfinite(now.loss())) {
    return {.cause = WhyCause::kDiverges,
            .sentence = absl::StrCat(
                sentence, ", but it diverges: the loss is ",
                FormatMetric(now.loss()),
                "; a lower learning_rate or a clip_norm may help")};
  }
  if (std::optional<WhyAnswer> slow = ExplainPace(facts)) {
    slow->wants_more = true;
    return *std::move(slow);
  }
  return {.cause = WhyCause::kNone, .sentence = std::move(sentence)};
}

// The answer's cause for a failed job, from the name of its failure's cause.
WhyCause CauseOfFailure(const std::string& cause) {
  return cause == CauseName(v1::CAUSE_DIVERGENCE) ? WhyCause::kDiverges
                                                  : WhyCause::kFailed;
}

WhyAnswer ExplainEnd(const v1::JobStatusResponse& now) {
  if (now.phase() == v1::JOB_PHASE_DONE) {
    return {.cause = WhyCause::kDone,
            .sentence = absl::StrCat("is done, after step ",
                                     WithThousands(now.step()))};
  }
  return {
      .cause = CauseOfFailure(CauseName(now.cause())),
      .sentence = absl::StrCat("failed after step ", WithThousands(now.step()),
                               ": ", now.message())};
}

// Explains a coordinator that runs, as far as it can be told.
std::optional<WhyAnswer> ExplainRunning(const UnreachableFacts& facts,
                                        const std::string& process) {
  const bool lives = facts.known.life == CoordinatorLife::kRuns;
  const std::optional<absl::Duration> silent = UnansweredFor(facts.why);
  if (lives && facts.known.job.encrypted && (!silent || !facts.proved)) {
    return WhyAnswer{
        .cause = WhyCause::kNoCoordinator,
        .sentence = absl::StrCat(
            "has a coordinator", process,
            " that answers only with a certificate of its authority: give "
            "--tls FOLDER, as to its members; ",
            facts.why.message())};
  }
  if (!silent) return std::nullopt;
  return WhyAnswer{
      .cause = WhyCause::kSilentCoordinator,
      .sentence =
          lives ? absl::StrCat("has a coordinator", process,
                               " that lives, but has not answered for ",
                               AgeText(absl::ToDoubleSeconds(*silent)),
                               ": its machine may be overloaded; try again")
                : absl::StrCat("has a coordinator", process,
                               " that does not answer: ", facts.why.message())};
}

}  // namespace

WhyAnswer ExplainJob(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  if (now.phase() == v1::JOB_PHASE_DONE ||
      now.phase() == v1::JOB_PHASE_FAILED) {
    return ExplainEnd(now);
  }
  if (now.phase() != v1::JOB_PHASE_WAITING && !AllWorkersFinished(now)) {
    if (auto answer = ExplainProcess(facts)) return *std::move(answer);
    if (auto answer = ExplainSilence(facts)) return *std::move(answer);
  }
  const bool late = IsLate(facts);
  if (now.phase() == v1::JOB_PHASE_WAITING || late ||
      !now.wait().steps_go_on()) {
    if (auto answer = ExplainWait(facts)) return *std::move(answer);
  }
  if (!late) return ExplainAdvance(facts);
  WhyAnswer stuck = ExplainStuck(facts);
  stuck.wants_more = true;
  return stuck;
}

WhyAnswer ExplainUnreachable(const UnreachableFacts& facts) {
  const KnownJob& known = facts.known;
  const std::optional<RunOutcome>& outcome = facts.outcome;
  if (outcome && outcome->status == "done") {
    return {.cause = WhyCause::kDone,
            .sentence = absl::StrCat("is ", outcome->Text())};
  }
  if (outcome) {
    const bool stopped = outcome->status == "interrupted";
    return {.cause = stopped ? WhyCause::kInterrupted
                             : CauseOfFailure(outcome->cause),
            .sentence = absl::StrCat(
                stopped ? "was " : "", outcome->Text(),
                !outcome->resume_command.empty()
                    ? absl::StrCat("; continue with: ", outcome->resume_command)
                : stopped ? "; there is no checkpoint to continue from"
                          : "")};
  }
  const std::string process =
      known.job.pid > 0
          ? absl::StrCat(" (", known.job.host, ", pid ", known.job.pid, ")")
          : "";
  if (known.life == CoordinatorLife::kStopped) {
    return {
        .cause = WhyCause::kStoppedCoordinator,
        .sentence = absl::StrCat("does not advance: its coordinator", process,
                                 " is stopped (SIGSTOP); `kill -CONT ",
                                 known.job.pid, "` continues it")};
  }
  if (known.gone()) {
    return {.cause = WhyCause::kNoCoordinator,
            .sentence = absl::StrCat(
                "has no coordinator: the process", process,
                " has ended without a summary, so it was killed or could not "
                "write one",
                ContinueText(known, /*checkpoint_step=*/0))};
  }
  if (known.life == CoordinatorLife::kEnds) {
    return {.cause = WhyCause::kNoCoordinator,
            .sentence = absl::StrCat(
                "ends: its coordinator", process,
                " has closed its port and writes its last files; its screen "
                "says what it waits for, if anything")};
  }
  if (auto answer = ExplainRunning(facts, process)) return *std::move(answer);
  return {
      .cause = WhyCause::kNoCoordinator,
      .sentence = absl::StrCat("has no coordinator: ", facts.why.message())};
}

}  // namespace tributary
