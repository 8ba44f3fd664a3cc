// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/unique_fd.h"
#include "kernels/ops.h"

namespace tributary {

// Claims the device of `ops` for as long as the result lives. Warns when
// another rank of this machine computes on it already, since both then take
// longer and need more memory than with a device each. Only processes in one
// network namespace see each other. Not ok: the device is the host, or another
// rank has claimed it.
UniqueFd ClaimDevice(const Ops& ops);

}  // namespace tributary
