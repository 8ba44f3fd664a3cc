#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tributary {

// A program that this one has started: in a process group of its own, so that
// Ctrl-C on the terminal does not reach it; killed by the kernel when this
// process dies; killed and reaped by the destructor.
class ChildProcess {
 public:
  struct Options {
    std::string name;                  // "worker-0", for messages
    std::vector<std::string> command;  // the program's path, arguments
    std::string log_path;              // takes its stdout and stderr
  };

  // The thread that starts it must live as long: the kernel counts the end of
  // that thread as the death of the parent. NotFound and the like when the
  // program cannot be executed.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);
  ~ChildProcess();

  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  pid_t pid() const { return pid_; }
  int64_t started_micros() const { return started_micros_; }  // Clock::Real

  // Looks, without waiting, whether it has ended.
  bool Ended();
  // After Ended: it exited with code 0.
  bool succeeded() const;
  // After Ended: it did not leave by itself.
  bool killed() const;
  // "worker-0 exited with code 3" or "worker-0 was killed by signal 9
  // (Killed)", and the last line of its log.
  std::string Obituary() const;

  void Kill();  // the whole group, with SIGKILL; Ended turns true soon

 private:
  ChildProcess(Options options, pid_t pid)
      : options_(std::move(options)), pid_(pid) {}

  const Options options_;
  const pid_t pid_;
  const int64_t started_micros_ = Clock::Real().NowMicros();
  std::optional<int> wait_status_;
};

// The last line with something in it, of at most 2048 bytes; empty when there
// is none.
std::string LastLine(const std::string& path);

}  // namespace tributary
