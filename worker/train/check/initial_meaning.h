// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// InvalidArgument when the job starts from weights.safetensors or
// best.safetensors of a run, and its tensors are not those that the run's
// model.json records. Otherwise OK, or an error of reading the file.
absl::Status CheckInitialFile(const v1::JobSpec& job, const Places& places);

// InvalidArgument when the job starts from the weights of a run whose
// model.json has a class, token, column or category of the training data at
// another position, and takes over the layer that reads it: the output or input
// would start with the weights of another one. Accepts names that only one of
// the two has: they belong to another task, for which a model may be tuned.
absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing);

// Returns a warning for the user if that run scaled an input very differently
// from the job, as without a normalization, and the job takes over the layer
// that reads inputs. Returns "" if the scales fit or are not known.
std::string InitialScaleWarning(const v1::JobSpec& job,
                                const v1::Preprocessing& preprocessing);

}  // namespace tributary
