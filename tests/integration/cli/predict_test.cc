// SPDX-License-Identifier: Apache-2.0
// `tributary predict` and `tributary evaluate` on the model of a run, and their
// errors for wrong inputs: real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two clusters of points: near (0, 0) they are cold, near (10, 10) hot.
constexpr char kPointsJob[] = R"(name: points
model:
  sequential:
    - linear: {in: 4, out: 2}
data:
  train:
    csv:
      path: points.csv
      columns: {label: label, numeric: [x, y], categorical: colour}
      normalize: standardize
  test: {csv: {path: points.csv}}
  batch_size: 8
training: {epochs: 20, loss: cross_entropy, optimizer: {adam: {learning_rate: 0.1}}}
cluster: {servers: 1, workers: 2}
)";

constexpr char kLettersJob[] = R"(name: letters
model:
  gpt: {layers: 1, dim: 16, heads: 2, length: 8, vocabulary: 3}
data:
  train: {text: {path: letters.txt, length: 8}}
  global_batch_size: 4
training: {steps: 60, loss: cross_entropy, optimizer: {adam: {learning_rate: 0.02}}}
cluster: {servers: 1, workers: 1}
)";

std::string PointRows() {
  std::string csv = "x,y,colour,label\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&csv, i % 5 / 10.0, ",", i % 7 / 10.0, ",blue,cold\n");
    absl::StrAppend(&csv, 10 + i % 5 / 10.0, ",", 10 + i % 7 / 10.0,
                    ",red,hot\n");
  }
  return csv;
}

class PredictTest : public testing::TemporaryFolderTest {
 protected:
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    const testing::ProcessResult result = testing::RunProcess(words);
    output_ = result.output;
    return result.exit_code;
  }
  void Train(const char* job) {
    Write("points.csv", PointRows());
    std::string letters;
    for (int i = 0; i < 60; ++i) letters += "abc";
    Write("letters.txt", letters);
    Write("job.yaml", job);
    ASSERT_EQ(Run({"train", Path("job.yaml"), "--run-dir", Path("run")}), 0)
        << output_;
  }
  json Json(const std::string& name) { return json::parse(Read(name)); }

  std::string output_;
};

TEST_F(PredictTest, ARunSaysHowToUseItsModel) {
  Train(kPointsJob);
  const json model = Json("run/model.json");
  EXPECT_EQ(model["format_version"], 1);
  EXPECT_EQ(model["sequential"][0]["linear"]["in"], 4);
  EXPECT_EQ(model["output"], "classes");
  EXPECT_EQ(model["parameters"][0]["name"], "0.weight");
  EXPECT_EQ(model["preprocessing"]["class_names"], (json{"cold", "hot"}));
  EXPECT_EQ(model["training_data"]["rows"], 80);
  const json summary = Json("run/summary.json");
  EXPECT_EQ(model["metrics"]["status"], "done");
  EXPECT_EQ(model["metrics"]["test"], summary["test"]);
  EXPECT_EQ(model["metrics"]["weights_sha256"], summary["weights_sha256"]);
}

TEST_F(PredictTest, RowsAreClassified) {
  Train(kPointsJob);
  const std::string input =
      Write("new.csv", "colour,y,x\nblue,0.5,0.5\nred,10.2,9.9\n");
  ASSERT_EQ(Run({"predict", Path("run"), input}), 0) << output_;
  std::istringstream lines(output_);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "prediction,probability_cold,probability_hot");
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("cold,0.9"));
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("hot,0.0"));

  ASSERT_EQ(Run({"predict", Path("run"), input, "--format", "json", "--top",
                 "--output", Path("out.jsonl")}),
            0)
      << output_;
  EXPECT_EQ(output_, "");
  std::istringstream file(Read("out.jsonl"));
  std::getline(file, line);
  EXPECT_EQ(json::parse(line)["prediction"], "cold");
}

TEST_F(PredictTest, EvaluateRepeatsTheRunsMetrics) {
  Train(kPointsJob);
  ASSERT_EQ(Run({"evaluate", Path("run"), "--json"}), 0) << output_;
  const json report = json::parse(output_);
  const json test = Json("run/summary.json")["test"];
  EXPECT_EQ(report["rows"], 80);
  EXPECT_EQ(report["metrics"]["accuracy"], test["accuracy"]);
  EXPECT_NEAR(report["metrics"]["loss"].get<double>(),
              test["loss"].get<double>(), 1e-6);
  EXPECT_EQ(report["confusion"], (json{{40, 0}, {0, 40}}));
  // The same rows, given as an input.
  ASSERT_EQ(Run({"evaluate", Path("run"), Path("points.csv")}), 0) << output_;
  EXPECT_THAT(output_,
              HasSubstr(absl::StrCat("points.csv, 80 rows\nweights     ",
                                     Path("run/weights.safetensors"),
                                     "\naccuracy    1\n")));
}

TEST_F(PredictTest, EvaluateNeedsTheFilesOfItsSetAlone) {
  Write("test.csv", PointRows());
  Train(absl::StrReplaceAll(kPointsJob, {{"test: {csv: {path: points.csv}}",
                                          "test: {csv: {path: test.csv}}"}})
            .c_str());
  std::filesystem::remove(Path("test.csv"));
  EXPECT_EQ(Run({"evaluate", Path("run"), "--data", "train"}), 0) << output_;
  EXPECT_EQ(Run({"evaluate", Path("run")}), 2);
  EXPECT_THAT(output_, HasSubstr(Path("test.csv")));
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 1) << output_;
}

TEST_F(PredictTest, EvaluateSaysHowManyFilesASetHas) {
  Write("more.csv", PointRows());
  Write("last.csv", PointRows());
  Train(absl::StrReplaceAll(kPointsJob,
                            {{"      path: points.csv",
                              "      path: [points.csv, more.csv, last.csv]"}})
            .c_str());
  ASSERT_EQ(Run({"evaluate", Path("run"), "--data", "train"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("points.csv and 2 more files, 240 rows\n"));
  ASSERT_EQ(Run({"evaluate", Path("run"), "--data", "train", "--json"}), 0);
  EXPECT_EQ(json::parse(output_)["more_files"], 2);
  ASSERT_EQ(Run({"evaluate", Path("run")}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("points.csv, 80 rows\n"));
}

TEST_F(PredictTest, OtherRowsAreNotTakenForThoseOfTheTraining) {
  Train(kPointsJob);
  ASSERT_EQ(Run({"evaluate", Path("run"), "--data", "train"}), 0) << output_;
  Write("points.csv", Read("points.csv") + "1,1,red,cold\n");
  EXPECT_EQ(Run({"evaluate", Path("run"), "--data", "train"}), 2);
  EXPECT_THAT(output_,
              HasSubstr("has changed since the run: name it as INPUT"));
}

TEST_F(PredictTest, EvaluateAcceptsUnknownCategoriesOfEveryFile) {
  Train(kPointsJob);
  const std::string input =
      Write("new.csv", "x,y,colour,label\n9,9,pink,hot\n");
  ASSERT_EQ(Run({"evaluate", Path("run"), input}), 0) << output_;
  EXPECT_THAT(output_,
              HasSubstr("1 rows have a category that the training "
                        "data does not have (first \"pink\" in line 2"));
  EXPECT_THAT(output_, HasSubstr("new.csv, 1 rows"));
}

TEST_F(PredictTest, EvaluateWantsARow) {
  Train(absl::StrReplaceAll(kPointsJob, {{"      normalize: standardize\n",
                                          "      missing: {skip: true}\n"}})
            .c_str());
  const std::string input =
      Write("new.csv", "x,y,colour,label\n,9,red,hot\n9,,red,hot\n");
  EXPECT_EQ(Run({"evaluate", Path("run"), input}), 2);
  EXPECT_EQ(output_, absl::StrCat("tributary: ", input,
                                  ": 2 rows are left out because a value is "
                                  "missing (first in line 2); wanted at least "
                                  "one row to evaluate\n"));
  Write("new.csv", "x,y,colour,label\n");
  EXPECT_EQ(Run({"evaluate", Path("run"), input}), 2);
  EXPECT_THAT(output_, HasSubstr("there are no rows"));
}

TEST_F(PredictTest, AnAnswerThatIsLostIsAnError) {
  Train(kPointsJob);
  const std::string program = testing::Program("tributary");
  for (const std::string& words :
       {"evaluate " + Path("run"), "checkpoint list " + Path("run"),
        "predict " + Path("run") + " " + Path("points.csv"),
        "train " + Path("run/job.yaml") + " --dry-run",
        "compare " + Path("run/job.yaml") + " --dry-run"}) {
    const testing::ProcessResult result = testing::RunProcess(
        {"/bin/sh", "-c", program + " " + words + " > /dev/full"});
    EXPECT_EQ(result.exit_code, 1) << words;
    EXPECT_THAT(result.output, HasSubstr("No space left on device")) << words;
  }
}

TEST_F(PredictTest, AFileThatIsReadIsNotOverwritten) {
  Train(kPointsJob);
  for (const char* read :
       {"points.csv", "run/model.json", "run/weights.safetensors"}) {
    const std::string before = Read(read);
    EXPECT_EQ(Run({"predict", Path("run"), Path("points.csv"), "--output",
                   Path(read)}),
              2);
    EXPECT_THAT(output_, HasSubstr("would be lost: give --output another"));
    EXPECT_EQ(Read(read), before);
  }
}

TEST_F(PredictTest, TheDataOfTheJobAreNotOverwritten) {
  Train(kPointsJob);
  const std::string rows = Write("new.csv", PointRows());
  EXPECT_EQ(
      Run({"evaluate", Path("run"), rows, "--output", Path("points.csv")}), 2);
  EXPECT_THAT(output_, HasSubstr("points.csv is one of the files that "));
  EXPECT_EQ(Read("points.csv"), PointRows());
}

TEST_F(PredictTest, AWrongInputGetsOneLineAndExitCode2) {
  Train(kPointsJob);
  const auto refused = [&](const std::string& csv, const std::string& message) {
    const std::string input = Write("new.csv", csv);
    EXPECT_EQ(Run({"predict", Path("run"), input, "--output", Path("out")}), 2);
    EXPECT_EQ(output_, absl::StrCat("tributary: ", input, ": ", message, "\n"));
    EXPECT_EQ(Read("out"), "");
  };
  refused("x,colour\n1,red\n",
          "line 1: wanted a column \"y\" as in the training data, the header "
          "has none");
  refused("x,y,colour\n1,2,red\n1,high,red\n",
          "line 3: column 1 (\"y\"): wanted a number, got \"high\"");
  refused("x,y,colour\n1,2,pink\n",
          "line 2: column 2 (\"colour\"): wanted a category of the training "
          "data (--allow-unknown makes it none of them), got \"pink\"");
  refused("x,y,colour\n1,2\n", "line 2: wanted 3 fields, got 2");
  refused("x,y,colour\n1,2,größer\n",
          "line 2: column 2 (\"colour\"): wanted a category of the training "
          "data (--allow-unknown makes it none of them), got \"größer\"");
  EXPECT_EQ(Run({"predict", Path("run"), Path("nowhere.csv")}), 2);
  EXPECT_THAT(output_, HasSubstr("nowhere.csv"));
  EXPECT_EQ(Run({"predict", Path("nowhere"), Path("points.csv")}), 2);
  EXPECT_THAT(output_, HasSubstr("has no model.json"));
  EXPECT_EQ(Run({"predict", Path("run")}), 2);
  EXPECT_THAT(output_, HasSubstr("an INPUT is wanted"));
}

TEST_F(PredictTest, GeneratedTextIsAFunctionOfTheSeed) {
  Train(kLettersJob);
  const auto generate = [&](const std::string& seed,
                            const std::string& temperature) {
    EXPECT_EQ(Run({"predict", Path("run"), "--generate", "30", "--prompt", "ab",
                   "--seed", seed, "--temperature", temperature}),
              0)
        << output_;
    return output_;
  };
  // The text repeats three letters, which the model has learned.
  EXPECT_EQ(generate("1", "0"), "abcabcabcabcabcabcabcabcabcabcab\n");
  const std::string drawn = generate("1", "20");
  EXPECT_EQ(drawn.size(), 33u);
  EXPECT_THAT(drawn, StartsWith("ab"));
  EXPECT_EQ(generate("1", "20"), drawn);
  EXPECT_NE(generate("2", "20"), drawn);
  EXPECT_EQ(Run({"predict", Path("run"), "--generate", "3", "--prompt", "xy"}),
            2);
  EXPECT_THAT(output_,
              HasSubstr("is 'x', which the training text does not have"));
}

TEST_F(PredictTest, ATextIsPredictedTokenByToken) {
  Train(kLettersJob);
  const std::string input = Write("new.txt", "abcabcabca");
  ASSERT_EQ(Run({"predict", Path("run"), input, "--top"}), 0) << output_;
  std::istringstream lines(output_);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "row,position,token,prediction,probability");
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const std::string letters = "abcabcabcab";
    EXPECT_THAT(line,
                StartsWith(absl::StrCat("0,", i, ",", letters.substr(i, 1), ",",
                                        letters.substr(i + 1, 1))));
  }
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace tributary
