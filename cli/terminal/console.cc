// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/terminal/append_file.h"
#include "common/status/printable.h"

namespace tributary {
namespace {

constexpr int kDefaultWidth = 80;

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kDefaultWidth;
  }
  return size.ws_col;
}

}  // namespace

Console::Console(const Clock* clock, bool quiet)
    : clock_(clock), quiet_(quiet), display_(isatty(STDOUT_FILENO) == 1) {}

void Console::Write(absl::string_view text) {
  // Training continues even when the reader of the output has gone.
  if (!text.empty() && !quiet_)
    AppendTo(STDOUT_FILENO, "the output", text).IgnoreError();
}

void Console::Show(const ProgressView& view) {
  Write(display_.Show(view, clock_->NowMicros(), TerminalWidth()));
}

void Console::Wait(absl::string_view what) {
  Write(display_.Wait(Printable(what), clock_->NowMicros(), TerminalWidth()));
}

void Console::Note(absl::string_view line) {
  Write(display_.Note(Printable(line), TerminalWidth()));
}

void Console::End() { Write(display_.End()); }

void PrintError(absl::string_view message) {
  AppendTo(STDERR_FILENO, "the error",
           absl::StrCat("tributary: ", Printable(message), "\n"))
      .IgnoreError();
}

void PrintNote(absl::string_view message) {
  PrintError(absl::StrCat("note: ", message));
}

}  // namespace tributary
