#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Applies one `--set` override, "training.optimizer.adam.learning_rate=0.01" or
// "model.sequential.0.linear.out=128". What stands right of the first "=" is
// read as YAML and replaces the field; a member of a oneof replaces whichever
// member the job had.
absl::Status ApplyOverride(const std::string& override_text, Places* places,
                           v1::JobSpec* job);

}  // namespace tributary
