// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_display.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kOneSecond = 1'000'000;

ProgressView At(int64_t step, int64_t total = 100) {
  ProgressView view;
  view.step = step;
  view.total_steps = total;
  return view;
}

// The row that a terminal shows after these bytes. \r moves the cursor to the
// start of the row, and \x1b[K erases from the cursor on.
std::string Screen(const std::string& bytes) {
  std::string done, row;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.compare(i, 4, "\r\x1b[K") == 0) {
      row.clear();
      i += 3;
    } else if (bytes[i] == '\n') {
      done += row + "\n";
      row.clear();
    } else {
      row += bytes[i];
    }
  }
  return done + row;
}

TEST(ProgressDisplayTest, TerminalRedrawsOneLineInPlace) {
  ProgressDisplay display(/*terminal=*/true);
  std::string bytes = display.Show(At(10), 0, 80);
  bytes += display.Show(At(20), 1, 80);
  EXPECT_EQ(Screen(bytes), BarLine(At(20), 79));
}

TEST(ProgressDisplayTest, UnchangedLineIsNotWrittenAgain) {
  ProgressDisplay display(true);
  EXPECT_NE(display.Show(At(10), 0, 80), "");
  EXPECT_EQ(display.Show(At(10), 1, 80), "");
}

TEST(ProgressDisplayTest, NotesStandAboveTheLine) {
  ProgressDisplay display(true);
  std::string bytes = display.Show(At(10), 0, 80);
  bytes += display.Note("epoch 1/5: test accuracy 0.9", 80);
  EXPECT_EQ(Screen(bytes),
            "epoch 1/5: test accuracy 0.9\n" + BarLine(At(10), 79));
}

TEST(ProgressDisplayTest, LastLineStaysAtTheEnd) {
  ProgressDisplay display(true);
  std::string bytes = display.Show(At(100), 0, 80);
  bytes += display.End();
  bytes += display.Note("done", 80);
  EXPECT_EQ(Screen(bytes), BarLine(At(100), 79) + "\ndone\n");
  EXPECT_EQ(display.End(), "");
}

// \x1b[nA goes up n rows, \x1b[J clears from there to the end of the screen.
TEST(ProgressDisplayTest, RowsThatANarrowerTerminalWrappedAreCleared) {
  ProgressDisplay display(true);
  const std::string wide(79, 'x');
  display.Wait(wide, 0, 80);
  // 79 columns are 2 rows of 40: one is above the cursor's.
  EXPECT_EQ(display.Wait(wide, 1, 40),
            "\r\x1b[1A\x1b[J" + std::string(39, 'x'));
  // 39 columns are 4 rows of 10.
  EXPECT_EQ(display.Wait(wide, 2, 10), "\r\x1b[3A\x1b[J" + std::string(9, 'x'));
  // A wider terminal has joined the rows.
  EXPECT_EQ(display.Wait(wide, 3, 80), "\r\x1b[K" + wide);
  // A full row is one row.
  EXPECT_EQ(display.Wait("y", 4, 79), "\r\x1b[Ky");
}

TEST(ProgressDisplayTest, ANoteClearsWrappedRowsToo) {
  ProgressDisplay display(true);
  display.Wait(std::string(50, 'x'), 0, 80);
  EXPECT_EQ(display.Note("done", 20),
            "\r\x1b[2A\x1b[Jdone\n" + std::string(19, 'x'));
  EXPECT_EQ(display.Note("more", 20), "\r\x1b[Kmore\n" + std::string(19, 'x'));
}

TEST(ProgressDisplayTest, WaitingIsReplacedByProgress) {
  ProgressDisplay display(true);
  std::string bytes = display.Wait("waiting for worker 1", 0, 80);
  EXPECT_EQ(Screen(bytes), "waiting for worker 1");
  bytes += display.Show(At(1), 0, 80);
  EXPECT_EQ(Screen(bytes), BarLine(At(1), 79));
}

TEST(ProgressDisplayTest, PipeGetsALineEachTenthOfTheWay) {
  ProgressDisplay display(/*terminal=*/false);
  int lines = 0;
  for (int64_t step = 1; step <= 100; ++step) {
    const std::string text = display.Show(At(step), 0, 80);
    if (text.empty()) continue;
    EXPECT_EQ(text, PlainLine(At(step)) + "\n");
    EXPECT_EQ(step % 10, 0);
    ++lines;
  }
  EXPECT_EQ(lines, 10);
}

TEST(ProgressDisplayTest, SlowPipeGetsALineEveryTenSeconds) {
  ProgressDisplay display(false);
  int lines = 0;
  for (int64_t second = 0; second < 60; ++second) {
    const ProgressView view = At(1 + second, 1'000'000);
    if (!display.Show(view, second * kOneSecond, 80).empty()) ++lines;
  }
  EXPECT_EQ(lines, 5);
}

TEST(ProgressDisplayTest, PipeGetsNoControlCharacters) {
  ProgressDisplay display(false);
  std::string bytes = display.Wait("waiting", 0, 80);
  bytes += display.Wait("waiting", 11 * kOneSecond, 80);
  bytes += display.Show(At(50), 12 * kOneSecond, 80);
  bytes += display.Note("note", 80);
  bytes += display.End();
  EXPECT_EQ(bytes, "waiting\n" + PlainLine(At(50)) + "\nnote\n");
}

}  // namespace
}  // namespace tributary
