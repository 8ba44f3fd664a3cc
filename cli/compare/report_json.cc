// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/report_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json PartsJson(const std::optional<StepParts>& parts) {
  if (!parts) return nullptr;
  return {{"data", parts->data},
          {"compute", parts->compute},
          {"exposed_communication", parts->communication},
          {"waiting", parts->waiting},
          {"optimizer", parts->optimizer}};
}

Json DrawnJson(const std::optional<DrawnStep>& drawn) {
  if (!drawn) return nullptr;
  Json ranks = Json::array();
  for (const DrawnRank& rank : drawn->ranks) {
    Json spans = Json::array();
    for (const DrawnSpan& span : rank.spans) {
      spans.push_back({span.activity, span.begin_ms, span.end_ms});
    }
    ranks.push_back({{"rank", rank.rank}, {"spans_ms", std::move(spans)}});
  }
  return {{"step", drawn->step}, {"ranks", std::move(ranks)}};
}

Json RowJson(const CompareRow& row) {
  Json losses = Json::array();
  for (const LossPoint& point : row.losses) {
    losses.push_back({point.step, point.loss});
  }
  Json json;
  json["strategy"] = row.name;
  json["workers"] = row.workers;
  json["servers"] = row.servers;
  json["run_directory"] = row.folder;
  json["status"] = row.status;
  if (!row.message.empty()) json["message"] = row.message;
  json["steps"] = row.steps;
  json["step_seconds"] = nullptr;
  if (row.parts) json["step_seconds"] = row.parts->step;
  json["predicted_step_seconds"] = OrNull(row.predicted_step_seconds);
  json["parts_seconds"] = PartsJson(row.parts);
  json["samples_per_second"] = row.samples_per_second;
  json["bytes_per_rank_and_step"] = {{"sent", row.bytes_sent},
                                     {"received", row.bytes_received}};
  json["peak_memory_bytes"] = {{"worker", OrNull(row.worker_peak_bytes)},
                               {"server", OrNull(row.server_peak_bytes)}};
  json["loss"] = OrNull(row.loss);
  json["metric"] = OrNull(row.metric);
  json["weight_distance"] = OrNull(row.weight_distance);
  json["timeline"] = DrawnJson(row.drawn);
  json["losses"] = std::move(losses);
  return json;
}

}  // namespace

std::string ReportJson(const CompareReport& report) {
  Json rows = Json::array();
  for (const CompareRow& row : report.rows) rows.push_back(RowJson(row));
  Json json;
  json["name"] = report.job_name;
  json["parameters"] = report.parameters;
  json["global_batch"] = report.global_batch;
  json["seed"] = report.seed;
  json["warmup_steps"] = report.warmup_steps;
  json["metric"] = report.metric_name;
  json["metric_set"] = report.metric_set;
  json["runs"] = std::move(rows);
  json["notes"] = report.notes;
  json["version"] = report.version;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
