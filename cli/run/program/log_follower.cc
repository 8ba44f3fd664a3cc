// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program/log_follower.h"

#include <fstream>

namespace tributary {

std::vector<std::string> LogFollower::TakeLines() {
  std::vector<std::string> lines;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  std::string part(kLongestLine, '\0');
  while (file) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    const auto got = static_cast<size_t>(file.gcount());
    offset_ += static_cast<int64_t>(got);
    partial_.append(part, 0, got);
    size_t begin = 0;
    for (size_t end; (end = partial_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      lines.push_back(partial_.substr(begin, end - begin));
    }
    partial_.erase(0, begin);
    if (partial_.size() >= kLongestLine) {
      lines.push_back(std::exchange(partial_, ""));
    }
  }
  return lines;
}

std::vector<std::string> LogFollower::TakeRest() {
  std::vector<std::string> lines = TakeLines();
  if (!partial_.empty()) lines.push_back(std::exchange(partial_, ""));
  return lines;
}

}  // namespace tributary
