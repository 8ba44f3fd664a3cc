#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Gives every field that was not written its default and checks each field by
// itself: what must be there is there, numbers are in range, one member of
// every oneof is chosen. `file_name` names a job that names itself not.
absl::Status ResolveFields(const std::string& file_name, Places* places,
                           v1::JobSpec* job);

// Writes the model's preset, whose fields are resolved, out as layers, which
// stand where it stood; the layers' fields are not resolved yet.
absl::Status ExpandPreset(Places* places, v1::ModelSpec* model);

// Makes the job's paths absolute, starting from the folder of `file_name`, and
// checks that the files can be read.
absl::Status ResolvePaths(const std::string& file_name, const Places& places,
                          v1::JobSpec* job);

}  // namespace tributary
