// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tributary/v1/job.pb.h"

namespace tributary {

// Returns the difference, such as "training.steps: 100 -> 200", between a
// resolved job and one that was resolved earlier, perhaps by an older version
// that did not know every field. A field that the earlier job lacks has its
// default. Empty: the jobs are the same.
std::string OtherJob(const v1::JobSpec& earlier, const v1::JobSpec& job);

}  // namespace tributary
