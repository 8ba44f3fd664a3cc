#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the Python package: first with a fake of the C++ client, then with real
# servers. Builds the module and the programs in build/release, and an environment
# with PyTorch in build/python. PYTHON names the Python (default python3).
# --all: further cases of the tests with real servers, too.
#   python/test.sh [--all] [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."

select='cluster and not long'
if [ "${1:-}" = --all ]; then
  select=cluster
  shift
fi
environment=$PWD/build/python
if [ ! -x "$environment/bin/pytest" ]; then
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet 'nanobind>=2.4' 'numpy>=1.23' 'pytest>=7' \
    safetensors 'torch>=2.1' jsonschema pyyaml
fi

# Clears settings that a wheel for another Python has left in the cache.
cmake --preset release -U 'SKBUILD*' -U '*Python*' -DTRIBUTARY_PYTHON=ON \
  -DPython_EXECUTABLE="$environment/bin/python" > /dev/null
cmake --build --preset release --target tributary_native tributary \
  tributary-coordinator tributary-server tributary-worker
rm -f python/tributary/_native.*.so
cp "build/release/python/_native$("$environment/bin/python" -c \
  'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')" python/tributary/

export TRIBUTARY_PROGRAM=$PWD/build/release/bin/tributary
export PATH=$environment/bin:$PATH  # torchrun
pytest -q python "$@"
pytest -q python -m "$select" "$@"
