// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/predict/records.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/predict/inputs/input_rows.h"
#include "worker/train/predict/inputs/known_tokens.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

class TextInputTest : public testing::TemporaryFolderTest {
 protected:
  // The samples of the text with length 3, in batches of two, as letters; the
  // new positions of the last sample after a slash.
  std::vector<std::string> Samples(const std::string& text,
                                   InputOptions options = {}) {
    options.path = Write("text", text);
    const v1::Preprocessing preprocessing = LetterText(3);
    auto input = OpenInput(preprocessing, options);
    if (!input.ok()) return {std::string(input.status().message())};
    std::vector<std::string> samples;
    while (true) {
      const auto data = (*input)->Next(2);
      if (!data.ok()) return {std::string(data.status().message())};
      if (data->rows == 0) return samples;
      for (int64_t row = 0; row < data->rows; ++row) {
        std::string sample;
        const int64_t size = options.labels ? 4 : 3;  // and the last target
        for (int64_t i = 0; i < size; ++i) {
          sample += static_cast<char>(
              'a' + data->tokens[row * data->token_stride + i]);
        }
        samples.push_back(sample);
      }
      const InputRows::Positions last = (*input)->last_positions();
      if (last.end >= 0) {
        samples.back() +=
            "/" + std::to_string(last.begin) + "-" + std::to_string(last.end);
      }
    }
  }
};

TEST_F(TextInputTest, SamplesFollowEachOther) {
  EXPECT_THAT(Samples("abcdea"), ElementsAre("abc", "dea"));
  EXPECT_THAT(Samples("abcdeabcd"), ElementsAre("abc", "dea", "bcd"));
}

TEST_F(TextInputTest, TheLastSampleEndsWithTheText) {
  EXPECT_THAT(Samples("abcd"), ElementsAre("abc", "bcd/2-3"));
  EXPECT_THAT(Samples("abcdeabc"), ElementsAre("abc", "dea", "abc/1-3"));
  // A byte order mark is no character.
  EXPECT_THAT(Samples("\xEF\xBB\xBF"
                      "abcd"),
              ElementsAre("abc", "bcd/2-3"));
}

TEST_F(TextInputTest, AShortTextIsPaddedForACausalModelAlone) {
  EXPECT_THAT(Samples("cd", {.may_pad = true}), ElementsAre("cda/0-2"));
  EXPECT_THAT(Samples("cd"),
              ElementsAre(::testing::HasSubstr("at least 3 tokens, got 2")));
  EXPECT_THAT(Samples("", {.may_pad = true}),
              ElementsAre(::testing::HasSubstr("at least 1 tokens, got 0")));
}

// Samples with targets are those of the training's reader.
TEST_F(TextInputTest, WithTargetsTheyAreTheSamplesOfTheTraining) {
  const std::string text = "abcdeedcbaabcdeabc";
  for (const int64_t stride : {1, 2, 3, 5}) {
    InputOptions options{.labels = true, .stride = stride};
    options.begin = 0.2;
    options.end = 0.9;
    options.range = {.first = 1, .count = 0};
    const std::vector<std::string> samples = Samples(text, options);
    TextOptions training{.length = 3,
                         .stride = stride,
                         .begin = 0.2,
                         .end = 0.9,
                         .range = {.first = 1, .count = 0}};
    Vocabulary vocabulary{.tokens = {'a', 'b', 'c', 'd', 'e'}};
    const auto wanted =
        ReadText(InputFiles::OverBytes("text", text), training, &vocabulary);
    TRIBUTARY_ASSERT_OK(wanted);
    ASSERT_EQ(static_cast<int64_t>(samples.size()), wanted->rows) << stride;
    for (int64_t row = 0; row < wanted->rows; ++row) {
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(samples[row][i], 'a' + wanted->tokens[row * stride + i]);
      }
    }
  }
}

TEST_F(TextInputTest, UnknownTokensAreNamedWithTheirNumber) {
  EXPECT_THAT(Samples("abcxde"),
              ElementsAre(::testing::HasSubstr(
                  "token 3 is 'x', which the training text does not have")));
  EXPECT_THAT(
      Samples("ab\xFF"),
      ElementsAre(::testing::HasSubstr("offset 2: byte ff is not UTF-8")));
}

TEST_F(TextInputTest, CharactersOfEveryLengthReadBack) {
  v1::TextTokens text;
  for (int token : {0x61, 0xE9, 0x20AC, 0x1F600}) text.add_vocabulary(token);
  std::string bytes;
  for (int id = 0; id < 4; ++id) bytes += TokenBytes(text, id);
  EXPECT_EQ(bytes, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  auto file = InputFile::OverBytes("text", bytes);
  ASSERT_TRUE(file.ok());
  KnownTokens reader(*std::move(file), text);
  for (int id : {0, 1, 2, 3, -1}) EXPECT_EQ(reader.Next().value(), id);
}

// A character may lie across two pieces of the file.
TEST_F(TextInputTest, ALongTextIsReadInPieces) {
  v1::TextTokens text;
  text.add_vocabulary(0x20AC);
  std::string bytes;
  constexpr int kCharacters = 100'000;  // of three bytes
  for (int i = 0; i < kCharacters; ++i) bytes += "\xE2\x82\xAC";
  auto file = InputFile::OverBytes("text", bytes);
  ASSERT_TRUE(file.ok());
  KnownTokens reader(*std::move(file), text);
  for (int i = 0; i < kCharacters; ++i) ASSERT_EQ(reader.Next().value(), 0);
  EXPECT_EQ(reader.Next().value(), -1);
}

}  // namespace
}  // namespace tributary
