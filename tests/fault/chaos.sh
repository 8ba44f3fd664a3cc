#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random jobs under random faults against the programs of build/release:
#   tests/fault/chaos.sh --minutes 2 --seed 1
#   tests/fault/chaos.sh --only 17      repeats the trial of seed 17
set -euo pipefail
exec python3 "$(dirname "$0")/chaos.py" "$@"
