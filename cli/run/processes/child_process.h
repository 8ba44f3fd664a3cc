// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A program that this process has started. It has a process group of its own,
// so Ctrl-C on the terminal does not reach it. The kernel kills it when this
// process dies; the destructor kills and reaps it.
class ChildProcess {
 public:
  struct Options {
    std::string name;                  // "worker-0", for messages
    std::vector<std::string> command;  // the program's path and its arguments
    std::string log_path;              // receives its stdout and stderr
    // The place in a job for which the program is started; unspecified: none.
    v1::Role role = v1::ROLE_UNSPECIFIED;
    uint32_t index = 0;
    // "NAME=value", besides our environment. Our programs compute their matrix
    // products in one thread; OpenBLAS, when loaded, would start one per core.
    std::vector<std::string> environment = {"OPENBLAS_NUM_THREADS=1"};
    // The program's standard input, at most kMostInput bytes.
    std::string input = {};
  };

  static constexpr size_t kMostInput = 32 << 10;

  // The thread that calls Start must outlive the child: the kernel treats the
  // end of that thread as the parent's death. NotFound and similar errors when
  // the program cannot be executed.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);
  ~ChildProcess();

  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  pid_t pid() const { return pid_; }
  int64_t started_micros() const { return started_micros_; }  // by Clock::Real

  // Whether the child has ended; does not wait.
  bool Ended();
  // After Ended: whether it exited with code 0.
  bool succeeded() const;
  // After Ended: its exit code; nullopt if a signal ended it.
  std::optional<int> exit_code() const;
  // After Ended: whether a signal ended it.
  bool killed() const;
  // "worker-0 exited with code 3" or "worker-0 was killed by signal 6
  // (Aborted)", followed by the last line of its log. After a SIGKILL that
  // Tributary did not send, it says that the kernel may have sent it because
  // memory ran out.
  std::string Obituary() const;

  void Kill();  // kills the group with SIGKILL; Ended turns true soon
  bool kill_sent() const { return kill_sent_; }

 private:
  ChildProcess(Options options, pid_t pid)
      : options_(std::move(options)), pid_(pid) {}

  const Options options_;
  const pid_t pid_;
  const int64_t started_micros_ = Clock::Real().NowMicros();
  std::optional<int> wait_status_;
  bool kill_sent_ = false;
};

// The last line that is not blank, cut to 2048 bytes; empty when there is none.
std::string LastLine(const std::string& path);

}  // namespace tributary
