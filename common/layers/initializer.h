// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/base/parameter_slice.h"
#include "common/base/parameter_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The weights that a parameter starts from, PyTorch's defaults: for linear and
// conv2d, weight and bias uniform in +-1/sqrt(inputs of an output)
// (kaiming_uniform with a = sqrt(5)); for embeddings, normal with the spec's
// deviation; for attention as torch.nn.MultiheadAttention; for norms, weight
// and running variance 1, bias and running mean 0. Every element is a function
// of only (seed, parameter, element), so that any process computes any part
// alike. `parameters` are those that Model made of `spec`; out: all of the
// parameter's elements.
void InitialWeights(const ParameterSpecs& parameters, const v1::ModelSpec& spec,
                    uint64_t seed, int parameter, absl::Span<float> out);

// The same for only a slice of the parameter; out: the slice's elements.
void InitialWeights(const ParameterSpecs& parameters, const v1::ModelSpec& spec,
                    uint64_t seed, int parameter, const ParameterSlice& slice,
                    absl::Span<float> out);

}  // namespace tributary
