// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/encoding/encoding.h"
#include "tributary/v1/strategy.pb.h"

namespace tributary {

// Returns the encoding of a wire format, which has the same name in the job
// file. top_k_fraction: the share of the elements that top_k sends; other
// formats ignore it. Null: this program has no such encoding.
const Encoding* EncodingOf(v1::WireFormat wire,
                           double top_k_fraction = kTopKFraction);

}  // namespace tributary
