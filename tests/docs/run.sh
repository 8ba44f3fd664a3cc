#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the links of all documents, README.md, docs/ and the others, and runs their
# commands with the programs of a folder. Blocks for Python need PyTorch: the environment that
# python/test.sh makes is used where it is there.
#   tests/docs/run.sh [PROGRAM_DIR, default build/release/bin]
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "${1:-build/release/bin}")

documents=(./*.md python/*.md docs/*.md docs/decisions/*.md examples/*/*.md)

python3 tests/docs/run_blocks_test.py
python3 tests/docs/check_links_test.py
python3 tests/docs/check_links.py "${documents[@]}"

export PYTHONPATH=$PWD/python
paths=(--path "$programs")
if [ -d build/python/bin ]; then
  paths+=(--path build/python/bin)
fi
python3 tests/docs/run_blocks.py "${paths[@]}" "${documents[@]}"
