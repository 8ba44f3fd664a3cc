// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/sources/source_reader.h"

#include <gtest/gtest.h>

#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

// A source of the kind with this key.
v1::DataSource SourceOf(const std::string& key) {
  v1::DataSource source;
  source.GetReflection()->MutableMessage(
      &source, v1::DataSource::descriptor()->FindFieldByName(key));
  return source;
}

TEST(SourceReaderTest, EveryKindHasItsRulesAndItsReader) {
  ASSERT_GE(SourceKeys().size(), 5u);
  for (const std::string& key : SourceKeys()) {
    v1::DataSource source = SourceOf(key);
    EXPECT_EQ(SourceKey(source), key);
    const SourceReader* const reader = ReaderOf(source);
    ASSERT_NE(reader, nullptr) << key;
    EXPECT_NE(reader->read, nullptr) << key;
    const SourceKind* const kind = KindOf(source);
    ASSERT_NE(kind, nullptr) << key;
    EXPECT_EQ(reader->store == nullptr, kind->FilesOf(&source).empty())
        << key << ": rows in files can stay on disk, generated rows cannot";
  }
}

TEST(SourceReaderTest, ASourceWithoutAKindHasNeither) {
  EXPECT_EQ(KindOf({}), nullptr);
  EXPECT_EQ(ReaderOf({}), nullptr);
  EXPECT_EQ(SourceKey({}), "");
  EXPECT_EQ(NormalizeOf({}), nullptr);
  EXPECT_EQ(RowsOf({}).rows, 0);
}

TEST(SourceReaderTest, FieldsOfOneNameAreReadFromEveryKind) {
  v1::DataSource text = SourceOf("text");
  text.mutable_text()->set_first_row(3);
  text.mutable_text()->set_rows(5);
  EXPECT_EQ(RowsOf(text).first_row, 3);
  EXPECT_EQ(RowsOf(text).rows, 5);

  v1::NormalizeSpec spec;
  spec.add_mean(0.5);
  SetNormalize(&spec, &text);
  EXPECT_EQ(NormalizeOf(text), nullptr) << "a text has no numbers";

  for (const std::string key : {"idx", "csv", "npy", "synthetic"}) {
    v1::DataSource source = SourceOf(key);
    EXPECT_EQ(NormalizeOf(source), nullptr) << key;
    SetNormalize(&spec, &source);
    ASSERT_NE(NormalizeOf(source), nullptr) << key;
    EXPECT_EQ(NormalizeOf(source)->mean(0), 0.5) << key;
    SetNormalize(nullptr, &source);
    EXPECT_EQ(NormalizeOf(source), nullptr) << key;
  }
}

}  // namespace
}  // namespace tributary
