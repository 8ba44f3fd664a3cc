// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why_stuck.h"

#include <algorithm>
#include <set>

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

// The server from which a worker waits for an answer; null: none.
const v1::MemberStatus* SilentServer(const v1::JobStatusResponse& status,
                                     const v1::MemberStatus& worker) {
  return worker.wait().has_server()
             ? FindMember(status, v1::ROLE_SERVER, worker.wait().server())
             : nullptr;
}

// The ranks that others wait for and that have not reported the open step.
std::set<uint32_t> LateRanks(const v1::JobStatusResponse& status) {
  std::set<uint32_t> ranks;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.finished()) continue;
    ranks.insert(member.wait().ranks().begin(), member.wait().ranks().end());
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
              worker.wait().text(), ", that is ", MemberText(server),
              "; both are heard, so the link between them is slow or cut")};
}

}  // namespace

WhyAnswer ExplainStuck(const WhyFacts& facts) {
  const v1::JobStatusResponse& now = facts.now();
  const std::string since = AgeText(now.step_wait_seconds());
  const std::set<uint32_t> late = LateRanks(now);
  for (const uint32_t rank : late) {
    const auto& worker = *FindMember(now, v1::ROLE_WORKER, rank);
    const auto* server = SilentServer(now, worker);
    if (server != nullptr) return Link(facts, worker, *server);
  }
  for (const uint32_t rank : late) {
    const auto& worker = *FindMember(now, v1::ROLE_WORKER, rank);
    if (worker.wait().ranks_size() > 0) continue;  // it waits for others
    const v1::StepReport& last = worker.last_step();
    return {.cause = WhyCause::kSlowWorker,
            .sentence = absl::StrCat(
                WaitText(facts, worker), ", which has worked on step ",
                WithThousands(worker.step() + 1), " for ", since,
                last.step() > 0 ? absl::StrCat("; its last step took ",
                                               AgeText(last.step_seconds()))
                                : "",
                worker.wait().text().empty()
                    ? ""
                    : absl::StrCat("; it waits for ", worker.wait().text()))};
  }
  for (const v1::MemberStatus& member : now.members()) {
    if (member.role() != v1::ROLE_WORKER || member.finished()) continue;
    const auto* server = SilentServer(now, member);
    if (server != nullptr) return Link(facts, member, *server);
  }
  for (const v1::MemberStatus& member : now.members()) {
    if (member.finished() || member.wait().text().empty()) continue;
    return {.cause = WhyCause::kUnknown,
            .sentence = absl::StrCat("does not advance: no step has ended for ",
                                     since, ", and ", MemberText(member),
                                     " waits for ", member.wait().text())};
  }
  return {.cause = WhyCause::kUnknown,
          .sentence = absl::StrCat(
              "does not advance: no step has ended for ", since,
              ", although every process is heard and none says that it waits; "
              "`tributary logs` may say more")};
}

}  // namespace tributary
