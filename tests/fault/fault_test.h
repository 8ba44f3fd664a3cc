// SPDX-License-Identifier: Apache-2.0
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

using testing::kSoon;
// How long a child process may outlive its parent. The kernel ends the child
// long before the child would give up waiting for its coordinator (30 s).
constexpr absl::Duration kAtOnce = absl::Seconds(10);

// Runs real training processes in the test's own directory. After each test
// nothing may remain: no process, no open port and, in the directory of a run
// that has ended, no file that docs/run-directory.md does not name.
class FaultTest : public testing::TemporaryFolderTest {
 protected:
  using RunningProcess = testing::RunningProcess;

  void SetUp() override;
  void TearDown() override { ExpectNothingLeft(); }

  // Starts a program of this build with the current failpoints.
  std::unique_ptr<RunningProcess> Start(std::vector<std::string> command);
  // Sets the failpoints (common/base/failpoint.h) for programs started from
  // here on and for their children. Each entry fires once, in one of these
  // processes. "": no failpoints.
  void SetFailpoints(const std::string& entries) { failpoints_ = entries; }
  // Sets NAME=VALUE variables for programs started from here on.
  void SetEnvironment(std::vector<std::string> variables) {
    environment_ = std::move(variables);
  }
  // Whether failpoint name:nth has fired.
  bool Fired(const std::string& id);
  std::unique_ptr<RunningProcess> Train(
      const std::string& run, const std::vector<std::string>& words = {});
  // Starts a coordinator for job.yaml and sets its address.
  std::unique_ptr<RunningProcess> Coordinate(
      const std::string& run, std::string* address,
      const std::vector<std::string>& words = {});
  // Kills the coordinator; another one with the same job and address completes
  // the run.
  void ReplaceCoordinator(const std::string& run, const std::string& address,
                          RunningProcess& coordinator);
  // Replaces `from` by `to` in job.yaml.
  void EditJob(const std::string& from, const std::string& to);

  nlohmann::json Summary(const std::string& run);
  std::string Sha256(const std::string& run);
  // The sha256 of the final weights of a run without faults. Tests that have
  // the same job and words share it: the first one of them trains.
  std::string Undisturbed(const std::vector<std::string>& words = {});
  // The sum of a metric over all servers, in a run with --metrics-listen. A
  // server whose page cannot be read counts as 0. `labels` come after the label
  // of the shard, for example ",reason=\"step\"".
  double SumOverServers(const std::string& run, const std::string& metric,
                        const std::string& labels = "");
  // The pid in the last line "worker 1 is HOST (pid N)" of the coordinator's
  // log.
  pid_t PidOf(const std::string& run, const std::string& name);
  // Waits for a complete checkpoint below `directory` with a later step than
  // the checkpoint `after`. Returns the directory of the newest one; empty if
  // none comes.
  std::string WaitForCheckpoint(const std::string& directory,
                                const std::string& after = "");

  // Records a duration in the test's result and prints it.
  static void TellSeconds(const std::string& what, absl::Duration seconds);

  void ExpectNothingLeft();

  // NAME=VALUE variables of programs started from here on.
  std::vector<std::string> environment_;

  // The number of ports that a coordinator and two servers use.
  size_t fewest_ports_ = 3;

  // Waits until no process of the test is left.
  void ExpectNoProcess();

 private:
  void ExpectNoPort();
  void ExpectNoFile();

  std::string failpoints_;
};

// Polls until `holds` is true or kSoon has passed.
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
