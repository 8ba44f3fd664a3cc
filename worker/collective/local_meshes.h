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
#include "worker/collective/mesh.h"

namespace tributary {

// Where the ranks that are threads of this process find their sides of the
// groups that they form. For any thread.
class LocalMeshes {
 public:
  // Rank `rank`'s side of the group of this name and plan. Whoever comes first
  // makes the mesh. FailedPrecondition: the side is taken, or the group has
  // another size.
  absl::StatusOr<std::unique_ptr<Mesh>> Take(uint64_t plan_epoch,
                                             const std::string& group, int rank,
                                             int size);

 private:
  using Sides = std::vector<std::unique_ptr<Mesh>>;

  absl::Mutex mu_;
  // Emptied as sides are taken; a group that is complete is forgotten with the
  // plan after it.
  std::map<std::pair<uint64_t, std::string>, Sides> groups_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
