// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_metrics.h"

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/identity/role_name.h"

namespace tributary {
namespace {

constexpr std::array<std::pair<v1::JobPhase, const char*>, 5> kPhases = {
    {{v1::JOB_PHASE_WAITING, "waiting"},
     {v1::JOB_PHASE_RUNNING, "running"},
     {v1::JOB_PHASE_STOPPING, "stopping"},
     {v1::JOB_PHASE_DONE, "done"},
     {v1::JOB_PHASE_FAILED, "failed"}}};

void WriteProgress(const v1::JobStatusResponse& status, MetricsWriter* writer) {
  const auto gauge = [writer](const char* name, const char* help, auto value) {
    writer->Gauge(name, help, static_cast<double>(value));
  };
  writer->Gauge("tributary_job_info", "Always 1.", 1,
                {{"name", status.name()}, {"strategy", status.strategy()}});
  for (const auto& [phase, name] : kPhases) {
    writer->Gauge("tributary_job_phase", "1 for the phase the job is in.",
                  status.phase() == phase ? 1 : 0, {{"phase", name}});
  }
  gauge("tributary_job_step",
        "Steps finished by every worker; falls at a rollback.", status.step());
  gauge("tributary_job_epoch", "Epochs done, with the fraction.",
        status.epoch());
  writer->Counter("tributary_job_samples_total",
                  "Samples trained by all workers.",
                  static_cast<double>(status.samples()));
  gauge("tributary_job_samples_per_second", "Over the last 5 s of training.",
        status.samples_per_second());
  writer->Counter("tributary_job_rollbacks_total",
                  "Times that everybody went back to a checkpoint.",
                  static_cast<double>(status.rollbacks()));
  if (status.total_steps() > 0) {
    gauge("tributary_job_planned_steps", "Steps that the job comes to.",
          status.total_steps());
  }
  if (status.step() > 0) {
    if (status.has_loss()) {
      gauge("tributary_job_loss", "Mean over the last step's global batch.",
            status.loss());
    }
    gauge("tributary_job_learning_rate", "Of the last step.",
          status.learning_rate());
  }
  if (status.has_step_wait_seconds()) {
    gauge("tributary_job_step_wait_seconds",
          "Since a step was last finished by every worker.",
          status.step_wait_seconds());
  }
  for (const auto& [name, value] : status.test()) {
    writer->Gauge("tributary_job_test_metric",
                  "Of the last evaluation on the test set.", value,
                  {{"metric", name}});
  }
  for (const auto& [name, value] : status.validation()) {
    writer->Gauge("tributary_job_validation_metric",
                  "Of the last evaluation on the validation set.", value,
                  {{"metric", name}});
  }
}

void WriteCheckpoints(const v1::JobStatusResponse& status,
                      const HistogramSnapshot& seconds, MetricsWriter* writer) {
  writer->Gauge("tributary_checkpoint_every_steps", "How often one is wanted.",
                static_cast<double>(status.checkpoint_every_steps()));
  writer->Gauge("tributary_checkpoint_step",
                "Of the newest complete checkpoint; 0: none yet.",
                static_cast<double>(status.checkpoint_step()));
  writer->Gauge(
      "tributary_checkpoint_age_seconds",
      "Since the newest was completed; before the first, since training "
      "began.",
      status.seconds_since_checkpoint());
  writer->Counter("tributary_checkpoints_total", "Completed.",
                  static_cast<double>(seconds.count));
  writer->Counter("tributary_checkpoint_failures_total",
                  "Checkpoints that were not completed.",
                  static_cast<double>(status.checkpoint_failures()));
  writer->Histogram("tributary_checkpoint_duration_seconds",
                    "Writing a checkpoint, at its slowest writer.", seconds);
}

const char* StateOf(const v1::MemberStatus& member) {
  if (member.finished()) return "finished";
  if (member.alive()) return "alive";
  return member.holders() > 0 ? "lost" : "missing";
}

void WriteMember(const v1::MemberStatus& member, MetricsWriter* writer) {
  if (member.holders() == 0) return;
  const MetricsWriter::Labels labels = {
      {"role", RoleName(member.role())},
      {"index", absl::StrCat(member.index())}};
  MetricsWriter::Labels info = labels;
  info.emplace_back("host", member.host());
  info.emplace_back("device", member.device());
  writer->Gauge("tributary_member_info", "Always 1; who holds a place.", 1,
                info);
  if (!member.finished()) {
    writer->Gauge("tributary_member_heartbeat_age_seconds",
                  "Since the member was last heard.",
                  member.seconds_since_heartbeat(), labels);
  }
  writer->Gauge("tributary_member_waiting",
                "1 while the member says that it waits for somebody.",
                member.wait().text().empty() ? 0 : 1, labels);
  if (member.role() == v1::ROLE_WORKER) {
    writer->Gauge("tributary_member_step",
                  "The last step that this worker has finished.",
                  static_cast<double>(member.step()), labels);
  }
}

void WriteMembers(const v1::JobStatusResponse& status, MetricsWriter* writer) {
  for (v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER}) {
    std::map<std::string, int> states = {
        {"alive", 0}, {"finished", 0}, {"lost", 0}, {"missing", 0}};
    double losses = 0, restarts = 0;
    for (const v1::MemberStatus& member : status.members()) {
      if (member.role() != role) continue;
      ++states[StateOf(member)];
      losses += member.losses();
      restarts += member.holders() > 0 ? member.holders() - 1 : 0;
    }
    for (const auto& [state, count] : states) {
      writer->Gauge("tributary_members", "Places by what became of them.",
                    count, {{"role", RoleName(role)}, {"state", state}});
    }
    writer->Counter("tributary_member_losses_total", "Leases that ran out.",
                    losses, {{"role", RoleName(role)}});
    writer->Counter("tributary_member_restarts_total",
                    "Places taken over by a new process.", restarts,
                    {{"role", RoleName(role)}});
  }
  for (const v1::MemberStatus& member : status.members()) {
    WriteMember(member, writer);
  }
}

}  // namespace

void WriteJobMetrics(const v1::JobStatusResponse& status,
                     const HistogramSnapshot& checkpoint_seconds,
                     MetricsWriter* writer) {
  WriteProgress(status, writer);
  WriteMembers(status, writer);
  if (status.checkpoint_every_steps() > 0) {
    WriteCheckpoints(status, checkpoint_seconds, writer);
  }
}

std::string ScrapeTargetsJson(const v1::JobStatusResponse& status,
                              const std::string& coordinator) {
  using Json = nlohmann::ordered_json;
  std::map<std::string, std::vector<std::string>> addresses;
  if (!coordinator.empty()) addresses["coordinator"] = {coordinator};
  for (const v1::MemberStatus& member : status.members()) {
    if (member.metrics_address().empty() || member.finished()) continue;
    addresses[RoleName(member.role())].push_back(member.metrics_address());
  }
  Json groups = Json::array();
  for (const auto& [role, targets] : addresses) {
    groups.push_back(
        {{"targets", targets},
         {"labels", {{"job", "tributary-" + role}, {"run", status.name()}}}});
  }
  return groups.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
