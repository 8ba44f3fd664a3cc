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

  // Returns the whole lines since the last call. A line longer than
  // kLongestLine is returned in parts.
  std::vector<std::string> TakeLines();
  // Like TakeLines; also returns a last line without an end.
  std::vector<std::string> TakeRest();

  static constexpr size_t kLongestLine = 64 << 10;

 private:
  const std::string path_;
  int64_t offset_ = 0;   // bytes read
  std::string partial_;  // the beginning of an unfinished line
};

}  // namespace tributary
