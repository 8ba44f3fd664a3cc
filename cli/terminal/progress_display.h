#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/terminal/progress_line.h"

namespace tributary {

// Decides what is written when. On a terminal one line is redrawn in place and
// notes stand above it; in a pipe there are plain lines, now and then. Pure:
// every function returns the bytes to write, time and width are passed in.
class ProgressDisplay {
 public:
  // A pipe gets a line each tenth of the way, or after so long.
  static constexpr int64_t kPlainIntervalMicros = 10'000'000;

  explicit ProgressDisplay(bool terminal) : terminal_(terminal) {}

  std::string Show(const ProgressView& view, int64_t now_micros, int width);
  // While nothing runs yet: "waiting for worker 1".
  std::string Wait(absl::string_view what, int64_t now_micros, int width);
  // A line that stays.
  std::string Note(absl::string_view line);
  // Leaves the last line standing; call before other text.
  std::string End();

 private:
  std::string Redraw(std::string line);

  const bool terminal_;
  std::string line_;  // of a terminal, that stands in the last row
  int64_t last_tenth_ = 0;
  int64_t last_plain_micros_ = -1;  // -1: nothing shown yet
};

}  // namespace tributary
