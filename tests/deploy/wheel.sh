#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel on a bare Debian 12, which has Python and pip and no network, and
# trains there: a program with numpy, one with PyTorch, and a job file. Needs root.
#   tests/deploy/wheel.sh [WHEEL]      default: that for Python 3.11 in build/wheel/dist
# TORCH is a folder of site-packages with PyTorch for Python 3.11, which the bare system
# can read; default: that of build/python (python/test.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
source deploy/steps.sh
source tests/deploy/check.sh
source tests/deploy/images.sh

wheel=$(realpath "${1:-$(ls -t build/wheel/dist/tributary-*-cp311-*.whl | head -n 1)}")
torch=$(realpath "${TORCH:-build/python/lib/python3.11/site-packages}")
work=$(mktemp -d)
root=$work/root
examples=/env/share/doc/tributary/examples  # the wheel's

make_bare_system() {
  local mirror
  mirror=$(debian_sources | sed -n 's/ bookworm main$//p' | head -n 1)
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" \
    "$mirror" > "$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    return 1
  }
  mkdir "$root/wheels" "$root/torch" "$root/runs"
}

# inside COMMAND...: runs it in the bare system, with processes and a loopback network of
# its own.
inside() {
  # shellcheck disable=SC2016
  unshare --mount --propagation private --net --pid --fork --kill-child \
    bash -euc '
      root=$1 torch=$2
      shift 2
      mount -t proc proc "$root/proc"
      mount --rbind /dev "$root/dev"
      mount -t tmpfs tmpfs "$root/dev/shm"
      mount --bind -o ro "$torch" "$root/torch"
      ip link set lo up
      cd "$root/runs"
      chroot "$root" env -i -C /runs PATH=/usr/bin:/bin HOME=/root "$@"
    ' - "$root" "$torch" "$@"
}

# The wheel and numpy, which it needs, come from a folder.
install_wheel() {
  python3.11 -m venv "$work/pip"
  "$work/pip/bin/pip" download --quiet --only-binary :all: --dest "$root/wheels" "$wheel"
  inside python3 -m venv /env
  inside /env/bin/pip install --quiet --no-index --find-links /wheels tributary
  site=$(inside /env/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  ls -s --block-size=1 "$wheel"
  du -sm "$root$site"/tributary{,.libs}
}

has_none_of_our_libraries() {
  ! find "$root/usr/lib" -name 'libgrpc*' -o -name 'libprotobuf*' -o -name 'libabsl*' \
    -o -name 'libopenblas*' | grep .
}

# Every library is one of the wheel's, of glibc, of the compiler, or zlib.
finds_its_libraries() {
  local system='/lib(c|m|dl|rt|pthread|z|gcc_s|stdc\+\+)\.so\.'
  # shellcheck disable=SC2016
  inside sh -c 'for file in "$1"/tributary/bin/* "$1"/tributary/*.so "$1"/tributary.libs/*; do
      ldd "$file" || exit 1
    done' - "$site" > "$work/ldd"
  echo "  $(grep -c '=>' "$work/ldd") references of the programs, the module and the libraries"
  ! grep 'not found' "$work/ldd" &&
    ! grep '=>' "$work/ldd" | grep -vE "=> ($site/|[^ ]*$system)"
}

lists_every_library() {
  local library missing=0
  for library in "$root$site"/tributary.libs/*; do
    grep -qF "${library##*/}" "$root$site"/tributary-*.dist-info/licenses/BUNDLED.md || {
      echo "  no licence for ${library##*/}"
      missing=1
    }
  done
  return $missing
}

says_whose_it_is() {
  local field
  for field in 'Author: Tributary contributors' 'License-Expression: Apache-2.0' \
    'Summary: '; do
    grep -qi "^$field" "$root$site"/tributary-*.dist-info/METADATA || {
      echo "  METADATA has no line '$field...'"
      return 1
    }
  done
}

# In milliseconds, the fastest of three.
milliseconds() {
  local start
  for _ in 1 2 3; do
    start=$(date +%s%N)
    "$@" > /dev/null
    echo $((($(date +%s%N) - start) / 1000000))
  done | sort -n | head -n 1
}

commands_answer() {
  local name
  for name in tributary tributary-coordinator tributary-server tributary-worker; do
    inside "/env/bin/$name" --help | grep -i usage > /dev/null || return 1
  done
  echo "  tributary --help: $(milliseconds inside /env/bin/tributary --help) ms," \
    "an empty command: $(milliseconds inside true) ms"
}

is_imported_soon() {
  local ms
  ms=$(milliseconds inside /env/bin/python -c 'import tributary')
  echo "  import tributary: $ms ms with the start of Python"
  [ "$ms" -lt 1000 ]
}

# field FILE KEY...: of a JSON file.
field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }

# reaches AT_LEAST RUN KEY...: a field of a finished run's summary.
reaches() {
  local least=$1 run=$2 value
  value=$(field "$root/runs/$run/summary.json" "${@:3}")
  echo "  ${*:3} $value, $(field "$root/runs/$run/summary.json" seconds) s"
  awk -v value="$value" -v least="$least" 'BEGIN {exit !(value >= least)}'
}

# trains RUN COMMAND...: `tributary COMMAND...` ends well.
trains() {
  inside /env/bin/tributary "${@:2}" > "$work/$1.log" 2>&1 || {
    tail -n 20 "$work/$1.log" "$root/runs/$1"/logs/* >&2
    return 1
  }
}

train_numpy() {
  trains softmax run --servers 2 --workers 2 --run-dir softmax $examples/numpy/softmax.py &&
    reaches 465 softmax steps
}

train_torch() {
  echo /torch > "$root$site/torch.pth"
  trains mlp run --servers 2 --workers 2 --run-dir mlp $examples/pytorch/mlp.py &&
    reaches 0.82 mlp test accuracy
}

train_job() {
  trains digits train $examples/digits.yaml --run-dir digits &&
    reaches 0.85 digits test accuracy
}

has_the_same_weights_with_three_servers() {
  trains digits3 train $examples/digits.yaml --servers 3 --run-dir digits3 &&
    [ "$(field "$root/runs/digits/summary.json" weights_sha256)" = \
      "$(field "$root/runs/digits3/summary.json" weights_sha256)" ]
}

has_documents() {
  inside test -r "${examples%examples}docs/pytorch.md"
}

check_files() {
  check "the bare system has none of our libraries" has_none_of_our_libraries
  check "programs and module find theirs in the wheel" finds_its_libraries
  check "every library has its licence in the wheel" lists_every_library
  check "its metadata name author and licence" says_whose_it_is
  check "it has the documents" has_documents
  check "the commands answer" commands_answer
  check "the package is imported within a second" is_imported_soon
}

check_training() {
  check "a program of numpy's trains" train_numpy
  check "a program of PyTorch's trains" train_torch
  check "a job file trains" train_job
  check "it ends with the same weights with three servers" \
    has_the_same_weights_with_three_servers
}

finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || failed=$((failed + 1))
  print_parts
  rm -rf "$work"
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

trap finish EXIT
part "install" deploy/install-deps.sh --wheel
part "bare system" make_bare_system
part "wheel" install_wheel
part "files" check_files
part "training" check_training
