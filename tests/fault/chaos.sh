#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random jobs under random faults against the programs of build/release:
#   tests/fault/chaos.sh --minutes 2 --seed 1
#   tests/fault/chaos.sh --trials 20 --with slurm
#   tests/fault/chaos.sh --only 17      repeats the trial of seed 17
#   tests/fault/chaos.sh --self-test    whether it finds planted errors
set -euo pipefail
chaos=$(dirname "$0")/chaos
if [ "${1:-}" = --self-test ]; then exec python3 "$chaos/self_test.py" --quiet; fi
exec python3 "$chaos" "$@"
