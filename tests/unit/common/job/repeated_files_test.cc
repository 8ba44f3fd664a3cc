// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/repeated_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class RepeatedFilesTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) Write(name, "");
  }
  // A field of the source, in protobuf's text format.
  std::string Field(const char* key, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      absl::StrAppend(&text, key, ": '", Path(name), "' ");
    }
    return text;
  }
  static std::vector<std::string> Notes(const std::string& data) {
    v1::DataSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(data, &spec));
    return RepeatedFileNotes(spec);
  }
};

TEST_F(RepeatedFilesTest, EveryListOfEverySourceIsLookedAt) {
  const std::string twice = Field("path", {"b", "a", "b"});
  const auto of = [this](const std::string& list) {
    return StartsWith(list + " names " + Path("b") + " more than once, so");
  };
  EXPECT_THAT(
      Notes("train { csv { " + twice + "} } validation { source { csv { " +
            twice + "} } } test { csv { " + twice + "} }"),
      ElementsAre(of("data.train.csv.path"),
                  of("data.validation.source.csv.path"),
                  of("data.test.csv.path")));
  EXPECT_THAT(Notes("train { text { " + twice + "} }"),
              ElementsAre(of("data.train.text.path")));
  EXPECT_THAT(Notes("train { npy { " + Field("features", {"a", "b"}) +
                    Field("labels", {"b", "b"}) + "} }"),
              ElementsAre(of("data.train.npy.labels")));
  EXPECT_THAT(Notes("train { idx { " + Field("images", {"b", "b"}) +
                    Field("labels", {"a", "c"}) + "} }"),
              ElementsAre(of("data.train.idx.images")));
}

TEST_F(RepeatedFilesTest, SetsMayShareAFile) {
  EXPECT_THAT(Notes("train { csv { " + Field("path", {"a", "b"}) +
                    "} } test { csv { " + Field("path", {"b", "a"}) + "} }"),
              IsEmpty());
  EXPECT_THAT(Notes("train { csv { path: 'gone' path: 'gone' } }"), IsEmpty());
}

TEST_F(RepeatedFilesTest, ALinkIsTheFileThatItLeadsTo) {
  std::filesystem::create_symlink(Path("a"), Path("latest"));
  EXPECT_THAT(
      Notes("train { csv { " +
            Field("path", {"a", "b", "c", "latest", "c", "c", "b"}) + "} }"),
      ElementsAre(StartsWith(
          absl::StrCat("data.train.csv.path names ", Path("a"), " (also as ",
                       Path("latest"), ") and 2 others more than once"))));
}

}  // namespace
}  // namespace tributary
