#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "common/base/range.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/optimizer_step.h"

namespace tributary {

// What an optimizer is, in one file of kinds/. A rule is the arithmetic of one
// element:
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

// A field of the kind's message in job.proto, and the constant that it sets.
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

// Why constants do not go together: "FIELD TEXT", such as "nesterov wants
// momentum above 0".
struct OptimizerFault {
  const char* field = nullptr;  // null: they do
  const char* text = nullptr;
};

// What most kinds need not say.
struct KindBase {
  // The step's length depends on norms of the whole tensor, so that Update
  // returns a direction.
  static constexpr bool kTrustRatio = false;
  static double TrustRatio(const OptimizerOptions& /*options*/,
                           double /*weight_norm*/, double /*direction_norm*/) {
    return 1;
  }
  // The index of the rule in Rules.
  static int Variant(const OptimizerOptions& /*options*/) { return 0; }
  static OptimizerFault Check(const OptimizerOptions& /*options*/) {
    return {};
  }
  // Changes the states before the first step, which are 0, for these weights.
  // state: arrays of n elements.
  static void SetFirstState(const OptimizerOptions& /*options*/, int64_t /*n*/,
                            const float* /*weight*/, float* const* /*state*/) {}
};

}  // namespace tributary
