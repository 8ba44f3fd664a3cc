#pragma once

#include <cstdint>

#include "coordinator/core/membership.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// What status tells of a place: who holds it, what its last heartbeat said, and
// that it has come to `step`. A place that nobody has held yet is only named.
v1::MemberStatus MemberStatusOf(const Place& place, int64_t step,
                                int64_t now_micros);

}  // namespace tributary
