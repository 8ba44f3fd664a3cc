// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/parse_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/command_line/completion_script.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

enum class Color { kRed, kGreen };

// "tool paint FILE --color red|green --width N --coats X", "tool list".
class ParseCommandLineTest : public ::testing::Test {
 protected:
  ParseCommandLineTest() {
    CommandLine paint = program_.AddCommand("paint", "Paints.");
    paint.AddOption("FILE", &file_);
    paint.AddChoice<Color>("--color", &color_,
                           {{"red", Color::kRed}, {"green", Color::kGreen}},
                           "the color");
    paint.AddOption("--width", &width_).Range(1, 9);
    paint.AddOption("--coats", &coats_).Positive();
    program_.AddCommand("list", "Lists.");
  }

  // The error of a wrong command line; empty if it is right.
  std::string ErrorOf(std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    const ParseResult result =
        program_.Parse(static_cast<int>(words.size()), words.data());
    return result.kind == ParseResult::Kind::kRead
               ? ""
               : CommandLineError(program_, result);
  }

  CommandLine program_{"A tool.", "tool", "tool 1"};
  std::string file_;
  Color color_ = Color::kRed;
  int width_ = 0;
  double coats_ = 1;
};

TEST_F(ParseCommandLineTest, ARightCommandLineIsRead) {
  EXPECT_EQ(ErrorOf({"paint", "wall", "--color", "green", "--width", "3"}), "");
  EXPECT_EQ(file_, "wall");
  EXPECT_EQ(color_, Color::kGreen);
  EXPECT_EQ(width_, 3);
}

TEST_F(ParseCommandLineTest, AValueOutsideTheRangeIsQuoted) {
  for (const char* value : {"10", "two"}) {
    EXPECT_EQ(ErrorOf({"paint", "--width", value}),
              std::string("--width wants a number from 1 to 9, got \"") +
                  value + "\" (try tool paint --help)");
  }
  EXPECT_THAT(ErrorOf({"paint", "--coats", "0"}),
              HasSubstr("--coats wants a number above 0, got \"0\" ("));
}

TEST_F(ParseCommandLineTest, AWrongNameGetsTheNearestOne) {
  EXPECT_EQ(ErrorOf({"piant", "wall"}),
            "there is no command \"piant\"; did you mean paint? (try tool "
            "--help)");
  EXPECT_EQ(ErrorOf({"paint", "--widht", "3"}),
            "there is no option --widht; did you mean --width? (try tool paint "
            "--help)");
  EXPECT_EQ(ErrorOf({"paint", "--widht=3"}),
            "there is no option --widht; did you mean --width? (try tool paint "
            "--help)");
}

TEST_F(ParseCommandLineTest, ANameFarFromAllGetsNone) {
  EXPECT_EQ(ErrorOf({"paint", "--transparency"}),
            "there is no option --transparency (try tool paint --help)");
  EXPECT_EQ(ErrorOf({"paint", "wall", "door"}),
            "the argument \"door\" is one too many (try tool paint --help)");
}

TEST_F(ParseCommandLineTest, HelpListsTheNamesOfAChoice) {
  const char* const words[] = {"tool", "paint", "--help"};
  const ParseResult help = program_.Parse(3, words);
  EXPECT_EQ(help.kind, ParseResult::Kind::kPage);
  EXPECT_THAT(help.text, ::testing::HasSubstr("--color green|red"));
  EXPECT_THAT(ErrorOf({"paint", "--color", "blue"}),
              ::testing::HasSubstr("--color: "));
}

// A program's required options do not stand in the way.
TEST_F(ParseCommandLineTest, APageAScriptAndCompletionsEndWith0) {
  std::string needed;
  program_.AddOption("--needed", &needed).Required();
  const auto output = [this](std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(ParseCommandLine(program_, static_cast<int>(words.size()),
                               const_cast<char**>(words.data())),
              0);
    return ::testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(output({"--man-page"}), ::testing::StartsWith(".TH TOOL 1 \"20"));
  EXPECT_THAT(output({"--completion", "bash"}),
              ::testing::HasSubstr("complete -o default -F _tool tool\n"));
  EXPECT_EQ(output({kCompleteWord, "paint", "--color", ""}), "green\nred\n");
  ::testing::internal::CaptureStderr();
  std::vector<const char*> wrong = {"tool", "--completion", "csh"};
  EXPECT_EQ(ParseCommandLine(program_, 3, const_cast<char**>(wrong.data())), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("--completion"));
}

TEST_F(ParseCommandLineTest, ErrorsEndWith2AndHelpWith0) {
  std::vector<const char*> wrong = {"tool", "piant"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ParseCommandLine(program_, 2, const_cast<char**>(wrong.data())), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::StartsWith("tool: there is no command \"piant\""));
  std::vector<const char*> version = {"tool", "--version"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(ParseCommandLine(program_, 2, const_cast<char**>(version.data())),
            0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "tool 1\n");
  std::vector<const char*> right = {"tool", "list"};
  EXPECT_EQ(ParseCommandLine(program_, 2, const_cast<char**>(right.data())),
            std::nullopt);
}

}  // namespace
}  // namespace tributary
