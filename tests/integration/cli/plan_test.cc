// SPDX-License-Identifier: Apache-2.0
// `tributary plan` and the measurements of `tributary-worker`, as real
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::StartsWith;

constexpr char kPlanJob[] = R"(name: small
model:
  sequential:
    - linear: {in: 20, out: 64}
    - relu
    - linear: {in: 64, out: 1}
data:
  train: {synthetic: {kind: linear, rows: 100}}
  batch_size: 10
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";

// A convolution does not determine the size of its images.
constexpr char kImages[] = R"(name: images
model: {cnn: {image: 8, channels: [2], hidden: 5, classes: 3}}
data:
  train: {npy: {features: job.yaml, labels: job.yaml}}
  batch_size: 10
training: {steps: 5, loss: cross_entropy, optimizer: {sgd: {learning_rate: 1}}}
)";

class PlanTest : public testing::TemporaryFolderTest {
 protected:
  PlanTest() {
    Write("job.yaml", kPlanJob);
    Write("images.yaml", kImages);
  }

  std::unique_ptr<testing::RunningProcess> Start(
      std::vector<std::string> words) {
    words[0] = testing::Program(words[0]);
    return testing::RunningProcess::Start(
        {.command = words, .folder = folder()});
  }
  std::string Run(std::vector<std::string> words, int exit_code = 0) {
    auto process = Start(std::move(words));
    EXPECT_EQ(process->Wait(kSoon), exit_code) << process->output();
    return process->output();
  }
};

TEST_F(PlanTest, NamesTheFastestOfAllStrategies) {
  const std::string text =
      Run({"tributary", "plan", "job.yaml", "--workers", "4", "--servers", "2",
           "--compute", "10", "--bandwidth", "1Gbit", "--latency", "0.2ms"});
  EXPECT_THAT(text, StartsWith("small: 1409 parameters"));
  EXPECT_THAT(text, HasSubstr("parameter_server, 2 servers"));
  EXPECT_THAT(text, HasSubstr("pipeline_parallel:2:1f1b:"));
  EXPECT_THAT(text, HasSubstr("\nfastest over these links: "));
  // Three layers cannot form four stages.
  EXPECT_THAT(text, HasSubstr("\nleft out: pipeline_parallel:4:1f1b:4: "
                              "strategy.pipeline_parallel.stages must be "));
}

// 1,409 floats and two servers: the worker sends 5,636 bytes.
TEST_F(PlanTest, WritesJson) {
  const nlohmann::json json = nlohmann::json::parse(
      Run({"tributary", "plan", "job.yaml", "--workers", "4", "--servers", "2",
           "--compute", "10", "--bandwidth", "1Gbit", "--json"}));
  bool found = false;
  for (const auto& strategy : json["strategies"]) {
    if (strategy["name"] != "parameter_server, 2 servers") continue;
    found = true;
    EXPECT_EQ(strategy["bytes_sent_per_rank"], 4 * 1409);
    EXPECT_EQ(strategy["bytes_per_step"], 2 * 4 * 4 * 1409);
    EXPECT_GT(strategy["step_seconds"], 0);
  }
  EXPECT_TRUE(found) << json;
}

TEST_F(PlanTest, TheFarEndOfALinkIsOpenToOthersOnlyIfAsked) {
  auto closed = Start({"tributary-worker", "--serve-links", "0.0.0.0:0"});
  EXPECT_EQ(closed->Wait(kSoon), 1);
  EXPECT_THAT(closed->output(), HasSubstr("--insecure-groups allows it"));
  auto open = Start(
      {"tributary-worker", "--serve-links", "0.0.0.0:0", "--insecure-groups"});
  EXPECT_TRUE(open->WaitForOutput("listening on port ", kSoon));
}

TEST_F(PlanTest, MeasuresTheModelAndTheLink) {
  auto far_end = Start({"tributary-worker", "--serve-links", "127.0.0.1:0"});
  ASSERT_TRUE(far_end->WaitForOutput("listening on port ", kSoon));
  ASSERT_TRUE(far_end->WaitForOutput("\n", kSoon));
  const std::string port =
      std::string(absl::StripAsciiWhitespace(far_end->output().substr(18)));
  const nlohmann::json json = nlohmann::json::parse(
      Run({"tributary", "plan", "job.yaml", "--workers", "2", "--measure",
           "--probe", absl::StrCat("127.0.0.1:", port), "--json"}));
  EXPECT_EQ(json["measured"], true);
  EXPECT_GT(json["forward_flops_per_second"], 0);
  EXPECT_GT(json["bandwidth_bytes_per_second"], 1e6);
}

std::string Measured(const std::string& passes) {
  return absl::StrCat(R"({"sample_shape": [20], "update_seconds": 1e-3, )",
                      R"("memory_bandwidth": 1e9, "process_bytes": 1, )",
                      R"("peak_bytes": 1, "passes": [)", passes, "]}\n");
}

std::string Pass(int rows, double seconds) {
  return absl::StrCat(R"({"rows": )", rows, R"(, "forward_seconds": )", seconds,
                      R"(, "backward_seconds": )", seconds, "}");
}

// The layers 20 -> 64 -> 1 need 2,817 FLOPs per sample in a forward pass. In
// the two measurements four more samples take 12 ms and 20 ms.
TEST_F(PlanTest, TakesAMeasurementFromAFile) {
  const auto plan = [this](const std::string& file, int exit_code) {
    return Run({"tributary", "plan", "job.yaml", "--measurement", file,
                "--bandwidth", "1Gbit", "--json"},
               exit_code);
  };
  Write("measured.json",
        Measured(absl::StrCat(Pass(1, 0.003), ", ", Pass(5, 0.015))) +
            Measured(absl::StrCat(Pass(1, 0.005), ", ", Pass(5, 0.025))));
  const nlohmann::json json = nlohmann::json::parse(plan("measured.json", 0));
  EXPECT_EQ(json["measured"], true);
  EXPECT_NEAR(json["forward_flops_per_second"].get<double>(), 2817 / 0.004, 1);
  EXPECT_EQ(json["own"]["name"], "parameter_server, 1 server");
  Write("nothing.json", Measured(""));
  EXPECT_THAT(plan("nothing.json", 2),
              HasSubstr("nothing.json: it holds no times"));
  EXPECT_THAT(plan("no.json", 1), HasSubstr("no.json: there is no such file"));
  EXPECT_THAT(plan("/dev/zero", 2), HasSubstr("wants at most 16777216 bytes"));
}

TEST_F(PlanTest, AShapeThatTheJobDoesNotTellIsAskedOfTheData) {
  // The features are not an array, and the worker reports that.
  EXPECT_THAT(Run({"tributary", "plan", "images.yaml", "--compute", "10",
                   "--bandwidth", "1Gbit"},
                  2),
              HasSubstr("job.yaml"));
  EXPECT_THAT(Run({"tributary", "plan", "images.yaml", "--compute", "10",
                   "--bandwidth", "1Gbit", "--sample-shape", "8x8"}),
              HasSubstr("fastest over these links: "));
  EXPECT_THAT(Run({"tributary", "plan", "images.yaml", "--compute", "10",
                   "--bandwidth", "1Gbit", "--sample-shape", "64"},
                  2),
              HasSubstr("samples of shape [64]: layer 0 (conv2d): "));
}

TEST_F(PlanTest, AWrongCommandLineGetsOneMessage) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "JOB"},
      {{"no.yaml", "--compute", "1", "--bandwidth", "1Gbit"}, "no.yaml"},
      {{"job.yaml", "--bandwidth", "1Gbit"}, "--compute GFLOPS or --measure"},
      {{"job.yaml", "--compute", "1"}, "--bandwidth RATE or --probe"},
      {{"job.yaml", "--compute", "1", "--bandwidth", "fast"},
       "--bandwidth: wanted a rate"},
      {{"job.yaml", "--compute", "1", "--bandwidth", "1Gbit", "--latency", "2"},
       "--latency: wanted a time"},
      {{"job.yaml", "--compute", "-1", "--bandwidth", "1Gbit"}, "--compute"},
      {{"job.yaml", "--workers", "0"}, "--workers"},
      {{"job.yaml", "--compute", "1", "--bandwidth", "1Gbit", "--sample-shape",
        "2by2"},
       "wanted a shape"},
  };
  for (const auto& [words, message] : wrong) {
    std::vector<std::string> command = {"tributary", "plan"};
    command.insert(command.end(), words.begin(), words.end());
    const std::string output = Run(command, 2);
    EXPECT_THAT(output, StartsWith("tributary: "));
    EXPECT_THAT(output, HasSubstr(message));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
  EXPECT_EQ(NumFiles(), 2) << "the jobs alone";
}

TEST_F(PlanTest, AFarEndThatIsNotThereIsSaid) {
  EXPECT_THAT(Run({"tributary", "plan", "job.yaml", "--compute", "1", "--probe",
                   "127.0.0.1:1"},
                  1),
              HasSubstr("cannot reach 127.0.0.1:1"));
}

TEST_F(PlanTest, HelpShowsAnExample) {
  EXPECT_THAT(Run({"tributary", "plan", "--help"}),
              HasSubstr("\n  tributary plan job.yaml "));
}

}  // namespace
}  // namespace tributary
