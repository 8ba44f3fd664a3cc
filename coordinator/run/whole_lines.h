// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Removes what follows the last line of a file: a line that was partly written,
// or zeros that a file system left after a power cut. Errors name the file.
absl::Status CutToWholeLines(const std::string& path);

// Lines that could not be read. They are left out and counted: a log does not
// decide whether a job goes on.
struct BadLines {
  int64_t count = 0;
  uint64_t first_byte = 0;  // of the first

  void Add(uint64_t byte) {
    if (count++ == 0) first_byte = byte;
  }
  // A sentence about them; empty: there are none.
  std::string Text(const std::string& file) const;
};

// Calls `read` with each line of the file from this byte on, without its end.
// False from it counts the line as bad, as does a line of more than a mebibyte,
// which it does not see.
using LineReader = std::function<bool(absl::string_view line)>;
BadLines ForEachLine(const std::string& path, uint64_t from_byte,
                     const LineReader& read);

}  // namespace tributary
