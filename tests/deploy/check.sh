# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests of this folder: counts checks.

passed=0
failed=0

# check SENTENCE COMMAND...: counts the result and continues in any case.
check() {
  local sentence=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok: $sentence"
  else
    failed=$((failed + 1))
    echo "FAILED: $sentence"
  fi
}
