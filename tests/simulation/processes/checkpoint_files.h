// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/checkpoint/checkpointer.h"
#include "tests/simulation/job/context.h"

namespace tributary::simulation {

// Writes files of checkpoints to the simulated disk, which takes a while. A
// crash before its end leaves no file.
std::function<decltype(WriteCheckpointFile)> WriterOf(Context* context);

}  // namespace tributary::simulation
