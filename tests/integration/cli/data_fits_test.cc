// SPDX-License-Identifier: Apache-2.0
// Jobs whose data do not fit their model are refused before any process of the
// job starts: one line with the place in the job file, exit code 2, no files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/npy.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::Not;
using ::testing::StartsWith;

// Tables with two numbers, a word and a class from 0 to 2.
constexpr char kTable[] =
    "a,b,color,label\n1,2,red,0\n3,4,blue,1\n5,6,red,2\n7,8,blue,0\n";
constexpr char kOtherTable[] = "a,b,color,label\n1,2,green,1\n";

constexpr char kTableJob[] = R"(name: table
model:
  sequential:
    - linear: {in: 4, out: 8}
    - relu
    - linear: {in: 8, out: 3}
data:
  train:
    csv:
      path: train.csv
      columns:
        label: label
        numeric: [a, b]
        categorical: [color]
  test:
    csv: {path: test.csv}
  batch_size: 2
training: {epochs: 1, loss: cross_entropy, optimizer: {sgd: {learning_rate: 0.1}}}
)";
constexpr char kImagesJob[] = R"(name: images
model:
  sequential:
    - flatten
    - linear: {in: 784, out: 10}
data:
  train:
    idx:
      images: DATA/fashion-t10k1000-images-idx3-ubyte.gz
      labels: DATA/fashion-t10k1000-labels-idx1-ubyte.gz
  batch_size: 100
training: {epochs: 1, loss: cross_entropy, optimizer: {sgd: {learning_rate: 0.1}}}
)";
constexpr char kTextJob[] = R"(name: text
model:
  sequential:
    - embedding: {tokens: 6, dim: 4}
    - linear: {in: 4, out: 6}
data:
  train:
    text: {path: text.txt, length: 4}
  batch_size: 1
training: {epochs: 1, loss: cross_entropy, optimizer: {sgd: {learning_rate: 0.1}}}
)";
constexpr char kArraysJob[] = R"(name: arrays
model:
  sequential:
    - linear: {in: 3, out: 1}
data:
  train:
    npy: {features: x.npy, labels: y.npy}
  batch_size: 1
training: {epochs: 1, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";

struct Misfit {
  std::string label;
  const char* job;
  // Parts of the job file or of the data, and the texts that replace them.
  std::vector<std::pair<std::string, std::string>> changes;
  std::string message;  // its beginning, after "tributary: "
};

class DataFitsTest : public testing::TemporaryFolderTest,
                     public ::testing::WithParamInterface<Misfit> {
 protected:
  // Inserts the folders of the test and of the examples' data.
  std::string Expanded(const std::string& text) const {
    return absl::StrReplaceAll(
        text,
        {{"DATA", testing::SourceFile("examples/data")}, {"FOLDER", folder()}});
  }

  void WriteFiles(
      const char* job,
      const std::vector<std::pair<std::string, std::string>>& changes) {
    const auto changed = [&](std::string text) {
      return Expanded(absl::StrReplaceAll(text, changes));
    };
    Write("job.yaml", changed(job));
    Write("train.csv", changed(kTable));
    Write("test.csv", changed(kOtherTable));
    Write("text.txt", changed("abcabcabcdefabc"));
    testing::WriteNpy<float>(Path("x.npy"), {2, 3}, {1, 2, 3, 4, 5, 6});
    testing::WriteNpy<float>(Path("y.npy"), {2}, {1, 2});
    testing::WriteNpy<float>(Path("three.npy"), {3}, {1, 2, 3});
  }

  std::string Run(std::vector<std::string> words, int exit_code) {
    words.insert(words.begin(), testing::Program("tributary"));
    auto process =
        testing::RunningProcess::Start({.command = words, .folder = folder()});
    EXPECT_EQ(process->Wait(kSoon), exit_code) << process->output();
    return process->output();
  }
};

class MisfitTest : public DataFitsTest {};

TEST_P(MisfitTest, IsRefusedInOneLineBeforeAnythingStarts) {
  WriteFiles(GetParam().job, GetParam().changes);
  const int files = NumFiles();
  const std::string output = Run({"train", "job.yaml"}, 2);
  EXPECT_THAT(output, StartsWith("tributary: " + Expanded(GetParam().message)));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  EXPECT_EQ(NumFiles(), files) << "nothing is left behind";
}

TEST_F(DataFitsTest, EveryCommandThatReadsAJobChecksIt) {
  WriteFiles(kTableJob, {{"in: 4", "in: 5"}});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"train", "job.yaml", "--dry-run"},
           {"train", "job.yaml", "--workers", "3"},
           {"compare", "job.yaml"},
           {"compare", "job.yaml", "--dry-run"},
           {"plan", "job.yaml", "--bandwidth", "1Gbit", "--compute", "30"}}) {
    EXPECT_THAT(Run(words, 2), StartsWith("tributary: job.yaml:4: layer 0 "));
  }
}

TEST_F(DataFitsTest, AnOverrideIsNamedAsThePlace) {
  WriteFiles(kTableJob, {});
  EXPECT_THAT(
      Run({"train", "job.yaml", "--set", "model.sequential.0.linear.in=9"}, 2),
      StartsWith("tributary: --set model.sequential.0.linear.in=9: "));
}

TEST_F(DataFitsTest, DataThatFitAreTrainedOn) {
  for (const char* job : {kTableJob, kImagesJob, kTextJob, kArraysJob}) {
    WriteFiles(job, {});
    EXPECT_THAT(Run({"train", "job.yaml", "--dry-run"}, 0),
                HasSubstr("model:"));
  }
}

TEST_F(DataFitsTest, AStepLargerThanTheTrainingSetIsNoted) {
  WriteFiles(kTableJob, {{"batch_size: 2", "batch_size: 3"}});
  const std::string note =
      "tributary: note: job.yaml:17: data.batch_size makes a step of 6 "
      "samples, but the training set has 4, so every epoch is a single step\n";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"train", "job.yaml", "--dry-run"},
           {"train", "job.yaml", "--run-dir", "run"},
           {"compare", "job.yaml", "--dry-run"},
           {"plan", "job.yaml", "--bandwidth", "1Gbit", "--compute", "30"}}) {
    std::vector<std::string> two_workers = words;
    two_workers.insert(two_workers.end(), {"--set", "cluster.workers=2"});
    EXPECT_THAT(Run(two_workers, 0), HasSubstr(note));
  }
  // A batch of four samples is the whole set.
  EXPECT_THAT(
      Run({"train", "job.yaml", "--dry-run", "--set", "data.batch_size=4"}, 0),
      Not(HasSubstr("every epoch is a single step")));
  EXPECT_THAT(Run({"train", "job.yaml", "--dry-run", "--set",
                   "training.gradient_accumulation=2"},
                  0),
              HasSubstr("note: --set training.gradient_accumulation=2: "
                        "training.gradient_accumulation makes a step of 6 "));
}

std::vector<Misfit> Misfits() {
  return {
      {"TooWide",
       kTableJob,
       {{"in: 4", "in: 5"}},
       "job.yaml:4: layer 0 (linear): wants samples whose last extent is in = "
       "5, gets samples of shape [4]"},
      {"TooNarrow",
       kTableJob,
       {{"in: 4", "in: 3"}},
       "job.yaml:4: layer 0 (linear): wants samples whose last extent is in = "
       "3"},
      {"TooFewClasses",
       kTableJob,
       {{"out: 3", "out: 2"}},
       "job.yaml:6: FOLDER/train.csv: line 4 has class 2, but the model's 2 "
       "outputs"},
      {"NoSuchNumber",
       kTableJob,
       {{"[a, b]", "[a, z]"}},
       "job.yaml:13: FOLDER/train.csv: columns.numeric: no column \"z\""},
      {"NoSuchCategory",
       kTableJob,
       {{"[color]", "[colour]"}},
       "job.yaml:14: FOLDER/train.csv: columns.categorical: no column "
       "\"colour\""},
      {"NoSuchLabel",
       kTableJob,
       {{"label: label", "label: y"}},
       "job.yaml:12: FOLDER/train.csv: columns.label: no column \"y\""},
      {"LabelTwice",
       kTableJob,
       {{"[a, b]", "[a, b, label]"}},
       "job.yaml:13: data.train.csv.columns.numeric.2 names column \"label\""},
      {"WordAsNumber",
       kTableJob,
       {{"[a, b]", "[a, b, color]"}},
       "job.yaml:14: data.train.csv.columns.categorical.0 names column"},
      {"TooManyRows",
       kTableJob,
       {{"path: train.csv", "path: train.csv\n      rows: 100"}},
       "job.yaml:9: FOLDER/train.csv: wanted 100 rows"},
      {"FirstRowTooFar",
       kTableJob,
       {{"path: train.csv", "path: train.csv\n      first_row: 9"}},
       "job.yaml:9: FOLDER/train.csv: wanted the rows from row 9 on"},
      {"EmptyCell",
       kTableJob,
       {{"3,4,blue", "3,,blue"}},
       "job.yaml:13: FOLDER/train.csv: line 3: column 1 (\"b\"): wanted a "
       "number"},
      {"WordInNumbers",
       kTableJob,
       {{"3,4,blue", "3,x,blue"}},
       "job.yaml:13: FOLDER/train.csv: line 3: column 1 (\"b\"): wanted a "
       "number"},
      {"MissingCell",
       kTableJob,
       {{"3,4,blue,1", "3,4,blue"}},
       "job.yaml:9: FOLDER/train.csv: line 3: wanted 4 fields, got 3"},
      {"NegativeLabel",
       kTableJob,
       {{"blue,1", "blue,-1"}},
       "job.yaml:16: FOLDER/test.csv: line 2: column 3 (\"label\"): wanted one "
       "of"},
      {"ThreeClassesForTwo",
       kTableJob,
       {{"out: 3", "out: 1"}, {"cross_entropy", "bce_with_logits"}},
       "job.yaml:12: FOLDER/train.csv: column 3 (\"label\"): wanted 0 and 1"},
      {"ThreeOutputsForOneNumber",
       kTableJob,
       {{"cross_entropy", "mse"}},
       "job.yaml:18: mse wants a last layer with 1 output"},
      {"ConvolutionOfATable",
       kTableJob,
       {{"linear: {in: 4, out: 8}", "conv2d: {in: 1, out: 2, kernel: 3}"}},
       "job.yaml:4: layer 0 (conv2d): wants samples of shape"},
      {"InnerLayerTooWide",
       kTableJob,
       {{"- relu", "- layernorm: {features: 9}"}},
       "job.yaml:5: model.sequential.1.layernorm.features is 9"},
      {"WrongDelimiter",
       kTableJob,
       {{"path: train.csv", "path: train.csv\n      delimiter: ';'"}},
       "job.yaml:13: FOLDER/train.csv: columns.label: no column"},
      {"NoHeader",
       kTableJob,
       {{"path: train.csv", "path: train.csv\n      header: false"}},
       "job.yaml:13: data.train.csv.columns.label wants a number from 0"},
      {"TestLacksAColumn",
       kTableJob,
       {{"a,b,color,label\n1,2,green", "a,b,label\n1,2"}},
       "job.yaml:16: FOLDER/test.csv: columns.categorical: no column "
       "\"color\""},
      {"TestHasAnotherClass",
       kTableJob,
       {{"green,1", "green,7"}},
       "job.yaml:6: FOLDER/test.csv: line 2 has class 7"},
      {"ImagesTooWide",
       kImagesJob,
       {{"in: 784", "in: 785"}},
       "job.yaml:5: layer 1 (linear): wants samples whose last extent is in = "
       "785"},
      {"ImagesOfTooManyClasses",
       kImagesJob,
       {{"out: 10", "out: 9"}},
       "job.yaml:5: DATA/fashion-t10k1000-labels-idx1-ubyte.gz: row 0 has "
       "class 9"},
      {"LabelsAsImages",
       kImagesJob,
       {{"images: DATA/fashion-t10k1000-images-idx3",
         "images: DATA/fashion-t10k1000-labels-idx1"}},
       "job.yaml:8: DATA/fashion-t10k1000-labels-idx1-ubyte.gz: offset 0: "
       "wanted the IDX magic"},
      {"ImagesAsLabels",
       kImagesJob,
       {{"labels: DATA/fashion-t10k1000-labels-idx1",
         "labels: DATA/fashion-t10k1000-images-idx3"}},
       "job.yaml:10: DATA/fashion-t10k1000-images-idx3-ubyte.gz: offset 0: "
       "wanted the IDX magic"},
      {"TooManyMeans",
       kImagesJob,
       {{"    idx:\n",
         "    idx:\n      normalize: {mean: [1, 2], std: [1, 2]}\n"}},
       "job.yaml:8: DATA/fashion-t10k1000-images-idx3-ubyte.gz: normalize.mean "
       "has 2 values"},
      {"TooManyImages",
       kImagesJob,
       {{"    idx:\n", "    idx:\n      rows: 2000\n"}},
       "job.yaml:8: DATA/fashion-t10k1000-images-idx3-ubyte.gz: wanted 2000 "
       "rows"},
      {"TooFewTokens",
       kTextJob,
       {{"tokens: 6", "tokens: 5"}},
       "job.yaml:4: FOLDER/text.txt: the text has 6 different tokens, but the "
       "model's embedding is for 5"},
      {"TooFewOutputs",
       kTextJob,
       {{"out: 6", "out: 5"}},
       "job.yaml:5: FOLDER/text.txt: the text has 6 different tokens, but the "
       "model's outputs are for 5"},
      {"TextTooShort",
       kTextJob,
       {{"length: 4", "length: 40"}},
       "job.yaml:8: FOLDER/text.txt: wanted at least 41 tokens"},
      {"ArraysTooWide",
       kArraysJob,
       {{"in: 3", "in: 4"}},
       "job.yaml:4: layer 0 (linear): wants samples whose last extent is in = "
       "4"},
      {"ArraysWithTwoOutputs",
       kArraysJob,
       {{"out: 1", "out: 2"}},
       "job.yaml:9: mse wants a last layer with 1 output; the model has 2"},
      {"AnotherNumberOfLabels",
       kArraysJob,
       {{"y.npy", "three.npy"}},
       "job.yaml:7: FOLDER/x.npy holds 2 rows"},
      {"TextAsArray",
       kArraysJob,
       {{"x.npy", "text.txt"}},
       "job.yaml:7: FOLDER/text.txt: offset 0: wanted"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, MisfitTest, ::testing::ValuesIn(Misfits()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace tributary
