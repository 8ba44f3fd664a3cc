#include "cli/run_record.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

// Numbers that are none (a diverged loss) become null.
Json MetricsJson(const std::map<std::string, double>& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = value;
  return json;
}

Json EvaluationsJson(const std::vector<EvaluationRecord>& evaluations) {
  Json json = Json::array();
  for (const EvaluationRecord& evaluation : evaluations) {
    json.push_back({{"step", evaluation.step},
                    {"epoch", evaluation.epoch},
                    {"samples", evaluation.samples},
                    {"test", MetricsJson(evaluation.metrics)}});
  }
  return json;
}

Json ProcessesJson(const RunSummary& summary) {
  Json json = Json::array();
  json.push_back(
      {{"role", "coordinator"},
       {"peak_memory_bytes", summary.coordinator_peak_memory_bytes}});
  for (const v1::MemberStatus& member : summary.members) {
    if (member.host().empty()) continue;  // it never came
    json.push_back(
        {{"role", member.role() == v1::ROLE_SERVER ? "server" : "worker"},
         {"index", member.index()},
         {"host", member.host()},
         {"pid", member.pid()},
         {"device", member.device()},
         {"peak_memory_bytes", member.peak_memory_bytes()}});
  }
  return json;
}

std::string ProtobufVersion() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

}  // namespace

double RunSummary::SamplesPerSecond() const {
  return totals.training_seconds > 0
             ? static_cast<double>(totals.samples) / totals.training_seconds
             : 0;
}

std::string MetricsLine(const StepRecord& record) {
  const Json json = {{"step", record.step},
                     {"epoch", record.epoch},
                     {"loss", record.loss},
                     {"learning_rate", record.learning_rate},
                     {"samples", record.samples},
                     {"samples_per_second", record.samples_per_second},
                     {"step_seconds", record.step_seconds},
                     {"data_seconds", record.data_seconds},
                     {"compute_seconds", record.compute_seconds},
                     {"push_seconds", record.push_seconds},
                     {"wait_seconds", record.wait_seconds}};
  return json.dump();
}

std::string SummaryJson(const RunSummary& summary) {
  Json json;
  json["name"] = summary.name;
  json["status"] = summary.status;
  if (!summary.message.empty()) json["message"] = summary.message;
  json["started"] = summary.started;
  json["seconds"] = summary.seconds;
  json["steps"] = summary.totals.steps;
  json["total_steps"] = summary.total_steps;
  json["epochs"] = summary.totals.epochs;
  json["samples"] = summary.totals.samples;
  json["training_seconds"] = summary.totals.training_seconds;
  json["samples_per_second"] = summary.SamplesPerSecond();
  json["final_loss"] = nullptr;
  if (summary.totals.steps > 0) json["final_loss"] = summary.totals.final_loss;
  json["test"] = summary.evaluations.empty()
                     ? Json::object()
                     : MetricsJson(summary.evaluations.back().metrics);
  json["evaluations"] = EvaluationsJson(summary.evaluations);
  json["bytes"] = {{"sent_by_workers", summary.totals.bytes_sent},
                   {"received_by_workers", summary.totals.bytes_received}};
  json["start_step"] = summary.totals.start_step;
  json["checkpoint_step"] = summary.totals.checkpoint_step;
  json["lost"] = {{"workers", summary.totals.workers_lost},
                  {"servers", summary.totals.servers_lost},
                  {"rollbacks", summary.totals.rollbacks}};
  json["processes"] = ProcessesJson(summary);
  json["weights_sha256"] = nullptr;
  if (!summary.weights_sha256.empty()) {
    json["weights_sha256"] = summary.weights_sha256;
  }
  json["versions"] = {{"tributary", TRIBUTARY_VERSION},
                      {"grpc", grpc::Version()},
                      {"protobuf", ProtobufVersion()},
                      {"compiler", __VERSION__}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
