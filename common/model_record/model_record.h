// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {

// model.json of a run directory (docs/run-directory.md#modeljson): what is
// needed, besides the weights, to use the model.

inline constexpr char kModelFile[] = "/model.json";
inline constexpr int kModelFormatVersion = 1;

// How the training ended.
struct ModelMetrics {
  std::string status;  // as in summary.json
  int64_t steps = 0;
  std::optional<double> final_loss;  // nullopt: there is none
  std::map<std::string, double> test;
  std::map<std::string, double> validation = {};  // empty: there is none
  std::string weights_sha256;
  std::string best_weights_sha256 = {};  // empty: no best weights were kept
};

// The meaning of the model's outputs, by the loss.
v1::OutputKind OutputKindOf(const v1::LossSpec& loss);

// The text of model.json. metrics: nullopt while the run has not ended.
std::string ModelRecordJson(const v1::ModelRecord& record,
                            const std::optional<ModelMetrics>& metrics);

// Reads the text of a model.json, without its metrics. InvalidArgument, naming
// `file` and the field, for another format or version, and for values that
// contradict each other.
absl::StatusOr<v1::ModelRecord> ParseModelRecord(const std::string& file,
                                                 absl::string_view text);

// Reads a run directory's model.json (ParseModelRecord). NotFound: it has none.
absl::StatusOr<v1::ModelRecord> ReadModelRecord(const std::string& run);

// Reads from the run's model.json the checksum of the weights of the last step,
// or of the best ones. Empty: none is recorded, as before the run ends.
std::string RecordedWeightsSha256(const std::string& run, bool of_best);

}  // namespace tributary
