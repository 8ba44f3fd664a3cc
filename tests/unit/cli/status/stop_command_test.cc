// SPDX-License-Identifier: Apache-2.0
// `tributary stop` of a job that has ended, or ends before it can be stopped.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/terminal/command_line.h"
#include "tests/testing/temporary_folder.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The coordinator of a job that no longer stops, because it is over or for
// another reason.
class RefusingCoordinator final : public v1::CoordinatorService::Service {
 public:
  RefusingCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  void SetPhase(v1::JobPhase phase) { phase_ = phase; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status StopJob(grpc::ServerContext*, const v1::StopJobRequest*,
                       v1::StopJobResponse*) override {
    return {grpc::StatusCode::FAILED_PRECONDITION, "it cannot be stopped"};
  }
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::JobStatusRequest*,
                            v1::JobStatusResponse* status) override {
    status->set_name("digits");
    status->set_phase(phase_);
    status->set_step(900);
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::atomic<v1::JobPhase> phase_ = v1::JOB_PHASE_RUNNING;
  std::unique_ptr<grpc::Server> server_;
};

class StopCommandTest : public testing::TemporaryFolderTest {
 protected:
  StopCommandTest() { std::filesystem::create_directories(Path("run/logs")); }

  // Returns the exit code, and keeps what was printed.
  int Stop(const std::vector<std::string>& words) {
    CommandLine program("A test.", "tributary");
    AddStopCommand(program);
    std::vector<const char*> all = {"tributary", "stop"};
    for (const std::string& word : words) all.push_back(word.c_str());
    EXPECT_EQ(program.Parse(static_cast<int>(all.size()), all.data()).text, "");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exit_code = program.action()();
    output_ = ::testing::internal::GetCapturedStdout();
    errors_ = ::testing::internal::GetCapturedStderr();
    return exit_code;
  }
  // Leaves a run directory of a run that ended with this status.
  void End(const std::string& status) {
    Write("run/job.yaml", "name: digits\n");
    Write("run/summary.json",
          absl::StrCat(R"({"name": "digits", "status": ")", status,
                       R"(", "steps": 900, "total_steps": 1000})"));
  }

  std::string output_;
  std::string errors_;
};

TEST_F(StopCommandTest, AJobThatHasEndedNeedsNoStop) {
  End("done");
  EXPECT_EQ(Stop({Path("run")}), 0) << errors_;
  EXPECT_EQ(output_, Path("run") +
                         ": done after step 900 of 1,000; there was nothing "
                         "to stop\n");
  End("interrupted");
  EXPECT_EQ(Stop({Path("run")}), 0) << errors_;
  EXPECT_THAT(output_, HasSubstr("there is no checkpoint to continue from"));
  End("failed");
  EXPECT_EQ(Stop({Path("run")}), 1);
}

TEST_F(StopCommandTest, AJobThatWasKilledIsAnError) {
  Write("run/job.yaml", "name: digits\n");
  EXPECT_EQ(Stop({Path("run")}), 1);
  EXPECT_THAT(errors_, HasSubstr("has ended without a summary"));
}

// The job ends while the command asks.
TEST_F(StopCommandTest, AJobThatIsOverWhenItIsAskedHasEnded) {
  RefusingCoordinator coordinator;
  const std::vector<std::string> words = {"--coordinator",
                                          coordinator.address(), "--no-wait"};
  EXPECT_EQ(Stop(words), 1);
  EXPECT_THAT(errors_, HasSubstr("it cannot be stopped"));
  coordinator.SetPhase(v1::JOB_PHASE_DONE);
  EXPECT_EQ(Stop(words), 0) << errors_;
  EXPECT_THAT(output_, AllOf(HasSubstr("ended after step 900; there was "
                                       "nothing to stop"),
                             Not(HasSubstr("cannot"))));
  coordinator.SetPhase(v1::JOB_PHASE_FAILED);
  EXPECT_EQ(Stop(words), 1);
}

// Its summary says more than its coordinator's answer.
TEST_F(StopCommandTest, TheSummaryOfAJobThatIsOverSaysHowItEnded) {
  RefusingCoordinator coordinator;
  coordinator.SetPhase(v1::JOB_PHASE_DONE);
  End("done");
  Write("run/coordinator.lock",
        absl::StrCat("the coordinator at ", coordinator.address(),
                     " (another host, pid 77)"));
  EXPECT_EQ(Stop({Path("run")}), 0) << errors_;
  EXPECT_EQ(output_, Path("run") +
                         ": done after step 900 of 1,000; there was nothing "
                         "to stop\n");
}

}  // namespace
}  // namespace tributary
