// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/member.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The operations on a server's shard that ServeUntilEnd needs to do what
// ServingLife says.
class DrivenServer {
 public:
  virtual ~DrivenServer() = default;
  // Reads the plan's checkpoint if it has one, and serves the plan. An error
  // marked by Unreadable (common/checkpoint/restore.h) asks for another plan.
  virtual absl::Status Start(const v1::Plan& plan) = 0;
  // Why the job cannot continue; OK: it can.
  virtual absl::Status Fatal() const = 0;
  // Hands over the snapshots for a checkpoint of this step. `best`: these
  // weights are the best so far (Checkpointer::SetBest). Unavailable: not all
  // blocks have reached this step; call it again.
  virtual absl::Status CutAll(int64_t step, bool best) = 0;
  // Shows what the server waits for. Called twice a second.
  virtual void ShowWait(const v1::Plan& plan) = 0;
  // Called when the plan is over.
  virtual void Served() = 0;
};

// Does what ServingLife says until the job ends. Reports an error to the
// coordinator if the coordinator does not know it yet.
absl::Status ServeUntilEnd(Member& member, DrivenServer& server);

}  // namespace tributary
