// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/model_record.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/host/small_file.h"
#include "common/model_record/check_preprocessing.h"
#include "common/model_record/proto_json.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Text is at most six times as long as the preprocessing in a message, and the
// layers are those of a job file of at most 1 MiB.
constexpr uintmax_t kMaxFileBytes = 64 << 20;
constexpr char kMetrics[] = "metrics";
constexpr char kWeightsSha256[] = "weights_sha256";
constexpr char kBestWeightsSha256[] = "best_weights_sha256";

// True when the run's job.yaml says that a program trained the run's model.
bool IsOfProgram(const std::string& run) {
  std::ifstream job(run + "/job.yaml");
  for (std::string line; std::getline(job, line);) {
    if (absl::StartsWith(line, "program:")) return true;
  }
  return false;
}

// A number that is not finite becomes null.
OrderedJson ValuesJson(const std::map<std::string, double>& values) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

OrderedJson MetricsJson(const ModelMetrics& metrics) {
  OrderedJson json = {{"status", metrics.status}, {"steps", metrics.steps}};
  json["final_loss"] = nullptr;
  if (metrics.final_loss) json["final_loss"] = *metrics.final_loss;
  json["test"] = ValuesJson(metrics.test);
  if (!metrics.validation.empty()) {
    json["validation"] = ValuesJson(metrics.validation);
  }
  json[kWeightsSha256] = nullptr;
  if (!metrics.weights_sha256.empty()) {
    json[kWeightsSha256] = metrics.weights_sha256;
  }
  if (!metrics.best_weights_sha256.empty()) {
    json[kBestWeightsSha256] = metrics.best_weights_sha256;
  }
  return json;
}

absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", absl::string_view(status.message())));
}

}  // namespace

v1::OutputKind OutputKindOf(const v1::LossSpec& loss) {
  switch (loss.kind_case()) {
    case v1::LossSpec::kCrossEntropy:
      return v1::OUTPUT_KIND_CLASSES;
    case v1::LossSpec::kBceWithLogits:
      return v1::OUTPUT_KIND_BINARY;
    case v1::LossSpec::kMse:
      return v1::OUTPUT_KIND_NUMBERS;
    case v1::LossSpec::KIND_NOT_SET:
      break;
  }
  return v1::OUTPUT_KIND_UNSPECIFIED;
}

std::string ModelRecordJson(const v1::ModelRecord& record,
                            const std::optional<ModelMetrics>& metrics) {
  std::string json = ProtoToJson(record);
  // The metrics follow the record's fields, which end in "\n}".
  json.resize(json.size() - 2);
  absl::StrAppend(&json, ",\n  \"", kMetrics,
                  "\": ", metrics ? MetricsJson(*metrics).dump() : "null",
                  "\n}\n");
  return json;
}

absl::StatusOr<v1::ModelRecord> ParseModelRecord(const std::string& file,
                                                 absl::string_view text) {
  OrderedJson json = OrderedJson::parse(text.begin(), text.end(), nullptr,
                                        /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": wanted a JSON object"));
  }
  const auto version = json.find("format_version");
  if (version == json.end() || *version != kModelFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": wanted format_version ", kModelFormatVersion, ", got ",
        version == json.end()          ? "none"
        : version->is_number_integer() ? version->dump()
                                       : "another value"));
  }
  json.erase(kMetrics);
  v1::ModelRecord record;
  if (absl::Status read = JsonToProto(json, &record); !read.ok()) {
    return InFile(file, read);
  }
  if (record.sequential().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": sequential has no layers"));
  }
  if (record.output() != OutputKindOf(record.loss()) ||
      record.output() == v1::OUTPUT_KIND_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": output is not that of the loss"));
  }
  if (record.has_preprocessing()) {
    if (absl::Status fits = CheckPreprocessing(record.preprocessing());
        !fits.ok()) {
      return InFile(file, fits);
    }
  }
  return record;
}

absl::StatusOr<v1::ModelRecord> ReadModelRecord(const std::string& run) {
  const std::string file = run + kModelFile;
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(run));
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(file));
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  if (error || !stream) {
    return absl::NotFoundError(
        IsOfProgram(run)
            ? absl::StrCat(run,
                           " has no model.json, because a program of its own "
                           "trained it: load ",
                           run, "/weights.safetensors in that program's model")
            : absl::StrCat(
                  run,
                  " has no model.json: wanted the directory of a run of "
                  "this version of Tributary"));
  }
  if (size > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": wanted at most ", kMaxFileBytes, " bytes, got ", size));
  }
  return ParseModelRecord(file, ReadText(file));
}

std::string RecordedWeightsSha256(const std::string& run, bool of_best) {
  const char* const key = of_best ? kBestWeightsSha256 : kWeightsSha256;
  const OrderedJson json = OrderedJson::parse(
      ReadText(run + kModelFile), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(kMetrics)) return "";
  const OrderedJson& metrics = json[kMetrics];
  if (!metrics.is_object() || !metrics.contains(key)) return "";
  const OrderedJson& sha256 = metrics[key];
  return sha256.is_string() ? sha256.get<std::string>() : "";
}

}  // namespace tributary
