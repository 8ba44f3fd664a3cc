// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/group_network.h"

#include <stdlib.h>

#include "common/host/address.h"

namespace tributary {

void KeepGroupsInside(const std::string& coordinator) {
  if (!CheckAddress(coordinator).ok() || !IsLoopback(coordinator)) return;
  setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
}

}  // namespace tributary
