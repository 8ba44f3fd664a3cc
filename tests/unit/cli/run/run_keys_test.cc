// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

class RunKeysTest : public testing::TemporaryFolderTest {
 protected:
  // Leaves a run of the process with this id, whose keys are in its folder.
  void Leave(const std::string& run, int64_t pid) {
    fs::create_directories(Path(run + "/tls/operator"));
    Write(run + "/tls/operator/tls.key", "key");
    Enter(run, pid);
  }
  void Enter(const std::string& run, int64_t pid) {
    fs::create_directory(Path("jobs"));
    RegisteredJob job;
    job.run_directory = Path(run);
    job.host = HostName();
    job.pid = pid;
    Write(absl::StrCat("jobs/", job.host, "-", pid, ".json"),
          RegisteredJobJson(job));
  }
  bool HasKeys(const std::string& run) {
    return fs::exists(Path(run + "/tls"));
  }
};

// Above the highest id of a process (PID_MAX_LIMIT).
constexpr int64_t kNobody = int64_t{1} << 30;

TEST_F(RunKeysTest, ThoseOfKilledRunsAreRemoved) {
  Leave("killed", kNobody);
  Leave("lives", getpid());
  Leave("taken-over", kNobody + 1);
  Enter("taken-over", getppid());
  RunKeys::RemoveThoseOfGone(JobRegister(Path("jobs")));
  EXPECT_FALSE(HasKeys("killed"));
  EXPECT_TRUE(fs::exists(Path("killed")));
  EXPECT_TRUE(HasKeys("lives"));
  EXPECT_TRUE(HasKeys("taken-over"));
}

}  // namespace
}  // namespace tributary
