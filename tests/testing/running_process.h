// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/testing/soon.h"

namespace tributary::testing {

// A program under test while it runs. Its output is read as it arrives, and
// signals and keys can be sent to it. The destructor kills it.
class RunningProcess {
 public:
  struct Options {
    std::vector<std::string> command;
    std::string folder = ".";  // its working directory
    // NAME=VALUE, in addition to this process's environment.
    std::vector<std::string> environment;
    // Runs it in the foreground of its own terminal with 24 rows and 100
    // columns; otherwise stdout and stderr are one pipe.
    bool terminal = false;
  };

  static std::unique_ptr<RunningProcess> Start(const Options& options);
  ~RunningProcess();

  pid_t pid() const { return pid_; }
  // The output read so far.
  const std::string& output() const { return output_; }

  // Reads until the output contains `text`; false after `timeout` or at its
  // end.
  bool WaitForOutput(const std::string& text, absl::Duration timeout);
  // Reads to the end of the output. Returns the exit code, or 128 + signal when
  // a signal killed it; -1 after `timeout`.
  int Wait(absl::Duration timeout);

  void Signal(int signal) const;
  void Type(const std::string& keys) const;  // on its terminal

 private:
  RunningProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  // False at the end of the output or at the deadline.
  bool ReadMore(absl::Time deadline);

  const pid_t pid_;
  const int fd_;
  std::string output_;
  bool reaped_ = false;
};

// True once the process no longer runs (a zombie does not); polls for up to
// `timeout`.
bool IsGone(pid_t pid, absl::Duration timeout);

}  // namespace tributary::testing
