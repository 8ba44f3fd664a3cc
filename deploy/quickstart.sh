#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, builds Tributary and trains its first example: two
# workers learn Fashion-MNIST and push gradients to two servers.
#   deploy/quickstart.sh [FURTHER ARGUMENTS FOR tributary train]
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/steps.sh

run_dir=runs/quickstart-$(date +%Y%m%d-%H%M%S)
bin=build/release/bin

part "install" deploy/install-deps.sh
part "configure" cmake --preset release -DTRIBUTARY_BUILD_TESTS=OFF
part "build" cmake --build --preset release
part "train" $bin/tributary train examples/fashion-mnist.yaml \
  --servers 2 --workers 2 --run-dir "$run_dir" "$@"

show_result() {
  ls -lh "$run_dir"
  echo "Once more, or with a job of your own:"
  echo "  $bin/tributary train examples/fashion-mnist.yaml"
}
part "result" show_result
