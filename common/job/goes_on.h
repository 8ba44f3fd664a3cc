#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// FailedPrecondition, with what to do, when `job` cannot go on exactly where a
// checkpoint of `before` after `step` steps stands: under local_sgd the
// servers' state is that of the outer optimizer, and an update closes a whole
// period. `has_state`: the checkpoint holds an optimizer's state.
absl::Status CheckGoesOn(const v1::JobSpec& job, const v1::JobSpec& before,
                         int64_t step, bool has_state);

}  // namespace tributary
