// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {

// Replaces this process by the `tributary-worker` beside this program, with
// these arguments, so that input, output, signals and exit code are the
// worker's. Returns only if that fails: prints why and returns the exit code.
int BecomeWorker(const std::vector<std::string>& arguments);

}  // namespace tributary
