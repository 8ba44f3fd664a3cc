#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the kernels and their agreement checks and runs them on this machine's CUDA
# device; also NCCL with one rank, if it is installed. Ends with a table of speeds
# and the device's own limits. Needs CUDA, CMake and a C++20 compiler, no network
# and no other package. Prints "skipped: no device" and succeeds if there is no
# device.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/gpu

if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
  echo "skipped: no device (no nvcc on PATH or in /usr/local/cuda/bin)"
  exit 0
fi

generator=()
if command -v ninja >/dev/null && [ ! -e "$build/Makefile" ]; then
  generator=(-G Ninja)
fi
cmake -S "$root/tests/gpu" -B "$build" "${generator[@]}" \
  -DCMAKE_BUILD_TYPE=Release -DTRIBUTARY_CUDA=ON
cmake --build "$build" --parallel "$(nproc)"
exec "$build/bin/gpu_tests"
