// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/member/member.h"
#include "common/wire/identity/access.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/local_meshes.h"

namespace tributary {

// The objects with which a worker joins groups. All must outlive the groups.
struct GroupParts {
  Member* member = nullptr;
  Ops* ops = nullptr;                   // the device of the exchanged arrays
  std::string coordinator;              // host:port
  const Access* access = nullptr;       // the process's
  LocalMeshes* local_meshes = nullptr;  // the process's
};

// The host's Ops. Thread-safe, and never destroyed.
Ops* HostOps();

// Describes one group. All its members must pass the same values.
struct GroupSpec {
  std::string name;
  std::vector<int> ranks;  // the job's ranks in the group's order
  v1::CollectiveBackend backend = v1::COLLECTIVE_BACKEND_AUTO;
  bool messages = false;  // StartSend and StartReceive are needed
};

// Connects a group, whose members find each other through the coordinator by
// the group's name. Uses NCCL from device to device if the group's backend
// allows it and every member can. Else arrays pass through host memory, over
// Gloo or between threads. Errors name the job's ranks that do not come.
// FailedPrecondition: nccl is required and cannot be used, or the ranks would
// listen to other machines in clear text without permission
// (Access::CheckListenInClear).
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const GroupParts& parts, const v1::Plan& plan, const GroupSpec& group);

}  // namespace tributary
