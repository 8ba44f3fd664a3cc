// SPDX-License-Identifier: Apache-2.0
#include "cli/status/ask_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/status/lost_end.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/address.h"
#include "common/host/reachability.h"

namespace tributary {
namespace {

// Enough samples, in 2.4 s, to see for whom servers wait most, and who goes on.
constexpr size_t kMostSamples = 9;
constexpr absl::Duration kBetweenSamples = absl::Milliseconds(300);
constexpr absl::Duration kProbe = absl::Milliseconds(500);

void LookAtMembers(WhyFacts* facts) {
  const std::string host = HostName();
  facts->processes.clear();
  for (const v1::MemberStatus& member : facts->now().members()) {
    if (member.host() != host || member.pid() < 1) continue;
    facts->processes[{member.role(), member.index()}] =
        LookAtProcess(member.pid()).state;
  }
}

}  // namespace

CoordinatorLife LookAgain(const FoundJob& job) {
  if (job.known.job.pid == 0) return job.known.life;
  const CoordinatorLife life = LookAtCoordinator(job.known.job);
  const bool closed =
      life == CoordinatorLife::kRuns && job.client != nullptr &&
      WhyNobodyAnswers(job.client->address(), kProbe) == kNobodyListens;
  return closed ? CoordinatorLife::kEnds : life;
}

std::string UnknownEndText(const absl::Status& unreachable) {
  return absl::StrCat(unreachable.message(),
                      UnansweredFor(unreachable) ? "" : "; has the job ended?");
}

AskedWhy WhyGone(const FoundJob& job, const absl::Status& why) {
  UnreachableFacts facts{.known = job.known,
                         .why = why,
                         .proved = job.encrypted,
                         .outcome = std::nullopt};
  KnownJob& known = facts.known;
  known.life = LookAgain(job);
  known.directory_is_gone = IsGoneDirectory(job.run_directory());
  std::optional<RunOutcome>& outcome = facts.outcome;
  absl::Status unread;
  if (!known.job.run_directory.empty()) {
    auto read = ReadRunOutcome(known.job.run_directory);
    if (read.ok()) outcome = *std::move(read);
    if (!absl::IsNotFound(read.status())) unread = read.status();
  }
  AskedWhy asked;
  asked.answer = ExplainUnreachable(facts);
  if (known.gone() && !unread.ok()) {
    asked.answer.sentence =
        absl::StrCat("has ended, and how is not known: ", unread.message());
  }
  asked.name = outcome ? outcome->name : known.job.name;
  if (outcome) {
    asked.step = outcome->steps;
    asked.total_steps = outcome->total_steps;
  }
  asked.well = asked.answer.cause == WhyCause::kDone;
  asked.over = outcome || known.gone() || known.life == CoordinatorLife::kEnds;
  return asked;
}

std::string RefusalText(const FoundJob& job, const absl::Status& unreachable,
                        absl::string_view needless) {
  const AskedWhy asked = WhyGone(job, unreachable);
  if (job.run_directory().empty() && !asked.over) {
    return UnknownEndText(unreachable);
  }
  return absl::StrCat(
      asked.name.empty() ? job.Title() : asked.name, " ", asked.answer.sentence,
      asked.over ? absl::StrCat("; there is nothing to ", needless) : "");
}

absl::StatusOr<v1::JobStatusResponse> AskStatus(const FoundJob& job,
                                                absl::Duration timeout) {
  if (job.client == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no coordinator runs for ", job.Title()));
  }
  if (job.known.life == CoordinatorLife::kStopped) {
    return absl::UnavailableError(
        absl::StrCat("the coordinator of ", job.Title(), " is stopped"));
  }
  absl::StatusOr<v1::JobStatusResponse> status =
      job.client->GetJobStatus(timeout);
  if (absl::IsUnimplemented(status.status())) {
    return absl::UnavailableError(absl::StrCat(
        job.known.job.coordinator, " is not the address of a coordinator"));
  }
  return status;
}

AskedWhy AskWhy(const FoundJob& job) {
  WhyFacts facts;
  AskedWhy asked;
  do {
    if (!facts.samples.empty()) absl::SleepFor(kBetweenSamples);
    absl::StatusOr<v1::JobStatusResponse> status = AskStatus(job);
    if (!status.ok()) return WhyGone(job, status.status());
    facts.samples.push_back(*std::move(status));
    LookAtMembers(&facts);
    asked.answer = ExplainJob(facts);
  } while (asked.answer.wants_more && facts.samples.size() < kMostSamples);
  asked.name = facts.now().name();
  asked.step = facts.now().step();
  asked.total_steps = facts.now().total_steps();
  asked.well = facts.now().phase() != v1::JOB_PHASE_FAILED;
  return asked;
}

std::optional<FoundJob> FindRunningJob(const JobChoice& choice,
                                       absl::string_view needless,
                                       int* exit_code) {
  absl::StatusOr<FoundJob> job =
      FindJob(choice, JobRegister(JobRegisterFolder()));
  if (!job.ok()) {
    *exit_code = RefuseChoice(job.status());
    return std::nullopt;
  }
  if (job->client == nullptr) {
    PrintError(RefusalText(*job, AskStatus(*job).status(), needless));
    *exit_code = kExitFailed;
    return std::nullopt;
  }
  return *std::move(job);
}

int RefuseChoice(const absl::Status& status) {
  PrintError(status.message());
  return absl::IsNotFound(status) ? kExitFailed : kExitRefused;
}

}  // namespace tributary
