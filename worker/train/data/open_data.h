// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/train/data/dataset.h"

namespace tributary {

struct TrainTest {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;  // null when the job names none
  std::unique_ptr<Dataset> test;        // null when the job names none
  // Messages for the user: categories of the other sets that the training data
  // does not have, files that are named twice, words that are nearly equal, and
  // rounded numbers.
  std::vector<std::string> warnings;
  v1::Preprocessing preprocessing;  // of the training source

  // The set on which the job evaluates while it trains; null if it has none.
  const Dataset* evaluated() const {
    return validation != nullptr ? validation.get() : test.get();
  }
};

// The kind of targets with which a loss compares outputs.
TargetKind TargetKindOf(const v1::LossSpec& loss);

// Reads the data of a resolved job (common/job); paths are used unchanged.
// Values learned from the training source (categories, classes, the mean and
// deviation of `standardize`, the values that replace missing ones) apply to
// all sets. Takes the rows of data.validation.fraction out of the training set
// before it measures that set. Errors name the file and the position in it, and
// the field of the job that they are about (FieldOf).
absl::StatusOr<TrainTest> OpenData(const v1::DataSpec& spec, TargetKind kind);

}  // namespace tributary
