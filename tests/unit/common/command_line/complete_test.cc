// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/command_line/command_line.h"
#include "common/command_line/completion_script.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

// "tool paint WALL --color red|green --set KEY=VALUE --quick", "tool run
// PROGRAM...", "tool store list DIR".
class CompleteTest : public ::testing::Test {
 protected:
  CompleteTest() {
    CommandLine paint = program_.AddCommand("paint", "Paints\na wall.");
    paint.AddOption("WALL", &text_).OneOf({"left", "right"});
    paint.AddOption("-c,--color", &text_, "the\ncolor").TypeName("red|green");
    paint.AddOption("--device", &text_).OneOf({"cpu", "cuda"});
    paint.AddOption("--width", &width_).Range(1, 9);
    paint.AddOption("--set", &text_).TypeName("KEY=VALUE");
    paint.AddFlag("--quick", &quick_);
    paint.AddFlag("--secret", &quick_).Hidden();
    CommandLine run = program_.AddCommand("run", "Runs.");
    run.SetProgramAction([](const Words&) { return 0; });
    run.AddFlag("--once", &quick_);
    CommandLine store = program_.AddCommand("store", "Stores.");
    store.AddCommand("list", "Lists.").AddOption("DIR", &text_);
  }

  Words Next(const Words& words) {
    const ValueSources sources = {{"KEY=VALUE", [](const std::string& begun) {
                                     return Words{"height=", begun + "!"};
                                   }}};
    Words next;
    for (const Completion& completion :
         Complete(program_.Describe(), words, sources)) {
      next.push_back(completion.word);
    }
    return next;
  }

  CommandLine program_{"A tool.", "tool"};
  std::string text_;
  int width_ = 0;
  bool quick_ = false;
};

TEST_F(CompleteTest, CommandsComeFirst) {
  EXPECT_THAT(Next({""}), ElementsAre("paint", "run", "store"));
  EXPECT_THAT(Next({"pa"}), ElementsAre("paint"));
  EXPECT_THAT(Next({"store", ""}), ElementsAre("list"));
}

TEST_F(CompleteTest, OptionsAreThoseOfTheCommandAndNoHiddenOnes) {
  EXPECT_THAT(Next({"paint", "-"}), ElementsAre("--help", "--color", "--device",
                                                "--width", "--set", "--quick"));
  EXPECT_THAT(Next({"paint", "wall", "--q"}), ElementsAre("--quick"));
  EXPECT_THAT(Next({"-"}), ElementsAre("--help"));
}

TEST_F(CompleteTest, DescriptionsHaveOneLine) {
  const auto options = Complete(program_.Describe(), {"paint", "--co"}, {});
  ASSERT_EQ(options.size(), 1u);
  EXPECT_EQ(options[0].description, "the color");
  const auto commands = Complete(program_.Describe(), {"pa"}, {});
  EXPECT_EQ(CompletionLines(commands), "paint\tPaints a wall.\n");
}

TEST_F(CompleteTest, AnOptionIsFollowedByItsValues) {
  EXPECT_THAT(Next({"paint", "--color", ""}), ElementsAre("red", "green"));
  EXPECT_THAT(Next({"paint", "-c", "g"}), ElementsAre("green"));
  EXPECT_THAT(Next({"paint", "--device", "cu"}), ElementsAre("cuda"));
  EXPECT_THAT(Next({"paint", "--device=c"}),
              ElementsAre("--device=cpu", "--device=cuda"));
  EXPECT_THAT(Next({"paint", "--set", "h"}), ElementsAre("height=", "h!"));
  EXPECT_THAT(Next({"paint", "--set=h"}),
              ElementsAre("--set=height=", "--set=h!"));
}

TEST_F(CompleteTest, APositionalArgumentIsFoundBehindOptions) {
  EXPECT_THAT(Next({"paint", ""}), ElementsAre("left", "right"));
  EXPECT_THAT(Next({"paint", "--quick", "l"}), ElementsAre("left"));
  EXPECT_THAT(Next({"paint", "--color", "red", "r"}), ElementsAre("right"));
  EXPECT_THAT(Next({"paint", "left", "r"}), IsEmpty());
}

TEST_F(CompleteTest, NothingIsSaidWhereAFileOrANumberIsWanted) {
  EXPECT_THAT(Next({"store", "list", ""}), IsEmpty());
  EXPECT_THAT(Next({"paint", "--width", ""}), IsEmpty());
  EXPECT_THAT(Next({"paint", "--unknown=a"}), IsEmpty());
}

TEST_F(CompleteTest, WhatFollowsAProgramIsNotOurs) {
  EXPECT_THAT(Next({"run", "--o"}), ElementsAre("--once"));
  EXPECT_THAT(Next({"run", "train.py", "--o"}), IsEmpty());
  EXPECT_THAT(Next({"run", "--", "--o"}), IsEmpty());
}

TEST(ListedValuesTest, AreReadFromATypeName) {
  EXPECT_THAT(ListedValues("TEXT:{auto,cpu}"), ElementsAre("auto", "cpu"));
  EXPECT_THAT(ListedValues("debug|info"), ElementsAre("debug", "info"));
  EXPECT_THAT(ListedValues("HOST:PORT"), IsEmpty());
  EXPECT_THAT(ListedValues("HOST:PORT|none"), IsEmpty());
  EXPECT_THAT(ListedValues("INT:INT in [1 - 256]"), IsEmpty());
}

TEST(CompletionScriptTest, NamesTheProgram) {
  for (const char* shell : kShells) {
    const std::string script = CompletionScript(shell, "tool-box");
    EXPECT_THAT(script, HasSubstr("_tool_box")) << shell;
    EXPECT_THAT(script, HasSubstr(kCompleteWord)) << shell;
    EXPECT_THAT(script, ::testing::Not(HasSubstr("PROGRAM"))) << shell;
  }
}

}  // namespace
}  // namespace tributary
