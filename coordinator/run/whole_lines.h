// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Removes what follows the last complete line of a file: an incomplete line, or
// zeros that a file system left after a power cut. Errors name the file.
absl::Status CutToWholeLines(const std::string& path);

// Lines that could not be read. They are left out and counted, because a
// damaged log must not prevent a job from continuing.
struct BadLines {
  int64_t count = 0;
  uint64_t first_byte = 0;  // of the first bad line

  void Add(uint64_t byte) {
    if (count++ == 0) first_byte = byte;
  }
  // A sentence about these lines; empty if there are none.
  std::string Text(const std::string& file) const;
};

// Calls `read` with each line of the file from this byte on, without its end. A
// line counts as bad if `read` returns false, or if it is longer than a
// mebibyte; `read` is not called with such a line.
using LineReader = std::function<bool(absl::string_view line)>;
BadLines ForEachLine(const std::string& path, uint64_t from_byte,
                     const LineReader& read);

}  // namespace tributary
