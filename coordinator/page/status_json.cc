// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/member/step_seconds.h"
#include "common/wire/identity/role_name.h"
#include "coordinator/job/job_status.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

// Uses the keys of metrics.jsonl, and times in whole microseconds.
Json StepJson(const v1::StepReport& report) {
  Json json = {{"step", report.step()}, {"samples", report.samples()}};
  for (const StepSecondsField& field : kStepSeconds) {
    json[absl::StrCat(field.name, "_seconds")] =
        std::round(1e6 * (report.*field.get)()) / 1e6;
  }
  return json;
}

Json MemberJson(const v1::MemberStatus& member) {
  Json json = {
      {"role", RoleName(member.role())}, {"index", member.index()},
      {"alive", member.alive()},         {"finished", member.finished()},
      {"holders", member.holders()},     {"losses", member.losses()}};
  if (member.host().empty()) return json;  // never held
  json["host"] = member.host();
  json["pid"] = member.pid();
  json["address"] = member.address();
  json["metrics_address"] = member.metrics_address();
  json["device"] = member.device();
  json["step"] = member.step();
  json["seconds_since_heartbeat"] = member.seconds_since_heartbeat();
  json["peak_memory_bytes"] = member.peak_memory_bytes();
  json["waiting_for"] = member.wait().text();
  json["waiting_for_ranks"] = Json::array();
  if (member.role() == v1::ROLE_SERVER) {
    json["waiting_for_ranks"] = member.wait().ranks();
  }
  json["bytes_sent"] = member.bytes_sent();
  json["bytes_received"] = member.bytes_received();
  if (member.has_last_step()) json["last_step"] = StepJson(member.last_step());
  return json;
}

Json EventsJson(const v1::JobStatusResponse& status) {
  Json json = Json::array();
  for (const v1::JobEvent& event : status.events()) {
    json.push_back({{"micros", event.micros()}, {"text", event.text()}});
  }
  return json;
}

}  // namespace

std::string StatusJson(const v1::JobStatusResponse& status, bool one_line) {
  Json json = {{"name", status.name()},
               {"phase", PhaseWord(status.phase())},
               {"message", status.message()},
               {"strategy", status.strategy()},
               {"step", status.step()},
               {"total_steps", status.total_steps()},
               {"epoch", status.epoch()},
               {"loss", nullptr},
               {"learning_rate", nullptr},
               {"samples", status.samples()},
               {"samples_per_second", status.samples_per_second()},
               {"step_wait_seconds", nullptr}};
  if (status.total_steps() == 0 && status.phase() != v1::JOB_PHASE_WAITING) {
    json["total_steps"] = nullptr;  // the job's program decides when it ends
  }
  if (status.step() > 0) {
    if (status.has_loss()) json["loss"] = status.loss();
    json["learning_rate"] = status.learning_rate();
  }
  if (status.checkpoint_every_steps() > 0) {
    json["checkpoint"] = {{"every_steps", status.checkpoint_every_steps()},
                          {"step", status.checkpoint_step()},
                          {"seconds_since", status.seconds_since_checkpoint()},
                          {"failures", status.checkpoint_failures()}};
    if (!status.checkpoint_error().empty()) {
      json["checkpoint"]["error"] = status.checkpoint_error();
    }
  }
  json["rollbacks"] = status.rollbacks();
  json["servers_lost"] = status.servers_lost();
  json["workers_lost"] = status.workers_lost();
  if (status.has_step_wait_seconds()) {
    json["step_wait_seconds"] = status.step_wait_seconds();
  }
  if (status.has_wait()) {
    json["waits_for"] = status.wait().text();
    json["waits_seconds"] = status.wait().seconds();
  }
  json["test"] = Json(std::map<std::string, double>(status.test().begin(),
                                                    status.test().end()));
  if (!status.validation().empty()) {
    json["validation"] = Json(std::map<std::string, double>(
        status.validation().begin(), status.validation().end()));
  }
  if (!status.events().empty()) json["events"] = EventsJson(status);
  json["members"] = Json::array();
  for (const v1::MemberStatus& member : status.members()) {
    json["members"].push_back(MemberJson(member));
  }
  return json.dump(one_line ? -1 : 2, ' ', false,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace tributary
