// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// InvalidArgument when the job starts its last layer from the weights of a run
// whose model.json names the classes of the training data in another order:
// each output would begin as that of another class. Other classes are those of
// another task, for which a model may be tuned.
absl::Status CheckClassOrder(const v1::JobSpec& job, const Places& places,
                             const v1::Preprocessing& preprocessing);

}  // namespace tributary
