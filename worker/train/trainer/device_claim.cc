// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/device_claim.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/host/memory/unix_socket.h"
#include "spdlog/spdlog.h"

namespace tributary {

UniqueFd ClaimDevice(const Ops& ops) {
  const std::string id = ops.device_id();
  if (id.empty()) return UniqueFd();
  // An abstract name belongs to one socket at a time and ends with it.
  absl::StatusOr<UniqueFd> claim =
      ListenUnix(absl::StrCat("@tributary-device-", id));
  if (claim.ok()) return *std::move(claim);
  spdlog::warn(
      "another rank of this machine computes on {} ({}), too: start at most as "
      "many workers here as it has devices, each with a --local-rank of its "
      "own",
      ops.device_name(), id);
  return UniqueFd();
}

}  // namespace tributary
