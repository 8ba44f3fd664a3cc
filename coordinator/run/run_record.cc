// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/limits.h"
#include "common/member/step_seconds.h"
#include "common/status/cause.h"
#include "common/wire/identity/role_name.h"
#include "coordinator/run/environment_record.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E6SZ";
constexpr char kCheckpointKind[] = "checkpoint";
constexpr char kNoLoss[] = "no_loss";

// A number that is not finite (a diverged loss) becomes null.
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
                    {evaluation.set, MetricsJson(evaluation.metrics)}});
  }
  return json;
}

Json ProcessesJson(const RunSummary& summary) {
  Json json = Json::array();
  json.push_back(
      {{"role", "coordinator"},
       {"peak_memory_bytes", summary.coordinator_peak_memory_bytes}});
  for (const v1::MemberStatus& member : summary.members) {
    if (member.host().empty()) continue;  // it never joined
    json.push_back({{"role", RoleName(member.role())},
                    {"index", member.index()},
                    {"host", member.host()},
                    {"pid", member.pid()},
                    {"device", member.device()},
                    {"peak_memory_bytes", member.peak_memory_bytes()},
                    {"bytes_sent", member.bytes_sent()},
                    {"bytes_received", member.bytes_received()}});
    if (member.role() == v1::ROLE_SERVER) {
      json.back()["optimizer_seconds"] = member.optimizer_seconds();
    }
  }
  return json;
}

// "forward" for STEP_ACTIVITY_FORWARD.
std::string ActivityName(v1::StepActivity activity) {
  const std::string& name = v1::StepActivity_Name(activity);
  constexpr absl::string_view kPrefix = "STEP_ACTIVITY_";
  return name.empty() ? "unspecified"
                      : absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

const Json& Field(const Json& json, const std::string& key) {
  static const Json kNone;
  const auto found = json.find(key);
  return found == json.end() ? kNone : *found;
}

double Number(const Json& json, const std::string& key, double otherwise) {
  const Json& field = Field(json, key);
  return field.is_number() ? field.get<double>() : otherwise;
}

// Reads the step of a line of metrics.jsonl, without bytes_sent. A loss that is
// not a number is NaN, unless the line says that there is no loss; other
// missing fields are 0.
StepRecord StepOf(const Json& json) {
  StepRecord record;
  record.step = Field(json, "step");
  if (const Json& epoch = Field(json, "epoch"); epoch.is_number_integer()) {
    record.epoch = epoch;
  }
  if (Field(json, kNoLoss) != true) {
    record.loss =
        Number(json, "loss", std::numeric_limits<double>::quiet_NaN());
  }
  record.learning_rate = Number(json, "learning_rate", 0);
  if (const Json& all = Field(json, "samples"); all.is_number_unsigned()) {
    record.samples = all;
  }
  record.samples_per_second = Number(json, "samples_per_second", 0);
  for (const StepSecondsField& field : kStepSeconds) {
    record.seconds.*field.seconds =
        Number(json, absl::StrCat(field.name, "_seconds"), 0);
  }
  record.skipped = Field(json, "skipped") == true;
  return record;
}

// Takes a key and its number from the beginning of a line.
template <typename T>
bool TakeNumber(absl::string_view* line, absl::string_view key, T* number) {
  if (!absl::ConsumePrefix(line, key)) return false;
  const char* const end = line->data() + line->size();
  const auto read = std::from_chars(line->data(), end, *number);
  if (read.ec != std::errc()) return false;
  line->remove_prefix(static_cast<size_t>(read.ptr - line->data()));
  return true;
}

// Takes the loss from the beginning of a line. Null stands for NaN, and for no
// loss.
bool TakeLoss(absl::string_view* line, StepRecord* record) {
  record->loss = std::numeric_limits<double>::quiet_NaN();
  return absl::ConsumePrefix(line, ",\"loss\":null") ||
         TakeNumber(line, ",\"loss\":", &*record->loss);
}

// Reads a line that MetricsLine has written, a hundred times as fast as a JSON
// parser: a successor may have to read millions. False: the line is different.
bool TakeStep(absl::string_view line, StepRecord* record) {
  static const std::vector<std::string>& keys = *[] {
    auto* const made = new std::vector<std::string>;
    for (const StepSecondsField& field : kStepSeconds) {
      made->push_back(absl::StrCat(",\"", field.name, "_seconds\":"));
    }
    return made;
  }();
  if (!absl::ConsumeSuffix(&line, "}") ||
      !TakeNumber(&line, "{\"step\":", &record->step) ||
      !TakeNumber(&line, ",\"epoch\":", &record->epoch) ||
      !TakeLoss(&line, record) ||
      !TakeNumber(&line, ",\"learning_rate\":", &record->learning_rate) ||
      !TakeNumber(&line, ",\"samples\":", &record->samples) ||
      !TakeNumber(&line,
                  ",\"samples_per_second\":", &record->samples_per_second)) {
    return false;
  }
  size_t next = 0;
  for (const StepSecondsField& field : kStepSeconds) {
    if (!TakeNumber(&line, keys[next++], &(record->seconds.*field.seconds))) {
      return false;
    }
  }
  record->skipped = absl::StrContains(line, ",\"skipped\":true");
  if (absl::StrContains(line, ",\"no_loss\":true")) record->loss.reset();
  return line.empty() || line[0] == ',';
}

}  // namespace

double RunSummary::SamplesPerSecond() const {
  return totals.training_seconds > 0
             ? static_cast<double>(totals.samples) / totals.training_seconds
             : 0;
}

double RunSummary::StepsPerSecond() const {
  return totals.training_seconds > 0
             ? static_cast<double>(totals.steps - totals.start_step) /
                   totals.training_seconds
             : 0;
}

const EvaluationRecord* RunSummary::LastOn(absl::string_view set) const {
  const auto last =
      std::find_if(evaluations.rbegin(), evaluations.rend(),
                   [set](const auto& record) { return record.set == set; });
  return last == evaluations.rend() ? nullptr : &*last;
}

const EvaluationRecord* RunSummary::At(absl::string_view set,
                                       int64_t step) const {
  const auto found = std::find_if(
      evaluations.begin(), evaluations.end(), [&](const auto& record) {
        return record.set == set && record.step == step;
      });
  return found == evaluations.end() ? nullptr : &*found;
}

std::string MetricsLine(const StepRecord& record) {
  Json json = {{"step", record.step},
               {"epoch", record.epoch},
               {"loss", nullptr},
               {"learning_rate", record.learning_rate},
               {"samples", record.samples},
               {"samples_per_second", record.samples_per_second}};
  if (record.loss) json["loss"] = *record.loss;
  for (const StepSecondsField& field : kStepSeconds) {
    json[absl::StrCat(field.name, "_seconds")] = record.seconds.*field.seconds;
  }
  json["peer_seconds"] = record.peer_seconds;
  json["bytes_sent"] = record.bytes_sent;
  json["bytes_received"] = record.bytes_received;
  if (!record.loss) json[kNoLoss] = true;
  if (record.skipped) json["skipped"] = true;
  if (record.lost_reports > 0) json["lost_reports"] = record.lost_reports;
  return json.dump();
}

std::optional<StepRecord> ReadMetricsLine(absl::string_view line) {
  StepRecord record;
  if (!TakeStep(line, &record)) {
    const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                  /*allow_exceptions=*/false);
    if (!json.is_object() || !Field(json, "step").is_number_integer()) {
      return std::nullopt;
    }
    record = StepOf(json);
  }
  if (record.step < 1 || record.step > kMaxStep) return std::nullopt;
  return record;
}

std::string EvaluationText(const EvaluationRecord& evaluation) {
  const Json json = {{"set", evaluation.set},
                     {"step", evaluation.step},
                     {"epoch", evaluation.epoch},
                     {"samples", evaluation.samples},
                     {"metrics", MetricsJson(evaluation.metrics)}};
  return json.dump();
}

std::optional<EvaluationRecord> ReadEvaluationText(absl::string_view line) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object() || !Field(json, "set").is_string() ||
      !Field(json, "step").is_number_integer() ||
      !Field(json, "epoch").is_number_integer() ||
      !Field(json, "samples").is_number_unsigned() ||
      !Field(json, "metrics").is_object()) {
    return std::nullopt;
  }
  EvaluationRecord record{.step = Field(json, "step"),
                          .epoch = Field(json, "epoch"),
                          .samples = Field(json, "samples"),
                          .metrics = {},
                          .set = Field(json, "set")};
  for (const auto& [name, value] : Field(json, "metrics").items()) {
    record.metrics[name] = value.is_number()
                               ? value.get<double>()
                               : std::numeric_limits<double>::quiet_NaN();
  }
  if (record.step < 0 || record.step > kMaxStep) return std::nullopt;
  return record;
}

std::string EventLine(const HistoryEvent& event) {
  const Json json = {
      {"time", absl::FormatTime(kTimeFormat, absl::FromUnixMicros(event.micros),
                                absl::UTCTimeZone())},
      {"kind", event.checkpoint ? kCheckpointKind : "note"},
      {"text", event.text}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<HistoryEvent> ReadEventLine(absl::string_view line) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object() || !Field(json, "text").is_string() ||
      !Field(json, "time").is_string()) {
    return std::nullopt;
  }
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full,
                       Field(json, "time").get<std::string>(), &time,
                       nullptr)) {
    return std::nullopt;
  }
  return HistoryEvent{absl::ToUnixMicros(time), Field(json, "text"),
                      Field(json, "kind") == kCheckpointKind};
}

std::string TimelineLine(const StepRecord& record) {
  int64_t first_micros = std::numeric_limits<int64_t>::max();
  for (const v1::StepReport& report : record.ranks) {
    if (report.spans().empty()) continue;
    first_micros = std::min(first_micros, report.begin_micros());
  }
  Json ranks = Json::array();
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const v1::StepReport& report = record.ranks[rank];
    if (report.spans().empty()) continue;
    Json spans = Json::array();
    for (const v1::StepSpan& span : report.spans()) {
      spans.push_back({ActivityName(span.activity()), span.begin_micros(),
                       span.end_micros()});
    }
    ranks.push_back({{"rank", rank},
                     {"begin_micros", report.begin_micros() - first_micros},
                     {"step_micros", std::llround(1e6 * report.step_seconds())},
                     {"spans", std::move(spans)}});
  }
  const Json json = {{"step", record.step}, {"ranks", std::move(ranks)}};
  return json.dump();
}

std::string SummaryJson(const RunSummary& summary) {
  Json json;
  json["name"] = summary.name;
  json["status"] = summary.status;
  if (!summary.message.empty()) json["message"] = summary.message;
  if (std::string cause = CauseName(summary.cause); !cause.empty()) {
    json["cause"] = std::move(cause);
  }
  json["started"] = summary.started;
  json["seconds"] = summary.seconds;
  json["steps"] = summary.totals.steps;
  json["total_steps"] = nullptr;  // the job's program decides when to end
  if (summary.total_steps > 0) json["total_steps"] = summary.total_steps;
  json["epochs"] = summary.totals.epochs;
  json["samples"] = summary.totals.samples;
  json["skipped_steps"] = summary.totals.skipped_steps;
  json["training_seconds"] = summary.totals.training_seconds;
  json["samples_per_second"] = summary.SamplesPerSecond();
  json["final_loss"] = nullptr;
  if (summary.totals.final_loss) {
    json["final_loss"] = *summary.totals.final_loss;
  }
  const EvaluationRecord* test = summary.LastOn("test");
  json["test"] = test == nullptr ? Json::object() : MetricsJson(test->metrics);
  if (const EvaluationRecord* last = summary.LastOn("validation")) {
    json["validation"] = MetricsJson(last->metrics);
  }
  json["evaluations"] = EvaluationsJson(summary.evaluations);
  if (const JobTotals::Best& best = summary.totals.best; best.step > 0) {
    json["best"] = {
        {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
    if (!summary.best_weights_sha256.empty()) {
      json["best"]["weights_sha256"] = summary.best_weights_sha256;
    }
    json["stopped_early"] = summary.totals.stopped_early;
  }
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
  if (!summary.resume_command.empty()) {
    json["resume_command"] = summary.resume_command;
    json["run_directory"] = summary.run_directory;
  }
  json["versions"] = ProgramVersions();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
