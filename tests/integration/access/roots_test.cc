// SPDX-License-Identifier: Apache-2.0
// Daemons that may read data and keep checkpoints only below some folders.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/soon.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::RunningProcess;
using Words = std::vector<std::string>;

using testing::kSoon;

constexpr char kJob[] = R"(name: rooted
model: {mlp: {in: 2, hidden: [2], out: 1}}
data:
  train: {csv: {path: data/train.csv, columns: {label: y}}}
  batch_size: 4
training: {steps: 4, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
checkpoint: {every_steps: 2, directory: kept/checkpoints}
)";

class RootsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("job.yaml", kJob);
    fs::create_directories(Path("data"));
    fs::create_directories(Path("kept"));
    fs::create_directories(Path("other"));
    Write("data/train.csv", "a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,3,5\n");
  }

  // Runs the job and returns the coordinator's exit code.
  int Run(const Words& server_words, const Words& worker_words) {
    coordinator_ = Start({"tributary-coordinator", "--job", "job.yaml",
                          "--run-dir", "run", "--listen", "127.0.0.1:0"});
    const std::string before = "rooted: coordinator ";
    if (!coordinator_->WaitForOutput(" waits for", kSoon)) return -1;
    std::string address = coordinator_->output();
    address.erase(0, address.find(before) + before.size());
    address.erase(address.find(' '));
    Words server = {"tributary-server", "--coordinator", address};
    server.insert(server.end(), server_words.begin(), server_words.end());
    Words worker = {"tributary-worker", "--coordinator", address};
    worker.insert(worker.end(), worker_words.begin(), worker_words.end());
    const auto first = Start(server);
    // A worker that failed before the server came would end the coordinator,
    // and the server would look for it for a minute.
    if (!coordinator_->WaitForOutput("registered server 0", kSoon)) return -1;
    const auto second = Start(worker);
    const int code = coordinator_->Wait(kSoon);
    first->Wait(kSoon);
    second->Wait(kSoon);
    return code;
  }
  const std::string& output() const { return coordinator_->output(); }

 private:
  std::unique_ptr<RunningProcess> Start(Words words) {
    words[0] = testing::Program(words[0]);
    return RunningProcess::Start({.command = words, .folder = folder()});
  }

  std::unique_ptr<RunningProcess> coordinator_;
};

TEST_F(RootsTest, AJobWithinTheRootsTrains) {
  EXPECT_EQ(
      Run({"--checkpoint-root", "kept"}, {"--data-root", "other", "--data-root",
                                          "data", "--checkpoint-root", "kept"}),
      0)
      << output();
  EXPECT_TRUE(fs::exists(Path("kept/checkpoints")));
}

TEST_F(RootsTest, AWorkerReadsNoDataElsewhere) {
  EXPECT_EQ(Run({}, {"--data-root", "other"}), 1);
  EXPECT_THAT(output(),
              HasSubstr(absl::StrCat("the job names ", Path("data/train.csv"),
                                     ", and this process has --data-root "
                                     "other")));
}

TEST_F(RootsTest, AServerWritesNoCheckpointsElsewhere) {
  EXPECT_EQ(Run({"--checkpoint-root", "other"}, {}), 1);
  EXPECT_THAT(output(), HasSubstr("kept/checkpoints, and this process has "
                                  "--checkpoint-root other"));
}

}  // namespace
}  // namespace tributary
