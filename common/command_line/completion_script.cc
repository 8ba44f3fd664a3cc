// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/completion_script.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"

namespace tributary {
namespace {

// Placeholders of the scripts: PROGRAM is the program's name, FUNCTION the
// shell function that completes it, and QUESTION the word that makes the
// program print completions (kCompleteWord).

// bash splits words at = and :, and wants only the part after the last of them.
// It offers file names where the program answers nothing. A word that ends in .
// or = goes on, so no space follows it.
constexpr char kBash[] = R"(# bash completion for PROGRAM
FUNCTION() {
  local line=${COMP_LINE:0:COMP_POINT} words last head answer
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  last=${words[${#words[@]} - 1]}
  head=${last%"${last##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r answer _; do
    COMPREPLY+=("${answer#"$head"}")
    [[ $answer == *[.=] ]] && compopt -o nospace
  done < <("${words[0]}" QUESTION "${words[@]:1}" 2> /dev/null)
  return 0
}
complete -o default -F FUNCTION PROGRAM
)";

constexpr char kZsh[] = R"(#compdef PROGRAM
FUNCTION() {
  local -a open closed
  local answer rest
  "${words[1]}" QUESTION "${(@)words[2,CURRENT]}" 2> /dev/null |
    while IFS=$'\t' read -r answer rest; do
      rest=${answer//:/\\:}${rest:+:$rest}
      if [[ $answer == *[.=] ]]; then open+=("$rest"); else closed+=("$rest"); fi
    done
  if (( ${#open} + ${#closed} == 0 )); then
    _files
    return
  fi
  (( ${#closed} )) && _describe PROGRAM closed
  (( ${#open} )) && _describe PROGRAM open -S ''
}
if [[ $funcstack[1] == FUNCTION ]]; then FUNCTION "$@"; else compdef FUNCTION PROGRAM; fi
)";

constexpr char kFish[] = R"(# fish completion for PROGRAM
function FUNCTION
    set -l words (commandline -opc) (commandline -ct)
    set -l answers ($words[1] QUESTION $words[2..-1] 2> /dev/null)
    if test (count $answers) -gt 0
        printf '%s\n' $answers
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c PROGRAM -f -a '(FUNCTION)'
)";

const char* TemplateFor(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  TRIBUTARY_CHECK(shell == "fish");
  return kFish;
}

}  // namespace

std::string CompletionScript(const std::string& shell,
                             const std::string& program) {
  const std::string function =
      absl::StrCat("_", absl::StrReplaceAll(program, {{"-", "_"}}));
  return absl::StrReplaceAll(TemplateFor(shell), {{"PROGRAM", program},
                                                  {"FUNCTION", function},
                                                  {"QUESTION", kCompleteWord}});
}

std::string CompletionLines(const std::vector<Completion>& completions) {
  std::string lines;
  for (const Completion& completion : completions) {
    absl::StrAppend(&lines, completion.word);
    if (!completion.description.empty()) {
      absl::StrAppend(&lines, "\t", completion.description);
    }
    absl::StrAppend(&lines, "\n");
  }
  return lines;
}

}  // namespace tributary
