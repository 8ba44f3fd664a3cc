// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/encoding/encoding.h"
#include "tributary/v1/strategy.pb.h"

namespace tributary {

// The encoding of a wire format: the one that has its name in the job file.
// top_k_fraction: the share of the elements that top_k sends; without a meaning
// for other formats. Null: this program has none.
const Encoding* EncodingOf(v1::WireFormat wire,
                           double top_k_fraction = kTopKFraction);

}  // namespace tributary
