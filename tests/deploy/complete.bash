# shellcheck shell=bash
# Sourced by a test: completes a command line as an interactive bash does.

# completions LINE: what bash offers at the end of the line, a line each.
completions() {
  local name=${1%% *} spec function
  spec=$(complete -p "$name") || return
  function=$(sed -n 's/.* -F \([^ ]*\) .*/\1/p' <<< "$spec")
  COMP_LINE=$1
  COMP_POINT=${#1}
  compopt() { :; }  # works only while a completion is going on
  "$function" "$name"
  printf '%s\n' "${COMPREPLY[@]}"
}
