// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs/job_register.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "common/host/process_state.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

class JobRegisterTest : public testing::TemporaryFolderTest {
 protected:
  RegisteredJob Job() {
    RegisteredJob job;
    job.name = "digits \"1\"\n";
    job.job_id = 18446744073709551615ULL;
    job.coordinator = "127.0.0.1:4000";
    job.encrypted = true;
    job.run_directory = "/runs/a";
    job.command = kRunCommand;
    job.started_micros = 1'700'000'000'000'000;
    return job;
  }
  // A file as another process has left it.
  void Leave(const RegisteredJob& job) {
    fs::create_directory(folder_);
    Write(absl::StrCat("jobs/", job.host, "-", job.pid, ".json"),
          RegisteredJobJson(job));
  }

  const std::string folder_ = Path("jobs");
  const JobRegister register_{folder_};
};

TEST_F(JobRegisterTest, AJobIsThereAsLongAsItsEntry) {
  EXPECT_TRUE(register_.Read().empty());
  auto entry = register_.Add(Job()).value();
  const auto jobs = register_.Read();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].life, CoordinatorLife::kRuns);
  EXPECT_EQ(jobs[0].job.name, Job().name);
  EXPECT_EQ(jobs[0].job.job_id, Job().job_id);
  EXPECT_EQ(jobs[0].job.coordinator, Job().coordinator);
  EXPECT_TRUE(jobs[0].job.encrypted);
  EXPECT_EQ(jobs[0].job.run_directory, Job().run_directory);
  EXPECT_EQ(jobs[0].job.command, kRunCommand);
  EXPECT_EQ(jobs[0].job.started_micros, Job().started_micros);
  EXPECT_EQ(jobs[0].job.pid, getpid());
  entry.reset();
  EXPECT_TRUE(register_.Read().empty());
}

TEST_F(JobRegisterTest, TheUserAloneCanReadIt) {
  const auto entry = register_.Add(Job()).value();
  struct stat folder {
  }, file{};
  ASSERT_EQ(stat(folder_.c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  const std::string path =
      absl::StrCat(folder_, "/", HostName(), "-", getpid(), ".json");
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(JobRegisterTest, ALaterEntryOfTheProcessOwnsTheFile) {
  auto waiting = register_.Add(Job()).value();
  RegisteredJob run = Job();
  run.name = "run";
  const auto entry = register_.Add(run).value();
  waiting->Leave();
  waiting.reset();
  ASSERT_EQ(register_.Read().size(), 1u);
  EXPECT_EQ(register_.Read()[0].job.name, "run");
}

TEST_F(JobRegisterTest, AKilledProcessAndOneOfAnotherHostAreRecognized) {
  const auto entry = register_.Add(Job()).value();
  RegisteredJob killed = Job();
  killed.host = HostName();
  killed.pid = 1 << 30;  // above every pid
  killed.started_micros = 1;
  Leave(killed);
  RegisteredJob far = Job();
  far.host = "node-b";
  far.pid = 1;
  far.started_micros = 2;
  Leave(far);
  // Another process has got the pid of an earlier one.
  RegisteredJob reused = Job();
  reused.host = HostName();
  reused.pid = getppid();
  reused.start_ticks = LookAtProcess(getppid()).start_ticks + 1;
  reused.started_micros = 3;
  Leave(reused);
  const auto jobs = register_.Read();
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].life, CoordinatorLife::kGone);
  EXPECT_EQ(jobs[1].life, CoordinatorLife::kElsewhere);
  EXPECT_EQ(jobs[2].life, CoordinatorLife::kGone);
  EXPECT_EQ(jobs[3].life, CoordinatorLife::kRuns);
  register_.Drop(killed);
  EXPECT_EQ(register_.Read().size(), 3u);
}

TEST_F(JobRegisterTest, WhatIsLeftForADayGoesWithTheNextJob) {
  RegisteredJob killed = Job();
  killed.host = HostName();
  killed.pid = 1 << 30;
  Leave(killed);
  { const auto entry = register_.Add(Job()).value(); }
  EXPECT_EQ(register_.Read().size(), 1u) << "`tributary list` will show it";
  fs::last_write_time(
      absl::StrCat(folder_, "/", killed.host, "-", killed.pid, ".json"),
      fs::file_time_type::clock::now() - std::chrono::hours(25));
  { const auto entry = register_.Add(Job()).value(); }
  EXPECT_TRUE(register_.Read().empty());
}

TEST_F(JobRegisterTest, FilesThatAreNoneOfItsOwnAreLeftOut) {
  RegisteredJob job = Job();
  job.host = "node-b";
  job.pid = 7;
  fs::create_directory(folder_);
  Write("jobs/other-name.json", RegisteredJobJson(job));
  Write("jobs/node-b-8.json", "{\"name\": 3}");
  Write("jobs/node-b-9.json", "");
  Write("jobs/node-b-10.json", "[]");
  EXPECT_TRUE(register_.Read().empty());
  Write("jobs/node-b-7.json", RegisteredJobJson(job));
  EXPECT_EQ(register_.Read().size(), 1u);
}

TEST_F(JobRegisterTest, WithoutAFolderNothingIsRegistered) {
  EXPECT_EQ(JobRegister("").Add(Job()).value(), nullptr);
  EXPECT_TRUE(JobRegister("").Read().empty());
}

TEST(JobRegisterFolderTest, FollowsTheXdgSpecification) {
  const char* const home = getenv("HOME");
  const std::string kept = home == nullptr ? "" : home;
  setenv("HOME", "/home/me", 1);
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(JobRegisterFolder(), "/state/tributary/jobs");
  setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(JobRegisterFolder(), "/home/me/.local/state/tributary/jobs");
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(JobRegisterFolder(), "/home/me/.local/state/tributary/jobs");
  unsetenv("HOME");
  EXPECT_EQ(JobRegisterFolder(), "");
  setenv("HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace tributary
