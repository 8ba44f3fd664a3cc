// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/member.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// A server's shard, as the acts of ServingLife use it.
class DrivenServer {
 public:
  virtual ~DrivenServer() = default;
  // Reads the plan's checkpoint if it has one, and serves the plan. An error
  // marked by Unreadable (common/checkpoint/restore.h) wants another plan.
  virtual absl::Status Start(const v1::Plan& plan) = 0;
  // Why the job cannot continue; OK: it can.
  virtual absl::Status Fatal() const = 0;
  // Hands over the snapshots for a checkpoint of this step.
  virtual absl::Status CutAll(int64_t step) = 0;
  // Twice a second: shows what the server waits for.
  virtual void ShowWait(const v1::Plan& plan) = 0;
  // The plan is over.
  virtual void Served() = 0;
};

// Performs the acts of ServingLife until the job ends. An error that the
// coordinator does not know yet is reported to it.
absl::Status ServeUntilEnd(Member& member, DrivenServer& server);

}  // namespace tributary
