// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/service/served_plan.h"
#include "tests/simulation/job/context.h"
#include "tests/testing/contribution_ledger.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// The calls of a parameter server, as the messages in parameter_service.proto.
v1::BlockAddress AddressOf(const v1::Plan& plan, int shard, int block);
struct PushCall {
  v1::BlockAddress address;
  Contribution contribution;
  int64_t wait_micros = 0;
};
struct PullCall {
  v1::BlockAddress address;
  int64_t version = 0;
  bool exact = false;
  std::optional<Reader> reader;  // instead of a version
  int64_t wait_micros = 0;
};
struct ClockCall {
  v1::BlockAddress address;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  bool recomputes = false;
};
struct FirstWeights {
  v1::BlockAddress address;
  std::vector<float> values;
  int64_t wait_micros = 0;  // of no use: this call does not wait
};
struct Nothing {};

// A ServedPlan whose contributions and answers are checked.
class CheckedPlan {
 public:
  CheckedPlan(Context* context, const v1::Plan& plan, PartitionPlan partition,
              ShardSetup setup, ServedPlan::AskPeer ask_peer);

  ServedPlan& served() { return served_; }
  const ServedPlan& served() const { return served_; }

  // The service's calls, for addresses that ServedPlan::CheckAddress accepts.
  void PushPull(const PushCall& call, Reply<WeightsSnapshot> reply);
  void Pull(const PullCall& call, Reply<WeightsSnapshot> reply);
  void ReadClock(const ClockCall& call, Reply<RankProgress> reply);
  void Initialize(const FirstWeights& call, Reply<Nothing> reply);
  void AddStatistics(const v1::StatisticsRequest& request,
                     std::vector<double> values);

  // The calls of processes that lost a rank before this plan, and have kept
  // their ticket and learned the plan from somebody else. They must not count.
  void CallAsFormerHolders();

 private:
  // An error is a violation.
  void Judge(const absl::Status& status, const v1::BlockAddress& address);
  // An answered call must have been made under this plan.
  void JudgePlan(const v1::BlockAddress& address);
  // Wraps a reply so that the weights in it are checked.
  WeightsDone Watch(const v1::BlockAddress& address,
                    std::optional<Reader> reader, Reply<WeightsSnapshot> reply);

  Context* const context_;
  ServedPlan served_;
  std::vector<testing::ContributionLedger> ledgers_;  // [block]
  // If several workers may see a version, its checksum: (block, version).
  std::map<std::pair<int, int64_t>, uint32_t> shown_;
};

}  // namespace tributary::simulation
