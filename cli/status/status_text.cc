// SPDX-License-Identifier: Apache-2.0
#include "cli/status/status_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/terminal/format.h"
#include "cli/terminal/progress_line.h"
#include "common/host/format_bytes.h"
#include "common/status/printable.h"
#include "common/wire/identity/role_name.h"
#include "coordinator/job/job_status.h"

namespace tributary {
namespace {

std::string MemberLine(const v1::MemberStatus& member) {
  const std::string name =
      absl::StrCat(RoleName(member.role()), " ", member.index());
  if (member.host().empty()) return absl::StrFormat("  %-11s not here", name);
  std::string line = absl::StrFormat(
      "  %-11s %-5s  step %-8d heard %.1f s ago  peak %10s  %s", name,
      member.finished() ? "done"
      : member.alive()  ? "alive"
                        : "lost",
      member.step(), member.seconds_since_heartbeat(),
      FormatBytes(member.peak_memory_bytes()),
      member.address().empty()
          ? absl::StrCat(member.host(), " pid ", member.pid())
          : member.address());
  if (!member.device().empty()) absl::StrAppend(&line, "  ", member.device());
  if (!member.wait().text().empty() && !member.finished()) {
    absl::StrAppend(&line, "  waits for ", member.wait().text());
  }
  return Printable(line);
}

// "checkpoint of step 40, 12.3 s ago; 1 failed; rollbacks: 2"; empty: nothing
// to report.
std::string SafetyText(const v1::JobStatusResponse& status) {
  std::vector<std::string> parts;
  if (status.checkpoint_every_steps() > 0) {
    parts.push_back(status.checkpoint_step() > 0
                        ? absl::StrFormat("checkpoint of step %d, %.1f s ago",
                                          status.checkpoint_step(),
                                          status.seconds_since_checkpoint())
                        : absl::StrCat("no checkpoint yet, one every ",
                                       status.checkpoint_every_steps(),
                                       " steps"));
  }
  if (status.checkpoint_failures() > 0) {
    parts.push_back(absl::StrCat(status.checkpoint_failures(), " failed"));
  }
  if (status.rollbacks() > 0) {
    parts.push_back(absl::StrCat("rollbacks: ", status.rollbacks()));
  }
  return absl::StrJoin(parts, "; ");
}

// One line for each rank that a server waits for: its process, its step, and
// the servers that wait for it.
std::string WaitLines(const v1::JobStatusResponse& status) {
  std::map<uint32_t, std::vector<std::string>> servers_by_rank;
  std::map<uint32_t, const v1::MemberStatus*> workers;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == v1::ROLE_WORKER) workers[member.index()] = &member;
    if (member.role() != v1::ROLE_SERVER) continue;
    if (member.wait().text().empty()) continue;  // the wait is over
    for (uint32_t rank : member.wait().ranks()) {
      servers_by_rank[rank].push_back(absl::StrCat("server ", member.index()));
    }
  }
  std::string text;
  for (const auto& [rank, servers] : servers_by_rank) {
    const auto worker = workers.find(rank);
    // A member's sentence can be older than what the coordinator knows.
    if (worker != workers.end() && (worker->second->finished() ||
                                    worker->second->step() > status.step())) {
      continue;
    }
    // If others are further, the late one's last steps may be unreported.
    const bool further =
        std::any_of(workers.begin(), workers.end(), [&](const auto& other) {
          return other.second->step() > status.step() + 1;
        });
    const std::string who = absl::StrCat("worker ", rank);
    absl::StrAppend(
        &text, "  ",
        further ? absl::StrCat(who, " is waited for")
                : absl::StrCat("step ", status.step() + 1, " waits for ", who));
    if (worker != workers.end()) {
      const v1::MemberStatus& late = *worker->second;
      absl::StrAppendFormat(
          &text, " (%s, its last %sstep is %d, heard %.1f s ago)",
          late.alive() ? "alive" : "lost", further ? "reported " : "",
          late.step(), late.seconds_since_heartbeat());
    }
    absl::StrAppend(&text, ": ", absl::StrJoin(servers, ", "), "\n");
  }
  return text;
}

// If every rank's count is at most one sample a step, the program does not
// count its samples.
std::string RateOf(const v1::JobStatusResponse& status) {
  uint64_t samples = 0;
  bool counts_steps = true;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() != v1::ROLE_WORKER) continue;
    samples += member.last_step().samples();
    counts_steps = counts_steps && member.last_step().samples() <= 1;
  }
  if (!counts_steps || samples == 0) {
    return RateText(status.samples_per_second(), /*counts_steps=*/false);
  }
  return RateText(status.samples_per_second() / static_cast<double>(samples),
                  /*counts_steps=*/true);
}

}  // namespace

std::string StatusText(const v1::JobStatusResponse& status) {
  const std::string message = Printable(status.message());
  std::string text = absl::StrCat(Printable(status.name()), ": ");
  if (status.phase() == v1::JOB_PHASE_WAITING) {
    absl::StrAppend(&text, message);  // "waiting for ..."
  } else {
    absl::StrAppend(&text, PhaseWord(status.phase()),
                    message.empty() ? "" : ", ", message);
  }
  if (status.total_steps() > 0) {
    absl::StrAppendFormat(&text, "\n  step %d/%d (%d%%), epoch %.1f",
                          status.step(), status.total_steps(),
                          100 * status.step() / status.total_steps(),
                          status.epoch());
  } else if (status.step() > 0) {  // the job's program ends it
    absl::StrAppend(&text, "\n  step ", status.step());
  }
  if (status.step() > 0) {
    if (status.has_loss()) {
      absl::StrAppend(&text, ", loss ", FormatMetric(status.loss()));
    }
    absl::StrAppend(&text, ", ", RateOf(status));
  }
  if (const std::string safety = SafetyText(status); !safety.empty()) {
    absl::StrAppend(&text, "\n  ", safety);
  }
  absl::StrAppend(&text, "\n");
  for (const v1::MemberStatus& member : status.members()) {
    absl::StrAppend(&text, MemberLine(member), "\n");
  }
  const bool over = status.phase() == v1::JOB_PHASE_DONE ||
                    status.phase() == v1::JOB_PHASE_FAILED;
  return over ? text : absl::StrCat(text, WaitLines(status));
}

std::string RedrawnInPlace(const std::string& text) {
  return absl::StrCat("\x1b[H", absl::StrReplaceAll(text, {{"\n", "\x1b[K\n"}}),
                      "\x1b[J");
}

}  // namespace tributary
