// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {

// Hands out meshes to ranks that are threads of this process. Thread-safe.
class LocalMeshes {
 public:
  // Takes the side of rank `rank` in the named group of the plan. The first
  // caller creates the group's mesh. FailedPrecondition: the side is taken, or
  // the group has another size.
  absl::StatusOr<std::unique_ptr<Mesh>> Take(uint64_t plan_epoch,
                                             const std::string& group, int rank,
                                             int size);

 private:
  using Sides = std::vector<std::unique_ptr<Mesh>>;

  absl::Mutex mu_;
  // The sides that are not taken yet. The next plan's first call of Take erases
  // the groups of earlier plans.
  std::map<std::pair<uint64_t, std::string>, Sides> groups_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
