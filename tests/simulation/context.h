#pragma once

#include <functional>

#include "absl/status/status.h"
#include "kernels/ops.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/model.h"
#include "tests/simulation/network.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace tributary::simulation {

// What the processes of one simulation share; outlives them.
struct Context {
  const Scenario& scenario;
  World& world;
  Network& network;
  Disk& disk;
  Model& model;
  Oracle& oracle;
  Ops& ops;
  // A process ends by itself, with this as its last sentence.
  std::function<void(Process*, const absl::Status&)> on_exit;
};

}  // namespace tributary::simulation
