#include "cli/status_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/format.h"

namespace tributary {
namespace {

const char* PhaseText(v1::JobPhase phase) {
  switch (phase) {
    case v1::JOB_PHASE_RUNNING:
      return "running";
    case v1::JOB_PHASE_STOPPING:
      return "stopping";
    case v1::JOB_PHASE_DONE:
      return "done";
    case v1::JOB_PHASE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string MemberLine(const v1::MemberStatus& member) {
  const std::string name = absl::StrCat(
      member.role() == v1::ROLE_SERVER ? "server " : "worker ", member.index());
  if (member.host().empty()) return absl::StrFormat("  %-11s not here", name);
  std::string line = absl::StrFormat(
      "  %-11s %-5s  step %-8d heard %.1f s ago  %10s  %s", name,
      member.alive() ? "alive" : "lost", member.step(),
      member.seconds_since_heartbeat(), FormatBytes(member.peak_memory_bytes()),
      member.address().empty()
          ? absl::StrCat(member.host(), " pid ", member.pid())
          : member.address());
  if (!member.device().empty()) absl::StrAppend(&line, "  ", member.device());
  if (!member.waiting_for().empty()) {
    absl::StrAppend(&line, "  waits for ", member.waiting_for());
  }
  return line;
}

}  // namespace

std::string StatusText(const v1::JobStatusResponse& status) {
  std::string text = absl::StrCat(status.name(), ": ");
  if (status.phase() == v1::JOB_PHASE_WAITING) {
    absl::StrAppend(&text, status.message());  // "waiting for ..."
  } else {
    absl::StrAppend(&text, PhaseText(status.phase()),
                    status.message().empty() ? "" : ", ", status.message());
  }
  if (status.total_steps() > 0) {
    absl::StrAppendFormat(&text, "\n  step %d/%d (%d%%), epoch %.1f",
                          status.step(), status.total_steps(),
                          100 * status.step() / status.total_steps(),
                          status.epoch());
  }
  if (status.step() > 0) {
    absl::StrAppend(&text, ", loss ", FormatMetric(status.loss()), ", ",
                    FormatCount(status.samples_per_second()), " samples/s");
  }
  absl::StrAppend(&text, "\n");
  for (const v1::MemberStatus& member : status.members()) {
    absl::StrAppend(&text, MemberLine(member), "\n");
  }
  return text;
}

}  // namespace tributary
