// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/compare_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;

class CompareDataTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("a.csv", "x,y,class\n1,2,0\n3,4,1\n5,6,0\n");
    WriteJob("a");
  }
  // NAME.yaml trains on NAME.csv.
  void WriteJob(const std::string& name, const std::string& more = "") const {
    Write(name + ".yaml",
          "model: {sequential: [linear: {in: 2, out: 2}]}\n"
          "data:\n  train: {csv: {path: " +
              name + ".csv, columns: {label: class}" + more +
              "}}\n  batch_size: 1\n"
              "training: {steps: 1, loss: cross_entropy, "
              "optimizer: {sgd: {learning_rate: 1}}}\n");
  }
  json Compare(const std::string& csv, const std::string& more = "") {
    Write("b.csv", csv);
    WriteJob("b", more);
    const auto found = CompareDataOfFiles(Path("a.yaml"), Path("b.yaml"));
    EXPECT_TRUE(found.ok()) << found.status();
    return json::parse(found.value_or("null"));
  }
};

TEST_F(CompareDataTest, EqualSamplesDoNotDiffer) {
  EXPECT_EQ(Compare(Read("a.csv")), json::object());
}

TEST_F(CompareDataTest, TheFirstRowAndColumnAreNamed) {
  EXPECT_EQ(Compare("x,y,class\n1,2,0\n3,4.5,0\n9,9,1\n"),
            json::parse(R"({"set": "train", "row": 1, "column": 1,
                            "a": 4.0, "b": 4.5})"));
}

TEST_F(CompareDataTest, ATargetIsColumnMinusOne) {
  EXPECT_EQ(Compare("x,y,class\n1,2,0\n3,4,0\n9,9,1\n"),
            json::parse(R"({"set": "train", "row": 1, "column": -1,
                            "a": 1, "b": 0})"));
}

TEST_F(CompareDataTest, MoreRowsAreToldAfterEqualOnes) {
  EXPECT_EQ(Compare(Read("a.csv") + "7,8,1\n")["what"], "3 and 4 rows");
}

TEST_F(CompareDataTest, OtherWidthsAreTold) {
  EXPECT_EQ(Compare("x,class\n1,0\n3,1\n5,0\n")["what"],
            "samples are [2] and [1]");
}

// One other value changes the mean, and with it every normalized value.
TEST_F(CompareDataTest, NormalizationIsLeftOut) {
  WriteJob("a", ", normalize: {standardize: true}");
  EXPECT_EQ(Compare("x,y,class\n1,2,0\n3,4,1\n5,7,0\n",
                    ", normalize: {standardize: true}")["row"],
            2);
}

TEST_F(CompareDataTest, AFileThatIsGoneIsAnError) {
  WriteJob("b");
  EXPECT_FALSE(CompareDataOfFiles(Path("a.yaml"), Path("b.yaml")).ok());
}

}  // namespace
}  // namespace tributary
