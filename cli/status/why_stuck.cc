// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why_stuck.h"

#include <algorithm>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/status/why_text.h"

namespace tributary {
namespace {

const v1::MemberStatus* FindMember(const v1::JobStatusResponse& status,
                                   v1::Role role, uint32_t index) {
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == role && member.index() == index) return &member;
  }
  return nullptr;
}

// The ranks in "step 51 of shard 0, block 0 waits for rank 1, 2" and in "the
// gradients of rank 1 in step 51".
std::set<uint32_t> RanksIn(const std::string& text) {
  static const std::regex pattern("rank ([0-9]+(?:, [0-9]+)*)");
  std::set<uint32_t> ranks;
  std::smatch found;
  if (!std::regex_search(text, found, pattern)) return ranks;
  const std::string list = found[1];
  static const std::regex number("[0-9]+");
  for (std::sregex_iterator it(list.begin(), list.end(), number), end;
       it != end; ++it) {
    uint32_t rank = 0;
    if (absl::SimpleAtoi(it->str(), &rank)) ranks.insert(rank);
  }
  return ranks;
}

// The server whose address a worker's sentence names; null: it names none.
const v1::MemberStatus* ServerIn(const v1::JobStatusResponse& status,
                                 const std::string& text) {
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == v1::ROLE_SERVER && !member.address().empty() &&
        absl::StrContains(text, absl::StrCat("server ", member.address()))) {
      return &member;
    }
  }
  return nullptr;
}

// The ranks that others wait for and that have not reported the open step.
std::set<uint32_t> LateRanks(const v1::JobStatusResponse& status) {
  std::set<uint32_t> ranks;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.finished()) continue;
    const auto& listed = member.waiting_for_ranks();
    ranks.insert(listed.begin(), listed.end());
    if (member.role() == v1::ROLE_WORKER) {
      ranks.merge(RanksIn(member.waiting_for()));
    }
  }
  for (auto it = ranks.begin(); it != ranks.end();) {
    const auto* worker = FindMember(status, v1::ROLE_WORKER, *it);
    const bool late = worker != nullptr && !worker->finished() &&
                      worker->step() <= status.step();
    it = late ? std::next(it) : ranks.erase(it);
  }
  return ranks;
}

WhyAnswer Link(const WhyFacts& facts, const v1::MemberStatus& worker,
               const v1::MemberStatus& server) {
  return {.cause = WhyCause::kSlowLink,
          .sentence = absl::StrCat(
              WaitText(facts, worker), ", which waits for ",
              worker.waiting_for(), ", that is ", MemberText(server),
              "; both are heard, so the link between them is slow or cut")};
}

}  // namespace

WhyAnswer ExplainStuck(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const std::string since = AgeText(now.step_wait_seconds());
  const std::set<uint32_t> late = LateRanks(now);
  for (const uint32_t rank : late) {
    const auto& worker = *FindMember(now, v1::ROLE_WORKER, rank);
    const auto* server = ServerIn(now, worker.waiting_for());
    if (server != nullptr) return Link(facts, worker, *server);
  }
  for (const uint32_t rank : late) {
    const auto& worker = *FindMember(now, v1::ROLE_WORKER, rank);
    if (!RanksIn(worker.waiting_for()).empty()) continue;  // not the first one
    const v1::StepReport& last = worker.last_step();
    return {.cause = WhyCause::kSlowWorker,
            .sentence = absl::StrCat(
                WaitText(facts, worker), ", which has worked on step ",
                WithThousands(worker.step() + 1), " for ", since,
                last.step() > 0 ? absl::StrCat("; its last step took ",
                                               AgeText(last.step_seconds()))
                                : "",
                worker.waiting_for().empty()
                    ? ""
                    : absl::StrCat("; it waits for ", worker.waiting_for()))};
  }
  for (const v1::MemberStatus& member : now.members()) {
    if (member.role() != v1::ROLE_WORKER || member.finished()) continue;
    const auto* server = ServerIn(now, member.waiting_for());
    if (server != nullptr) return Link(facts, member, *server);
  }
  for (const v1::MemberStatus& member : now.members()) {
    if (member.finished() || member.waiting_for().empty()) continue;
    return {.cause = WhyCause::kUnknown,
            .sentence = absl::StrCat("does not advance: no step has ended for ",
                                     since, ", and ", MemberText(member),
                                     " waits for ", member.waiting_for())};
  }
  return {.cause = WhyCause::kUnknown,
          .sentence = absl::StrCat(
              "does not advance: no step has ended for ", since,
              ", although every process is heard and none says that it waits; "
              "`tributary logs` may say more")};
}

}  // namespace tributary
