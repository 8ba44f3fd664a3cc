// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// InvalidArgument when the job starts from the weights of a run whose
// model.json has a class, token, column or category of the training data at
// another place, and takes the layer that reads it: the output or input would
// begin as that of another one. Names that only one of both has are those of
// another task, for which a model may be tuned.
absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing);

// A sentence for the user if that run has scaled an input quite otherwise than
// the job does, as without a normalization, and the layer that reads inputs is
// taken. Empty: the scales fit, or are not known.
std::string InitialScaleWarning(const v1::JobSpec& job,
                                const v1::Preprocessing& preprocessing);

}  // namespace tributary
