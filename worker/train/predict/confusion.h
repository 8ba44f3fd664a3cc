// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tributary/v1/model_record.pb.h"
#include "worker/train/data/batches/batch.h"

namespace tributary {

// Counts how often a class was predicted for each label. Counts nothing if the
// targets are numbers or have more than kMaxClasses classes.
class Confusion {
 public:
  static constexpr int64_t kMaxClasses = 1024;

  // outputs: the number of the model's outputs for one value.
  Confusion(const v1::ModelRecord& record, int64_t outputs);

  // Adds the predictions that logits, [rows, values, outputs], make for a
  // batch.
  void Add(const Batch& batch, absl::Span<const float> logits);

  bool empty() const { return names_.empty(); }
  int64_t classes() const { return static_cast<int64_t>(names_.size()); }
  const std::string& name(int64_t index) const { return names_[index]; }
  // Values with outputs that are not numbers: no class was predicted.
  uint64_t undecided() const { return undecided_; }
  uint64_t count(int64_t label, int64_t predicted) const {
    return counts_[label * classes() + predicted];
  }

 private:
  v1::OutputKind kind_;
  int64_t outputs_;
  std::vector<std::string> names_;
  std::vector<uint64_t> counts_;  // [label, predicted]
  uint64_t undecided_ = 0;
};

struct EvaluationReport {
  std::string data;
  int64_t more_files = 0;    // of the same set, after `data`
  std::string weights = {};  // the file of the weights
  int64_t rows = 0;
  std::map<std::string, double> metrics;
};

// ReportText is for people: it has the metrics and the matrix, or for more than
// kMaxShown classes only the most frequent confusions.
inline constexpr int64_t kMaxShown = 32;
std::string ReportText(const EvaluationReport& report,
                       const Confusion& confusion);
std::string ReportJson(const EvaluationReport& report,
                       const Confusion& confusion);

}  // namespace tributary
