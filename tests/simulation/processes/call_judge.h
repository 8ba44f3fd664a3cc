// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/service/served_plan.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_calls.h"
#include "tests/testing/contribution_ledger.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary::simulation {

// Judges the calls that a server takes and answers under one plan.
class CallJudge : public std::enable_shared_from_this<CallJudge> {
 public:
  // Handles a call, and perhaps answers it at once.
  using Handle = std::function<void()>;
  // Sees the answer before it is sent.
  using See = std::function<void(const absl::StatusOr<grpc::ByteBuffer>&)>;

  CallJudge(Context* context, std::shared_ptr<ServedPlan> served);

  const std::shared_ptr<ServedPlan>& served() const { return served_; }
  // Returns the function that sees the answer of this call.
  See Watch(const DataCall& call);
  // Runs handle, which takes this call, and judges what the plan has counted.
  void Take(const DataCall& call, const Handle& handle);

 private:
  using ServedPlanPtr = std::shared_ptr<ServedPlan>;

  See WatchPush(const v1::PushPullRequest& request);
  See WatchPull(const v1::PullRequest& request, std::optional<uint32_t> rank);
  See WatchClock(const v1::ClockRequest& request);
  // Judges the weights of an answer.
  template <typename Response>
  void SeeWeights(const v1::BlockAddress& address,
                  const std::optional<Reader>& reader,
                  const absl::StatusOr<grpc::ByteBuffer>& answer,
                  Response* response);
  // Reports an error as a violation.
  void Judge(const absl::Status& status, const v1::BlockAddress& address);
  // An answered call must have been made under this plan.
  void JudgePlan(const v1::BlockAddress& address);

  Context* const context_;
  const ServedPlanPtr served_;
  std::vector<testing::ContributionLedger> ledgers_;  // [block]
  // The checksum of each version that an answer has shown, by (block, version).
  std::map<std::pair<uint32_t, int64_t>, uint32_t> shown_;
};

// The calls of processes that lost a rank before this plan, but kept their
// ticket and learned the plan from another process. These calls must not count.
std::vector<DataCall> CallsOfFormerHolders(const ServedPlan& served);

}  // namespace tributary::simulation
