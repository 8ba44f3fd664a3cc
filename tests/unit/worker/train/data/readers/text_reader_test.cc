// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/text_reader.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/dataset.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<RawData> ReadTokens(const std::string& bytes,
                                   const TextOptions& options,
                                   Vocabulary* vocabulary) {
  return ReadText(InputFiles::OverBytes("t.txt", bytes), options, vocabulary);
}

absl::StatusOr<RawData> ReadTokens(const std::string& bytes,
                                   const TextOptions& options) {
  Vocabulary vocabulary;
  return ReadTokens(bytes, options, &vocabulary);
}

// The rows of a text as the model gets them: inputs, then targets.
std::vector<std::vector<int64_t>> Samples(RawData data) {
  const Dataset set(std::move(data), Normalization());
  std::vector<std::vector<int64_t>> samples;
  for (int64_t row = 0; row < set.rows(); ++row) {
    Batch batch;
    set.Gather({row}, &batch);
    std::vector<int64_t> sample(batch.features.data(),
                                batch.features.data() + batch.features.size());
    sample.insert(sample.end(), batch.labels.begin(), batch.labels.end());
    samples.push_back(sample);
  }
  return samples;
}

using Rows = std::vector<std::vector<int64_t>>;

TEST(TextReaderTest, TargetsAreTheTokensOneFurther) {
  // Sorted: a 0, b 1, c 2.
  const auto data = ReadTokens("cabca", {.length = 2, .stride = 2});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_tokens, 3);
  EXPECT_EQ(data->feature_shape, Shape({2}));
  EXPECT_EQ(Samples(*data), (Rows{{2, 0, 0, 1}, {1, 2, 2, 0}}));
}

TEST(TextReaderTest, AStrideOfOneTakesEveryWindow) {
  const auto data = ReadTokens("abcd", {.length = 2, .stride = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Samples(*data), (Rows{{0, 1, 1, 2}, {1, 2, 2, 3}}));
}

TEST(TextReaderTest, CharactersAreCodePointsAndBytesAreBytes) {
  const std::string text = "\xC3\xA9z\xF0\x9F\x98\x80";  // é z and a face
  const auto characters = ReadTokens(text, {.length = 2, .stride = 1});
  ASSERT_TRUE(characters.ok()) << characters.status();
  EXPECT_EQ(Samples(*characters), (Rows{{1, 0, 0, 2}}));
  const auto bytes =
      ReadTokens(text, {.bytes = true, .length = 6, .stride = 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->num_tokens, 7);
}

TEST(TextReaderTest, TheTestTextIsReadWithTheTrainingsTokensOfTheWholeFile) {
  Vocabulary vocabulary;
  // The part is "ab", but c and d count.
  const auto train = ReadTokens(
      "abcd", {.length = 1, .stride = 1, .begin = 0, .end = 0.5}, &vocabulary);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->num_tokens, 4);
  EXPECT_EQ(train->rows, 1);
  const auto test = ReadTokens("db", {.length = 1, .stride = 1}, &vocabulary);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(Samples(*test), (Rows{{3, 1}}));
  EXPECT_THAT(ReadTokens("ab\xC3\xA9", {.length = 1, .stride = 1}, &vocabulary),
              StatusIs(kInvalid,
                       "t.txt: token 2 is U+00E9, which the training text does "
                       "not have"));
}

TEST(TextReaderTest, PartsMeetWithoutSharingATarget) {
  Vocabulary vocabulary;
  const auto head = ReadTokens(
      "0123456789", {.length = 2, .stride = 2, .end = 0.7}, &vocabulary);
  const auto tail = ReadTokens(
      "0123456789", {.length = 2, .stride = 2, .begin = 0.7}, &vocabulary);
  ASSERT_TRUE(head.ok() && tail.ok());
  EXPECT_EQ(Samples(*head).back(), (std::vector<int64_t>{4, 5, 5, 6}));
  EXPECT_EQ(Samples(*tail), (Rows{{7, 8, 8, 9}}));
}

TEST(TextReaderTest, RowsCountSamplesOfThePart) {
  const auto data =
      ReadTokens("abcdefgh", {.length = 2, .stride = 2, .range = {1, 1}});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Samples(*data), (Rows{{2, 3, 3, 4}}));
  EXPECT_THAT(
      ReadTokens("abcdefgh", {.length = 2, .stride = 2, .range = {1, 3}}),
      StatusIs(kInvalid,
               "wanted 3 rows from row 1 on, but there are "
               "3"));
}

TEST(TextReaderTest, AByteOrderMarkIsNoCharacter) {
  const auto data = ReadTokens(
      "\xEF\xBB\xBF"
      "ab",
      {.length = 1, .stride = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_tokens, 2);
  EXPECT_EQ(Samples(*data), (Rows{{0, 1}}));
  // Within the text the mark is a character, and in bytes it is three bytes.
  const auto within = ReadTokens("a\xEF\xBB\xBF", {.length = 1, .stride = 1});
  ASSERT_TRUE(within.ok()) << within.status();
  EXPECT_EQ(within->num_tokens, 2);
  const auto bytes = ReadTokens(
      "\xEF\xBB\xBF"
      "ab",
      {.bytes = true, .length = 1, .stride = 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->num_tokens, 5);
  EXPECT_THAT(ReadTokens(std::string("\xFF\xFE"
                                     "a\0b\0",
                                     6),
                         {.length = 1, .stride = 1}),
              StatusIs(kInvalid,
                       "t.txt: wanted text in UTF-8, plain or packed by gzip, "
                       "but this is UTF-16 text; convert it, as in: iconv -f "
                       "UTF-16 -t UTF-8 < t.txt > new-t.txt"));
}

TEST(TextReaderTest, PackedDataAndOtherEncodingsAreNoText) {
  for (const bool bytes : {false, true}) {
    EXPECT_THAT(ReadTokens("BZh91AY&SY\x01\x02 and more",
                           {.bytes = bytes, .length = 1, .stride = 1}),
                StatusIs(kInvalid, "this is bzip2 data; convert it, as in: "));
  }
  const std::string wide("a\0b\0c\0", 6);
  EXPECT_THAT(ReadTokens(wide, {.length = 1, .stride = 1}),
              StatusIs(kInvalid, "iconv -f UTF-16LE"));
  std::string cyrillic;  // its first bytes are no zeros
  for (int i = 0; i < 20; ++i) {
    cyrillic += std::string("\x1F\x04\x40\x04\x38\x04 \0", 8);
  }
  EXPECT_THAT(ReadTokens(cyrillic, {.length = 1, .stride = 1}),
              StatusIs(kInvalid, "iconv -f UTF-16LE"));
  for (const auto& [text, bytes] :
       {std::pair(wide, true),
        std::pair(std::string("a\0b\0cd\0e\0", 9), false),
        std::pair<std::string, bool>("{\"a\": 1}", false),
        std::pair<std::string, bool>("<html>", false)}) {
    const auto read =
        ReadTokens(text, {.bytes = bytes, .length = 1, .stride = 1});
    EXPECT_TRUE(read.ok()) << read.status();
  }
}

TEST(TextReaderTest, WhatIsNoUtf8IsAnErrorWithItsOffset) {
  const TextOptions options{.length = 1, .stride = 1};
  for (const std::string bad :
       {"ab\xFF", "ab\x80", "ab\xC0\xAF", "ab\xC3z", "ab\xED\xA0\x80",
        "ab\xE0\x80\x80", "ab\xF4\x90\x80\x80"}) {
    EXPECT_THAT(ReadTokens(bad + "cd", options),
                StatusIs(kInvalid, "is not UTF-8 here"))
        << bad;
  }
  EXPECT_THAT(ReadTokens("ab\xFF", options),
              StatusIs(kInvalid,
                       "t.txt: offset 2: byte ff is not UTF-8 here; "
                       "for such a file write tokens: bytes"));
  EXPECT_THAT(ReadTokens("ab\xC3", options),
              StatusIs(kInvalid, "the file ends within a character"));
}

TEST(TextReaderTest, ATextTooShortForASampleIsAnError) {
  EXPECT_THAT(ReadTokens("abc", {.length = 3, .stride = 3}),
              StatusIs(kInvalid,
                       "t.txt: wanted at least 4 tokens for a sample "
                       "of 3 and the next, got 3"));
  EXPECT_THAT(ReadTokens("", {.length = 1, .stride = 1}),
              StatusIs(kInvalid, "got 0"));
}

TEST(TextReaderTest, AModelForFewerTokensIsRefused) {
  const auto data = ReadTokens("abc", {.length = 1, .stride = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  const Dataset set(*data, Normalization());
  EXPECT_TRUE(set.CheckTokens(3).ok());
  EXPECT_TRUE(set.CheckClasses(3).ok());
  EXPECT_THAT(set.CheckTokens(2),
              StatusIs(kInvalid,
                       "t.txt: the text has 3 different tokens, but "
                       "the model's embedding is for 2"));
  EXPECT_THAT(set.CheckClasses(2),
              StatusIs(kInvalid, "the model's outputs are for 2"));
}

TEST(TextReaderTest, SeveralFilesAreOneText) {
  const InputFiles files(
      {WriteFile("part_1", "ab"), WriteFile("part_2", "cad")});
  Vocabulary parts, whole;
  const TextOptions options{.length = 2, .stride = 1};
  const auto joined = ReadText(files, options, &parts);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const auto alone = ReadTokens("abcad", options, &whole);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(parts.tokens, whole.tokens);
  EXPECT_EQ(joined->rows, 3);
  EXPECT_EQ(joined->tokens, alone->tokens);
}

}  // namespace
}  // namespace tributary
