#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Attacks a job on all its ports for some minutes: hostile_test with 2,000 idle
# connections, for as long as it is told.
#   tests/fault/hostile.sh build/asan/bin --minutes 10
set -euo pipefail
bin=$1
[ "${2:-}" = --minutes ] && [[ "${3:-}" =~ ^[0-9]+$ ]] || {
  echo "usage: tests/fault/hostile.sh BIN --minutes N" >&2
  exit 2
}
TRIBUTARY_HOSTILE_SECONDS=$((60 * $3)) TRIBUTARY_HOSTILE_IDLE=1000 TRIBUTARY_HOSTILE_EPOCHS=12 \
  "$bin/hostile_test"
