// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "common/base/range.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/optimizer_step.h"

namespace tributary {

// Each file of kinds/ describes one optimizer. Its rule is the arithmetic of
// one element:
//
//   struct AdamRule {
//     // PyTorch's names, in the order of Update's arguments. LAMB's are
//     // Adam's; FTRL's are those of its paper.
//     static constexpr std::array kStates = {"exp_avg", "exp_avg_sq"};
//     // Takes the gradient (summed and averaged), the weight and the states,
//     // updates the states and returns the new weight, or its direction.
//     TRIBUTARY_HOST_DEVICE static float Update(const OptimizerStep& p,
//         float gradient, float weight, float* m, float* v);
//   };
//
// A kind has one or several rules, from which its constants choose:
//
//   struct Adam : KindBase {
//     static constexpr const char* kName = "adam";  // in the job file
//     static constexpr std::array kFields = {...};  // OptimizerField
//     using Rules = RuleList<AdamRule, AmsgradRule>;
//     static void Prepare(const OptimizerOptions& o, int64_t step,
//                         double learning_rate, OptimizerStep* p);
//   };
//
// Prepare sets the scalars of step `step`, counted from 1. gradient_scale and
// weight_decay are set already.

struct NoState {
  static constexpr std::array<const char*, 0> kStates = {};
};

template <typename... Rules>
struct RuleList {};

// A field of the kind's message in a job file, and the constant that it sets.
struct OptimizerField {
  const char* name;
  std::variant<double OptimizerOptions::*, bool OptimizerOptions::*> constant;
  const char* fallback = nullptr;  // as it would be written in the job file
  Range range = kAny;
  bool required = false;
};

inline constexpr OptimizerField kWeightDecay = {
    "weight_decay", &OptimizerOptions::weight_decay, nullptr, kNotNegative};
inline constexpr OptimizerField kDecayOn = {
    "decay_on", &OptimizerOptions::decay_matrices_only};

// The inputs of DirectionRate.
struct DirectionSize {
  int64_t step = 1;  // from 1
  double learning_rate = 0;
  double weight_norm = 0;  // of the whole tensor
  double direction_norm = 0;
  int64_t elements = 0;
};

// Why constants do not go together: "FIELD TEXT", such as "nesterov wants
// momentum above 0".
struct OptimizerFault {
  const char* field = nullptr;  // null: the constants go together
  const char* text = nullptr;
};

// Defaults, which are right for most kinds.
struct KindBase {
  // Update returns a direction; the weight moves against it by DirectionRate,
  // which depends on norms of the whole tensor.
  static constexpr bool kMakesDirection = false;
  static double DirectionRate(const OptimizerOptions& /*options*/,
                              const DirectionSize& size) {
    return size.learning_rate;
  }
  // The average of squares of a tensor with several dimensions is kept as the
  // averages of its rows and columns.
  static constexpr bool kFactored = false;
  // The index of the rule in Rules.
  static int Variant(const OptimizerOptions& /*options*/) { return 0; }
  static OptimizerFault Check(const OptimizerOptions& /*options*/) {
    return {};
  }
  // Sets the first states for these weights. `state` has arrays of n elements,
  // which are 0 before the call.
  static void SetFirstState(const OptimizerOptions& /*options*/, int64_t /*n*/,
                            const float* /*weight*/, float* const* /*state*/) {}

 protected:
  // Scales the weight instead of adding the decay to the gradient.
  static void DecoupleDecay(const OptimizerOptions& options,
                            double learning_rate, OptimizerStep* p) {
    p->weight_decay = 0;
    p->weight_scale =
        static_cast<float>(1 - learning_rate * options.weight_decay);
  }
};

}  // namespace tributary
