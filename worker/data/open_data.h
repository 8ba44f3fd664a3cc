#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"
#include "worker/data/dataset.h"

namespace tributary {

struct TrainTest {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;  // null when the job names none
  // What a person should know, in sentences: categories of the test data that
  // the training data does not have.
  std::vector<std::string> warnings;
};

// Reads the data of a resolved job (common/job): paths are taken as they are.
// What is learned from the training source (categories, classes, the mean and
// deviation of `standardize`) holds for both. Errors name the file and the
// place in it.
absl::StatusOr<TrainTest> OpenData(const v1::DataSpec& spec, TargetKind kind);

}  // namespace tributary
