#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/member/member.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/local_meshes.h"

namespace tributary {

// What a worker brings to the groups that it forms; all outlives them.
struct GroupParts {
  Member* member = nullptr;
  Ops* ops = nullptr;                   // of the arrays that are exchanged
  std::string coordinator;              // host:port
  LocalMeshes* local_meshes = nullptr;  // of this process
};

// The host's, for any thread; live for ever.
Ops* HostOps();

// One group, the same on all its members.
struct GroupSpec {
  std::string name;
  std::vector<int> ranks;  // of the job, in the group's order; this one too
  v1::CollectiveBackend backend = v1::COLLECTIVE_BACKEND_AUTO;
  bool messages = false;  // StartSend and StartReceive are wanted
};

// Connects a group, whose members meet at the coordinator under its name: over
// NCCL from device to device where that is wanted and every member can, else
// over Gloo, or between threads, through host memory. Errors name the job's
// ranks that do not come; FailedPrecondition: nccl is wanted and cannot be.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const GroupParts& parts, const v1::Plan& plan, const GroupSpec& group);

}  // namespace tributary
