// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/terminal/append_file.h"
#include "cli/terminal/interrupts.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/status/printable.h"
#include "common/status/status_macros.h"
#include "common/telemetry/log_line.h"

namespace tributary {
namespace {

constexpr std::streamoff kTailBytes = 8192;
constexpr size_t kLongestLine = 2048;

// Runs in the child between fork and exec. Other threads of the parent may have
// held locks at the fork, so only async-signal-safe calls are allowed.
[[noreturn]] void BecomeProgram(char* const* command, char* const* environment,
                                int input, int log, int error_pipe,
                                pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(EarlierFileMask());
  dup2(input, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  // Closes the parent's sockets of gRPC in the program.
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execve(command[0], command, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told =
      write(error_pipe, &error, sizeof(error));
  _exit(127);
}

// Returns our environment with these variables set.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& own) {
  std::vector<std::string> all = own;
  for (char* const* entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view name =
        absl::string_view(*entry).substr(0, strcspn(*entry, "="));
    const bool replaced =
        std::any_of(own.begin(), own.end(), [name](absl::string_view variable) {
          return absl::ConsumePrefix(&variable, name) &&
                 absl::StartsWith(variable, "=");
        });
    if (!replaced) all.push_back(*entry);
  }
  return all;
}

// Returns the null-terminated array of pointers that exec expects.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status CannotStart(const std::string& program, int error) {
  const std::string what = absl::StrCat("cannot start ", program);
  if (error != EMFILE) return absl::ErrnoToStatus(error, what);
  return absl::ResourceExhaustedError(
      absl::StrCat(what,
                   ": this process has as many files and connections "
                   "open as it may, ",
                   FileLimit(), " (ulimit -n)"));
}

// Returns a pipe that holds all of `text`, for a child to read.
absl::StatusOr<UniqueFd> InputOf(const std::string& text) {
  if (text.empty()) {
    UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null.ok()) return absl::ErrnoToStatus(errno, "open /dev/null");
    return null;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "make a pipe");
  }
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const bool fits =
      text.size() <= ChildProcess::kMostInput &&
      write(write_end.get(), text.data(), text.size()) ==
          static_cast<ssize_t>(text.size()) &&
      fcntl(read_end.get(), F_SETFL, 0) == 0;  // programs expect to wait
  if (!fits) return absl::InternalError("a pipe does not take a child's input");
  return read_end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    Options options) {
  absl::StatusOr<UniqueFd> log = OpenForAppending(options.log_path);
  if (!log.ok() && errno == EMFILE) {
    return CannotStart(options.command[0], EMFILE);
  }
  TRIBUTARY_RETURN_IF_ERROR(log.status());
  const std::vector<char*> command = Pointers(options.command);
  std::vector<std::string> variables = EnvironmentWith(options.environment);
  const std::vector<char*> environment = Pointers(variables);
  const absl::StatusOr<UniqueFd> input = InputOf(options.input);
  if (!input.ok()) return CannotStart(options.command[0], errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return CannotStart(options.command[0], errno);
  }
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return CannotStart(options.command[0], errno);
  if (pid == 0) {
    BecomeProgram(command.data(), environment.data(), input->get(), log->get(),
                  ends[1], parent);
  }
  setpgid(pid, pid);  // also in the parent, whichever runs first
  Interrupts::KillWithUs(pid);
  write_end = UniqueFd();
  std::unique_ptr<ChildProcess> child(
      new ChildProcess(std::move(options), pid));
  int error = 0;
  ssize_t got;
  do {  // ends when the program runs or could not start
    got = read(read_end.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    return CannotStart(child->options_.command[0], error);
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (Ended()) return;
  Kill();
  Interrupts::Forget(pid_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::Ended() {
  if (wait_status_) return true;
  siginfo_t info{};
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_) {
    return false;
  }
  Interrupts::Forget(pid_);  // before the kernel reuses its id
  int status = 0;
  waitpid(pid_, &status, 0);
  wait_status_ = status;
  return true;
}

bool ChildProcess::succeeded() const {
  return wait_status_ && WIFEXITED(*wait_status_) &&
         WEXITSTATUS(*wait_status_) == 0;
}

std::optional<int> ChildProcess::exit_code() const {
  if (!wait_status_ || !WIFEXITED(*wait_status_)) return std::nullopt;
  return WEXITSTATUS(*wait_status_);
}

bool ChildProcess::killed() const {
  return wait_status_ && WIFSIGNALED(*wait_status_);
}

std::string ChildProcess::Obituary() const {
  if (!wait_status_) return absl::StrCat(options_.name, " is alive");
  std::string text;
  if (killed()) {
    const int signal = WTERMSIG(*wait_status_);
    const bool kernels = signal == SIGKILL && !kill_sent_;
    text = absl::StrCat(options_.name, " was killed by signal ", signal, " (",
                        strsignal(signal),
                        kernels ? ", perhaps out of memory)" : ")");
  } else {
    text = absl::StrCat(options_.name, " exited with code ",
                        WEXITSTATUS(*wait_status_));
  }
  const std::string last = MessageOf(LastLine(options_.log_path));
  return last.empty() ? absl::StrCat(text, " and an empty log")
                      : absl::StrCat(text, "; its log ends: ", last);
}

void ChildProcess::Kill() {
  if (wait_status_) return;
  kill_sent_ = true;
  kill(-pid_, SIGKILL);
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  const std::streamoff from = size > kTailBytes ? size - kTailBytes : 0;
  std::string tail(static_cast<size_t>(size - from), '\0');
  file.seekg(from);
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  absl::string_view text = absl::StripTrailingAsciiWhitespace(tail);
  text.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
  return Printable(text.substr(0, kLongestLine));
}

}  // namespace tributary
