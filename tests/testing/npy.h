// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/tensor.h"

namespace tributary::testing {

// Writes an array of float or int64_t in NumPy's format 1.0.
template <typename T>
void WriteNpy(const std::filesystem::path& path, const Shape& shape,
              const std::vector<T>& values) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, int64_t>);
  std::string header = absl::StrCat(
      "{'descr': '", std::is_same_v<T, float> ? "<f4" : "<i8",
      "', 'fortran_order': False, 'shape': (", absl::StrJoin(shape, ", "),
      shape.size() == 1 ? ",), }" : "), }");
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << std::string("\x93NUMPY\x01\x00", 8)
       << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(values.data()),
             values.size() * sizeof(T));
}

}  // namespace tributary::testing
