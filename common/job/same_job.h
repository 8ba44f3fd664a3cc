// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tributary/v1/job.pb.h"

namespace tributary {

// How a resolved job differs from one that was resolved earlier, perhaps by an
// older version, which did not know every field: "training.steps: 100 -> 200".
// A field that the older one lacks has its default. Empty: they are the same.
std::string OtherJob(const v1::JobSpec& earlier, const v1::JobSpec& job);

}  // namespace tributary
