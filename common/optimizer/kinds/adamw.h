// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/optimizer/kinds/adam.h"

namespace tributary {

// Loshchilov & Hutter 2019. It has the same message in optimizer.proto as Adam.
struct Adamw : Adam {
  static constexpr const char* kName = "adamw";
  static constexpr auto kFields = [] {
    auto fields = Adam::kFields;
    fields[4].fallback = "1e-2";  // weight_decay
    return fields;
  }();

  static void Prepare(const Options& o, int64_t step, double learning_rate,
                      OptimizerStep* p) {
    Adam::Prepare(o, step, learning_rate, p);
    DecoupleDecay(o, learning_rate, p);
  }
};

}  // namespace tributary
