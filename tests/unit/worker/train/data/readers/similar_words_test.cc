// SPDX-License-Identifier: Apache-2.0
// Words of a table that look like one word.
#include "worker/train/data/readers/csv/similar_words.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A label column "y" and a categorical column "c".
std::vector<std::string> WarningsOf(const std::string& text,
                                    const std::string& more = "") {
  const auto data = OpenData(
      Spec(
          "train { csv { path: '" + WriteFile("words.csv", text) +
          "' header: true delimiter: ',' columns { label: 'y' categorical: 'c' "
          "} " +
          more + "} }"),
      TargetKind::kClass);
  TRIBUTARY_EXPECT_OK(data);
  return data.ok() ? data->warnings : std::vector<std::string>();
}

TEST(SimilarWordsTest, ClassesThatDifferByBlanksOrCaseAreNamed) {
  const std::string text = "c,y\nred,a\nred, a\nred,b\nred,B\nred,b \n";
  EXPECT_THAT(
      WarningsOf(text),
      ElementsAre(EndsWith(
          "words.csv: column 1 (\"y\"): \" a\" and \"a\" are two classes, "
          "and so are 2 more; if they mean the same, write them alike in the "
          "file, with the same case and no blanks around them")));
  EXPECT_THAT(WarningsOf(text,
                         "classes: 'a' classes: ' a' classes: 'b' "
                         "classes: 'B' classes: 'b ' "),
              IsEmpty());
}

TEST(SimilarWordsTest, CategoriesThatDifferByBlanksOrCaseAreNamed) {
  EXPECT_THAT(WarningsOf("c,y\nred,a\n red,b\n"),
              ElementsAre(HasSubstr("column 0 (\"c\"): \" red\" and \"red\" "
                                    "are two categories; if ")));
  EXPECT_THAT(WarningsOf("c,y\nRed,0\nred,1\n"),
              ElementsAre(HasSubstr("\"Red\" and \"red\" are two ")));
  EXPECT_THAT(WarningsOf("c,y\nred,a\nre d,b\n"), IsEmpty());
}

}  // namespace
}  // namespace tributary
