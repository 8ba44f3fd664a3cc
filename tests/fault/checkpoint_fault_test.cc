// SPDX-License-Identifier: Apache-2.0
// Checkpoints when directories are shared, files are damaged and processes are
// killed while they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/fault/checkpoint_fault_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
// ---- one folder, two jobs

TEST_F(CheckpointFaultTest, AFolderOfAnotherJobIsRefusedBeforeAnythingBegins) {
  auto first = Train("first", In("shared", 160));
  ASSERT_EQ(first->Wait(kSoon), 0) << first->output();
  const auto before = Folders("shared", true);
  ASSERT_EQ(before.size(), 3u);
  auto second = Train("second", In("shared", 16));
  EXPECT_EQ(second->Wait(kSoon), 2);
  EXPECT_THAT(second->output(),
              HasSubstr("checkpoint.directory " + Path("shared") +
                        " holds a checkpoint of step 640 of another job, "
                        "\"fault\""));
  EXPECT_THAT(second->output(), HasSubstr("--resume " + Path("shared")));
  EXPECT_FALSE(fs::exists(Path("second")));
  EXPECT_EQ(Folders("shared", true), before);
}

TEST_F(CheckpointFaultTest, OfTwoLivingJobsInOneFolderTheSecondIsRefused) {
  Write("job.yaml", Read("job.yaml") +
                        "checkpoint: {every_steps: 16, directory: " +
                        Path("shared") + "}\n");
  std::string address;
  auto first = Coordinate("first", &address);
  auto second = Train("second");
  EXPECT_EQ(second->Wait(kSoon), 2);
  EXPECT_THAT(second->output(),
              HasSubstr("checkpoint.directory " + Path("shared") +
                        " belongs to a job that has not ended"));
  EXPECT_FALSE(fs::exists(Path("second")));
  first->Signal(SIGKILL);
  EXPECT_EQ(first->Wait(kSoon), 128 + SIGKILL);
  auto third = Train("third");
  EXPECT_EQ(third->Wait(kSoon), 0)
      << "a killed job holds nothing: " << third->output();
}

TEST_F(CheckpointFaultTest, ARunIsResumedIntoItsOwnFolder) {
  auto train = Train("run", In("shared", 10));
  ASSERT_NE(WaitForCheckpoint(Path("shared")), "");
  train->Signal(SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 128 + SIGKILL);
  auto resumed = Start(
      {"tributary", "train", "--resume", "shared", "--run-dir", "resumed"});
  EXPECT_EQ(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_EQ(Sha256("resumed"), Undisturbed());
  EXPECT_EQ(Folders("shared", true).size(), 3u);
  EXPECT_THAT(Folders("shared", false), IsEmpty());
  EXPECT_EQ(Verify("shared").exit_code, 0) << Verify("shared").output;
}

// ---- the newest checkpoint is damaged while the job goes on

struct Damage {
  const char* label;
  // Damages the checkpoint; `shard` is one of its files.
  std::function<void(const std::string& folder, const std::string& shard)> act;
  std::string reason;
};

class DamagedNewestTest : public CheckpointFaultTest,
                          public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedNewestTest, EverybodyGoesBackToTheOneBeforeAndTheBitsStay) {
  auto train = TrainUntilTwoAreWhole();
  const auto whole = Folders("run/checkpoints", true);
  ASSERT_GE(whole.size(), 2u) << train->output();
  const std::string newest = Path("run/checkpoints/" + whole.back());
  GetParam().act(newest, ShardOf(newest, 1));
  kill(PidOf("run", "server 1"), SIGKILL);
  for (pid_t pid : workers_) kill(pid, SIGCONT);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("cannot be read, server"));
  EXPECT_THAT(train->output(), HasSubstr(GetParam().reason));
  EXPECT_THAT(train->output(),
              HasSubstr(absl::StrCat("/", whole[whole.size() - 2])));
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_GE(Summary("run")["lost"]["rollbacks"], 2);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=200"}));
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
}

void FlipByte(const std::string& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-100, std::ios::end);
  const char byte = static_cast<char>(stream.peek() ^ 4);
  stream.seekp(-100, std::ios::end);
  stream.put(byte);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, DamagedNewestTest,
    ::testing::Values(Damage{"FlippedBit",
                             [](const std::string&, const std::string& shard) {
                               FlipByte(shard);
                             },
                             "is damaged: its checksum is"},
                      Damage{"TruncatedShard",
                             [](const std::string&, const std::string& shard) {
                               fs::resize_file(shard, fs::file_size(shard) / 2);
                             },
                             "-e0001.ckpt: byte 0: "},
                      Damage{"MissingShard",
                             [](const std::string&, const std::string& shard) {
                               fs::remove(shard);
                             },
                             "open: No such file"},
                      Damage{"DamagedManifest",
                             [](const std::string& folder, const std::string&) {
                               FlipByte(folder + "/manifest.ckpt");
                             },
                             "manifest.ckpt: byte 0"},
                      Damage{"RemovedAltogether",
                             [](const std::string& folder, const std::string&) {
                               fs::remove_all(folder);
                             },
                             "manifest.ckpt: open: No such file"}),
    [](const auto& info) { return info.param.label; });

TEST_F(CheckpointFaultTest, WithoutAnyCheckpointEverybodyStartsOver) {
  auto train = TrainUntilTwoAreWhole();
  for (const std::string& name : Folders("run/checkpoints", true)) {
    fs::remove_all(Path("run/checkpoints/" + name));
  }
  kill(PidOf("run", "server 1"), SIGKILL);
  for (pid_t pid : workers_) kill(pid, SIGCONT);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("cannot be read, server"));
  EXPECT_THAT(train->output(),
              HasSubstr("there is no checkpoint: everybody starts over at the "
                        "beginning"));
  EXPECT_EQ(Summary("run")["lost"]["servers"], 1);
  EXPECT_GE(Summary("run")["lost"]["rollbacks"], 2);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=200"}));
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
}

TEST_F(CheckpointFaultTest, RanksGoBackToTheOneBeforeAsWell) {
  fewest_ports_ = 1;
  EditJob("cluster: {servers: 2, workers: 2, lease_seconds: 3}",
          "cluster: {servers: 0, workers: 2, lease_seconds: 3}\n"
          "strategy: {all_reduce: {}}");
  auto train = TrainUntilTwoAreWhole(/*workers_write=*/true);
  const auto whole = Folders("run/checkpoints", true);
  ASSERT_GE(whole.size(), 2u) << train->output();
  FlipByte(ShardOf(Path("run/checkpoints/" + whole.back()), 0));
  for (pid_t pid : workers_) kill(pid, SIGKILL);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("cannot be read, rank "));
  EXPECT_THAT(train->output(),
              HasSubstr(absl::StrCat("/", whole[whole.size() - 2])));
  EXPECT_EQ(Summary("run")["lost"]["workers"], 2);
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=200"}));
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

// A server is stopped while it writes its file and loses its place. It
// continues after its successor has written the same step, which was computed
// again.
TEST_F(CheckpointFaultTest, AServerThatHasLostItsPlaceWritesNobodysFile) {
  EditJob("epochs: 40", "epochs: 2000");
  Write("job.yaml", Read("job.yaml") +
                        "strategy: {parameter_server: {sync: {async: {}}}}\n"
                        "checkpoint: {every_steps: 16, keep: 1000}\n");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  std::vector<std::unique_ptr<RunningProcess>> members;
  members.push_back(Start({"tributary-server", "--coordinator", address}));
  const std::string point = "shard-file-before-rename:3";
  SetFailpoints(point + ":stop");
  auto zombie = Start({"tributary-server", "--coordinator", address});
  SetFailpoints("");
  for (int i = 0; i < 2; ++i) {
    members.push_back(Start({"tributary-worker", "--coordinator", address}));
  }
  ASSERT_TRUE(Eventually([&] { return Fired(point); }));
  members.push_back(Start({"tributary-server", "--coordinator", address}));
  const std::string again = Path("run/checkpoints/step-000000000048");
  ASSERT_TRUE(Eventually([&] { return fs::exists(again + "/manifest.ckpt"); }));
  zombie->Signal(SIGCONT);
  EXPECT_EQ(zombie->Wait(kSoon), 1) << zombie->output();
  EXPECT_EQ(Verify("run/checkpoints/step-000000000048").exit_code, 0)
      << Verify("run").output;
  coordinator->Signal(SIGINT);  // the last steps are not needed
  coordinator->Wait(kSoon);
  for (auto& member : members) member->Wait(kSoon);
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

// ---- the disk fails once

TEST_F(CheckpointFaultTest, ADiskErrorFailsThatCheckpointAlone) {
  SetFailpoints("shard-file-middle:3:error,manifest-before-rename:5:error");
  auto train = Train("run", {"--set", "checkpoint.every_steps=40"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  SetFailpoints("");
  EXPECT_TRUE(Fired("shard-file-middle:3"));
  EXPECT_TRUE(Fired("manifest-before-rename:5"));
  EXPECT_THAT(train->output(), HasSubstr(": write: Input/output error"));
  EXPECT_THAT(train->output(), HasSubstr("manifest.ckpt: fsync: Input/output"));
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
  EXPECT_THAT(Folders("run/checkpoints", false), IsEmpty());
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

// ---- a checkpoint is verified while it is removed

TEST_F(CheckpointFaultTest, WhatARunRemovesMeanwhileIsNotDamaged) {
  auto train = Train("run", {"--set", "checkpoint.every_steps=160"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  const auto whole = Folders("run/checkpoints", true);
  ASSERT_EQ(whole.size(), 3u);
  SetFailpoints("verify-before-read:3:stop");  // at the oldest checkpoint
  auto verify = Start({"tributary", "checkpoint", "verify", "run"});
  ASSERT_TRUE(Eventually([&] { return IsStopped(verify->pid()); }));
  EXPECT_TRUE(Fired("verify-before-read:3"));
  fs::remove(Path("run/checkpoints/" + whole[0] + "/manifest.ckpt"));
  fs::remove_all(Path("run/checkpoints/" + whole[0]));
  verify->Signal(SIGCONT);
  EXPECT_EQ(verify->Wait(kSoon), 0) << verify->output();
  EXPECT_THAT(verify->output(),
              HasSubstr(whole[0] + ": removed meanwhile, passed over"));
}

// ---- more servers than blocks

TEST_F(CheckpointFaultTest, ServersThatHoldNothingAreNotMissed) {
  EditJob(
      "model:\n  sequential:\n    - linear: {in: 16, out: 96}\n    - tanh\n"
      "    - dropout: {p: 0.1}\n    - linear: {in: 96, out: 1}",
      "model:\n  sequential:\n    - linear: {in: 16, out: 1, bias: false}");
  EditJob("servers: 2", "servers: 3");
  auto train = Train("run", {"--set", "checkpoint.every_steps=40"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), Not(HasSubstr("failed: wants file")));
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
  EXPECT_EQ(Verify("run").exit_code, 0) << Verify("run").output;
}

// ---- more checkpoints than can be written

TEST_F(CheckpointFaultTest, MoreCheckpointsThanTheDiskTakesDoNotDelayTheEnd) {
  fewest_ports_ = 1;
  EditJob("cluster: {servers: 2, workers: 2, lease_seconds: 3}",
          "cluster: {servers: 0, workers: 2, lease_seconds: 3}\n"
          "strategy: {data_parallel: {}}");
  auto train = Train("run", {"--set", "checkpoint.every_steps=2"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_LT(Summary("run")["seconds"], 50)
      << "the end waits 60 s for a checkpoint of which nobody tells";
  EXPECT_EQ(Folders("run/checkpoints", true).size(), 3u);
  EXPECT_THAT(Folders("run/checkpoints", false), IsEmpty());
}

}  // namespace
}  // namespace tributary
