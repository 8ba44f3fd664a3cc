// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace tributary::testing {

ProcessResult RunProcess(const std::vector<std::string>& command) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    std::vector<char*> arguments;
    for (const std::string& word : command) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  ProcessResult result;
  char buffer[4096];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    result.output.append(buffer, n);
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

ProcessResult RunWithEveryCheckpoint(const std::vector<std::string>& command,
                                     const std::string& run) {
  constexpr int kTries = 20;
  for (int tries = 1;; ++tries) {
    ProcessResult result = RunProcess(command);
    const bool left_out =
        result.output.find("the checkpoint of step ") != std::string::npos;
    if (result.exit_code != 0 || !left_out || tries == kTries) return result;
    std::filesystem::remove_all(run);
  }
}

}  // namespace tributary::testing
