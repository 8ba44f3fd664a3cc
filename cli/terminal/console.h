// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/terminal/progress_display.h"
#include "common/base/clock.h"

namespace tributary {

// From this call on, the functions of this file write their output as JSON
// records, one a line, like the log of a daemon with --log-format json. Call it
// before there is a Console.
void WriteRecords();

// Returns the lines of `text` as such records.
std::string AsRecords(absl::string_view text, absl::string_view level,
                      absl::Time time);

// Standard output, as a terminal or a pipe. A ProgressDisplay decides what is
// shown.
class Console {
 public:
  // quiet: shows nothing.
  explicit Console(const Clock* clock, bool quiet = false);

  void Show(const ProgressView& view);
  void Wait(absl::string_view what);
  void Note(absl::string_view line);
  void End();

 private:
  void Write(absl::string_view text);

  const Clock* const clock_;
  const bool quiet_;
  ProgressDisplay display_;
};

// "tributary: MESSAGE" on standard error.
void PrintError(absl::string_view message);

// "tributary: note: MESSAGE" on standard error.
void PrintNote(absl::string_view message);

}  // namespace tributary
