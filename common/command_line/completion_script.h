// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/command_line/complete.h"

namespace tributary {

// The shells that CompletionScript knows, as --completion names them.
inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// The first word of a command line that asks for completions; the words to
// complete follow it. Only the scripts below use it.
inline constexpr char kCompleteWord[] = "--complete-words";

// Returns a script with which the shell completes the words of the program's
// command line. The script asks the program each time, so the two always agree.
// `shell`: one of kShells.
std::string CompletionScript(const std::string& shell,
                             const std::string& program);

// The program's answer to such a script: a line for each word, with a tab
// before its description.
std::string CompletionLines(const std::vector<Completion>& completions);

}  // namespace tributary
