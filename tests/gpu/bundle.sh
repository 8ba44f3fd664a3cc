#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packs everything that a machine with a GPU needs to run tests/gpu/hour.sh without
# compiling: the programs of a build directory, and the shared libraries that a
# plain Debian or Ubuntu lacks. glibc, the C++ library, the driver, cuBLAS and NCCL
# are the machine's own; the profilers need these, too.
#
# The targets are gpu_tests, tributary, tributary-coordinator, tributary-server and
# tributary-worker, and golden_kernels_test to run there.
#
# usage: tests/gpu/bundle.sh [BUILD_DIRECTORY] [DESTINATION] [WHEEL]
#
# The build directory (default build/release) must have kernels for the GPU:
# configure it with -DCMAKE_CUDA_ARCHITECTURES=90 for Hopper only. DESTINATION
# defaults to .gpu, which git ignores. WHEEL is one in build/wheel/raw, of the other
# machine's version of Python; the package goes without the programs. A wheel's build
# leaves programs without CUDA in build/release: build them again after it. Fails when
# they have no CUDA, and when the bundle is larger than 60 MiB.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build/release}
destination=${2:-$root/.gpu}
wheel=${3:-}
programs=(gpu_tests tributary tributary-coordinator tributary-server
  tributary-worker)
# Uses a CUDA device if there is one; packed if it is built.
if [ -x "$build/bin/golden_kernels_test" ]; then
  programs+=(golden_kernels_test)
fi
if grep -q '^TRIBUTARY_CUDA:.*=OFF' "$build/CMakeCache.txt"; then
  echo "$build is without CUDA: configure it with -DTRIBUTARY_CUDA=ON and build again" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/lib" "$destination"

# Libraries of glibc, the compiler and CUDA must be the target machine's.
target='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|nsl|anl|stdc\+\+|gcc_s))\.so'
target+='|lib(cuda|cudart|cublas|cublasLt|nccl|nvidia[^/]*)\.so'
libraries_of() {
  ldd "$1" | awk '$3 ~ /^\// {print $3}' | { grep -vE "$target" || true; } \
    >> "$work/libraries"
}
for program in "${programs[@]}"; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "no $build/bin/$program: build the target $program first" >&2
    exit 1
  fi
  cp "$build/bin/$program" "$work/bin/"
  strip --strip-unneeded "$work/bin/$program"
  libraries_of "$build/bin/$program"
done
if [ -n "$wheel" ]; then
  mkdir "$work/python"
  python3 -m zipfile -e "$wheel" "$work/python"
  rm -rf "$work/python/tributary/bin"
  ln -s ../../bin "$work/python/tributary/bin"
  strip --strip-unneeded "$work"/python/tributary/_native*.so
  libraries_of "$work"/python/tributary/_native*.so
fi
sort -u "$work/libraries" | while read -r library; do
  cp -L "$library" "$work/lib/"
  strip --strip-unneeded "$work/lib/$(basename "$library")"
done
rm "$work/libraries"
git -C "$root" rev-parse --short HEAD > "$work/commit"
ldd --version | sed -n '1s/.* //p' > "$work/glibc"
bundle=$destination/bundle.tar.xz
tar -C "$work" -cf - . | xz -T0 > "$bundle"

bytes=$(stat -c %s "$bundle")
echo "$bundle: $((bytes / 1024)) KiB packed," \
  "$(du -sm "$work" | cut -f1) MiB unpacked, commit $(cat "$work/commit")," \
  "wants glibc $(cat "$work/glibc") or newer"
if [ "$bytes" -gt $((60 << 20)) ]; then
  echo "larger than 60 MiB" >&2
  exit 1
fi
