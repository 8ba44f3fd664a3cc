#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, builds and runs the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TXT'
usage: tests/run.sh [OPTION...] [CTEST ARGUMENT...]

  --preset NAME   release (default), dev, asan, tsan or cuda
  --labels REGEX  only tests with such a label: unit, integration, race ...
  --no-install    trust that every package is there
  -DNAME=VALUE    a CMake variable, as in -DTRIBUTARY_CUDA=OFF

Further arguments go to ctest: tests/run.sh -R PartitionPlan
TXT
}

preset=release
install=true
select=()
define=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --labels) select+=(-L "^(${2:?--labels needs a regular expression})\$"); shift 2 ;;
    --no-install) install=false; shift ;;
    -D*) define+=("$1"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
  esac
done

source deploy/steps.sh
if $install; then
  part "install" deploy/install-deps.sh --test
fi
part "configure" cmake --preset "$preset" "${define[@]}"
part "build" cmake --build --preset "$preset"
part "test" ctest --preset "$preset" "${select[@]}" "$@"
