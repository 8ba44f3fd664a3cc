// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/train/data/open_data.h"

namespace tributary {

// The numbers of samples and their checksums (Dataset::checksum), as JSON in
// one line: {"train":{"rows":1000,"checksum":"89abcdef"},"test":{...}}.
std::string DataRecord(const TrainTest& data);

// Returns the first sample in which the data of two job files differ, as JSON
// in one line: {"set":"train","row":17,"column":3,"a":0.5,"b":0.75}. Rows and
// columns count from 0; column -1 is the target. Compares values before
// normalization, because one other value may change all normalized values. If
// the sets differ in rows, shape or kind of target, or only one job has the
// set, "what" says so and there is no "row". Returns {} when no sample differs.
// Errors as OpenData, or of a job file that cannot be read.
absl::StatusOr<std::string> CompareDataOfFiles(const std::string& job_path_a,
                                               const std::string& job_path_b);

}  // namespace tributary
