// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "kernels/ops.h"
#include "tests/simulation/job/disk.h"
#include "tests/simulation/job/model.h"
#include "tests/simulation/job/oracle.h"
#include "tests/simulation/job/scenario.h"
#include "tests/simulation/world/fibers.h"
#include "tests/simulation/world/network.h"
#include "tests/simulation/world/world.h"

namespace tributary::simulation {

// Objects that the processes of one simulation share and that outlive them.
struct Context {
  const Scenario& scenario;
  World& world;
  Fibers& fibers;
  Network& network;
  Disk& disk;
  Model& model;
  Oracle& oracle;
  Ops& ops;
  // Called when a process ends by itself, with its last error.
  std::function<void(Process*, const absl::Status&)> on_exit;
};

}  // namespace tributary::simulation
