#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of the programs, the client library for C++ and the
# documents, and prints their names.
#   deploy/build_packages.sh [BUILD_DIR]
# Without BUILD_DIR it compiles everything in build/package, without the tests, which takes
# minutes. With BUILD_DIR it packs that build, and compiles only what changed.
# Needs `deploy/install-deps.sh --package`.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/steps.sh
build=${1:-build/package}

# One date for manual pages, changelogs and archives: that of the newest commit.
if [ -z "${SOURCE_DATE_EPOCH:-}" ] && git rev-parse --git-dir > /dev/null 2>&1; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
fi

# Runs a command with its output in a log, which is printed when it fails.
quietly() {
  local log=$build/packages.log
  mkdir -p "$build"
  "$@" > "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    return 1
  }
}

pack() {
  rm -f "$build"/packages/*.deb
  quietly cpack --config "$build/CPackConfig.cmake"
  rm -rf "$build/packages/_CPack_Packages"
}

if [ $# = 0 ]; then
  part "configure" quietly cmake --preset release -B "$build" -DTRIBUTARY_BUILD_TESTS=OFF
fi
part "build" quietly cmake --build "$build" --target tributary_installed
part "pack" pack
printf '\n'
stat --format '%n  %s bytes' "$build"/packages/*.deb
