// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tributary {

// Reads the lines that a process appends to its log.
class LogFollower {
 public:
  // The file need not exist yet.
  explicit LogFollower(std::string path) : path_(std::move(path)) {}

  // The whole lines since the last call. A line longer than kLongestLine comes
  // in parts.
  std::vector<std::string> TakeLines();
  // The same, and then a last line without an end.
  std::vector<std::string> TakeRest();

  static constexpr size_t kLongestLine = 64 << 10;

 private:
  const std::string path_;
  int64_t offset_ = 0;   // bytes read
  std::string partial_;  // of a line whose end is not read yet
};

}  // namespace tributary
