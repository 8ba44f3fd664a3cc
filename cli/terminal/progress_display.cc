// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_display.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// Moves to the start of the row and clears it.
constexpr absl::string_view kHome = "\r\x1b[K";

}  // namespace

std::string ProgressDisplay::Clear(int width) const {
  const int columns = static_cast<int>(line_.size());
  const int rows_above = (std::max(columns, 1) - 1) / std::max(width, 1);
  if (rows_above == 0) return std::string(kHome);
  // Goes to the start of the row above, then clears to the end of the screen.
  return absl::StrCat("\r\x1b[", rows_above, "A\x1b[J");
}

std::string ProgressDisplay::Redraw(std::string line, int width) {
  if (line == line_) return "";
  const std::string clear = Clear(width);
  line_ = std::move(line);
  return absl::StrCat(clear, line_);
}

std::string ProgressDisplay::Show(const ProgressView& view, int64_t now_micros,
                                  int width) {
  // Leaves the last column free: some terminals wrap when it is written.
  if (terminal_) return Redraw(BarLine(view, width - 1), width);
  if (last_plain_micros_ < 0) last_plain_micros_ = now_micros;
  const int64_t tenth =
      view.total_steps < 1 ? 0 : 10 * view.step / view.total_steps;
  if (tenth <= last_tenth_ &&
      now_micros - last_plain_micros_ < kPlainIntervalMicros) {
    return "";
  }
  last_tenth_ = std::max(tenth, last_tenth_);
  last_plain_micros_ = now_micros;
  return absl::StrCat(PlainLine(view), "\n");
}

std::string ProgressDisplay::Wait(absl::string_view what, int64_t now_micros,
                                  int width) {
  if (terminal_) {
    return Redraw(std::string(what.substr(0, std::max(width - 1, 0))), width);
  }
  if (last_plain_micros_ < 0) last_plain_micros_ = now_micros;
  if (now_micros - last_plain_micros_ < kPlainIntervalMicros) return "";
  last_plain_micros_ = now_micros;
  return absl::StrCat(what, "\n");
}

std::string ProgressDisplay::Note(absl::string_view line, int width) {
  if (!terminal_) return absl::StrCat(line, "\n");
  const std::string clear = Clear(width);
  line_.resize(std::min<size_t>(line_.size(), std::max(width - 1, 0)));
  return absl::StrCat(clear, line, "\n", line_);
}

std::string ProgressDisplay::End() {
  return std::exchange(line_, "").empty() ? "" : "\n";
}

}  // namespace tributary
