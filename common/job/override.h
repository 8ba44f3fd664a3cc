#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Applies one `--set` override, for example
// "training.optimizer.adam.learning_rate=0.01" or
// "model.sequential.0.linear.out=128". The text after the first "=" is read as
// YAML and replaces the field. Setting a member of a oneof replaces the member
// that the job had.
absl::Status ApplyOverride(const std::string& override_text, Places* places,
                           v1::JobSpec* job);

}  // namespace tributary
