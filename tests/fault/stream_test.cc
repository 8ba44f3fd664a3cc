// SPDX-License-Identifier: Apache-2.0
// A training set that stays on disk: processes that are killed, stopped and
// replaced do not change the rows that the run sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/npy.h"

namespace tributary {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int64_t kRows = 6000, kWidth = 200;

// 4.8 MB in two files, five windows of a buffer of 1 MiB; 75 steps an epoch.
constexpr char kStreamedJob[] = R"(name: streamed
model: {mlp: {in: 200, hidden: [16], out: 4}}
data:
  train: {npy: {features: "x-*.npy", labels: "y-*.npy"}}
  test: {npy: {features: x-1.npy, labels: y-1.npy, rows: 500}}
  global_batch_size: 40
  stream: {buffer_bytes: 1048576}
training:
  epochs: 16
  loss: cross_entropy
  gradient_accumulation: 2
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
cluster: {servers: 2, workers: 2, lease_seconds: 3}
)";

class StreamTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    Write("job.yaml", kStreamedJob);
    uint32_t state = 1;
    for (int file = 1; file <= 2; ++file) {
      const int64_t rows = kRows / 2;
      std::vector<float> features(rows * kWidth);
      std::vector<int64_t> labels(rows);
      for (int64_t i = 0; i < rows; ++i) {
        labels[i] = i * 4 / rows;  // sorted
        for (int64_t j = 0; j < kWidth; ++j) {
          state = state * 1664525 + 1013904223;
          features[i * kWidth + j] = static_cast<float>(state >> 8) * 0x1p-24f +
                                     (j % 4 == labels[i] ? .3f : 0.f);
        }
      }
      testing::WriteNpy(Path(absl::StrCat("x-", file, ".npy")), {rows, kWidth},
                        features);
      testing::WriteNpy(Path(absl::StrCat("y-", file, ".npy")), {rows}, labels);
    }
  }

  std::string ShaOf(const std::string& run,
                    const std::vector<std::string>& words) {
    auto train = Train(run, words);
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    return Sha256(run);
  }
};

TEST_F(StreamTest, AKilledWorkerAndAStoppedRunChangeNothing) {
  const std::string undisturbed = ShaOf("whole", {});
  EXPECT_GT(Summary("whole")["test"]["accuracy"], 0.9);
  SetFailpoints("worker-mid-push:90:kill");  // in the second epoch
  EXPECT_EQ(ShaOf("killed", {}), undisturbed);
  EXPECT_TRUE(Fired("worker-mid-push:90"));
  EXPECT_EQ(Summary("killed")["lost"]["workers"], 1);
  SetFailpoints("");

  auto train = Train("stopped");
  ASSERT_TRUE(train->WaitForOutput("coordinator", kSoon));
  ASSERT_TRUE(Eventually([&] {
    const std::string lines = Read("stopped/metrics.jsonl");
    return std::count(lines.begin(), lines.end(), '\n') >= 100;
  }));
  train->Signal(SIGTERM);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGTERM) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("continue with: "));
  EXPECT_EQ(ShaOf("resumed", {"--resume", "stopped"}), undisturbed);
}

TEST_F(StreamTest, StrategiesHaveTheBitsOfTheServers) {
  const std::string servers = ShaOf("servers", {});
  EXPECT_EQ(ShaOf("ring", {"--set", "strategy={all_reduce: {}}"}), servers);
  EXPECT_EQ(ShaOf("threads", {"--set", "strategy={data_parallel: {}}"}),
            servers);
}

TEST_F(StreamTest, ABufferForAllRowsGivesTheBitsOfRowsInMemory) {
  EditJob("  stream: {buffer_bytes: 1048576}\n", "");
  const std::string memory = ShaOf("memory", {});
  EXPECT_EQ(ShaOf("large", {"--set", "data.stream.buffer_bytes=16777216"}),
            memory);
  EXPECT_NE(ShaOf("small", {"--set", "data.stream.buffer_bytes=1048576"}),
            memory);
}

TEST_F(StreamTest, AFileThatBecomesShorterEndsTheJobWithItsName) {
  auto train = Train("run", {"--set", "training.epochs=1000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000", kSoon)) << train->output();
  std::filesystem::resize_file(Path("x-2.npy"), 1000);
  EXPECT_EQ(train->Wait(kSoon), 1) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("x-2.npy: offset"));
  EXPECT_THAT(train->output(), HasSubstr("it was longer when the job began"));
}

TEST_F(StreamTest, ValuesThatChangeEndTheJobWithFileAndRows) {
  auto train = Train("run", {"--set", "training.epochs=1000"});
  ASSERT_TRUE(train->WaitForOutput("epoch 1/1000", kSoon)) << train->output();
  {
    std::fstream file(Path("x-2.npy"),
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(2'000'000);
    file << std::string(400, '\0');
    ASSERT_TRUE(file.flush().good());
  }
  EXPECT_EQ(train->Wait(kSoon), 1) << train->output();
  EXPECT_THAT(train->output(), ContainsRegex("x-2.npy: rows [0-9]+ to [0-9]+ "
                                             "have changed since the job "
                                             "began"));
}

}  // namespace
}  // namespace tributary
