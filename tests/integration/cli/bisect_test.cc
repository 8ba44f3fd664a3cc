// SPDX-License-Identifier: Apache-2.0
// `tributary bisect` on pairs of runs that differ in one thing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/cli/replayed_runs.h"
#include "tests/testing/checkpoint/flip_weight.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BisectTest : public testing::ReplayedRunsTest {
 protected:
  void SetUp() override {
    ReplayedRunsTest::SetUp();
    WriteJob("job.yaml", "cluster: {servers: 2, workers: 2}\n");
    Train("a");
  }
  // Bisects a and b, whose paths are removed from the text. The exit codes are
  // those of diff.
  json Bisect(int expected_code) {
    EXPECT_EQ(Run({"bisect", Path("a"), Path("b"), "--json"}), expected_code)
        << output_;
    const json found = json::parse(output_.substr(output_.find("{\n")), nullptr,
                                   /*allow_exceptions=*/false);
    if (!found.is_object()) return json::object();
    text_ = found["text"];
    for (size_t at; (at = text_.find(folder() + "/")) != std::string::npos;) {
      text_.erase(at, folder().size() + 1);
    }
    printf("%s\n", text_.c_str());
    return found;
  }
  // Replaces the loss of a recorded step.
  void SetLoss(const std::string& run, int step, double loss) const {
    std::string lines;
    for (json line : Metrics(run)) {
      if (line["step"] == step) line["loss"] = loss;
      lines += line.dump() + "\n";
    }
    Write(run + "/metrics.jsonl", lines);
  }

  std::string text_;
};

TEST_F(BisectTest, EqualRunsAreEqual) {
  Train("b", {"--servers", "1", "--set", "checkpoint.every_steps=20"});
  const json found = Bisect(0);
  EXPECT_EQ(found["equal"], true);
  EXPECT_EQ(found["steps_compared"], kSteps);
  EXPECT_EQ(found["states_compared"], 3);  // steps 20 and 40, final weights
  EXPECT_THAT(text_, HasSubstr("a and b are equal in all 40 steps"));
  EXPECT_THAT(text_, HasSubstr("Without effect on these steps: "
                               "checkpoint.every_steps is 10 and 20; "
                               "cluster.servers is 2 and 1"));
}

TEST_F(BisectTest, OneBitOfOneSampleIsFound) {
  WriteData("flipped.npy", /*flipped_row=*/123);
  Train("b", {"--set", "data.train.npy.features=flipped.npy"});
  const json found = Bisect(1);
  EXPECT_EQ(found["sample"]["row"], 123);
  EXPECT_EQ(found["sample"]["column"], 3);
  EXPECT_EQ(found["seen"], "gradient");
  EXPECT_EQ(found["tensor"], "0.weight");
  EXPECT_EQ(found["recomputed"], true);
  EXPECT_GE(found["step"], 1);
  EXPECT_LE(found["step"], 10);  // the first epoch
  EXPECT_THAT(text_,
              HasSubstr("Cause: the training data differ first in row 123, "
                        "column 3: "));
}

TEST_F(BisectTest, ChangedDataAtTheSamePlaceAreNamedByTheirChecksum) {
  WriteData("features.npy", /*flipped_row=*/123);
  Train("b");
  const json found = Bisect(1);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre(Path("a")));
  EXPECT_THAT(text_, HasSubstr("Cause, in a and now: checksum of the training "
                               "data is "));
}

TEST_F(BisectTest, RunsWhoseDataAreGoneAreComparedByTheirRecords) {
  Copy("a", "b");
  SetLoss("b", 17, 0.625);
  std::filesystem::remove(Path("features.npy"));
  const json found = Bisect(1);
  EXPECT_EQ(found["step"], 17);
  EXPECT_EQ(found["recomputed"], false);
  EXPECT_THAT(text_, HasSubstr("The steps were not computed again, so the "
                               "first difference may be earlier: a/job.yaml: "
                               "data.train.npy.features wants a file, but "
                               "features.npy does not exist."));
}

TEST_F(BisectTest, AnotherNumberOfThreadsChangesNothing) {
  TrainWith("OPENBLAS_NUM_THREADS", "2", "b");
  EXPECT_THAT(Json("b/environment.json")["ranks"][0]["arithmetic"].dump(),
              HasSubstr(", 1 thread,"));
  EXPECT_EQ(Bisect(0)["equal"], true);
}

TEST_F(BisectTest, AnotherNumberOfProcessorsIsToldAndChangesNothing) {
  Copy("a", "b");
  json environment = Json("b/environment.json");
  const int processors = environment["machine"]["processors"];
  environment["machine"]["processors"] = processors + 1;
  Write("b/environment.json", environment.dump());
  EXPECT_EQ(Bisect(0)["equal"], true);
  EXPECT_THAT(text_, HasSubstr("Without effect on these steps: number of "
                               "processors is " +
                               std::to_string(processors) + " and "));
}

TEST_F(BisectTest, AnotherLearningRateIsNamed) {
  Train("b", {"--set", "training.optimizer.adam.learning_rate=0.02"});
  const json found = Bisect(1);
  EXPECT_EQ(found["step"], 1);
  EXPECT_EQ(found["seen"], "weights");
  EXPECT_EQ(found["tensor"], "0.weight");
  ASSERT_EQ(found["causes"].size(), 1u);
  EXPECT_EQ(found["causes"][0]["what"],
            "training.optimizer.adam.learning_rate");
  EXPECT_THAT(
      text_,
      HasSubstr("a and b differ from step 1 on: its gradients are equal, and "
                "the weights after it differ, first tensor 0.weight. Cause: "
                "training.optimizer.adam.learning_rate is 0.01 and 0.02."));
}

// Changes the record as if another version of a library had computed the run.
TEST_F(BisectTest, AnotherVersionIsNamed) {
  Copy("a", "b");
  json environment = Json("b/environment.json");
  environment["versions"]["compiler"] = "99.1";
  Write("b/environment.json", environment.dump());
  SetLoss("b", 17, 0.625);
  const json found = Bisect(1);
  EXPECT_EQ(found["step"], 17);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre(Path("b")));
  EXPECT_THAT(text_,
              AllOf(HasSubstr("b differs from what its own job gives from step "
                              "17 on: its loss is recorded as 0.625 and "),
                    HasSubstr("a has recorded what its job gives. Cause, in b "
                              "and now: version of compiler is 99.1 and ")));
}

// OpenBLAS can be told to use the kernels of another kind of processor.
TEST_F(BisectTest, OtherKernelsOfTheMatrixProductsAreNamed) {
  TrainWith("OPENBLAS_CORETYPE", "Nehalem", "b");
  if (Metrics("b")[kSteps - 1]["loss"] == Metrics("a")[kSteps - 1]["loss"]) {
    GTEST_SKIP() << "the kernels of this machine give the same bits";
  }
  const json found = Bisect(1);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre(Path("b")));
  EXPECT_EQ(found["causes"][0]["kind"], "arithmetic");
  EXPECT_THAT(text_, HasSubstr("kernels Nehalem and "));
}

TEST_F(BisectTest, AFlippedBitOfACheckpointIsFound) {
  Copy("a", "b");
  TRIBUTARY_EXPECT_OK(testing::FlipWeight(
      Path("b/checkpoints/step-000000000020"), /*parameter=*/6, 5));
  const json found = Bisect(1);
  EXPECT_EQ(found["step"], 20);
  EXPECT_EQ(found["tensor"], "4.weight");
  EXPECT_EQ(found["equal_up_to"], 10);
  EXPECT_EQ(found["causes"][0]["kind"], "fault");
  EXPECT_EQ(text_,
            "b differs from what its own job gives from step 20 on: in the "
            "checkpoint of step 20 tensor 4.weight (1 of 32 elements) is the "
            "first that differs. a has recorded what its job gives. Job, data, "
            "versions and processor are equal: the cause is a fault of memory "
            "or disk, or a program that is not deterministic.");
}

// The checkpoints of the last step are equal; only the final weights differ.
TEST_F(BisectTest, ChangedFinalWeightsAreFound) {
  Copy("a", "b");
  std::string bytes = Read("b/weights.safetensors");
  bytes.back() ^= 1;  // of 4.bias, the last tensor
  Write("b/weights.safetensors", bytes);
  json found = Bisect(1);
  EXPECT_EQ(found["step"], kSteps);
  EXPECT_EQ(found["seen"], "weights");
  EXPECT_EQ(found["different_elements"], 1);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre(Path("b")));
  EXPECT_EQ(found["causes"][0]["kind"], "file");
  EXPECT_THAT(text_,
              AllOf(HasSubstr("b/weights.safetensors was changed after the "
                              "run: the sha256 of its weights begins with "),
                    HasSubstr("the first that differs from the checkpoint of "
                              "step 40. The losses and checkpoints of a and b "
                              "are equal.")));

  // The weights of another run, with their checksum.
  Train("c", {"--set", "training.optimizer.adam.learning_rate=0.02"});
  std::filesystem::copy(Path("c/weights.safetensors"),
                        Path("b/weights.safetensors"),
                        std::filesystem::copy_options::overwrite_existing);
  json summary = Json("b/summary.json");
  summary["weights_sha256"] = Json("c/summary.json")["weights_sha256"];
  Write("b/summary.json", summary.dump());
  found = Bisect(1);
  EXPECT_EQ(found["seen"], "weights");
  EXPECT_THAT(text_, HasSubstr("in the weights of step 40 tensor 0.weight ("));
}

TEST_F(BisectTest, FinalWeightsThatCannotBeReadAreRefused) {
  Copy("a", "b");
  const std::string bytes = Read("b/weights.safetensors");
  Write("b/weights.safetensors", bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(Run({"bisect", Path("a"), Path("b")}), 2);
  EXPECT_THAT(output_, HasSubstr("b/weights.safetensors: "));
  std::filesystem::remove(Path("b/weights.safetensors"));
  EXPECT_EQ(Run({"bisect", Path("a"), Path("b")}), 2);
  EXPECT_THAT(output_, HasSubstr("b/weights.safetensors does not exist"));
}

// A bit of a weight flips while the run is down; the run continues with it.
TEST_F(BisectTest, AFlippedWeightThatARunWentOnWithIsFound) {
  Copy("a/checkpoints/step-000000000020", "step-000000000020");
  TRIBUTARY_EXPECT_OK(
      testing::FlipWeight(Path("step-000000000020"), /*parameter=*/0, 9));
  ASSERT_EQ(Run({"train", "--resume", Path("step-000000000020"), "--run-dir",
                 Path("b")}),
            0)
      << output_;
  ASSERT_NE(Metrics("b")[0]["loss"], Metrics("a")[20]["loss"]);
  json found = Bisect(1);
  EXPECT_EQ(found["step"], 20);
  EXPECT_EQ(found["tensor"], "0.weight");
  EXPECT_EQ(found["different_elements"], 1);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre(Path("b")));
  EXPECT_THAT(text_, HasSubstr("in the checkpoint of step 20, from which it "
                               "was resumed, tensor 0.weight (1 of 128"));

  // The run has copied this checkpoint.
  std::filesystem::remove_all(Path("step-000000000020"));
  EXPECT_EQ(Bisect(1)["step"], 20);

  std::filesystem::remove_all(Path("b/checkpoints/step-000000000020"));
  found = Bisect(1);
  EXPECT_EQ(found["step"], 21);
  EXPECT_EQ(found["seen"], "loss");
  EXPECT_EQ(found["tensor"], "0.weight");
  EXPECT_THAT(text_, HasSubstr("The run was resumed after step 20."));
}

TEST_F(BisectTest, ARunThatWentOnFromAnothersCheckpointIsEqual) {
  ASSERT_EQ(Run({"train", "--resume", Path("a/checkpoints/step-000000000020"),
                 "--run-dir", Path("b")}),
            0)
      << output_;
  const json found = Bisect(0);
  EXPECT_EQ(found["steps_compared"], 20);
}

TEST_F(BisectTest, AChangedJobWhoseStartIsGoneIsComparedByItsRecord) {
  Copy("a/checkpoints/step-000000000020", "step-000000000020");
  ASSERT_EQ(
      Run({"train", "--resume", Path("step-000000000020"), "--run-dir",
           Path("b"), "--set", "training.optimizer.adam.learning_rate=0.02"}),
      0)
      << output_;
  json found = Bisect(1);
  EXPECT_EQ(found["step"], 21);
  EXPECT_EQ(found["seen"], "weights");
  EXPECT_EQ(found["recomputed"], true);

  std::filesystem::remove_all(Path("step-000000000020"));
  std::filesystem::remove_all(Path("b/checkpoints/step-000000000020"));
  found = Bisect(1);
  EXPECT_EQ(found["step"], 22);  // the first loss that differs
  EXPECT_EQ(found["recomputed"], false);
  EXPECT_THAT(text_, AllOf(HasSubstr("Cause: training.optimizer.adam."
                                     "learning_rate is 0.01 and 0.02."),
                           HasSubstr("b was resumed after step 20, and no "
                                     "checkpoint before step 21 is left")));
}

// Only run a has the job of the steps before 20.
TEST_F(BisectTest, TwoRunsWhoseStartIsGoneAreComparedByTheirRecords) {
  for (const char* run : {"b", "c"}) {
    ASSERT_EQ(Run({"train", "--resume", Path("a/checkpoints/step-000000000020"),
                   "--run-dir", Path(run), "--set",
                   "training.optimizer.adam.learning_rate=0.02"}),
              0)
        << output_;
    std::filesystem::remove_all(
        Path(std::string(run) + "/checkpoints/step-000000000020"));
  }
  std::filesystem::remove_all(Path("a"));
  std::filesystem::rename(Path("c"), Path("a"));
  SetLoss("b", 25, 0.625);
  const json found = Bisect(1);
  EXPECT_EQ(found["step"], 25);
  EXPECT_EQ(found["recomputed"], false);
  EXPECT_THAT(found["not_what_its_job_gives"], ElementsAre());
  EXPECT_THAT(text_, AllOf(HasSubstr("a was resumed after step 20, and no "
                                     "checkpoint before step 21 is left"),
                           Not(HasSubstr("Neither"))));
}

TEST_F(BisectTest, ARunOfFewerStepsIsEqualAsFarAsItGoes) {
  Train("b", {"--set", "training.steps=25"});
  const json found = Bisect(0);
  EXPECT_EQ(found["steps_compared"], 25);
  EXPECT_THAT(text_, HasSubstr("The last step of a is 40, that of b 25."));
}

TEST_F(BisectTest, OtherModelsAreToldApart) {
  Train("b", {"--set", "model.sequential.4={linear: {in: 16, out: 3}}"});
  const json found = Bisect(1);
  EXPECT_EQ(found["seen"], "model");
  EXPECT_THAT(text_,
              HasSubstr("The models of a and b differ: the shape of 4.weight "
                        "is [2, 16] and [3, 16]. So no step of the two can be "
                        "compared."));
}

TEST_F(BisectTest, RunsThatDependOnTimingAreComparedByTheirRecordsAlone) {
  std::filesystem::remove_all(Path("a"));
  for (const char* run : {"a", "b"}) {
    Train(run, {"--set", "strategy={parameter_server: {sync: async}}", "--set",
                "training.gradient_accumulation=1"});
  }
  SetLoss("b", 3, 0.625);
  const json found = Bisect(1);
  EXPECT_EQ(found["recomputed"], false);
  EXPECT_THAT(text_, HasSubstr("with sync: async they depend on timing"));
}

TEST_F(BisectTest, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(Run({"bisect", Path("a"), Path("none")}), 2);
  EXPECT_THAT(output_, HasSubstr("is no run directory"));
  Copy("a", "b");
  Write("b/metrics.jsonl", "");
  std::filesystem::remove_all(Path("b/checkpoints"));
  std::filesystem::remove(Path("b/weights.safetensors"));
  EXPECT_EQ(Run({"bisect", Path("a"), Path("b")}), 2);
  EXPECT_THAT(output_, HasSubstr("the runs have no step in common: "));
}

TEST_F(BisectTest, TheEnvironmentSaysWhatARunWasComputedWith) {
  const json environment = Json("a/environment.json");
  EXPECT_EQ(environment["format_version"], 1);
  EXPECT_EQ(environment["data"]["train"]["rows"], kRows);
  EXPECT_EQ(std::string(environment["data"]["train"]["checksum"]).size(), 8u);
  ASSERT_EQ(environment["ranks"].size(), 2u);
  EXPECT_THAT(environment["ranks"][1]["arithmetic"].dump(), HasSubstr("cpu, "));
  EXPECT_FALSE(std::string(environment["machine"]["processor"]).empty());
  EXPECT_GT(environment["machine"]["processors"], 0);
  EXPECT_EQ(environment["start"]["step"], 0);
  EXPECT_TRUE(environment["versions"].contains("tributary"));
}

}  // namespace
}  // namespace tributary
