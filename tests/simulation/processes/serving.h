#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/plan/partition_plan.h"
#include "server/store/parameter_shard.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/testing/contribution_ledger.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// A plan being served. The calls in progress share its ownership.
struct SimulatedServer::Serving {
  Serving(v1::Plan p, PartitionPlan c, int s)
      : plan(std::move(p)), cut(std::move(c)), shard(s) {}

  v1::Plan plan;
  PartitionPlan cut;
  int shard;
  std::unique_ptr<ParameterShard> store;             // null: the plan has ended
  std::vector<testing::ContributionLedger> ledgers;  // [block]
  // If several workers may see a version, its checksum: (block, version).
  std::map<std::pair<int, int64_t>, uint32_t> shown;
};

}  // namespace tributary::simulation
