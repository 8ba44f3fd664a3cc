// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// Lets NCCL connect the ranks of this process by the loopback interface if the
// coordinator, and so every rank, is on this machine; by default NCCL listens
// on an interface that other machines reach. Leaves NCCL_SOCKET_IFNAME alone if
// it is set. Call it before there are threads.
void KeepGroupsInside(const std::string& coordinator);

}  // namespace tributary
