// SPDX-License-Identifier: Apache-2.0
#pragma once

// The generated list includes each file of kinds/ and names its kind.
#include "common/optimizer/optimizer_kinds.inc"
#include "common/optimizer/optimizer_step.h"

namespace tributary {

template <typename... Kinds>
struct KindList {};
using OptimizerKinds = KindList<TRIBUTARY_OPTIMIZER_KINDS>;

namespace internal {

template <typename Visit, typename... Rules>
__attribute__((always_inline)) inline bool VisitVariant(RuleList<Rules...>,
                                                        int variant,
                                                        Visit& visit) {
  int at = 0;
  return ((variant == at++ && (visit(Rules()), true)) || ...);
}

template <typename Visit, typename... Kinds>
__attribute__((always_inline)) inline bool VisitKind(KindList<Kinds...>,
                                                     const OptimizerStep& step,
                                                     Visit& visit) {
  int at = 0;
  return ((step.kind == at++ &&
           VisitVariant(typename Kinds::Rules(), step.variant, visit)) ||
          ...);
}

}  // namespace internal

// Calls visit(Rule()) with the type of the step's rule. False: no rule has the
// step's kind and variant.
template <typename Visit>
__attribute__((always_inline)) inline bool VisitRule(const OptimizerStep& step,
                                                     Visit visit) {
  return internal::VisitKind(OptimizerKinds(), step, visit);
}

}  // namespace tributary
