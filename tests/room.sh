#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests of one room after a change there, with the preset dev. The
# first call builds everything that the room uses; the next ones take seconds.
#   tests/room.sh ROOM [CTEST ARGUMENT...]
# ROOM is a folder of the tree that tests/unit mirrors, such as server/store or worker;
# one of tests/ itself, such as integration/cli or fault; or python, whose tests with a
# fake of the C++ client need no build.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  "" | -h | --help) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
room=${1%/}
shift

if [ "$room" = python ]; then
  python=build/python/bin/python  # python/test.sh makes it
  [ -x "$python" ] || python=python3
  exec "$python" -m pytest -q python "$@"
fi
if [ ! -d "tests/unit/$room" ] && [ ! -d "tests/$room" ]; then
  echo "room.sh: there are no tests in tests/unit/$room or tests/$room" >&2
  exit 2
fi
# Tests of a folder without a CMakeLists.txt belong to the folder above it.
while [ ! -e "tests/unit/$room/CMakeLists.txt" ] && [ ! -e "tests/$room/CMakeLists.txt" ] &&
    [[ $room == */* ]]; do
  room=${room%/*}
done
source deploy/steps.sh
[ -e build/dev/build.ninja ] || part "configure" cmake --preset dev
part "build" cmake --build --preset dev --target "tests_in_${room//\//_}"
part "test" ctest --preset dev -L "^$room(/|\$)" "$@"
