// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/local_meshes.h"

#include "absl/strings/str_cat.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<Mesh>> LocalMeshes::Take(
    uint64_t plan_epoch, const std::string& group, int rank, int size) {
  absl::MutexLock lock(&mu_);
  // Drops the groups of earlier plans; ranks that still wait in them are told
  // that the other ranks are gone.
  groups_.erase(groups_.begin(), groups_.lower_bound({plan_epoch, ""}));
  Sides& sides = groups_[{plan_epoch, group}];
  if (sides.empty()) sides = CreateInProcessMesh(size);
  if (static_cast<int>(sides.size()) != size || rank < 0 || rank >= size ||
      sides[rank] == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", group, " of plan epoch ", plan_epoch, " has ", sides.size(),
        " ranks; rank ", rank, " of ", size, " is not free"));
  }
  return std::move(sides[rank]);
}

}  // namespace tributary
