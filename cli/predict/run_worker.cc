// SPDX-License-Identifier: Apache-2.0
#include "cli/predict/run_worker.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cli/run/processes/find_program.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"

namespace tributary {

int BecomeWorker(const std::vector<std::string>& arguments) {
  const auto program = FindProgram("tributary-worker");
  if (!program.ok()) {
    PrintError(program.status().message());
    return kExitFailed;
  }
  std::vector<char*> words = {const_cast<char*>(program->c_str())};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  execv(words[0], words.data());
  PrintError(absl::StrCat("cannot start ", *program, ": ", strerror(errno)));
  return kExitFailed;
}

}  // namespace tributary
