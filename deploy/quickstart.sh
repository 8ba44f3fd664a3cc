#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, builds Tributary's programs and trains its first example:
# two workers learn Fashion-MNIST and push gradients to two servers. A wheel or Debian
# package of this version that lies in the clone or beside it is used instead of a build.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TXT'
usage: deploy/quickstart.sh [OPTION...] [ARGUMENT FOR tributary train...]

  --build              compile, even if there is a wheel or a Debian package
  --cuda               build the CUDA kernels; default: if there is an NVIDIA device
  --cuda=ARCH[,ARCH]   for these architectures, as in --cuda=80,90
TXT
}

options=(-DTRIBUTARY_BUILD_TESTS=OFF)
build=false
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=true ;;
    --cuda) build=true; options+=(-DTRIBUTARY_CUDA=ON) ;;
    --cuda=*)
      build=true
      options+=(-DTRIBUTARY_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$(tr , ';' <<< "${1#*=}")")
      ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
  esac
  shift
done
source deploy/steps.sh

# The tags of the wheel that fits this machine's Python, or nothing.
wheel_tags() {
  python3 -c 'import sys
minor = sys.version_info.minor
print("cp312-abi3" if minor >= 12 else f"cp3{minor}-cp3{minor}")' 2> /dev/null || true
}

# The newest package of this version, or nothing.
find_package() {
  local version
  version=$(sed -n 's/^project(tributary VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  find . .. -maxdepth 1 -type f \( -name "tributary_${version}_$(dpkg --print-architecture).deb" \
    -o -name "tributary-$version-$(wheel_tags)-*$(uname -m).whl" \) -printf '%T@ %p\n' |
    sort -rn | head -n 1 | cut -d ' ' -f 2-
}

unpack_wheel() {
  python3 -m venv build/quickstart
  build/quickstart/bin/pip install --quiet --force-reinstall "$package"
}

package=
$build || package=$(find_package)
case $package in
  "")
    bin=build/release/bin
    part "install" deploy/install-deps.sh
    part "configure" cmake --preset release "${options[@]}"
    part "build" cmake --build --preset release --target tributary_programs
    ;;
  *.deb)
    bin=/usr/bin
    echo "Using $package instead of compiling (--build compiles)"
    part "install" deploy/install-deps.sh --prebuilt "$package"
    ;;
  *.whl)
    bin=build/quickstart/bin
    echo "Using $package instead of compiling (--build compiles)"
    part "install" deploy/install-deps.sh --prebuilt "$package"
    part "unpack" unpack_wheel
    ;;
esac

run_dir=runs/quickstart-$(date +%Y%m%d-%H%M%S)
part "train" $bin/tributary train examples/fashion-mnist.yaml \
  --servers 2 --workers 2 --run-dir "$run_dir" "$@"

show_result() {
  ls -lh "$run_dir"
  echo "Once more, or with a job of your own:"
  echo "  $bin/tributary train examples/fashion-mnist.yaml"
}
part "result" show_result
