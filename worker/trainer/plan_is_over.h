#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/member.h"

namespace tributary {

// Whether this error of a worker's work under a plan came with the plan's end:
// what ends a plan ends the calls of its workers first, with whatever error.
// Waits, where it may be so, for the news; asks for another plan where the
// worker's group broke. False: the error is its own.
bool PlanIsOver(Member& member, uint64_t epoch, const absl::Status& status);

}  // namespace tributary
