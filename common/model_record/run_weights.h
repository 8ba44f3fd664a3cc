// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// The weights that a run directory may have: those of its best evaluation
// (evaluation.keep_best), and those of its last step.
inline constexpr char kBestWeightsFile[] = "/best.safetensors";
inline constexpr char kLastWeightsFile[] = "/weights.safetensors";

// The path of the weights that a run directory stands for: the best ones if it
// has kept them, else the last ones. Empty: it has neither.
std::string WeightsOfRun(const std::string& run);

}  // namespace tributary
