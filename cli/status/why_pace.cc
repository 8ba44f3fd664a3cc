// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why_pace.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/status/why_text.h"
#include "common/host/format_bytes.h"

namespace tributary {
namespace {

// An activity that takes more than this share of a step makes the step slow.
constexpr double kMostOfAStep = 0.5;
// A worker that is this many times slower than every other one stands out.
constexpr double kStandsOut = 2;

// A link that carries less is slow: a quarter of a Gigabit Ethernet.
constexpr double kSlowBytesASecond = 30e6;

double BusySeconds(const v1::StepReport& step) {
  return step.data_seconds() + step.compute_seconds();
}

double LinkSeconds(const v1::StepReport& step) {
  return step.push_seconds() + step.wait_seconds() - step.optimizer_seconds();
}

std::vector<const v1::MemberStatus*> WorkersOf(
    const v1::JobStatusResponse& status) {
  std::vector<const v1::MemberStatus*> workers;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == v1::ROLE_WORKER && member.last_step().step() > 0) {
      workers.push_back(&member);
    }
  }
  return workers;
}

// Seconds that a server's updates take in a step, of the slowest server.
double UpdateSeconds(const WhyFacts& facts) {
  const v1::JobStatusResponse& first = facts.samples.front();
  const v1::JobStatusResponse& last = facts.now();
  const auto steps = static_cast<double>(last.step() - first.step());
  if (steps <= 0) return 0;
  double most = 0;
  for (int i = 0; i < std::min(first.members_size(), last.members_size());
       ++i) {
    const double spent = last.members(i).optimizer_seconds() -
                         first.members(i).optimizer_seconds();
    most = std::max(most, spent / steps);
  }
  return most;
}

// The only rank that servers have waited for in most samples; null: none.
const v1::MemberStatus* LateWorker(const WhyFacts& facts) {
  std::map<uint32_t, size_t> waits;
  for (const v1::JobStatusResponse& sample : facts.samples) {
    std::map<uint32_t, bool> in_sample;
    for (const v1::MemberStatus& member : sample.members()) {
      if (member.role() != v1::ROLE_SERVER) continue;
      for (uint32_t rank : member.wait().ranks()) in_sample[rank] = true;
    }
    for (const auto& [rank, unused] : in_sample) ++waits[rank];
  }
  const v1::MemberStatus* late = nullptr;
  for (const v1::MemberStatus* worker : WorkersOf(facts.now())) {
    if (2 * waits[worker->index()] <= facts.samples.size()) continue;
    if (late != nullptr) return nullptr;
    late = worker;
  }
  return late;
}

WhyAnswer Slow(const WhyFacts& facts, WhyCause cause,
               const std::string& because) {
  const v1::JobStatusResponse& now = facts.now();
  return {.cause = cause,
          .sentence = absl::StrCat(
              "advances slowly: step ", WithThousands(now.step()),
              now.total_steps() > 0
                  ? absl::StrCat(" of ", WithThousands(now.total_steps()))
                  : "",
              ", ", PaceText(SecondsAStep(facts)), ": ", because)};
}

std::optional<WhyAnswer> SlowLink(
    const WhyFacts& facts, const std::vector<const v1::MemberStatus*>& workers,
    double step_seconds) {
  double least = step_seconds;
  const v1::MemberStatus* late = LateWorker(facts);
  const v1::MemberStatus* slowest = workers.front();
  for (const v1::MemberStatus* worker : workers) {
    least = std::min(least, LinkSeconds(worker->last_step()));
    if (worker->last_step().step_seconds() >
        slowest->last_step().step_seconds()) {
      slowest = worker;
    }
  }
  if (least < kMostOfAStep * step_seconds) return std::nullopt;
  const v1::MemberStatus& shown = late != nullptr ? *late : *slowest;
  const v1::StepReport& step = shown.last_step();
  const auto bytes =
      static_cast<double>(step.bytes_sent() + step.bytes_received());
  if (bytes > kSlowBytesASecond * LinkSeconds(step)) return std::nullopt;
  const std::string amount = absl::StrFormat(
      "%s in %s", FormatBytes(step.bytes_sent() + step.bytes_received()),
      AgeText(LinkSeconds(step)));
  if (late == nullptr) {
    return Slow(facts, WhyCause::kSlowLink,
                absl::StrCat("the workers compute ", AgeText(BusySeconds(step)),
                             " of it and then wait for the network; ",
                             MemberText(shown), " exchanged ", amount));
  }
  return Slow(facts, WhyCause::kSlowLink,
              absl::StrCat(OpenStepText(facts.now()), " waits for what ",
                           MemberText(*late), " sends: it computed ",
                           AgeText(BusySeconds(step)), " and exchanged ",
                           amount, ", so its link is slow"));
}

}  // namespace

double SecondsAStep(const WhyFacts& facts) {
  double longest = 0;
  for (const v1::MemberStatus* worker : WorkersOf(facts.now())) {
    longest = std::max(longest, worker->last_step().step_seconds());
  }
  return longest;
}

double MeanSecondsAStep(const WhyFacts& facts) {
  double samples = 0;
  for (const v1::MemberStatus* worker : WorkersOf(facts.now())) {
    samples += static_cast<double>(worker->last_step().samples());
  }
  const double rate = facts.now().samples_per_second();
  return samples > 0 && rate > 0 ? samples / rate : SecondsAStep(facts);
}

std::optional<WhyAnswer> ExplainPace(const WhyFacts& facts) {
  std::vector<const v1::MemberStatus*> workers = WorkersOf(facts.now());
  const double step_seconds = SecondsAStep(facts);
  if (workers.empty() || step_seconds < kSlowSeconds) return std::nullopt;
  bool all_read = true;
  for (const v1::MemberStatus* worker : workers) {
    const v1::StepReport& step = worker->last_step();
    // Stages of a pipeline wait for each other by design.
    if (step.idle_seconds() + step.exchange_seconds() > 0) return std::nullopt;
    all_read = all_read && step.data_seconds() > kMostOfAStep * step_seconds;
  }
  std::sort(workers.begin(), workers.end(), [](const auto* a, const auto* b) {
    return BusySeconds(a->last_step()) > BusySeconds(b->last_step());
  });
  const v1::MemberStatus* const busiest = workers.front();
  const double second =
      workers.size() > 1 ? BusySeconds(workers[1]->last_step()) : 0;
  const v1::StepReport& longest = busiest->last_step();
  const bool reads = longest.data_seconds() > longest.compute_seconds();
  if (all_read) {
    return Slow(
        facts, WhyCause::kSlowData,
        absl::StrCat("the workers wait for their data, ", MemberText(*busiest),
                     " for ", AgeText(longest.data_seconds())));
  }
  if (workers.size() > 1 &&
      BusySeconds(longest) > kMostOfAStep * step_seconds &&
      BusySeconds(longest) > kStandsOut * second) {
    return Slow(
        facts, reads ? WhyCause::kSlowData : WhyCause::kSlowWorker,
        absl::StrCat(
            "it waits for ", MemberText(*busiest), ", which ",
            reads ? "waits for its data for " : "computes for ",
            AgeText(reads ? longest.data_seconds() : longest.compute_seconds()),
            ", the others for ", AgeText(second), " at most"));
  }
  if (const double update = UpdateSeconds(facts);
      update > kMostOfAStep * step_seconds) {
    return Slow(facts, WhyCause::kSlowServer,
                absl::StrCat("the servers' updates take ", AgeText(update),
                             " of it; more servers would share them"));
  }
  return SlowLink(facts, workers, step_seconds);
}

}  // namespace tributary
