// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_claim.h"

#include <sys/wait.h>
#include <unistd.h>

#include "common/checkpoint/checkpoint_directory.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using testing::StatusIs;
namespace fs = std::filesystem;

class CheckpointClaimTest : public testing::TemporaryFolderTest {
 protected:
  absl::Status Check(uint64_t lineage, bool begins = true) const {
    return CheckLineage(folder(), lineage, begins);
  }

  CheckpointModel model_;  // job 7
};

TEST_F(CheckpointClaimTest, ADirectoryHasOneHolder) {
  auto first = CheckpointClaim::Take(Path("made/on/the/way"));
  TRIBUTARY_ASSERT_OK(first);
  EXPECT_THAT(CheckpointClaim::Take(Path("made/on/the/way")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "checkpoint.directory " + Path("made/on/the/way") +
                           " belongs to a job that has not ended"));
  TRIBUTARY_EXPECT_OK(CheckpointClaim::Take(Path("made/on/the")));
  EXPECT_TRUE(fs::is_empty(Path("made/on/the/way"))) << "no lock file stays";
  first->reset();
  TRIBUTARY_EXPECT_OK(CheckpointClaim::Take(Path("made/on/the/way")));
}

TEST_F(CheckpointClaimTest, WhoIsKilledHoldsNothing) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool held = CheckpointClaim::Take(folder()).ok();
    (void)!write(ready[1], held ? "y" : "n", 1);
    // The claim above is gone; this one lasts until the process is killed.
    const auto claim = CheckpointClaim::Take(folder());
    (void)!write(ready[1], claim.ok() ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char said[2] = {};
  ASSERT_EQ(read(ready[0], said, 1), 1);
  ASSERT_EQ(read(ready[0], said + 1, 1), 1);
  EXPECT_EQ(std::string(said, 2), "yy");
  EXPECT_FALSE(CheckpointClaim::Take(folder()).ok());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  TRIBUTARY_EXPECT_OK(CheckpointClaim::Take(folder()));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(CheckpointClaimTest, AnotherJobsCheckpointsAreRefusedByName) {
  EXPECT_TRUE(Check(8).ok()) << "nothing is there";
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  TRIBUTARY_EXPECT_OK(Check(7, /*begins=*/false));
  EXPECT_THAT(
      Check(8),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "checkpoint.directory " + folder() +
                   " holds a checkpoint of step 20 of another job, \"small\" "
                   "(lineage 7): give this job a folder of its own, or go on "
                   "with the other one: tributary train --resume " +
                   folder()));
  model_.job_id = 9;
  model_.lineage = 7;
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 2));
  TRIBUTARY_EXPECT_OK(Check(7, /*begins=*/false));
  EXPECT_FALSE(Check(9).ok()) << "the job is not its lineage";
}

TEST_F(CheckpointClaimTest, TheCommandOfTheAdviceCanBePasted) {
  const std::string spaced = Path("my dir's");
  TRIBUTARY_EXPECT_OK(model_.Write(spaced, 20, 2));
  EXPECT_THAT(
      CheckLineage(spaced, 8, /*begins=*/true),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "tributary train --resume '" + folder() + "/my dir'\\''s'"));
}

TEST_F(CheckpointClaimTest, ADamagedCheckpointIsAnothersForAJobThatBegins) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 1));
  Write("step-000000000020/manifest.ckpt", "damaged");
  EXPECT_THAT(Check(8), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 "of another job (lineage 7)"));
  TRIBUTARY_EXPECT_OK(Check(7, /*begins=*/false));
  fs::remove(Path("step-000000000020/shard-000-of-001.ckpt"));
  EXPECT_FALSE(Check(8).ok());
  TRIBUTARY_EXPECT_OK(Check(8, /*begins=*/false));
}

TEST_F(CheckpointClaimTest, WhatWasNeverACheckpointIsNoReason) {
  const auto made = OpenCheckpointFolder(folder(), 20);
  TRIBUTARY_ASSERT_OK(made);
  TRIBUTARY_EXPECT_OK(model_.WriteShard(*made, 20, 0, 2));
  TRIBUTARY_EXPECT_OK(Check(8));
}

}  // namespace
}  // namespace tributary
