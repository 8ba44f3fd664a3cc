#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests a built wheel as it is installed, with the tests of the package and without its
# sources: in an environment with PyTorch, first with a fake of the C++ client, then
# with the servers of the wheel.
#   python/test_wheel.sh WHEEL [PYTHON]      default: python3
# TORCH is what pip installs for PyTorch (default torch), or a folder of site-packages
# that has it for this version of Python.
set -euo pipefail
wheel=$(realpath "$1")
cd "$(dirname "$0")/.."
source deploy/steps.sh
python=${2:-python3}
torch=${TORCH:-torch}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
folder=$PWD/build/wheel/test-$version

make_environment() {
  rm -rf "$folder"
  "$python" -m venv "$folder/env"
  "$folder/env/bin/python" -m pip install --quiet "$wheel" 'pytest>=7' safetensors
  if [ -d "$torch" ]; then
    realpath "$torch" > "$("$folder/env/bin/python" -c \
      'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
    # pip would have installed the command with the package.
    printf '#!%s\nfrom torch.distributed.run import main\nmain()\n' \
      "$folder/env/bin/python" > "$folder/env/bin/torchrun"
    chmod +x "$folder/env/bin/torchrun"
  else
    "$folder/env/bin/python" -m pip install --quiet "$torch"
  fi
}

# Copies only the tests and their settings from the package's folder.
copy_tests() {
  cp -r python/tests python/pyproject.toml "$folder"
  cd "$folder"
  export PATH=$folder/env/bin:$PATH  # tributary, torchrun
  unset TRIBUTARY_PROGRAM PYTHONPATH
  python -c 'import tributary; print(tributary.__file__)' | grep "^$folder/env/"
}

part "environment $version" make_environment
part "tests" copy_tests
part "fake" python -m pytest -q
part "servers" python -m pytest -q -m cluster
