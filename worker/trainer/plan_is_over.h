#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/member.h"

namespace tributary {

// True when the end of the plan caused this error of a worker's work. The end
// of a plan first makes the worker's calls fail, with any error, so this waits
// for the news of a new plan if the error allows it. Requests a new plan if the
// worker's group broke. False: the error is the worker's own.
bool PlanIsOver(Member& member, uint64_t epoch, const absl::Status& status);

}  // namespace tributary
