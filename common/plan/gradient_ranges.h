// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parameter_spec.h"

namespace tributary {

// Elements [begin, end) of one parameter; both at grain borders or at the
// parameter's end.
struct GradientRange {
  int parameter = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};

// Parameters [first, last] that are reduced together.
struct ParameterRun {
  int first = 0;
  int last = 0;
};

// Runs of parameters in backward order, the last parameters first, from the
// number of elements of each. A run takes parameters until it holds `bytes`.
// The first run ends at `first_bytes`, because backward fills it while little
// else can be sent (Li et al. 2020, PyTorch Distributed). Parameters without
// elements are skipped.
std::vector<ParameterRun> BucketParameters(absl::Span<const int64_t> elements,
                                           int64_t first_bytes, int64_t bytes);

// A run of parameters as one stretch [begin, end) of the array that holds all
// gradients in forward order.
struct GradientBucket {
  int first = 0;
  int last = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Where each parameter begins in an array of all parameters, in elements.
using Offsets = std::vector<int64_t>;

// The runs of BucketParameters as buckets.
std::vector<GradientBucket> MakeBuckets(const ParameterSpecs& parameters,
                                        const Offsets& offsets,
                                        int64_t first_bytes, int64_t bytes);

// Cuts a bucket into `parts` stretches of nearly even length that end at grain
// borders of a parameter: parts + 1 bounds, from bucket.begin to bucket.end.
std::vector<int64_t> CutBucket(const GradientBucket& bucket,
                               const ParameterSpecs& parameters,
                               const Offsets& offsets, int parts);

// The parts of parameters within [begin, end) of the bucket, in forward order.
std::vector<GradientRange> RangesWithin(const GradientBucket& bucket,
                                        const ParameterSpecs& parameters,
                                        const Offsets& offsets, int64_t begin,
                                        int64_t end);

}  // namespace tributary
