#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Sets the default of every field that was not written, and checks each field
// on its own: required fields are set, numbers are in range, one member of
// every oneof is chosen. A job without a name is named after `file_name`.
absl::Status ResolveFields(const std::string& file_name, Places* places,
                           v1::JobSpec* job);

// Replaces the model's preset, whose fields must be resolved, by its layers.
// The layers record the preset's place; their fields are not resolved yet.
absl::Status ExpandPreset(Places* places, v1::ModelSpec* model);

// Makes the job's paths absolute, relative to the directory of `file_name`, and
// checks that the files can be read.
absl::Status ResolvePaths(const std::string& file_name, const Places& places,
                          v1::JobSpec* job);

}  // namespace tributary
