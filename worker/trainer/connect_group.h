#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/control/member.h"
#include "kernels/ops.h"
#include "tributary/v1/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/local_meshes.h"

namespace tributary {

// What a worker brings to the groups that it forms; all outlives them.
struct GroupParts {
  Member* member = nullptr;
  Ops* ops = nullptr;
  std::string coordinator;              // host:port
  LocalMeshes* local_meshes = nullptr;  // of this process
};

// Connects the group of these ranks of the job, in this order, of which this
// worker is one; they meet at the coordinator under the group's name. Errors
// name the job's ranks that do not come.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const GroupParts& parts, const v1::Plan& plan, const std::string& name,
    const std::vector<int>& ranks);

}  // namespace tributary
