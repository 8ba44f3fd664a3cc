// SPDX-License-Identifier: Apache-2.0
#include "common/status/printable.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(PrintableTest, TextStaysAsItIs) {
  EXPECT_EQ(Printable("node-1 (pid 7), 5 µs, 東京, 🙂"),
            "node-1 (pid 7), 5 µs, 東京, 🙂");
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, WhatMovesTheCursorOrForgesALineBecomesASpace) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\nerror: c\x7f\a\t."),
            "a [2Jb  error: c   .");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "2Jb"),
            "a 2Jb");  // CSI as one character
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a b");
}

TEST(PrintableTest, BytesThatAreNotUtf8BecomeQuestionMarks) {
  EXPECT_EQ(Printable("a\xffz"), "a?z");
  EXPECT_EQ(Printable("\xc0\x9b"), "??");       // not the shortest form
  EXPECT_EQ(Printable("\xe6\x9d"), "??");       // the end is missing
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");  // a surrogate
}

TEST(PrintableTest, ATextIsCutBetweenCharacters) {
  EXPECT_EQ(CutUtf8("東京", 6), "東京");
  EXPECT_EQ(CutUtf8("東京", 5), "東");
  EXPECT_EQ(CutUtf8("東京", 2), "");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
}

}  // namespace
}  // namespace tributary
