#pragma once

#include "common/encoding/encoding.h"
#include "tributary/v1/strategy.pb.h"

namespace tributary {

// The encoding of a wire format: the one that has its name in the job file.
// Null: this program has none.
const Encoding* EncodingOf(v1::WireFormat wire);

}  // namespace tributary
