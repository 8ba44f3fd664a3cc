// SPDX-License-Identifier: Apache-2.0
// Checkpoints with a keyed checksum: by servers, by ranks and with residuals.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr char kJob[] = R"(name: keyed
model: {mlp: {in: 16, hidden: [8], out: 1, activation: tanh}}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 200}}
  batch_size: 20
training: {steps: 12, loss: mse, optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9}}}
cluster: {servers: 2, workers: 2}
checkpoint: {every_steps: 6}
)";

class CheckpointKeyTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("job.yaml", kJob);
    Write("key", std::string(32, 'k'));
    Write("other", std::string(32, 'o'));
    Write("short", "abc");
  }
  // Runs a command; words that name files of the folder become their paths.
  int Run(const Words& words) {
    return Take(testing::RunProcess(Command(words)));
  }
  int Train(const std::string& run, Words words) {
    words.insert(words.begin(), {"train", "--run-dir", Path(run)});
    return Take(testing::RunWithEveryCheckpoint(Command(words), Path(run)));
  }
  Words Command(Words words) const {
    for (std::string& word : words) {
      if (fs::exists(Path(word))) word = Path(word);
    }
    words.insert(words.begin(), testing::Program("tributary"));
    return words;
  }
  int Take(const testing::ProcessResult& result) {
    output_ = result.output;
    return result.exit_code;
  }
  std::string Sha256(const std::string& run) const {
    return nlohmann::json::parse(Read(run + "/summary.json"))["weights_sha256"];
  }

  std::string output_;
};

TEST_F(CheckpointKeyTest, TheKeyIsASecretAndTravelsEncrypted) {
  EXPECT_EQ(Train("run", {"job.yaml", "--checkpoint-key", "key", "--insecure"}),
            2);
  EXPECT_THAT(output_, HasSubstr("--checkpoint-key wants TLS"));
  EXPECT_EQ(Train("run", {"job.yaml", "--checkpoint-key", "short"}), 2);
  EXPECT_THAT(output_, HasSubstr("at least 32 characters"));
  EXPECT_FALSE(fs::exists(Path("run")));
}

// The processes that write a checkpoint's files, and the options for that.
struct Writers {
  const char* name;
  Words words;
};

class CheckpointWritersTest : public CheckpointKeyTest,
                              public ::testing::WithParamInterface<Writers> {
 protected:
  int Train(const std::string& run, Words words) {
    words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
    return CheckpointKeyTest::Train(run, words);
  }
};

TEST_P(CheckpointWritersTest, OnlyWhoHasTheKeyGoesOn) {
  ASSERT_EQ(Train("plain", {"job.yaml"}), 0) << output_;
  ASSERT_EQ(Train("keyed", {"job.yaml", "--checkpoint-key", "key"}), 0)
      << output_;
  EXPECT_EQ(Sha256("keyed"), Sha256("plain"));
  const std::string step = "keyed/checkpoints/step-000000000006";
  EXPECT_EQ(Run({"checkpoint", "verify", step, "--checkpoint-key", "key"}), 0)
      << output_;
  EXPECT_EQ(Run({"checkpoint", "verify", step}), 0) << output_;
  EXPECT_EQ(Train("again", {"--resume", step, "--checkpoint-key", "key"}), 0)
      << output_;
  EXPECT_EQ(Sha256("again"), Sha256("plain"));

  EXPECT_EQ(Train("refused", {"--resume", step, "--checkpoint-key", "other"}),
            2);
  EXPECT_THAT(output_, HasSubstr("the keyed checksum is missing or wrong"));
  const std::string plain = "plain/checkpoints/step-000000000006";
  EXPECT_EQ(Run({"export", plain, Path("out"), "--checkpoint-key", "key"}), 1);
  EXPECT_THAT(output_, HasSubstr("the keyed checksum is missing or wrong"));
  EXPECT_FALSE(fs::exists(Path("out")));
}

INSTANTIATE_TEST_SUITE_P(
    By, CheckpointWritersTest,
    ::testing::Values(Writers{"Servers", {}},
                      Writers{"Ranks",
                              {"--set", "strategy.all_reduce={backend: gloo}",
                               "--set", "cluster.servers=0"}},
                      Writers{
                          "RanksWithResiduals",
                          {"--set", "strategy.parameter_server.wire=top_k"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tributary
