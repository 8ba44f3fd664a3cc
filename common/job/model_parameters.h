#pragma once

#include "common/parameter_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The parameters of a model in forward order, named as torch.nn.Sequential
// names them, layers without parameters counted: "0.weight" [out, in] and
// "0.bias" [out] of a linear layer, "3.weight" and "3.bias" [features] of a
// layernorm. Looks at nothing but the layers and checks nothing.
ParameterSpecs ModelParameters(const v1::ModelSpec& model);

}  // namespace tributary
