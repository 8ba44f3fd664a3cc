// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/terminal/progress_line.h"

namespace tributary {

// Decides what to write and when. On a terminal one line is redrawn in place,
// with notes above it; a pipe gets plain lines now and then. Each function
// returns the bytes to write and does no I/O; the time, and the terminal's
// width in columns at that time, are passed in.
class ProgressDisplay {
 public:
  // A pipe gets a line after each tenth of the steps, or after this interval.
  static constexpr int64_t kPlainIntervalMicros = 10'000'000;

  explicit ProgressDisplay(bool terminal) : terminal_(terminal) {}

  std::string Show(const ProgressView& view, int64_t now_micros, int width);
  // Shows what the job waits for before it runs: "waiting for worker 1".
  std::string Wait(absl::string_view what, int64_t now_micros, int width);
  // A line that is not redrawn.
  std::string Note(absl::string_view line, int width);
  // Ends the line that is redrawn; call it before writing other text.
  std::string End();

 private:
  // Clears the line that is shown, and goes to its beginning. A terminal that
  // has become narrower since then has wrapped the line into several rows.
  std::string Clear(int width) const;
  std::string Redraw(std::string line, int width);

  const bool terminal_;
  std::string line_;  // on a terminal: the line in the last row
  int64_t last_tenth_ = 0;
  int64_t last_plain_micros_ = -1;  // -1: nothing shown yet
};

}  // namespace tributary
