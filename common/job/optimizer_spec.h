#pragma once

#include <string>
#include <vector>

#include "common/optimizer/optimizer_options.h"
#include "common/schema/field_rule.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The optimizer of a job file as the kinds of common/optimizer say it.

// The rules of the fields of all kinds. Of a message that two kinds share the
// first kind's rules come first.
std::vector<FieldRule> OptimizerRules();

// Fills the defaults of the kind, which may differ between two kinds with the
// same message.
void ResolveOptimizer(v1::OptimizerSpec* spec);

// The plain values of a resolved optimizer (ReadJobFile).
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

// "adam"; empty when no kind is chosen.
std::string OptimizerName(const v1::OptimizerSpec& spec);

// Whether the optimizer needs norms of whole tensors.
bool NeedsWholeTensors(const v1::OptimizerSpec& spec);

}  // namespace tributary
