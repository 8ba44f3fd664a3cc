// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/error_feedback.h"

#include <algorithm>
#include <bit>

#include "common/base/clones.h"
#include "common/plan/plan_codec.h"
#include "common/wire/encoded_floats.h"

namespace tributary {
namespace {

// Elements encoded at a time: a multiple of every encoding's unit, and few
// enough that gradient, residual and bytes fit into the first-level cache.
constexpr int64_t kElements = 2048;

TRIBUTARY_CLONES void Add(int64_t n, const float* a, const float* b,
                          float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

// residual = wanted - sent, where that is a finite number.
TRIBUTARY_CLONES void KeepRest(int64_t n, const float* wanted,
                               const float* sent, float* residual) {
  for (int64_t i = 0; i < n; ++i) {
    const auto rest = std::bit_cast<uint32_t>(wanted[i] - sent[i]);
    const auto before = std::bit_cast<uint32_t>(residual[i]);
    const bool finite = (rest & 0x7fffffffu) < 0x7f800000u;
    const uint32_t mask = 0u - static_cast<uint32_t>(finite);
    residual[i] = std::bit_cast<float>((rest & mask) | (before & ~mask));
  }
}

}  // namespace

ErrorFeedback::ErrorFeedback(const v1::Plan& plan,
                             const PartitionPlan& partition, uint32_t rank) {
  if (!plan.error_feedback()) return;
  const DeviceMesh mesh = MeshOf(plan);
  for (const ParameterSpec& spec : partition.parameters()) {
    const bool pushed = mesh.Holds(static_cast<int>(rank), spec.holders);
    std::vector<float>& residual = residuals_.emplace_back();
    if (pushed && !spec.is_running()) {
      residual.resize(static_cast<size_t>(spec.size()));
    }
    pointers_.push_back(residual.empty() ? nullptr : residual.data());
  }
}

uint32_t ErrorFeedback::Encode(const Slice& slice, const float* gradient,
                               char* out, uint32_t crc) {
  const Encoding& encoding = *slice.encoding;
  if (pointers_.empty() || pointers_[slice.parameter] == nullptr) {
    return EncodeFloats(encoding, slice.size(), gradient, out, crc);
  }
  float* const residual = pointers_[slice.parameter] + slice.begin;
  float wanted[kElements];
  float sent[kElements];
  for (int64_t begin = 0; begin < slice.size(); begin += kElements) {
    const int64_t n = std::min(kElements, slice.size() - begin);
    Add(n, gradient + begin, residual + begin, wanted);
    crc = EncodeFloats(encoding, n, wanted, out, crc);
    encoding.Decode(n, out, sent);
    KeepRest(n, wanted, sent, residual + begin);
    out += encoding.Bytes(n);
  }
  return crc;
}

}  // namespace tributary
