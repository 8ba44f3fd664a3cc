// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/parameter_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The parameters of a model in forward order, named as in torch.nn.Sequential,
// where layers without parameters count too: "0.weight" [out, in] and "0.bias"
// [out] of a linear layer, "3.body.0.weight" of a layer within a residual.
// Running averages are included. Depends only on the layers and checks nothing.
ParameterSpecs ModelParameters(const v1::ModelSpec& model);

// The layer that a parameter of ModelParameters belongs to, and the parameter's
// name in that layer: "3.body.0.weight" is the "weight" of layer 0 in the body
// of layer 3.
std::pair<const v1::LayerSpec*, std::string> LayerOfParameter(
    const v1::ModelSpec& model, absl::string_view name);

}  // namespace tributary
