#pragma once

#include <cstdint>

#include "coordinator/core/membership.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The status of a place: its holder, the holder's last heartbeat and its step.
// A place that no process has held yet has only role and index.
v1::MemberStatus MemberStatusOf(const Place& place, int64_t step,
                                int64_t now_micros);

}  // namespace tributary
