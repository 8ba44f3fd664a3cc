// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

std::string ReadError(const std::string& text) {
  return std::string(ParseJob(text, "job.yaml").status().message());
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostileYamlTest, DeepNestingIsRefused) {
  EXPECT_EQ(ReadError("a: " + Repeat("[", 33)),
            "job.yaml:1: nested deeper than 32 levels");
  EXPECT_THAT(ReadError("a: " + Repeat("[", 100'000)),
              ::testing::StartsWith("job.yaml:1: "));
  EXPECT_THAT(ReadError(Repeat("- ", 100'000)),
              ::testing::StartsWith("job.yaml:1: "));
}

TEST(HostileYamlTest, ATabIsNamed) {
  EXPECT_THAT(
      ReadError("name: a\ntraining:\n\tepochs: 5\n\tloss: mse\n"),
      ::testing::ContainsRegex("^job.yaml:[34]: not valid YAML: .*; the "
                               "line begins with a tab, and YAML wants "
                               "spaces$"));
}

TEST(HostileYamlTest, AnAliasBombDoesNotUnfold) {
  EXPECT_EQ(ReadError("a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]"),
            "job.yaml:1: anchors (&name) are not used in job files; write the "
            "value out");
}

TEST(HostileYamlTest, TooManyValuesAreRefused) {
  EXPECT_EQ(ReadError("a: [" + Repeat("1,", 100'001) + "]"),
            "job.yaml:1: more than 100000 values");
}

TEST(HostileYamlTest, BytesThatAreNoTextAreRefusedAndNothingAborts) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37 % 256);
  EXPECT_THAT(ReadError(bytes), ::testing::StartsWith("job.yaml:"));
  EXPECT_THAT(ReadError(std::string(1000, '\0')),
              ::testing::StartsWith("job.yaml:"));
}

TEST(HostileYamlTest, AnErrorIsOneLineWhateverTheJobSays) {
  const std::string error =
      ReadError("\"a\\nb\\x1b" + Repeat("long", 1000) + "\": 1");
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_LT(error.size(), 250u);
}

TEST(HostileYamlTest, WhatTheParserSaysIsOneLineToo) {
  EXPECT_EQ(ReadError("name: \"\\\n\\\x01\""),
            "job.yaml:2: not valid YAML: unknown escape character: \\001");
}

TEST(HostileYamlTest, AnEndlessNameIsRefused) {
  EXPECT_THAT(ReadError("name: " + std::string(4097, 'x')),
              ::testing::HasSubstr("wants a text of at most 4096 bytes"));
}

}  // namespace
}  // namespace tributary
