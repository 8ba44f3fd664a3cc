// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/evaluation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EvaluationRecord After(int64_t step, double value,
                       const std::string& set = "test") {
  return {.step = step,
          .epoch = 2,
          .samples = 10,
          .metrics = {{"accuracy", value}},
          .set = set};
}

class EvaluationFileTest : public testing::TemporaryFolderTest {
 protected:
  std::vector<EvaluationRecord> ReadBack() {
    return EvaluationFile(folder()).Read(&bad_).value();
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    for (const EvaluationRecord& record : ReadBack()) {
      steps.push_back(record.step);
    }
    return steps;
  }
  BadLines bad_;
};

TEST_F(EvaluationFileTest, ASuccessorReadsWhatWasSaved) {
  EXPECT_THAT(Steps(), IsEmpty()) << "there is no file";
  EvaluationFile file(folder());
  ASSERT_TRUE(file.Save({After(1, 0.1), After(1, 0.2, "validation")}).ok());
  ASSERT_TRUE(file.Save({}).ok());
  ASSERT_TRUE(
      file.Save({After(2, std::numeric_limits<double>::infinity())}).ok());
  const std::vector<EvaluationRecord> read = ReadBack();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].step, 1);
  EXPECT_EQ(read[0].epoch, 2);
  EXPECT_EQ(read[0].samples, 10u);
  EXPECT_EQ(read[0].set, "test");
  EXPECT_EQ(read[0].metrics.at("accuracy"), 0.1);
  EXPECT_EQ(read[1].set, "validation");
  EXPECT_TRUE(std::isnan(read[2].metrics.at("accuracy")));
  EXPECT_EQ(Read("evaluations.jsonl").substr(0, 73),
            "{\"set\":\"test\",\"step\":1,\"epoch\":2,\"samples\":10,"
            "\"metrics\":{\"accuracy\":0.1}}");
}

TEST_F(EvaluationFileTest, DamagedLinesAreLeftOutAndCounted) {
  ASSERT_TRUE(EvaluationFile(folder())
                  .Save({After(1, 1), After(2, 1), After(3, 1)})
                  .ok());
  const std::string lines = Read("evaluations.jsonl");
  std::string damaged = lines;
  damaged[lines.find('\n') + 1] = '(';
  Write("evaluations.jsonl", damaged + "{\"set\":\"te");
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
  EXPECT_EQ(bad_.count, 1);
  EXPECT_EQ(Read("evaluations.jsonl"), damaged) << "the torn end is cut off";
  Write("evaluations.jsonl", lines + lines);  // steps do not go back
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3));
  EXPECT_EQ(bad_.count, 3);
  for (const char* line :
       {"{}", "[]", "{\"set\":1,\"step\":4}", "",
        "{\"set\":\"test\",\"step\":4,\"epoch\":1,\"samples\":-1,"
        "\"metrics\":{}}"}) {
    Write("evaluations.jsonl", lines + line + "\n");
    EXPECT_THAT(Steps(), ElementsAre(1, 2, 3)) << line;
    EXPECT_EQ(bad_.count, 1) << line;
  }
}

TEST_F(EvaluationFileTest, OnesThatCouldNotBeWrittenAreWrittenLater) {
  EvaluationFile file(folder() + "/later");
  EXPECT_FALSE(file.Save({After(1, 1)}).ok()) << "there is no such folder";
  std::filesystem::create_directory(folder() + "/later");
  ASSERT_TRUE(file.Save({}).ok());
  BadLines bad;
  EXPECT_EQ(EvaluationFile(folder() + "/later").Read(&bad)->size(), 1u);
}

}  // namespace
}  // namespace tributary
