// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/files/atomic_file.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {

enum class PredictionFormat { kCsv, kJson };

// Writes predictions, one line each, as CSV or as JSON lines
// (docs/using-models.md).
class PredictionWriter {
 public:
  struct Options {
    std::string path;  // empty: standard output
    PredictionFormat format = PredictionFormat::kCsv;
    bool top = false;  // write only the most probable class
    // Set when a sample has several values: lines then name row and position.
    bool positions = false;
    int64_t outputs = 0;  // for each value
  };
  // Where a prediction belongs.
  struct Place {
    int64_t row = 0;
    int64_t position = 0;
    const std::string* token = nullptr;  // of a text: the token there
  };

  // The file appears, complete, with Finish. `record` must outlive the writer.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(
      const v1::ModelRecord& record, const Options& options);

  // outputs: the model's outputs for one value.
  absl::Status Write(const Place& place, absl::Span<const float> outputs);
  absl::Status Finish();
  // The number of predictions that are empty because outputs are not numbers.
  int64_t undecided() const { return undecided_; }

 private:
  PredictionWriter(const v1::ModelRecord& record, Options options);

  void AppendHeader();
  void AppendCsv(const Place& place, const std::string& prediction);
  void AppendJson(const Place& place, const std::string& prediction);
  double DecidedProbability() const;
  absl::Status Flush();

  const v1::ModelRecord& record_;
  const Options options_;
  std::vector<std::string> names_;  // of the classes
  bool named_ = false;              // classes are words, not numbers
  std::vector<double> probabilities_;
  int64_t decided_ = 0;  // class, or 0 for a number; kUndecided: none
  int64_t undecided_ = 0;
  std::unique_ptr<AtomicFile> file_;  // null: standard output
  std::string buffer_;
};

// Computes the probabilities of the classes: the softmax of the logits, or for
// one logit its sigmoid as the probability of the second of two classes.
void ProbabilitiesOf(v1::OutputKind kind, absl::Span<const float> outputs,
                     std::vector<double>* probabilities);

// "0.25", with the digits that tell float32 numbers apart.
std::string FloatText(double value);

}  // namespace tributary
