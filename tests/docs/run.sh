#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of all documents: README.md, docs/ and the others, with the
# programs of a folder. Blocks for Python need PyTorch: the environment that
# python/test.sh makes is used where it is there.
#   tests/docs/run.sh [PROGRAM_DIR, default build/release/bin]
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "${1:-build/release/bin}")

python3 tests/docs/run_blocks_test.py

export PYTHONPATH=$PWD/python
paths=(--path "$programs")
if [ -d build/python/bin ]; then
  paths+=(--path build/python/bin)
fi
python3 tests/docs/run_blocks.py "${paths[@]}" ./*.md python/*.md docs/*.md \
  docs/decisions/*.md examples/*/*.md
