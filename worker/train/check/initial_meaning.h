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

// InvalidArgument when a class, token, column or category has another position
// in the job's data than in the model.json of the run that it starts from, and
// the job takes over the layer that reads it: the output or input would start
// with the weights of another one. Accepts names that only the job or the run
// has: a model may be tuned for another task.
absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing);

// Returns a warning for the user if that run scaled an input very differently
// from the job, for example without normalization, and the job takes over the
// layer that reads inputs. Returns "" if the scales fit or are not known.
std::string InitialScaleWarning(const v1::JobSpec& job,
                                const v1::Preprocessing& preprocessing);

}  // namespace tributary
