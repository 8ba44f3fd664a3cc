// SPDX-License-Identifier: Apache-2.0
// Errors in data and models are placed at the line of the job file that they
// are about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/check/check_data.h"

namespace tributary {
namespace {

using ::testing::StartsWith;

constexpr char kTraining[] =
    "  batch_size: 1\n"
    "training: {steps: 1, loss: mse, optimizer: {sgd: {learning_rate: 1}}}\n";

class PlacesTest : public testing::TemporaryFolderTest {
 protected:
  std::string Error(const std::string& job) {
    const auto note = CheckDataOfFile(Write("job.yaml", job + kTraining), {});
    return std::string(note.status().message());
  }
  std::string Line(int line, const std::string& text) {
    return Path("job.yaml") + ":" + std::to_string(line) + ": " + text;
  }
};

TEST_F(PlacesTest, AColumnWithinARangeIsPlacedAtTheRange) {
  Write("t.csv", "a,b,c,y\n1,2,x,3\n");
  const std::string head =
      "model: {sequential: [linear: {in: 3, out: 1}]}\n"
      "data:\n"
      "  train:\n"
      "    csv:\n"
      "      path: t.csv\n"
      "      columns:\n"
      "        label: y\n"
      "        numeric:\n";
  const std::string wrong =
      Path("t.csv") + ": line 2: column 2 (\"c\"): wanted a number";
  EXPECT_THAT(Error(head + "          - a\n          - 1-2\n"),
              StartsWith(Line(10, wrong)));
  EXPECT_THAT(Error(head + "          - c\n          - a\n          - b\n"),
              StartsWith(Line(9, wrong)));
}

TEST_F(PlacesTest, AColumnThatNobodyNamesIsPlacedAtTheSource) {
  Write("t.csv", "a,y\nx,3\n");
  EXPECT_THAT(Error("model: {sequential: [linear: {in: 1, out: 1}]}\n"
                    "data:\n"
                    "  train:\n"
                    "    csv:\n"
                    "      path: t.csv\n"
                    "      columns: {label: y}\n"),
              StartsWith(Line(4, Path("t.csv") + ": line 2: column 0")));
}

TEST_F(PlacesTest, ALabelIsPlacedAtItsField) {
  Write("t.csv", "a,y\n1,x\n");
  EXPECT_THAT(Error("model: {sequential: [linear: {in: 1, out: 1}]}\n"
                    "data:\n"
                    "  train:\n"
                    "    csv:\n"
                    "      path: t.csv\n"
                    "      columns:\n"
                    "        label: y\n"),
              StartsWith(Line(7, Path("t.csv") + ": line 2: column 1")));
}

TEST_F(PlacesTest, LabelsOnDiskArePlacedAtTheirFile) {
  Write("x.npy", Npy(NpyDict("<f4", "(2, 1)"), BytesOf<float>({1, 2})));
  Write("y.npy", Npy(NpyDict("<f8", "(2,)"), BytesOf<double>({1, 1e300})));
  EXPECT_THAT(Error("model: {sequential: [linear: {in: 1, out: 1}]}\n"
                    "data:\n"
                    "  stream: {}\n"
                    "  train:\n"
                    "    npy:\n"
                    "      features: x.npy\n"
                    "      labels: y.npy\n"),
              StartsWith(Line(7, Path("y.npy") + ": row 1")));
}

TEST_F(PlacesTest, ALayerOfABranchIsPlacedAtItsField) {
  Write("t.csv", "a,b,y\n1,2,3\n");
  EXPECT_THAT(Error("model:\n"
                    "  sequential:\n"
                    "    - residual:\n"
                    "        body:\n"
                    "          - relu\n"
                    "          - linear:\n"
                    "              out: 2\n"
                    "              in: 3\n"
                    "    - linear: {in: 2, out: 1}\n"
                    "data:\n"
                    "  train: {csv: {path: t.csv, columns: {label: y}}}\n"),
              StartsWith(Line(8, "layer 0.body.1 (linear): wants")));
}

}  // namespace
}  // namespace tributary
