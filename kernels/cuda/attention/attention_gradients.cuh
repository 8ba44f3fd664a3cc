// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_work.cuh"

namespace tributary {

// Common to the kernels that compute gradients, in float32 and on tensor cores.
// With kOfKeys a block's own rows are keys and values, and the other rows are
// queries and their dy; without kOfKeys, vice versa.

// The number of keys that a block's queries see. past: the row after the
// block's last own row.
template <bool kOfKeys>
__device__ int VisibleKeys(const AttentionShape& s, const AttentionHead& head,
                           int past) {
  return s.causal && !kOfKeys && past < head.keys ? past : head.keys;
}

// The operands of a block: its own rows and the others.
struct BackwardRows {
  AttentionRows own[2], others[2];
};

// visible: as VisibleKeys.
template <bool kOfKeys>
__device__ BackwardRows BackwardRowsAt(const AttentionShape& s,
                                       const AttentionBackwardArrays& a,
                                       const AttentionHead& head, int queries,
                                       int visible) {
  const AttentionRows q{a.q + head.query, s.query.row, queries};
  const AttentionRows dy{a.dy + head.out, s.out.row, queries};
  const AttentionRows k{a.k + head.key, s.key.row, visible};
  const AttentionRows v{a.v + head.key, s.key.row, visible};
  return {{kOfKeys ? k : q, kOfKeys ? v : dy},
          {kOfKeys ? q : k, kOfKeys ? dy : v}};
}

// The range of other rows, from `begin` to `end`, that a block's own rows are
// compared with. visible: as VisibleKeys.
template <int kTileCols, bool kOfKeys>
struct BackwardRange {
  __device__ BackwardRange(const AttentionShape& s, int own_first, int visible)
      : end(kOfKeys ? static_cast<int>(s.queries) : visible) {
    if (kOfKeys && s.causal) begin = own_first / kTileCols * kTileCols;
    if (kOfKeys && own_first >= visible) end = 0;
  }
  int begin = 0, end;
};

}  // namespace tributary
