#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tributary::testing {

// A program under test while it runs: its output is read as it comes, signals
// and keys can be sent to it. Killed by the destructor.
class RunningProcess {
 public:
  struct Options {
    std::vector<std::string> command;
    std::string folder = ".";  // its working directory
    // NAME=VALUE, on top of this process's environment.
    std::vector<std::string> environment;
    // On a terminal of its own, 24 rows of 100 columns, whose foreground
    // process it is; else stdout and stderr are one pipe.
    bool terminal = false;
  };

  static std::unique_ptr<RunningProcess> Start(const Options& options);
  ~RunningProcess();

  pid_t pid() const { return pid_; }
  // What it has written so far, as far as it was waited for.
  const std::string& output() const { return output_; }

  // Reads until the output holds `text`; false after `timeout` or at the end.
  bool WaitForOutput(const std::string& text, absl::Duration timeout);
  // Reads to the end. The exit code, 128 + signal when it was killed; -1 after
  // `timeout`.
  int Wait(absl::Duration timeout);

  void Signal(int signal) const;
  void Type(const std::string& keys) const;  // on its terminal

 private:
  RunningProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  // False at the end of the output or the deadline.
  bool ReadMore(absl::Time deadline);

  const pid_t pid_;
  const int fd_;
  std::string output_;
  bool reaped_ = false;
};

// True once no such process runs (a zombie does not), looked at for up to
// `timeout`.
bool IsGone(pid_t pid, absl::Duration timeout);

}  // namespace tributary::testing
