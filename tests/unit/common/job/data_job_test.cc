// SPDX-License-Identifier: Apache-2.0
// Fields of a job about its rows and their weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/resolve.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

// The resolved fields of a job whose files need not exist.
v1::DataSpec DataOf(const std::string& data_lines) {
  Places places;
  v1::JobSpec job;
  EXPECT_TRUE(
      ReadFields(JobWith(7, data_lines), "job.yaml", {}, &places, &job).ok());
  const absl::Status resolved =
      ResolveFields("job.yaml", JobPart::kWhole, &places, &job);
  EXPECT_TRUE(resolved.ok()) << resolved;
  return job.data();
}

absl::Status DataError(const std::string& data_lines) {
  return ParseJob(JobWith(7, data_lines), "job.yaml", {}).status();
}

std::string Csv(const std::string& more) {
  return "  train: {csv: {path: a.csv, columns: {label: y}, " + more + "}}";
}

TEST(DataJobTest, MissingValuesAreOneWordOrAMapping) {
  EXPECT_TRUE(DataOf(Csv("missing: mean")).train().csv().missing().mean());
  EXPECT_TRUE(DataOf(Csv("missing: skip")).train().csv().missing().skip());
  const v1::MissingSpec missing =
      DataOf(Csv("missing: {constant: -1, texts: [NA, nan]}"))
          .train()
          .csv()
          .missing();
  EXPECT_EQ(missing.constant(), -1);
  EXPECT_THAT(missing.texts(), ElementsAre("NA", "nan"));
}

TEST(DataJobTest, ATestSourceInheritsTheRuleForMissingValues) {
  const std::string train = Csv("missing: {median: true, texts: NA}");
  const v1::DataSpec inherits =
      DataOf(train + "\n  test: {csv: {path: b.csv}}");
  EXPECT_TRUE(inherits.test().csv().missing().median());
  EXPECT_THAT(inherits.test().csv().missing().texts(), ElementsAre("NA"));
  const v1::DataSpec own =
      DataOf(train + "\n  test: {csv: {path: b.csv, missing: skip}}");
  EXPECT_TRUE(own.test().csv().missing().skip());
  EXPECT_EQ(own.test().csv().missing().texts_size(), 0);
}

TEST(DataJobTest, AWrongRuleForMissingValuesIsTold) {
  const auto error = [](const std::string& missing) {
    return DataError(Csv("missing: " + missing));
  };
  const auto is = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    "job.yaml:7: data.train.csv.missing" + message);
  };
  EXPECT_THAT(error("{texts: NA}"),
              is(" wants one of mean, median, constant, skip"));
  EXPECT_THAT(error("{mean: false}"), is(".mean can only be true"));
  EXPECT_THAT(error("{skip: false}"), is(".skip can only be true"));
  EXPECT_THAT(error("{constant: 1e39}"),
              is(".constant wants a number that float32 can hold"));
  EXPECT_THAT(error("avg"), StatusIs(absl::StatusCode::kInvalidArgument,
                                     "unknown field \"avg\""));
  EXPECT_THAT(error("{mean: true, constant: 0}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "constant and mean exclude each other"));
}

// Otherwise it is unset, and the reader may refuse a first row that is data.
TEST(DataJobTest, AHeaderIsOnlyCertainIfTheJobSaysSo) {
  EXPECT_FALSE(DataOf(Csv("missing: mean")).train().csv().has_header());
  EXPECT_TRUE(DataOf(Csv("header: true")).train().csv().header());
  const std::string test = "\n  test: {csv: {path: b.csv}}";
  EXPECT_FALSE(DataOf(Csv("missing: mean") + test).test().csv().has_header());
  EXPECT_TRUE(DataOf(Csv("header: true") + test).test().csv().header());
}

TEST(DataJobTest, NamesOfTabSeparatedFilesMayHaveCapitals) {
  for (const char* name : {"a.tsv", "a.TSV", "A.Tsv.GZ", "a.tsv.gz"}) {
    EXPECT_EQ(DataOf(absl::StrCat("  train: {csv: {path: ", name,
                                  ", columns: {label: y}}}"))
                  .train()
                  .csv()
                  .delimiter(),
              "\t")
        << name;
  }
  EXPECT_EQ(DataOf(Csv("header: true")).train().csv().delimiter(), ",");
}

// A change of the written job changes what it would have changed in the job
// file.
TEST(DataJobTest, AShuffleByTheSeedOfTheJobFollowsItInAWrittenJob) {
  const v1::JobSpec job = Parse(JobWith(0, ""), {"seed=4"});
  EXPECT_EQ(job.data().shuffle().seed(), 4u);
  EXPECT_EQ(Parse(JobToYaml(job), {"seed=5"}).data().shuffle().seed(), 5u);
  const v1::JobSpec own = Parse(JobWith(0, ""), {"data.shuffle.seed=9"});
  EXPECT_EQ(Parse(JobToYaml(own), {"seed=5"}).data().shuffle().seed(), 9u);
}

// Only the length of a text is taken from the training source.
TEST(DataJobTest, TheLengthOfAGeneratedTextStaysInAWrittenJob) {
  const std::string text = "synthetic: {kind: markov_text, length: 16, rows: ";
  const v1::JobSpec job = Parse(
      "model: {gpt: {layers: 1, dim: 8, heads: 2, length: 16, "
      "vocabulary: 16}}\n"
      "data: {train: {" +
      text + "100}}, test: {" + text +
      "20}}, batch_size: 20}\n"
      "training: {steps: 6, loss: cross_entropy, optimizer: adam}\n");
  EXPECT_EQ(Parse(JobToYaml(job)).SerializeAsString(), job.SerializeAsString());
}

TEST(DataJobTest, ATestSourceInheritsTheClasses) {
  const std::string train = Csv("classes: [none, 7, mild]");
  const auto classes = [](const std::string& lines) {
    return DataOf(lines).test().csv().classes();
  };
  EXPECT_THAT(classes(train + "\n  test: {csv: {path: b.csv}}"),
              ElementsAre("none", "7", "mild"));
  EXPECT_THAT(classes(train + "\n  test: {csv: {path: b.csv, classes: "
                              "[none, 7, mild]}}"),
              ElementsAre("none", "7", "mild"));
}

TEST(DataJobTest, OtherClassesOfATestSourceAreTold) {
  for (const char* classes : {"[a]", "[mild, none]"}) {
    EXPECT_THAT(
        DataError(absl::StrCat(
            Csv("classes: [none, mild]"),
            "\n  test: {csv: {path: b.csv, classes: ", classes, "}}")),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 "job.yaml:8: data.test.csv.classes wants the classes of "
                 "data.train in their order: name them in "
                 "data.train.csv.classes, and leave out "
                 "data.test.csv.classes"));
  }
}

TEST(DataJobTest, WrongClassesAreTold) {
  const auto error = [](const std::string& classes) {
    return DataError(Csv("classes: " + classes));
  };
  EXPECT_THAT(
      error("[a, b, a]"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "job.yaml:7: data.train.csv.classes.2 names class \"a\", "
               "which is named before"));
  EXPECT_THAT(error("['']"), StatusIs(absl::StatusCode::kInvalidArgument,
                                      "data.train.csv.classes.0 is empty"));
  EXPECT_THAT(error("[a, b]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.train.csv.classes is for losses of classes, and "
                       "mse wants numbers"));
}

// Names in a table may have several lines, if they are quoted.
TEST(DataJobTest, WordsOfATableMayHoldLineBreaks) {
  const v1::JobSpec job =
      Parse(JobWith(7,
                    "  train: {synthetic: {kind: linear, rows: 100}}\n"
                    "  test: {synthetic: {kind: linear, rows: 10}}"));
  v1::JobSpec table = job;
  v1::CsvSource* csv = table.mutable_data()->mutable_train()->mutable_csv();
  csv->add_path("a.csv");
  csv->mutable_columns()->set_label("price\n(EUR)");
  csv->mutable_columns()->add_numeric("a\nb");
  csv->add_classes("c\nd");
  table.mutable_data()->clear_test();
  Places places;
  v1::JobSpec again;
  ASSERT_TRUE(
      ReadFields(JobToYaml(table), "job.yaml", {}, &places, &again).ok());
  EXPECT_EQ(again.data().train().csv().columns().label(), "price\n(EUR)");
  EXPECT_THAT(again.data().train().csv().columns().numeric(),
              ElementsAre("a\nb"));
  EXPECT_THAT(again.data().train().csv().classes(), ElementsAre("c\nd"));
}

TEST(DataJobTest, ValidationIsAFractionOrASource) {
  const std::string train = Csv("missing: mean, delimiter: ;");
  EXPECT_EQ(DataOf(train + "\n  validation: 0.25").validation().fraction(),
            0.25);
  const v1::CsvSource inherits =
      DataOf(train + "\n  validation: {source: {csv: {path: v.csv}}}")
          .validation()
          .source()
          .csv();
  EXPECT_EQ(inherits.columns().label(), "y");
  EXPECT_EQ(inherits.delimiter(), ";");
  EXPECT_TRUE(inherits.missing().mean());
  const v1::DataSpec text = DataOf(
      "  train: {text: {path: a.txt, length: 8, end: 0.9}}\n"
      "  validation: {source: {text: {begin: 0.9}}}");
  EXPECT_EQ(text.validation().source().text().path(0), "a.txt");
  EXPECT_EQ(text.validation().source().text().length(), 8);
}

TEST(DataJobTest, ATestTextHasTheTokensOfTheTrainingText) {
  const auto job = [](const std::string& train, const std::string& test) {
    return "model: {gpt: {layers: 1, dim: 8, heads: 2, length: 8, "
           "vocabulary: 16}}\n"
           "data: {train: {text: {path: a.txt, length: 8" +
           train + "}}, test: {text: {path: b.txt" + test +
           "}}, batch_size: 2}\n"
           "training: {steps: 6, loss: cross_entropy, optimizer: adam}\n";
  };
  const auto parse = [](const std::string& text) {
    Places places;
    v1::JobSpec parsed;
    EXPECT_TRUE(ReadFields(text, "job.yaml", {}, &places, &parsed).ok());
    return ResolveJob("job.yaml", JobPart::kRecord, &places, &parsed);
  };
  EXPECT_TRUE(parse(job(", tokens: bytes", "")).ok());
  EXPECT_TRUE(parse(job(", tokens: bytes", ", tokens: bytes")).ok());
  EXPECT_THAT(parse(job("", ", tokens: bytes")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.test.text.tokens differs from data.train's"));
}

TEST(DataJobTest, WrongValidationIsTold) {
  const auto error = [](const std::string& validation) {
    return DataError(
        "  train: {synthetic: {kind: linear, rows: 100}}\n"
        "  validation: " +
        validation);
  };
  const auto is = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    "job.yaml:8: data.validation" + message);
  };
  for (const char* wrong : {"0", "1", "1.5", "-0.1"}) {
    EXPECT_THAT(error(wrong), is(".fraction must be above 0 and below 1, got"))
        << wrong;
  }
  EXPECT_THAT(error("{}"), is(" wants one of fraction, source"));
  EXPECT_THAT(error("{source: {csv: {path: a.csv, columns: {label: y}}}}"),
              is(".source wants the kind of data.train, synthetic, got csv"));
  EXPECT_THAT(error("{source: {synthetic: {kind: ctr, rows: 5}}}"),
              is(".source.synthetic.kind differs from data.train's"));
  EXPECT_THAT(error("{source: {csv: {path: none.csv}}, fraction: 0.1}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "fraction and source exclude each other"));
}

TEST(DataJobTest, AFractionOfRowsOnDiskIsRefused) {
  EXPECT_THAT(
      DataError(Csv("header: true") + "\n  stream: {}\n  validation: 0.1"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "job.yaml:9: data.validation takes a fraction of rows "
               "in memory; with data.stream name rows of their own"));
}

TEST(DataJobTest, AValidationSetIsEnoughForDecisions) {
  EXPECT_TRUE(Parse(JobWith(8, "  batch_size: 16\n  validation: 0.1"),
                    {"evaluation={keep_best: true}"})
                  .evaluation()
                  .keep_best());
}

// The settings that make the good job one of classes.
std::vector<std::string> ForClasses() {
  return {"data.train.synthetic.kind=markov_text",
          "model.sequential.0.linear.in=32",
          "model.sequential.2.linear.out=16"};
}

TEST(LossJobTest, ClassWeightsAreAListOrBalanced) {
  const auto loss = [](const std::string& text) {
    return Parse(JobWith(11, "  loss: {cross_entropy: " + text + "}"),
                 ForClasses())
        .training()
        .loss()
        .cross_entropy();
  };
  EXPECT_TRUE(loss("balanced").balanced());
  EXPECT_THAT(loss("{class_weights: [0, 5]}").class_weights(),
              ElementsAre(0, 5));
}

TEST(LossJobTest, WrongClassWeightsAreTold) {
  const auto error = [](const std::string& text) {
    return ParseJob(JobWith(11, "  loss:\n    cross_entropy:\n      " + text),
                    "job.yaml", ForClasses())
        .status();
  };
  EXPECT_THAT(error("class_weights: [1, -1]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job.yaml:13: training.loss.cross_entropy.class_weights."
                       "1 must be at least 0, got -1"));
  EXPECT_THAT(error("class_weights: [0, 0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job.yaml:13: training.loss.cross_entropy.class_weights "
                       "wants at least one above 0"));
  EXPECT_THAT(error("{balanced: true, class_weights: [1]}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "takes either balanced or class_weights"));
}

}  // namespace
}  // namespace tributary
