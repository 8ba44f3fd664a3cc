// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/recorded_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/terminal/json_lines.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/host/small_file.h"
#include "common/job/job_file.h"
#include "common/model_record/model_record.h"
#include "common/schema/scalar_text.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns the object in a file; an empty one if there is no such file.
absl::StatusOr<json> ReadObject(const std::string& path) {
  if (!Exists(path)) return json::object();
  json object =
      json::parse(ReadText(path), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wanted a JSON object"));
  }
  return object;
}

template <typename T>
T ValueOr(const json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  const bool fits = std::is_same_v<T, std::string> ? found->is_string()
                                                   : found->is_number_integer();
  return fits ? found->get<T>() : otherwise;
}

absl::Status ReadLosses(RecordedRun* run) {
  return ForEachJsonLine(
      run->folder + "/metrics.jsonl", [run](const json& line) {
        const auto step = ValueOr<int64_t>(line, "step", 0);
        if (run->first_step == 0) run->first_step = step;
        run->last_step = std::max(run->last_step, step);
        if (line.contains("lost_reports") || line.contains("no_loss")) {
          return;
        }
        const auto loss = line.find("loss");
        run->losses[step] = loss != line.end() && loss->is_number()
                                ? loss->get<double>()
                                : std::numeric_limits<double>::quiet_NaN();
      });
}

void AddCheckpoints(RecordedRun* run) {
  const std::string directory = run->job.checkpoint().directory().empty()
                                    ? run->folder + "/checkpoints"
                                    : run->job.checkpoint().directory();
  const auto found = ListCheckpoints(directory);
  if (!found.ok()) return;  // the run has none
  for (const CheckpointInfo& info : *found) {
    if (!info.complete()) continue;
    run->states.push_back(
        {.step = info.step, .path = info.path, .is_checkpoint = true});
  }
}

}  // namespace

const RecordedState* RecordedRun::StateAfter(int64_t step) const {
  const RecordedState* found = nullptr;
  for (const RecordedState& state : states) {
    if (state.step != step) continue;
    if (found == nullptr || state.is_checkpoint) found = &state;
  }
  return found;
}

const RecordedState* RecordedRun::FinalWeights() const {
  for (const RecordedState& state : states) {
    if (!state.is_checkpoint) return &state;
  }
  return nullptr;
}

const RecordedState* RecordedRun::CheckpointUpTo(int64_t step) const {
  const RecordedState* found = nullptr;
  for (const RecordedState& state : states) {
    if (state.is_checkpoint && state.step <= step) found = &state;
  }
  return found;
}

bool RecordedRun::OnCpu() const {
  const auto ranks = environment.find("ranks");
  if (ranks == environment.end() || !ranks->is_array() || ranks->empty()) {
    return false;
  }
  return std::all_of(ranks->begin(), ranks->end(), [](const json& rank) {
    return rank.is_object() &&
           absl::StartsWith(ValueOr<std::string>(rank, "arithmetic", ""),
                            "cpu,");
  });
}

absl::StatusOr<RecordedRun> ReadRecordedRun(const std::string& folder) {
  RecordedRun run;
  run.folder = folder;
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(folder));
  if (!Exists(folder + "/job.yaml")) {
    return absl::NotFoundError(
        absl::StrCat(folder, " is no run directory: it has no job.yaml"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(run.job, ReadRecordedJob(folder));
  TRIBUTARY_RETURN_IF_ERROR(ReadLosses(&run));
  TRIBUTARY_ASSIGN_OR_RETURN(run.environment,
                             ReadObject(folder + "/environment.json"));
  TRIBUTARY_ASSIGN_OR_RETURN(const json summary,
                             ReadObject(folder + "/summary.json"));
  if (Exists(folder + kModelFile)) {
    TRIBUTARY_ASSIGN_OR_RETURN(const v1::ModelRecord model,
                               ReadModelRecord(folder));
    for (const v1::ParameterRecord& parameter : model.parameters()) {
      run.parameters.push_back(
          {parameter.name(),
           Shape(parameter.shape().begin(), parameter.shape().end())});
    }
  }
  AddCheckpoints(&run);
  json start = json::object();
  if (run.environment.contains("start") &&
      run.environment["start"].is_object()) {
    start = run.environment["start"];
  }
  run.start_step = ValueOr<int64_t>(start, "step",
                                    ValueOr<int64_t>(summary, "start_step", 0));
  const std::string from = ValueOr<std::string>(start, "checkpoint", "");
  if (!from.empty() && ReadCheckpointInfo(from).complete()) {
    run.states.push_back({.step = run.start_step,
                          .path = from,
                          .is_checkpoint = true,
                          .is_start = true});
  }
  const std::string weights = folder + "/weights.safetensors";
  run.weights_sha256 = ValueOr<std::string>(summary, "weights_sha256", "");
  run.final_step = ValueOr<int64_t>(summary, "steps", 0);
  if (run.final_step > 0 && Exists(weights)) {
    run.states.push_back({.step = run.final_step, .path = weights});
  }
  std::stable_sort(run.states.begin(), run.states.end(),
                   [](const RecordedState& a, const RecordedState& b) {
                     return a.step < b.step;
                   });
  return run;
}

std::string StateText(const RecordedState& state) {
  if (state.is_start) {
    return absl::StrCat("the checkpoint of step ", state.step,
                        ", from which it was resumed,");
  }
  return absl::StrCat(
      state.is_checkpoint ? "the checkpoint of step " : "the weights of step ",
      state.step);
}

bool SameLoss(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

std::string LossText(double loss) {
  return std::isnan(loss) ? "nan" : NumberText(loss);
}

}  // namespace tributary
