// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The beginning of an error in an override of the command line.
inline constexpr char kOverrideOrigin[] = "--set ";

// Applies one `--set` override, for example
// "training.optimizer.adam.learning_rate=0.01" or
// "model.sequential.0.linear.out=128". The text after the first "=" is read as
// YAML and replaces the field; null, if it is written, removes the field.
// Setting a member of a oneof replaces the member that the job had. Errors
// begin with `origin` and the text: "--set seed=x: ".
absl::Status ApplyOverride(absl::string_view origin,
                           const std::string& override_text, Places* places,
                           v1::JobSpec* job);

}  // namespace tributary
