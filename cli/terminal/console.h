// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "cli/terminal/progress_display.h"
#include "common/base/clock.h"

namespace tributary {

// Standard output, as a terminal or a pipe. ProgressDisplay decides what is
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
