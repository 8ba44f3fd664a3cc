// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/run_data.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/terminal/json_lines.h"
#include "common/host/small_file.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

double Number(const nlohmann::json& json, const char* key,
              double otherwise = 0) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<double>() : otherwise;
}

int64_t Integer(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

std::string Text(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

// The array's elements; an empty array when it is missing or not an array.
const nlohmann::json& Items(const nlohmann::json& json, const char* key) {
  static const nlohmann::json none = nlohmann::json::array();
  const auto it = json.find(key);
  return it != json.end() && it->is_array() ? *it : none;
}

RunData::Step StepOf(const nlohmann::json& json) {
  RunData::Step step;
  step.step = Integer(json, "step");
  // If a report is lost, the loss is not that of the whole batch.
  if (!json.contains("lost_reports") && !json.contains("no_loss")) {
    step.loss = Number(json, "loss", kNoNumber);
  }
  step.samples = Number(json, "samples");
  for (const StepSecondsField& field : kStepSeconds) {
    step.seconds.*field.seconds =
        Number(json, absl::StrCat(field.name, "_seconds").c_str());
  }
  step.peer_seconds = Number(json, "peer_seconds");
  step.bytes_sent = Number(json, "bytes_sent");
  step.bytes_received = Number(json, "bytes_received");
  return step;
}

RunData::Timeline TimelineOf(const nlohmann::json& json) {
  RunData::Timeline timeline;
  timeline.step = Integer(json, "step");
  for (const nlohmann::json& rank : Items(json, "ranks")) {
    RunData::RankTimeline& made = timeline.ranks.emplace_back();
    made.rank = static_cast<int>(Integer(rank, "rank"));
    made.begin_micros = Integer(rank, "begin_micros");
    made.step_micros = Integer(rank, "step_micros");
    for (const nlohmann::json& span : Items(rank, "spans")) {
      if (!span.is_array() || span.size() != 3 || !span[0].is_string() ||
          !span[1].is_number_integer() || !span[2].is_number_integer()) {
        continue;
      }
      made.spans.push_back({span[0].get<std::string>(), span[1].get<int64_t>(),
                            span[2].get<int64_t>()});
    }
  }
  return timeline;
}

absl::Status ReadSummary(const std::string& path, RunData* run) {
  const nlohmann::json json = nlohmann::json::parse(ReadText(path), nullptr,
                                                    /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wanted a JSON object"));
  }
  run->status = Text(json, "status");
  run->message = Text(json, "message");
  run->started = Text(json, "started");
  run->has_weights = !Text(json, "weights_sha256").empty();
  for (const nlohmann::json& process : Items(json, "processes")) {
    if (!process.is_object()) continue;
    run->processes.push_back(
        {Text(process, "role"), static_cast<int>(Integer(process, "index")),
         static_cast<uint64_t>(Integer(process, "peak_memory_bytes")),
         Number(process, "optimizer_seconds")});
  }
  // A job without a test set may have a validation set.
  for (const char* set : {"test", "validation"}) {
    if (!run->metrics.empty() || !json.contains(set) ||
        !json[set].is_object()) {
      continue;
    }
    for (const auto& [name, value] : json[set].items()) {
      run->metrics[name] = value.is_number() ? value.get<double>() : kNoNumber;
      run->evaluated_set = set;
    }
  }
  return absl::OkStatus();
}

void ReadChecksums(const std::string& path, RunData* run) {
  const nlohmann::json json = nlohmann::json::parse(ReadText(path), nullptr,
                                                    /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("data") ||
      !json["data"].is_object()) {
    return;
  }
  for (const auto& [name, record] : json["data"].items()) {
    if (!record.is_object()) continue;
    const std::string checksum = Text(record, "checksum");
    if (!checksum.empty()) run->checksums[name] = checksum;
  }
}

absl::Status ReadPrediction(const std::string& path, RunData* run) {
  const nlohmann::json json = nlohmann::json::parse(ReadText(path), nullptr,
                                                    /*allow_exceptions=*/false);
  const double seconds =
      json.is_object() ? Number(json, "step_seconds", kNoNumber) : kNoNumber;
  if (!(seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wanted step_seconds above 0"));
  }
  run->predicted_step_seconds = seconds;
  return absl::OkStatus();
}

}  // namespace

std::string DataDifference(const RunData& a, const RunData& b) {
  for (const auto& [name, what] :
       {std::pair("train", "training data"),
        std::pair("validation", "validation data"),
        std::pair("test", "test data"),
        std::pair("initial_weights", "initial weights")}) {
    const auto of_a = a.checksums.find(name), of_b = b.checksums.find(name);
    if (of_a == a.checksums.end() || of_b == b.checksums.end() ||
        of_a->second == of_b->second) {
      continue;
    }
    return absl::StrCat("the ", what, " of ", a.folder, " and ", b.folder,
                        " differ: their checksums are ", of_a->second, " and ",
                        of_b->second);
  }
  return "";
}

absl::StatusOr<RunData> ReadRun(const std::string& folder) {
  RunData run;
  run.folder = folder;
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(folder));
  std::error_code error;
  if (!std::filesystem::exists(folder + "/job.yaml", error)) {
    return absl::NotFoundError(
        absl::StrCat(folder, " is no run directory: it has no job.yaml"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(run.job, ReadRecordedJob(folder));
  TRIBUTARY_RETURN_IF_ERROR(ForEachJsonLine(folder + "/metrics.jsonl",
                                            [&run](const nlohmann::json& json) {
                                              run.steps.push_back(StepOf(json));
                                            }));
  TRIBUTARY_RETURN_IF_ERROR(ForEachJsonLine(
      folder + "/timeline.jsonl", [&run](const nlohmann::json& json) {
        run.timelines.push_back(TimelineOf(json));
      }));
  if (std::filesystem::exists(folder + "/summary.json", error)) {
    TRIBUTARY_RETURN_IF_ERROR(ReadSummary(folder + "/summary.json", &run));
  }
  ReadChecksums(folder + "/environment.json", &run);
  if (std::filesystem::exists(folder + "/prediction.json", error)) {
    TRIBUTARY_RETURN_IF_ERROR(
        ReadPrediction(folder + "/prediction.json", &run));
  }
  return run;
}

}  // namespace tributary
