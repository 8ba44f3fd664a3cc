#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of the programs, the client library for C++ and the
# documents, and prints their names.
#   deploy/build_packages.sh [--cuda | BUILD_DIR]
# Without BUILD_DIR it configures build/release without the tests, and compiles all that
# the quickstart has not compiled there. --cuda: with CUDA kernels for all
# architectures. With BUILD_DIR it packs that build as it is configured. Needs
# `deploy/install-deps.sh --package`.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/steps.sh
cuda=()
if [ "${1:-}" = --cuda ]; then
  cuda=(-DTRIBUTARY_CUDA=ON)
  shift
fi
build=${1:-build/release}

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
  part "configure" quietly cmake --preset release -DTRIBUTARY_BUILD_TESTS=OFF "${cuda[@]}"
fi
part "build" quietly cmake --build "$build" --target tributary_installed
part "pack" pack
printf '\n'
stat --format '%n  %s bytes' "$build"/packages/*.deb
