#!/usr/bin/env bash
# Builds the wheel with the programs and the shared libraries they need, in
# build/wheels. Prints nothing but the wheel's name when all is well.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
out=build/wheels
raw=$(mktemp -d)
log=$(mktemp)
trap 'rm -rf "$raw" "$log"' EXIT

{
  "$python" -m pip wheel python/ --no-deps --wheel-dir "$raw" &&
    "$python" -m auditwheel repair --wheel-dir "$out" "$raw"/*.whl
} > "$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
ls "$out"/*.whl
