// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;

ParseResult ParseWords(CommandLine& program, std::vector<const char*> words) {
  words.insert(words.begin(), "tool");
  return program.Parse(static_cast<int>(words.size()), words.data());
}

// The error of a wrong command line; empty if it is right.
std::string ErrorOf(CommandLine& program, std::vector<const char*> words) {
  return ParseWords(program, std::move(words)).text;
}

TEST(CommandLineTest, EveryTypeOfValueIsRead) {
  CommandLine program("A tool.", "tool");
  int count = 0;
  double rate = 0;
  uint64_t seed = 0;
  std::optional<uint32_t> index;
  std::vector<int> sizes;
  std::vector<std::string> names;
  bool quick = false;
  program.AddOption("--count", &count);
  program.AddOption("--rate", &rate);
  program.AddOption("--seed", &seed);
  program.AddOption("--index", &index);
  program.AddOption("--sizes", &sizes).Separator(',').OnePerFlag();
  program.AddOption("NAMES", &names);
  program.AddFlag("--quick", &quick);
  EXPECT_EQ(ErrorOf(program, {"--count", "-3", "--rate", "0.5", "--seed", "7",
                              "--sizes", "1,2", "--sizes", "3", "a", "b",
                              "--quick", "--index", "4"}),
            "");
  EXPECT_EQ(count, -3);
  EXPECT_EQ(rate, 0.5);
  EXPECT_EQ(seed, 7u);
  EXPECT_EQ(index, 4u);
  EXPECT_THAT(sizes, ElementsAre(1, 2, 3));
  EXPECT_THAT(names, ElementsAre("a", "b"));
  EXPECT_TRUE(quick);
}

TEST(CommandLineTest, TheActionIsThatOfTheCommand) {
  CommandLine program("A tool.", "tool");
  program.AddCommand("paint", "Paints.").SetAction([] { return 3; });
  CommandLine store = program.AddCommand("store", "Stores.");
  store.AddCommand("list", "Lists.").SetAction([] { return 4; });
  EXPECT_EQ(ErrorOf(program, {}), "");
  EXPECT_FALSE(program.action());
  EXPECT_EQ(ErrorOf(program, {"store", "list"}), "");
  ASSERT_TRUE(program.action());
  EXPECT_EQ(program.action()(), 4);
  EXPECT_EQ(program.ParsedName(), "tool store list");
  EXPECT_EQ(program.Parsed().name(), "list");
}

TEST(CommandLineTest, AProgramGetsTheWordsThatFollowIt) {
  CommandLine program("A tool.", "tool");
  CommandLine run = program.AddCommand("run", "Runs.");
  bool once = false;
  run.AddFlag("--once", &once);
  std::vector<std::string> got;
  run.SetProgramAction([&](const std::vector<std::string>& words) {
    got = words;
    return 0;
  });
  const auto given = run.given_words();
  EXPECT_EQ(ErrorOf(program, {"run", "--once", "train.py", "--once", "x"}), "");
  EXPECT_THAT(given({}), ElementsAre("--once"));
  EXPECT_EQ(program.action()(), 0);
  EXPECT_TRUE(once);
  EXPECT_THAT(got, ElementsAre("train.py", "--once", "x"));
}

TEST(CommandLineTest, AnOptionalValueMayBeMissingOrWrong) {
  const auto read = [](std::vector<const char*> words) {
    CommandLine program("A tool.", "tool");
    std::string got = "not given";
    program.AddOptionalValue(
        "--watch",
        [&got](const std::string& text) {
          got = text;
          return std::string(text == "abc" ? "wanted seconds" : "");
        },
        "again and again");
    const std::string error = ErrorOf(program, std::move(words));
    return error.empty() ? got : error;
  };
  EXPECT_EQ(read({}), "not given");
  EXPECT_EQ(read({"--watch"}), "");
  EXPECT_EQ(read({"--watch", "2"}), "2");
  EXPECT_EQ(read({"--watch", "abc"}), "--watch: wanted seconds");
}

TEST(CommandLineTest, TheGivenWordsGiveTheSameOptionsAgain) {
  CommandLine program("A tool.", "tool");
  CommandLine go = program.AddCommand("go", "goes");
  std::string job, run, listen, unused;
  std::vector<std::string> sets, hosts;
  bool fast = false, slow = false;
  go.AddOption("JOB", &job);
  go.AddOption("--run-dir", &run);
  go.AddOption("--listen", &listen);
  go.AddOption("--unused", &unused);
  go.AddOption("--set", &sets).OnePerFlag();
  go.AddOption("--hosts", &hosts).Separator(',').OnePerFlag();
  go.AddFlag("--fast", &fast);
  go.AddFlag("--slow", &slow);
  const auto given = go.given_words();
  EXPECT_EQ(ErrorOf(program,
                    {"go", "--set", "a=1", "job.yaml", "--fast", "--run-dir=x",
                     "--listen=[::1]:0", "--set", "b=2", "--hosts", "h1,h2"}),
            "");
  EXPECT_THAT(given({"--run-dir"}),
              ElementsAre("--set", "a=1", "--fast", "--listen=[::1]:0", "--set",
                          "b=2", "--hosts", "h1,h2"));
}

TEST(CommandLineTest, AnEmptyValueDoesNotTakeTheNextWord) {
  const auto parse = [](std::vector<const char*> words) {
    CommandLine program("does something", "program");
    std::string first, second;
    CommandLine command = program.AddCommand("go", "goes");
    command.AddOption("--first", &first);
    command.AddOption("--second", &second);
    words.insert(words.begin(), {"program", "go"});
    return program.Parse(static_cast<int>(words.size()), words.data()).text;
  };
  EXPECT_EQ(parse({"--first=", "--second"}),
            "--first= wants a value, got none");
  EXPECT_EQ(parse({"--first=", "word"}), "--first= wants a value, got none");
  EXPECT_EQ(parse({"--first=", "--second", "left over"}),
            "--first= wants a value, got none");
  EXPECT_NE(parse({"--first="}), "");
  EXPECT_EQ(parse({"--first=a=", "--second", "b"}), "");
}

TEST(CommandLineTest, AnOptionIsGivenOnceAndNotEmpty) {
  const auto read = [](std::vector<const char*> words) {
    CommandLine program("A tool.", "tool");
    std::string folder, prompt;
    std::vector<std::string> hosts;
    int servers = 0;
    program.AddOption("--run-dir", &folder);
    program.AddOption("--hosts", &hosts);
    program.AddOption("--prompt", &prompt).MayBeEmpty();
    program.AddOption("--servers", &servers);
    return ErrorOf(program, std::move(words));
  };
  EXPECT_EQ(read({"--servers", "1", "--servers", "2"}),
            "--servers is given 2 times, and may be given once");
  EXPECT_EQ(read({"--run-dir", ""}),
            "--run-dir wants a value, got an empty one");
  EXPECT_EQ(read({"--hosts", "a", ""}),
            "--hosts wants a value, got an empty one");
  EXPECT_EQ(read({"--run-dir", "a", "--servers", "1", "--prompt", ""}), "");
}

TEST(CommandLineTest, AnOptionMayNeedAnother) {
  const auto read = [](std::vector<const char*> words) {
    CommandLine program("A tool.", "tool");
    std::string hosts, servers, launch;
    const Option option = program.AddOption("--hosts", &hosts);
    program.AddOption("--servers", &servers).Needs(option);
    program.AddOption("--launch", &launch)
        .Needs(option, [](const std::string& text) { return text != "slurm"; });
    return ErrorOf(program, std::move(words));
  };
  EXPECT_EQ(read({"--servers", "a"}), "--servers requires --hosts");
  EXPECT_EQ(read({"--launch", "ssh"}), "--launch requires --hosts");
  EXPECT_EQ(read({"--launch", "slurm"}), "");
  EXPECT_EQ(read({"--launch", "ssh", "--servers", "a", "--hosts", "b"}), "");
}

TEST(CommandLineTest, TheFinalCheckSeesAllOptions) {
  const auto read = [](std::vector<const char*> words) {
    CommandLine program("A tool.", "tool");
    std::string a, b;
    program.AddOption("--a", &a);
    program.AddOption("--b", &b);
    program.SetFinalCheck([&] {
      return std::string(a.empty() && b.empty() ? "--a is required" : "");
    });
    return ErrorOf(program, std::move(words));
  };
  EXPECT_EQ(read({}), "--a is required");
  EXPECT_EQ(read({"--b", "1"}), "");
}

}  // namespace
}  // namespace tributary
