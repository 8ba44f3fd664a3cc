// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/command_line/command_line.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST(ManTextTest, LinesBecomeParagraphsAndIndentedLinesStay) {
  EXPECT_EQ(ManText("One\ntwo.\n\nExample:\n  tool a\n      b\nand more"),
            "One two.\n"
            ".PP\n"
            "Example:\n"
            ".PP\n"
            ".nf\n"
            "  tool a\n"
            "      b\n"
            ".fi\n"
            ".PP\n"
            "and more\n");
}

TEST(ManTextTest, NoCharacterOfTheTextIsACommand) {
  EXPECT_EQ(ManText("'a' \\ --b\n  .c"),
            "\\(aqa\\(aq \\e \\-\\-b\n.PP\n.nf\n  .c\n.fi\n");
  EXPECT_EQ(ManText(".TH and .PP"), "\\&.TH and .PP\n");
}

TEST(ManTextTest, LongLinesAreBroken) {
  const std::string word(30, 'x');
  EXPECT_EQ(ManText(word + " " + word + " " + word + " .end"),
            word + " " + word + "\n" + word + " .end\n");
  const std::string wide(78, 'x');
  EXPECT_EQ(ManText(wide + " .end"), wide + "\n\\&.end\n");
}

TEST(ManPageTest, HasEveryOptionAndCommand) {
  CommandLine program("tool: paints walls. And more.", "tool");
  program.SetFooter("Example:\n  tool paint");
  std::string text;
  bool flag = false;
  CommandLine paint = program.AddCommand("paint", "Paints.");
  paint.AddOption("WALL", &text, "which one").Required();
  paint.AddOption("-c,--color", &text, "the\ncolor").OneOf({"red"});
  paint.AddFlag("--hidden", &flag).Hidden();
  program.AddCommand("list", "Lists.");
  EXPECT_EQ(ManPage(program.Describe(), "tool 1", "2026-01-02"),
            ".TH TOOL 1 \"2026-01-02\" \"tool 1\" \"User Commands\"\n"
            ".SH NAME\n"
            "tool \\- paints walls\n"
            ".SH SYNOPSIS\n"
            "\\fBtool\\fR [OPTIONS] \\fICOMMAND\\fR\n"
            ".SH DESCRIPTION\n"
            "Paints walls. And more.\n"
            ".PP\n"
            "Example:\n"
            ".PP\n"
            ".nf\n"
            "  tool paint\n"
            ".fi\n"
            ".SH OPTIONS\n"
            ".TP\n"
            "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
            "Print this help message and exit\n"
            ".SH COMMANDS\n"
            ".SS tool paint\n"
            "\\fBtool paint\\fR [OPTIONS] \\fIWALL\\fR\n"
            ".PP\n"
            "Paints.\n"
            ".TP\n"
            "\\fIWALL\\fR\n"
            "which one (required)\n"
            ".TP\n"
            "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
            "Print this help message and exit\n"
            ".TP\n"
            "\\fB\\-c\\fR, \\fB\\-\\-color\\fR \\fIred\\fR\n"
            "the color\n"
            ".SS tool list\n"
            "\\fBtool list\\fR [OPTIONS]\n"
            ".PP\n"
            "Lists.\n"
            ".TP\n"
            "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
            "Print this help message and exit\n");
}

}  // namespace
}  // namespace tributary
