// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include "common/files/safetensors.h"
#include "common/job/job_file.h"
#include "common/job/yaml/yaml_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

using JobPathsTest = testing::TemporaryFolderTest;

TEST_F(JobPathsTest, AMissingJobFileIsNotFound) {
  const auto job = ReadJobFile(Path("job.yaml"));
  EXPECT_EQ(job.status(),
            absl::NotFoundError(Path("job.yaml") + ": no such job file"));
}

TEST_F(JobPathsTest, AFolderIsNoJobFile) {
  const auto job = ReadJobFile(folder());
  EXPECT_EQ(job.status().message(),
            folder() + ": wants a job file, got a folder");
}

TEST_F(JobPathsTest, AnEmptyFileLacksAllThatAJobNeeds) {
  const auto job = ReadJobFile(Write("job.yaml", ""));
  EXPECT_EQ(job.status().message(), Path("job.yaml") +
                                        ": model and data are missing; or "
                                        "training.optimizer, if `tributary "
                                        "run` starts a program for this job");
}

TEST_F(JobPathsTest, AHugeFileIsRefused) {
  const auto job =
      ReadJobFile(Write("job.yaml", std::string(kMaxYamlBytes + 1, '#')));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ": wants at most 1048576 bytes");
}

TEST_F(JobPathsTest, TheLargestFileIsRead) {
  const std::string text = JobWith(0, "");
  EXPECT_TRUE(
      ReadJobFile(Write("job.yaml",
                        text + std::string(kMaxYamlBytes - text.size(), '#')))
          .ok());
}

TEST_F(JobPathsTest, PathsStartAtTheJobFileAndBecomeAbsolute) {
  Write("x.npy", "");
  Write("y.npy", "");
  const auto job = ReadJobFile(Write(
      "job.yaml",
      JobWith(7, "  train: {npy: {features: ./x.npy, labels: a/../y.npy}}")));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().train().npy().features(0), Path("x.npy"));
  EXPECT_EQ(job->data().train().npy().labels(0), Path("y.npy"));
}

// Every path travels in a message, whose strings are UTF-8.
TEST_F(JobPathsTest, AFolderWhoseNameIsNoUtf8IsRefused) {
  std::filesystem::create_directory(Path("\xff"));
  Write("\xff/x.npy", "");
  const auto job = ReadJobFile(
      Write("\xff/job.yaml",
            JobWith(7, "  train: {npy: {features: x.npy, labels: x.npy}}")));
  EXPECT_THAT(
      job.status().message(),
      ::testing::HasSubstr("data.train.npy.features wants a path in UTF-8"));
}

TEST_F(JobPathsTest, AMissingDataFileNamesANearOne) {
  Write("features.npy", "");
  const auto job = ReadJobFile(
      Write("job.yaml",
            JobWith(7, "  train: {npy: {features: feature.npy, labels: x}}")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") +
                ":7: data.train.npy.features wants a file, but " +
                Path("feature.npy") +
                " does not exist; did you mean \"features.npy\"?");
}

TEST_F(JobPathsTest, AFolderIsNoDataFile) {
  const auto job = ReadJobFile(
      Write("job.yaml",
            JobWith(7, "  train: {csv: {path: ., columns: {label: y}}}")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ":7: data.train.csv.path wants a file, but " +
                folder() + "/ is a folder");
}

TEST_F(JobPathsTest, TestDataIsReadAsTrainingDataIs) {
  Write("a.tsv", "");
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(7,
                                "  train: {csv: {path: a.tsv, header: false, "
                                "columns: {label: 0}, normalize: "
                                "standardize}}\n"
                                "  test: {csv: {path: a.tsv, rows: 10}}")));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().test().csv().columns().label(), "0");
  EXPECT_FALSE(job->data().test().csv().header());
  EXPECT_EQ(job->data().test().csv().delimiter(), "\t");
  EXPECT_TRUE(job->data().test().csv().normalize().standardize());
  // A change of the written job changes both sets, too.
  const auto changed = ParseJob(
      JobToYaml(*job), "job.yaml",
      {"data.train.csv.normalize={mean: 3, std: 2}",
       "data.train.csv.missing=mean", "data.train.csv.columns.label=1"});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->data().test().csv().normalize().mean(0), 3);
  EXPECT_TRUE(changed->data().test().csv().missing().mean());
  EXPECT_EQ(changed->data().test().csv().columns().label(), "1");
  EXPECT_EQ(changed->data().test().csv().rows(), 10);
}

// ---- initial weights

class InitialWeightsTest : public JobPathsTest {
 protected:
  // The error of the good job with these initial tensors, without its place.
  std::string ErrorWith(const ParameterSpecs& specs) const {
    std::vector<std::vector<float>> values;
    std::vector<const float*> data;
    for (const ParameterSpec& spec : specs) values.emplace_back(spec.size());
    for (const std::vector<float>& v : values) data.push_back(v.data());
    EXPECT_TRUE(WriteSafetensors(Path("init"), specs, data).ok());
    const auto job = ReadJobFile(Write(
        "job.yaml", JobWith(2, "  initialize_from: init\n  sequential:")));
    if (job.ok()) {
      EXPECT_EQ(job->model().initialize_from(), Path("init"));
      return "";
    }
    const std::string place =
        Path("job.yaml") + ":2: model.initialize_from: " + Path("init") + ": ";
    EXPECT_EQ(job.status().message().substr(0, place.size()), place);
    return std::string(job.status().message()).substr(place.size());
  }
};

TEST_F(InitialWeightsTest, TheModelsTensorsAreTaken) {
  EXPECT_EQ(ErrorWith({{"0.weight", {8, 20}},
                       {"0.bias", {8}},
                       {"2.weight", {1, 8}},
                       {"2.bias", {1}}}),
            "");
}

TEST_F(InitialWeightsTest, OtherNamesAndShapesAreRefused) {
  EXPECT_EQ(ErrorWith({{"0.weight", {8, 20}}}),
            "wants a tensor \"0.bias\" of shape [8], there is none; give it a "
            "rule in model.initialize_rules, {tensors: \"0.bias\", from: NAME} "
            "or {tensors: \"0.bias\", fresh: true}");
  EXPECT_EQ(
      ErrorWith({{"0.weight", {9, 20}}}),
      "wants tensor \"0.weight\" of shape [8, 20], got [9, 20]; a rule of "
      "model.initialize_rules with `fresh: true` starts it from the seed");
  EXPECT_EQ(ErrorWith({{"0.weight", {8, 20}},
                       {"0.bias", {8}},
                       {"2.weight", {1, 8}},
                       {"2.bias", {1}},
                       {"3.bias", {1}}}),
            "has a tensor \"3.bias\" that the model lacks; name it in "
            "model.initialize_unused, or as `from` in a rule of "
            "model.initialize_rules");
}

TEST_F(InitialWeightsTest, ARuleIsNamedWithItsLine) {
  ASSERT_TRUE(WriteSafetensors(Path("init"), {}, {}).ok());
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(2,
                                "  initialize_from: init\n"
                                "  initialize_rules:\n"
                                "    - {tensors: \"0.*\", fresh: true}\n"
                                "    - {tensors: \"2.*\", from: \"head.*\"}\n"
                                "  sequential:")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") +
                ":5: model.initialize_rules.1.from: " + Path("init") +
                " has no tensor \"head.weight\" for "
                "\"2.weight\"");
}

TEST_F(InitialWeightsTest, RulesWithoutAFileAreRefused) {
  const auto error = [&](const std::string& field) {
    return std::string(
        ParseJob(JobWith(2, "  " + field + "\n  sequential:"), "job.yaml", {})
            .status()
            .message());
  };
  EXPECT_EQ(error("initialize_rules: [{tensors: \"*\", fresh: true}]"),
            "job.yaml:2: model.initialize_rules is about the file of "
            "model.initialize_from, which is missing");
  EXPECT_EQ(error("initialize_unused: a"),
            "job.yaml:2: model.initialize_unused is about the file of "
            "model.initialize_from, which is missing");
}

TEST_F(InitialWeightsTest, ATensorThatIsTakenMustBeOfFloats) {
  const std::string header =
      R"({"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  Write("init", file + header + std::string(8, '\0'));
  EXPECT_TRUE(ReadJobFile(Write("job.yaml",
                                JobWith(2,
                                        "  initialize_from: init\n"
                                        "  initialize_rules:\n"
                                        "    - {tensors: \"*\", fresh: true}\n"
                                        "  initialize_unused: n\n"
                                        "  sequential:")))
                  .ok());
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(2,
                                "  initialize_from: init\n"
                                "  initialize_rules:\n"
                                "    - {tensors: 2.bias, from: n}\n"
                                "    - {tensors: \"*\", fresh: true}\n"
                                "  sequential:")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ":2: model.initialize_from: " + Path("init") +
                ": tensor \"n\" wants dtype F32, F16 or BF16, got \"I64\"");
}

TEST_F(InitialWeightsTest, ARunDirectoryGivesItsBestWeightsOrItsLast) {
  const ParameterSpecs specs = {{"0.weight", {8, 20}},
                                {"0.bias", {8}},
                                {"2.weight", {1, 8}},
                                {"2.bias", {1}}};
  const std::vector<float> zeros(160);
  const std::vector<const float*> data(specs.size(), zeros.data());
  std::filesystem::create_directory(Path("run"));
  const std::string path =
      Write("job.yaml", JobWith(2, "  initialize_from: run\n  sequential:"));
  EXPECT_EQ(ReadJobFile(path).status().message(),
            Path("job.yaml") +
                ":2: model.initialize_from wants a safetensors file or a run "
                "directory with weights, but " +
                Path("run") +
                " has neither best.safetensors nor weights.safetensors; "
                "`tributary export` writes those of a checkpoint");
  for (const char* name : {"run/weights.safetensors", "run/best.safetensors"}) {
    ASSERT_TRUE(WriteSafetensors(Path(name), specs, data).ok());
    const auto job = ReadJobFile(path);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->model().initialize_from(), Path(name));
  }
}

TEST_F(InitialWeightsTest, ARecordedJobIsReadWithoutItsFiles) {
  std::filesystem::create_directory(Path("run"));
  const std::string path = Write(
      "run/job.yaml", JobWith(2, "  initialize_from: /gone\n  sequential:"));
  EXPECT_FALSE(ReadJobFile(path).ok());
  const auto job = ReadRecordedJob(Path("run"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model().initialize_from(), "/gone");
  EXPECT_EQ(job->training().epochs(), 2);
}

TEST_F(InitialWeightsTest, AFileOfAnotherFormatIsRefused) {
  Write("init", "none");
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(2, "  initialize_from: init\n  sequential:")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ":2: model.initialize_from: " + Path("init") +
                ": not a safetensors file: wants at least 8 bytes, got 4");
}

TEST_F(JobPathsTest, APatternStandsForItsFilesInTheOrderOfTheirNames) {
  for (const char* name :
       {"x_2.npy", "x_1.npy", "x_10.npy", "y_1.npy", "y_2.npy", "y_10.npy"}) {
    Write(name, "");
  }
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(7,
                                "  train: {npy: {features: \"x_*.npy\", "
                                "labels: [\"y_1*.npy\", y_2.npy]}}")));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::NpySource& source = job->data().train().npy();
  EXPECT_THAT(source.features(),
              ElementsAre(Path("x_1.npy"), Path("x_10.npy"), Path("x_2.npy")));
  EXPECT_THAT(source.labels(),
              ElementsAre(Path("y_1.npy"), Path("y_10.npy"), Path("y_2.npy")));
}

// In bytes "." is before "0", and "0" is before "_".
TEST_F(JobPathsTest, PatternsDoNotPairFilesOfDifferentNumbers) {
  for (const char* name : {"p1.npy", "p10.npy", "p2.npy", "p1_y.npy",
                           "p10_y.npy", "p2_y.npy", "z01.npy", "z02.npy",
                           "z10.npy", "f1_32.npy", "f10_32.npy", "f2_32.npy"}) {
    Write(name, "");
  }
  const auto read = [this](const std::string& features,
                           const std::string& labels) {
    return ReadJobFile(
               Write("job.yaml",
                     JobWith(
                         7, absl::StrCat("  train: {npy: {features: ", features,
                                         ", labels: ", labels, "}}"))))
        .status();
  };
  EXPECT_EQ(read("\"p*[0-9].npy\"", "\"p*_y.npy\"").message(),
            Path("job.yaml") +
                ":7: data.train.npy.features would be read with " +
                Path("p1.npy") + " beside " + Path("p10_y.npy") +
                ", because matches of a pattern are in the order of their "
                "bytes; name the files in their order, or rename them so that "
                "both lists sort alike, as with numbers of equally many "
                "digits");
  EXPECT_THAT(read("\"p*[0-9].npy\"", "\"z*.npy\"").message(),
              ::testing::HasSubstr("p10.npy beside "));
  EXPECT_THAT(read("\"f*.npy\"", "\"p*[0-9].npy\"").message(),
              ::testing::HasSubstr("f10_32.npy beside "));
  TRIBUTARY_EXPECT_OK(read("\"f*.npy\"", "\"p*_y.npy\""));
  TRIBUTARY_EXPECT_OK(read("\"p*[0-9].npy\"", "\"p*[0-9].npy\""));
  TRIBUTARY_EXPECT_OK(
      read("[p1.npy, p2.npy, p10.npy]", "[p1_y.npy, p2_y.npy, p10_y.npy]"));
}

TEST_F(JobPathsTest, APatternThatMatchesNothingIsNamedWithItsLine) {
  const auto job = ReadJobFile(Write(
      "job.yaml",
      JobWith(7,
              "  train: {csv: {path: \"none_*.csv\", columns: {label: y}}}")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") +
                ":7: data.train.csv.path wants files, but none matches " +
                Path("none_*.csv"));
}

}  // namespace
}  // namespace tributary
