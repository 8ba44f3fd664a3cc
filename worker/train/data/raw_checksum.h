// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {

// The checksum of a data set: the CRC-32C of its values, array by array. It is
// never 0. Rows in memory and the same rows on disk have the same checksum.
class RawChecksum {
 public:
  template <typename T>
  void Add(const std::vector<T>& values) {
    crc_ = ExtendCrc32c(crc_, values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  void AddValue(const T& value) {
    crc_ = ExtendCrc32c(crc_, &value, sizeof(value));
  }
  uint32_t value() const { return std::max(crc_, uint32_t{1}); }

 private:
  uint32_t crc_ = 0;
};

}  // namespace tributary
