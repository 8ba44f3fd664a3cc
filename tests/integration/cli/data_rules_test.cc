// SPDX-License-Identifier: Apache-2.0
// A job's rules about its rows, from the job file to the trained model: real
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
using ::testing::Not;

constexpr char kDataRulesJob[] = R"(name: points
model:
  sequential:
    - linear: {in: 4, out: 2}
data:
  train:
    csv:
      path: points.csv
      columns: {label: label, numeric: [x, y], categorical: colour}
      normalize: standardize
      missing: {mean: true, texts: NA}
  test: {csv: {path: points.csv}}
  batch_size: 8
training: {epochs: 20, loss: cross_entropy, optimizer: {adam: {learning_rate: 0.1}}}
cluster: {servers: 1, workers: 2}
)";

// Two clusters of points: near (0, 0) they are cold and blue, near (10, 10) hot
// and red. Every tenth row lacks a value.
std::string Points() {
  std::string csv = "x,y,colour,label\n";
  for (int i = 0; i < 40; ++i) {
    const std::string x = i % 10 == 3 ? "NA" : absl::StrCat(i % 5 / 10.0);
    const std::string colour = i % 10 == 7 ? "?" : "red";
    absl::StrAppend(&csv, x, ",", i % 7 / 10.0, ",blue,cold\n");
    absl::StrAppend(&csv, 10 + i % 5 / 10.0, ",", 10 + i % 7 / 10.0, ",",
                    colour, ",hot\n");
  }
  return csv;
}

class DataRulesTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    Write("points.csv", Points());
    Write("job.yaml", kDataRulesJob);
  }
  // Returns the exit code; the command's output is in output_.
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    const testing::ProcessResult result = testing::RunProcess(words);
    output_ = result.output;
    return result.exit_code;
  }
  int Train(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"train", Path("job.yaml"), "--run-dir",
                                      Path("run")};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  json Json(const std::string& name) { return json::parse(Read(name)); }

  std::string output_;
};

TEST_F(DataRulesTest, MissingValuesAreFilledInTrainingAndInPrediction) {
  ASSERT_EQ(Train(), 0) << output_;
  const json summary = Json("run/summary.json");
  EXPECT_EQ(summary["test"]["accuracy"], 1.0);
  const json table = Json("run/model.json")["preprocessing"]["csv"];
  EXPECT_EQ(table["missing"], (json{"", "?", "NA"}));
  ASSERT_EQ(table["fill"].size(), 2u);
  EXPECT_EQ(table["categorical"][0]["categories"], (json{"blue", "red"}));
  // x is missing in four of the 40 cold rows, in which it would be 0.3 (i % 5
  // is 3). The sum of the cold ones is 8 - 1.2, that of the hot ones 408.
  EXPECT_NEAR(table["fill"][0].get<double>(), (6.8 + 408) / 76, 1e-6);

  const std::string rows =
      Write("new.csv", "x,y,colour\n,0.1,blue\n9,NA,red\n10,10,?\n");
  ASSERT_EQ(Run({"predict", Path("run"), rows, "--top"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("prediction,probability\ncold,"));
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 4);

  ASSERT_EQ(Run({"evaluate", Path("run"), "--json"}), 0) << output_;
  EXPECT_EQ(json::parse(output_)["rows"], 80);
}

TEST_F(DataRulesTest, SkippedRowsAreNeitherTrainedNorEvaluated) {
  ASSERT_EQ(Train({"--set", "data.train.csv.missing={skip: true, texts: NA}"}),
            0)
      << output_;
  // Four rows lack x, and four others lack the colour.
  EXPECT_EQ(Json("run/model.json")["training_data"]["rows"], 72);
  EXPECT_EQ(Json("run/summary.json")["evaluations"][0]["samples"], 72);
  ASSERT_EQ(Run({"evaluate", Path("run")}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("72 rows"));
  EXPECT_THAT(output_, HasSubstr("8 rows are left out because a value is "
                                 "missing (first in line 8)"));
  const std::string rows = Write("new.csv", "x,y,colour\n1,1,red\n1,,red\n");
  EXPECT_EQ(Run({"predict", Path("run"), rows}), 2);
  EXPECT_THAT(output_, HasSubstr("new.csv: line 3: column 1 (\"y\"): wanted a "
                                 "value, because the model was trained without "
                                 "rows that lack one (missing: skip)"));
}

// Half of the rows have no x, so the metrics depend on what replaces it.
class OwnFieldsTest : public DataRulesTest {
 protected:
  void SetUp() override {
    DataRulesTest::SetUp();
    std::string rows;
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&rows,
                      i % 2 == 0   ? "NA"
                      : i % 4 == 1 ? "0.2"
                                   : "10.2",
                      ",0.1,blue,cold\n");
    }
    Write("test.csv", "x,y,colour,label\n" + rows);
    Write("bare.csv", absl::StrReplaceAll(rows, {{",", ";"}}));
  }

  // Trains with a test source that has these fields, and evaluates the run.
  void ExpectTheMetricsOfTheRun(const std::string& file,
                                const std::string& fields,
                                const std::vector<std::string>& more = {}) {
    SCOPED_TRACE(fields);
    const std::string run = absl::StrCat("run", ++runs_);
    std::vector<std::string> words = {
        "train",
        Path("job.yaml"),
        "--run-dir",
        Path(run),
        "--set",
        "data.test={csv: {path: " + Path(file) + ", " + fields + "}}",
        "--set",
        "training.epochs=2"};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(Run(words), 0) << output_;
    const json summary = Json(run + "/summary.json");
    ASSERT_EQ(Run({"evaluate", Path(run), "--json"}), 0) << output_;
    const json evaluated = json::parse(output_);
    EXPECT_EQ(evaluated["rows"], summary["evaluations"][0]["samples"]);
    for (const char* metric : {"loss", "accuracy"}) {
      EXPECT_NEAR(evaluated["metrics"][metric].get<double>(),
                  summary["test"][metric].get<double>(), 1e-5);
    }
  }

  int runs_ = 0;
};

TEST_F(OwnFieldsTest, EvaluateReadsATestSourceAsTheRunHasReadIt) {
  ExpectTheMetricsOfTheRun("test.csv", "missing: {constant: 9, texts: NA}");
  ExpectTheMetricsOfTheRun("test.csv", "missing: {median: true, texts: NA}");
  ExpectTheMetricsOfTheRun(
      "test.csv", "missing: {skip: true, texts: NA}, first_row: 3, rows: 9");
  ExpectTheMetricsOfTheRun("test.csv", "normalize: {mean: 0, std: 1}");
  const std::string bare =
      "delimiter: ';', header: false, columns: {label: '3', numeric: ['0', "
      "'1'], categorical: '2'}";
  ExpectTheMetricsOfTheRun("bare.csv", bare);
  ExpectTheMetricsOfTheRun("bare.csv", bare, {"--set", "data.stream={}"});
}

// model.json lacks the median of the training rows.
TEST_F(OwnFieldsTest, ChangedTrainingRowsAreTold) {
  ExpectTheMetricsOfTheRun("test.csv", "missing: {median: true, texts: NA}");
  Write("points.csv", Points() + "1,1,red,hot\n");
  EXPECT_EQ(Run({"evaluate", Path("run1")}), 2);
  EXPECT_THAT(output_, HasSubstr("points.csv has changed since the run: what "
                                 "the test source, which has fields of its "
                                 "own, takes from it is not known; name the "
                                 "file of that source as INPUT"));
}

TEST_F(DataRulesTest, WithoutARuleAMissingValueIsAnErrorThatNamesTheRule) {
  std::string job = kDataRulesJob;
  job.erase(job.find("      missing:"), 39);
  Write("job.yaml", job);
  EXPECT_EQ(Train(), 2);
  EXPECT_THAT(
      output_,
      HasSubstr("job.yaml:9: " + Path("points.csv") +
                ": line 8: column 0 (\"x\"): wanted a number, got \"NA\"; to "
                "fill or skip missing values, set csv.missing, as in missing: "
                "{mean: true, texts: [\"NA\"]}"));
}

class ValidationTest : public DataRulesTest {
 protected:
  // Trains with a fifth of the rows as validation set.
  int TrainWith(const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"train",     Path("job.yaml"),
                                      "--run-dir", Path(run),
                                      "--set",     "data.validation=0.2"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  std::string Sha(const std::string& run) {
    return Json(run + "/summary.json")["weights_sha256"];
  }
  double Metric(const std::string& set, const char* name) {
    EXPECT_EQ(Run({"evaluate", Path("run"), "--data", set, "--last", "--json"}),
              0)
        << output_;
    return json::parse(output_)["metrics"][name].get<double>();
  }
};

TEST_F(ValidationTest, EvaluatesDuringTrainingAndTheTestSetOnceAtTheEnd) {
  ASSERT_EQ(TrainWith("run", {"--set", "evaluation.keep_best=true"}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("epoch 1/20: validation accuracy "));
  EXPECT_THAT(output_, Not(HasSubstr("epoch 1/20: test")));
  EXPECT_THAT(output_, HasSubstr("\nvalidation: accuracy "));
  EXPECT_THAT(output_, HasSubstr("\ntest: accuracy "));
  const json summary = Json("run/summary.json");
  ASSERT_EQ(summary["evaluations"].size(), 21u);
  for (int epoch = 1; epoch <= 20; ++epoch) {
    const json evaluation = summary["evaluations"][epoch - 1];
    EXPECT_EQ(evaluation["samples"], 16);
    EXPECT_EQ(evaluation["epoch"], epoch);
    EXPECT_FALSE(evaluation.contains("test"));
  }
  const json last = summary["evaluations"].back();
  EXPECT_EQ(last["samples"], 80);
  EXPECT_EQ(last["test"], summary["test"]);
  EXPECT_EQ(summary["evaluations"][19]["validation"], summary["validation"]);
  EXPECT_EQ(summary["best"]["metric"], "accuracy");
  const json model = Json("run/model.json");
  EXPECT_EQ(model["training_data"]["rows"], 64);
  EXPECT_EQ(model["metrics"]["validation"], summary["validation"]);
  EXPECT_EQ(model["metrics"]["test"], summary["test"]);

  // `evaluate` chooses the same rows again.
  EXPECT_NEAR(Metric("validation", "loss"),
              summary["validation"]["loss"].get<double>(), 1e-6);
  EXPECT_NEAR(Metric("test", "loss"), summary["test"]["loss"].get<double>(),
              1e-6);
  ASSERT_EQ(Run({"evaluate", Path("run"), "--data", "train", "--json"}), 0);
  EXPECT_EQ(json::parse(output_)["rows"], 64);
  Write("points.csv", Points() + "1,1,blue,cold\n");
  EXPECT_EQ(Run({"evaluate", Path("run"), "--data", "validation"}), 2);
  EXPECT_THAT(output_, HasSubstr("has changed since the run"));
}

TEST_F(ValidationTest, TheChoiceIsTheSameUnderEveryStrategyAndAfterAStop) {
  ASSERT_EQ(TrainWith("run", {"--servers", "2"}), 0) << output_;
  const std::string sha = Sha("run");
  ASSERT_EQ(TrainWith("reduce", {"--set", "strategy=all_reduce"}), 0)
      << output_;
  EXPECT_EQ(Sha("reduce"), sha);
  ASSERT_EQ(TrainWith("first", {"--set", "training.epochs=7"}), 0) << output_;
  ASSERT_EQ(Run({"train", "--resume", Path("first"), "--run-dir",
                 Path("second"), "--set", "training.epochs=20"}),
            0)
      << output_;
  EXPECT_EQ(Sha("second"), sha);
  EXPECT_EQ(Json("second/summary.json")["validation"],
            Json("run/summary.json")["validation"]);
  // One of the weights at the start, thirteen of epochs, one on the test set.
  EXPECT_EQ(Json("second/summary.json")["evaluations"].size(), 15u);
  // With tensor ranks and stages, the weights differ only by rounding.
  ASSERT_EQ(TrainWith("pipeline",
                      {"--set", "strategy={pipeline_parallel: {stages: 2}}",
                       "--set", "model={mlp: {in: 4, hidden: 8, out: 2}}"}),
            0)
      << output_;
  EXPECT_EQ(Json("pipeline/summary.json")["evaluations"].size(), 21u);
}

TEST_F(ValidationTest, AFractionThatLeavesNothingIsToldBeforeAnythingStarts) {
  std::string job = kDataRulesJob;
  job.replace(job.find("  batch_size"), 2, "  validation: 0.999\n  ");
  Write("job.yaml", job);
  EXPECT_EQ(Train(), 2);
  EXPECT_THAT(output_, HasSubstr("job.yaml:13: " + Path("points.csv") +
                                 ": the validation set has 80 of 80 rows, "
                                 "which leaves none to train on"));
}

// Twelve rows whose inputs say nothing about the class; three of them are hot.
constexpr char kRareJob[] = R"(name: rare
model:
  sequential:
    - linear: {in: 1, out: 2}
data:
  train: {csv: {path: rare.csv, columns: {label: label}}}
  test: {csv: {path: rare.csv}}
  global_batch_size: 12
  shuffle: none
training:
  steps: 300
  loss:
    cross_entropy: balanced
  optimizer: {sgd: {learning_rate: 0.5}}
cluster: {servers: 1, workers: 3}
)";

class ClassWeightsTest : public DataRulesTest {
 protected:
  void SetUp() override {
    DataRulesTest::SetUp();
    std::string csv = "x,label\n";
    for (int i = 0; i < 12; ++i) {
      csv += i % 3 == 0 && i < 9 ? "1,hot\n" : "1,cold\n";
    }
    Write("rare.csv", csv);
    Write("job.yaml", kRareJob);
  }
};

TEST_F(ClassWeightsTest, BalancedClassesAreEquallyProbableAtTheEnd) {
  ASSERT_EQ(Train(), 0) << output_;
  const json model = Json("run/model.json");
  const json loss = model["loss"]["cross_entropy"];
  EXPECT_EQ(loss["balanced"], false);
  EXPECT_EQ(loss["class_weights"], (json{12.0 / 18, 2.0}));
  // Both classes weigh 6, so the best guess is 1/2 for each, and the loss is
  // the mean of 12 weighted ln 2.
  const json test = Json("run/summary.json")["test"];
  EXPECT_NEAR(test["loss"].get<double>(), std::log(2.0), 1e-4);
  ASSERT_EQ(Run({"evaluate", Path("run"), "--json"}), 0) << output_;
  EXPECT_NEAR(json::parse(output_)["metrics"]["loss"].get<double>(),
              test["loss"].get<double>(), 1e-6);
}

TEST_F(ClassWeightsTest, NamedClassesKeepTheirOrder) {
  ASSERT_EQ(Train({"--set", "data.train.csv.classes=[hot, cold]", "--set",
                   "training.steps=20"}),
            0)
      << output_;
  const json model = Json("run/model.json");
  EXPECT_EQ(model["preprocessing"]["class_names"], (json{"hot", "cold"}));
  EXPECT_EQ(model["loss"]["cross_entropy"]["class_weights"],
            (json{2.0, 12.0 / 18}));
  ASSERT_EQ(Run({"predict", Path("run"), Path("rare.csv")}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("prediction,probability_hot,"
                                 "probability_cold\n"));
  ASSERT_EQ(Run({"evaluate", Path("run"), "--json"}), 0) << output_;
  EXPECT_NEAR(json::parse(output_)["metrics"]["loss"].get<double>(),
              Json("run/summary.json")["test"]["loss"].get<double>(), 1e-6);
  EXPECT_EQ(Run({"train", "--resume", Path("run"), "--run-dir", Path("again"),
                 "--set", "data.train.csv.classes=[cold, hot]", "--set",
                 "data.test.csv.classes=[]", "--set", "training.steps=40"}),
            1);
  EXPECT_THAT(output_, HasSubstr("the classes of the training data are not "
                                 "those of the checkpoint"));
}

// Each of three workers has 4 rows; one of them has all three hot ones.
TEST_F(ClassWeightsTest, OneWorkerAndThreeTrainAlike) {
  ASSERT_EQ(Train({"--set", "training.steps=20"}), 0) << output_;
  const double three = Json("run/summary.json")["test"]["loss"].get<double>();
  ASSERT_EQ(Run({"train", Path("job.yaml"), "--run-dir", Path("one"), "--set",
                 "training.steps=20", "--set", "cluster.workers=1"}),
            0)
      << output_;
  EXPECT_NEAR(Json("one/summary.json")["test"]["loss"].get<double>(), three,
              1e-6);
}

TEST_F(ClassWeightsTest, AListOfTheWrongLengthIsToldBeforeAnythingStarts) {
  EXPECT_EQ(Train({"--set",
                   "training.loss={cross_entropy: {class_weights: "
                   "[1, 2, 3]}}"}),
            2);
  EXPECT_THAT(output_,
              HasSubstr("training.loss.cross_entropy.class_weights has 3 "
                        "values, wanted one for each of the model's 2 "
                        "outputs"));
  std::string job = kRareJob;
  job.replace(job.find("balanced"), 8, "{class_weights: 1}");
  Write("job.yaml", job);
  EXPECT_EQ(Train(), 2);
  EXPECT_THAT(output_, HasSubstr("job.yaml:13: training.loss.cross_entropy."
                                 "class_weights has 1 value, wanted one"));
}

}  // namespace
}  // namespace tributary
