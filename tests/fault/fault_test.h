#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {

// How long anything may take on a busy machine.
constexpr absl::Duration kSoon = absl::Seconds(100);
// How long a process may outlive what it belongs to: the kernel ends it, far
// before it would miss its coordinator (30 s).
constexpr absl::Duration kAtOnce = absl::Seconds(10);

// Real processes that train in a folder of the test's own. After each test
// nothing of them may be left: no process, no open port, and in the directory
// of a run that came to its end no file that docs/formats.md does not name.
class FaultTest : public testing::TemporaryFolderTest {
 protected:
  using RunningProcess = testing::RunningProcess;

  void SetUp() override;
  void TearDown() override { ExpectNothingLeft(); }

  // A program of this build, with its arguments; it meets the failpoints.
  std::unique_ptr<RunningProcess> Start(std::vector<std::string> command);
  // The programs that are started from here on, and what they start, fail there
  // (common/base/failpoint.h): each entry fires once, in one of them. "" for
  // none.
  void SetFailpoints(const std::string& entries) { failpoints_ = entries; }
  // NAME=VALUE of the programs that are started from here on.
  void SetEnvironment(std::vector<std::string> variables) {
    environment_ = std::move(variables);
  }
  // Whether name:nth has fired.
  bool Fired(const std::string& id);
  std::unique_ptr<RunningProcess> Train(
      const std::string& run, const std::vector<std::string>& words = {});
  // A coordinator of job.yaml, and its address.
  std::unique_ptr<RunningProcess> Coordinate(
      const std::string& run, std::string* address,
      const std::vector<std::string>& words = {});
  // Kills it; another with the same job and address takes the run to its end.
  void ReplaceCoordinator(const std::string& run, const std::string& address,
                          RunningProcess& coordinator);
  // Puts `to` in the place of `from` in job.yaml.
  void EditJob(const std::string& from, const std::string& to);

  nlohmann::json Summary(const std::string& run);
  std::string Sha256(const std::string& run);
  // What the job comes to when nothing happens.
  std::string Undisturbed(const std::vector<std::string>& words = {});
  // From the coordinator's log: "worker 1 is HOST (pid N)", the last such.
  pid_t PidOf(const std::string& run, const std::string& name);
  // The folder of the newest complete checkpoint below `directory` that is of a
  // later step than that of the folder `after`; empty when none comes.
  std::string WaitForCheckpoint(const std::string& directory,
                                const std::string& after = "");

  // For the test's result and the screen.
  static void TellSeconds(const std::string& what, absl::Duration seconds);

  void ExpectNothingLeft();

  // NAME=VALUE of the programs that are started from here on.
  std::vector<std::string> environment_;

  // A coordinator's and two servers'.
  size_t fewest_ports_ = 3;

 private:
  void ExpectNoProcess();
  void ExpectNoPort();
  void ExpectNoFile();

  std::string failpoints_;
};

// Looks again until `holds` or kSoon has passed.
template <typename Condition>
bool Eventually(Condition holds) {
  const absl::Time deadline = absl::Now() + kSoon;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace tributary
