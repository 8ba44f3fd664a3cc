// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/encoding/encoding.h"
#include "common/wire/payload.h"

namespace tributary {

// Encodes n floats to encoding.Bytes(n) bytes. The first one must be the first
// of a slice or of a unit. Returns `crc` extended by these bytes (crc32c.h),
// which are in the cache then.
uint32_t EncodeFloats(const Encoding& encoding, int64_t n, const float* values,
                      char* out, uint32_t crc);

// Decodes the reader's next encoding.Bytes(n) bytes to n floats. Returns `crc`
// extended by the bytes.
uint32_t DecodeFloats(const Encoding& encoding, int64_t n, FloatReader* reader,
                      float* values, uint32_t crc);

}  // namespace tributary
