// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/running_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/time/clock.h"

namespace tributary::testing {
namespace {

[[noreturn]] void Execute(const RunningProcess::Options& options) {
  if (chdir(options.folder.c_str()) != 0) _exit(126);
  for (const std::string& variable : options.environment) {
    putenv(const_cast<char*>(variable.c_str()));
  }
  std::vector<char*> arguments;
  for (const std::string& word : options.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::unique_ptr<RunningProcess> RunningProcess::Start(const Options& options) {
  if (options.terminal) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 100;
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
    if (pid == 0) Execute(options);
    return std::unique_ptr<RunningProcess>(new RunningProcess(pid, terminal));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const pid_t pid = fork();
  if (pid == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    Execute(options);
  }
  close(ends[1]);
  return std::unique_ptr<RunningProcess>(new RunningProcess(pid, ends[0]));
}

RunningProcess::~RunningProcess() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(fd_);
}

bool RunningProcess::ReadMore(absl::Time deadline) {
  pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
  const int64_t left =
      std::max<int64_t>(absl::ToInt64Milliseconds(deadline - absl::Now()), 0);
  if (poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
  char buffer[4096];
  const ssize_t n = read(fd_, buffer, sizeof(buffer));
  if (n <= 0) return false;  // a terminal ends with EIO
  output_.append(buffer, static_cast<size_t>(n));
  return true;
}

bool RunningProcess::WaitForOutput(const std::string& text,
                                   absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (output_.find(text) == std::string::npos) {
    if (!ReadMore(deadline)) return false;
  }
  return true;
}

int RunningProcess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (ReadMore(deadline)) {
  }
  // The output may end before the process does.
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pid_, &status, WNOHANG)) == 0 &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (ended != pid_) return -1;
  reaped_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void RunningProcess::Signal(int signal) const { kill(pid_, signal); }

void RunningProcess::Type(const std::string& keys) const {
  [[maybe_unused]] const ssize_t n = write(fd_, keys.data(), keys.size());
}

bool IsGone(pid_t pid, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    stat >> id >> name >> state;
    if (!stat || state == "Z" || state == "X") return true;
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace tributary::testing
