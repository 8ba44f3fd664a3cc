// SPDX-License-Identifier: Apache-2.0
#include "common/plan/gradient_ranges.h"

#include <algorithm>

#include "common/plan/partition_plan.h"

namespace tributary {

std::vector<ParameterRun> BucketParameters(absl::Span<const int64_t> elements,
                                           int64_t first_bytes, int64_t bytes) {
  std::vector<ParameterRun> runs;
  int64_t room = 0;
  for (int p = static_cast<int>(elements.size()) - 1; p >= 0; --p) {
    if (elements[p] == 0) continue;
    if (room <= 0) {
      room = runs.empty() ? first_bytes : bytes;
      runs.push_back({p, p});
    }
    runs.back().first = p;
    room -= elements[p] * int64_t{sizeof(float)};
  }
  return runs;
}

std::vector<GradientBucket> MakeBuckets(const ParameterSpecs& parameters,
                                        const Offsets& offsets,
                                        int64_t first_bytes, int64_t bytes) {
  std::vector<int64_t> elements;
  for (const ParameterSpec& parameter : parameters) {
    elements.push_back(parameter.size());
  }
  std::vector<GradientBucket> buckets;
  for (const auto& [first, last] :
       BucketParameters(elements, first_bytes, bytes)) {
    buckets.push_back(
        {first, last, offsets[first], offsets[last] + elements[last]});
  }
  return buckets;
}

std::vector<int64_t> CutBucket(const GradientBucket& bucket,
                               const ParameterSpecs& parameters,
                               const Offsets& offsets, int parts) {
  std::vector<int64_t> bounds = {bucket.begin};
  int p = bucket.first;
  for (int part = 1; part < parts; ++part) {
    const int64_t wanted =
        bucket.begin + (bucket.end - bucket.begin) * part / parts;
    while (p < bucket.last && offsets[p + 1] <= wanted) ++p;
    const int64_t within = std::min(wanted - offsets[p], parameters[p].size());
    const int64_t border = within == parameters[p].size()
                               ? within
                               : within / kGrainElements * kGrainElements;
    bounds.push_back(std::max(bounds.back(), offsets[p] + border));
  }
  bounds.push_back(bucket.end);
  return bounds;
}

std::vector<GradientRange> RangesWithin(const GradientBucket& bucket,
                                        const ParameterSpecs& parameters,
                                        const Offsets& offsets, int64_t begin,
                                        int64_t end) {
  std::vector<GradientRange> ranges;
  for (int p = bucket.first; p <= bucket.last; ++p) {
    const int64_t from = std::max(begin - offsets[p], int64_t{0});
    const int64_t to = std::min(end - offsets[p], parameters[p].size());
    if (from < to) ranges.push_back({p, from, to});
  }
  return ranges;
}

}  // namespace tributary
