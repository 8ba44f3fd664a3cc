// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/terminal/append_file.h"
#include "common/status/printable.h"
#include "common/telemetry/log_line.h"

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

bool writes_records = false;  // set before there are threads

// `prefix`: only in the text for people, not in records.
void TellOnError(absl::string_view level, absl::string_view prefix,
                 absl::string_view message) {
  const std::string text =
      writes_records
          ? AsRecords(message, level, absl::Now())
          : absl::StrCat("tributary: ", prefix, Printable(message), "\n");
  AppendTo(STDERR_FILENO, "the error", text).IgnoreError();
}

}  // namespace

void WriteRecords() { writes_records = true; }

std::string AsRecords(absl::string_view text, absl::string_view level,
                      absl::Time time) {
  std::string records;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    records += FormatLogLine(
        LogFormat::kJson,
        {.time = time, .level = level, .role = "coordinator", .message = line});
  }
  return records;
}

Console::Console(const Clock* clock, bool quiet)
    : clock_(clock),
      quiet_(quiet),
      display_(isatty(STDOUT_FILENO) == 1 && !writes_records) {}

void Console::Write(absl::string_view text) {
  if (text.empty() || quiet_) return;
  // Training continues even when the reader of the output has gone.
  AppendTo(
      STDOUT_FILENO, "the output",
      writes_records ? AsRecords(text, "info", absl::Now()) : std::string(text))
      .IgnoreError();
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
  TellOnError("error", "", message);
}

void PrintNote(absl::string_view message) {
  TellOnError("warning", "note: ", message);
}

}  // namespace tributary
