// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs/find_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/jobs/run_outcome.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

KnownJob Known(const std::string& name, CoordinatorLife life,
               const std::string& run = "") {
  KnownJob known;
  known.job.name = name;
  known.job.coordinator = "127.0.0.1:" + std::to_string(4000 + name.size());
  known.job.run_directory = run;
  known.life = life;
  return known;
}

std::string ChosenName(const JobChoice& choice,
                       const std::vector<KnownJob>& jobs) {
  const auto chosen = ChooseJob(choice, jobs);
  if (!chosen.ok()) return std::string(chosen.status().message());
  return chosen->has_value() ? (*chosen)->job.name : "none";
}

TEST(ChooseJobTest, TheOnlyOneThatRunsNeedsNoName) {
  const KnownJob runs = Known("runs", CoordinatorLife::kRuns);
  const KnownJob gone = Known("gone", CoordinatorLife::kGone);
  const KnownJob far = Known("elsewhere", CoordinatorLife::kElsewhere);
  EXPECT_EQ(ChosenName({}, {gone, runs}), "runs");
  EXPECT_EQ(ChosenName({}, {runs, gone}), "runs");
  EXPECT_EQ(ChosenName({}, {gone}), "gone") << "so that its end can be told";
  EXPECT_THAT(ChosenName({}, {runs, far}),
              AllOf(HasSubstr("several jobs of yours run here: runs (coord"),
                    HasSubstr("elsewhere")));
  EXPECT_TRUE(absl::IsNotFound(ChooseJob({}, {}).status()));
}

TEST(ChooseJobTest, ByNameTheOneThatRuns) {
  const KnownJob first = Known("digits", CoordinatorLife::kGone, "/first");
  const KnownJob second = Known("digits", CoordinatorLife::kRuns, "/second");
  const KnownJob third = Known("digits", CoordinatorLife::kStopped, "/third");
  const JobChoice digits{.job = "digits"};
  EXPECT_EQ((*ChooseJob(digits, {first, second}))->job.run_directory,
            "/second");
  EXPECT_THAT(ChosenName(digits, {second, third}),
              AllOf(HasSubstr("several jobs are named \"digits\""),
                    HasSubstr("/second"), HasSubstr("/third")));
  EXPECT_THAT(ChosenName({.job = "digist"}, {second}),
              HasSubstr("did you mean digits?"));
  EXPECT_THAT(ChosenName({.job = "10.0.0.1:7070"}, {second}),
              HasSubstr("; for an address, give --coordinator 10.0.0.1:7070"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ChooseJob({.job = "else"}, {second}).status()));
}

TEST(ChooseJobTest, ACoordinatorNeedNotBeRegistered) {
  const KnownJob runs = Known("runs", CoordinatorLife::kRuns);
  EXPECT_EQ(ChosenName({.coordinator = runs.job.coordinator}, {runs}), "runs");
  EXPECT_EQ(ChosenName({.coordinator = "node-b:7070"}, {runs}), "none");
  // A killed process says nothing about the one that listens there now.
  const KnownJob gone = Known("gone", CoordinatorLife::kGone);
  EXPECT_EQ(ChosenName({.coordinator = gone.job.coordinator}, {gone}), "none");
}

class FindJobTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { std::filesystem::create_directory(Path("run")); }

  const JobRegister register_{Path("jobs")};
};

TEST_F(FindJobTest, ARunDirectoryThatHasEndedHasNoCoordinator) {
  Write("run/job.yaml", "name: digits\n");
  EXPECT_TRUE(absl::IsInvalidArgument(
      FindJob({.job = Path("run")}, register_).status()))
      << "a folder with a job file need not be a run directory";
  std::filesystem::create_directory(Path("run/logs"));
  const auto ended = FindJob({.job = Path("run")}, register_);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->client, nullptr);
  EXPECT_EQ(ended->Title(), Path("run"));
}

TEST_F(FindJobTest, ARunDirectoryMayLackSomeOfItsFiles) {
  EXPECT_FALSE(IsRunDirectory(""));
  for (const std::string file : {"job.yaml", "summary.json", "metrics.jsonl"}) {
    std::filesystem::create_directory(Path(file + "-alone"));
    Write(file + "-alone/" + file, "");
    EXPECT_FALSE(IsRunDirectory(Path(file + "-alone")))
        << "an ordinary folder may have " << file;
  }
  Write("run/job.yaml", "name: digits\n");
  Write("run/summary.json", R"({"status": "done"})");
  EXPECT_TRUE(FindJob({.job = Path("run")}, register_).ok())
      << "the logs of a finished run were removed";
  for (const std::string file : {"lock", "state", "totals"}) {
    std::filesystem::create_directory(Path("of-" + file));
    Write("of-" + file + "/coordinator." + file, "");
    EXPECT_TRUE(FindJob({.job = Path("of-" + file)}, register_).ok())
        << "job.yaml and logs were removed";
  }
}

// A loop of links cannot be looked at by root either.
TEST_F(FindJobTest, ARunDirectoryThatCannotBeReadIsNotCalledNone) {
  std::filesystem::create_symlink(Path("loop"), Path("loop"));
  EXPECT_THAT(FindJob({.job = Path("loop")}, register_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       Path("loop") + " cannot be read: Too many levels"));
  RegisteredJob job;
  job.name = Path("loop");
  job.coordinator = "127.0.0.1:7070";
  const auto entry = register_.Add(job).value();
  EXPECT_TRUE(FindJob({.job = job.name}, register_).ok())
      << "it is the name of a job";
}

TEST_F(FindJobTest, ARunDirectoryNamesItsCoordinator) {
  Write("run/job.yaml", "name: digits\n");
  std::filesystem::create_directory(Path("run/logs"));
  Write("run/coordinator.lock",
        "the coordinator at 10.0.0.1:7070 (node (b), pid 77)");
  const auto far = FindJob({.job = Path("run") + "/"}, register_);
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_EQ(far->known.life, CoordinatorLife::kElsewhere);
  EXPECT_EQ(far->known.job.host, "node (b)");
  EXPECT_EQ(far->known.job.pid, 77);
  ASSERT_NE(far->client, nullptr);
  EXPECT_EQ(far->client->address(), "10.0.0.1:7070");
  Write("run/coordinator.lock", "a coordinator (node-b, pid 77)");
  EXPECT_EQ(FindJob({.job = Path("run")}, register_)->client, nullptr);
}

TEST_F(FindJobTest, AListenerOnAllAddressesIsCalledOnThisHost) {
  RegisteredJob job;
  job.name = "digits";
  job.coordinator = "0.0.0.0:7070";
  const auto entry = register_.Add(job).value();
  EXPECT_EQ(FindJob({}, register_)->client->address(), "127.0.0.1:7070");
  EXPECT_TRUE(absl::IsInvalidArgument(
      FindJob({.job = "digits", .coordinator = "a:1"}, register_).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      FindJob({.coordinator = "no address"}, register_).status()));
}

class RunOutcomeTest : public testing::TemporaryFolderTest {};

TEST_F(RunOutcomeTest, ReadsTheSummary) {
  std::filesystem::create_directory(Path("run"));
  EXPECT_TRUE(absl::IsNotFound(ReadRunOutcome(Path("run")).status()));
  Write("run/summary.json", R"({"name": "a", "status": "interrupted",
      "steps": 812, "total_steps": null, "checkpoint_step": 800,
      "resume_command": "tributary train --resume run"})");
  const RunOutcome outcome = ReadRunOutcome(Path("run")).value();
  EXPECT_EQ(outcome.Text(), "stopped after step 812");
  EXPECT_EQ(outcome.checkpoint_step, 800);
  EXPECT_EQ(outcome.resume_command, "tributary train --resume run");
  Write("run/summary.json", R"({"status": "done", "steps": 1000,
      "total_steps": 1000, "skipped_steps": 9})");
  EXPECT_EQ(ReadRunOutcome(Path("run"))->Text(),
            "done after step 1,000 of 1,000 (9 of 1,000 steps changed nothing, "
            "because a gradient was not finite)");
  Write("run/summary.json", "{");
  EXPECT_TRUE(absl::IsDataLoss(ReadRunOutcome(Path("run")).status()));
  std::filesystem::create_directories(Path("folder/summary.json"));
  EXPECT_TRUE(absl::IsDataLoss(ReadRunOutcome(Path("folder")).status()));
}

TEST_F(RunOutcomeTest, TheCommandNamesThePlaceToWhichTheRunWasMoved) {
  const std::string checkpoints = Path("my run/checkpoints");
  ASSERT_TRUE(testing::CheckpointModel().Write(checkpoints, 8, 1).ok());
  const auto command = [this](const std::string& recorded) {
    const nlohmann::json summary = {{"run_directory", "/old/it's"},
                                    {"resume_command", recorded}};
    Write("my run/summary.json", summary.dump());
    return ReadRunOutcome(Path("my run"))->resume_command;
  };
  EXPECT_EQ(command(R"(tributary train --resume '/old/it'\''s' --insecure)"),
            "tributary train --resume '" + Path("my run") + "' --insecure");
  const std::string run =
      R"(tributary run --resume '/old/it'\''s' python '/old/it'\''s')";
  EXPECT_EQ(command(run), "tributary run --resume '" + Path("my run") +
                              R"(' python '/old/it'\''s')");
  for (const std::string elsewhere :
       {"tributary train --resume /kept", "tributary train --resume /old/it",
        R"(tributary train --resume '/old/it'\''s'\'' twin')"}) {
    EXPECT_EQ(command(elsewhere), elsewhere);
  }
  std::filesystem::remove_all(checkpoints);
  EXPECT_EQ(command(run), "") << "there is nothing to continue from";
}

}  // namespace
}  // namespace tributary
