#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Tributary's dependencies from Debian 12's own archive and lists why
# each is needed. Asks dpkg first: when everything is installed, it does nothing
# and needs neither root nor the network.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: deploy/install-deps.sh [--test] [--check] [--monitor] [--bench] [--image]
                              [--deploy] [--python] [--wheel] [--package] [--slurm] [--page]
                              [--prebuilt FILE] [--list]

  (nothing)  what building and running Tributary needs
  --test     and what the tests need
  --check    and clang's tools, for formatting, analysis and lock checks
  --monitor  and Prometheus, for tests/deploy/prometheus.sh
  --bench    and what the comparisons with PyTorch need
  --image    and what building a container image needs within it
  --deploy   and a container engine, with what its test needs
  --python   and what building the Python package needs
  --wheel    and what testing its wheel on a bare system needs
  --package  and what building and testing the Debian packages needs
  --slurm    and Slurm, for tests/deploy/slurm.sh
  --page     and Chromium, for tests/deploy/page.sh
  --prebuilt FILE  only what running the programs of a wheel or Debian package needs,
             and the package itself
  --list     print the packages with their reasons and install nothing

Runs as root or with sudo. Debian 12 is what it is tested on.
TXT
}

# One line per package: group, name, reason.
packages() {
  cat <<'TXT'
build g++ the C++20 compiler
build cmake configures the build
build ninja-build runs the build
build pkgconf finds OpenBLAS and others
build ccache builds again in seconds
build lld links four times faster than ld.bfd
build libgrpc++-dev the transport between processes
build protobuf-compiler compiles proto/ to C++
build protobuf-compiler-grpc compiles the services of proto/ to C++
build libprotobuf-dev messages and the job file's schema
build libabsl-dev status values, locks that clang checks
build libyaml-cpp-dev reads job files, with line numbers
build nlohmann-json3-dev metrics, summaries, safetensors headers
build libcli11-dev command lines
build libspdlog-dev logs
build libmicrohttpd-dev HTTP for metrics and health
build prometheus-cpp-dev the metrics' text format
build libopenblas-pthread-dev matrix products on the CPU
build libgloo-dev collectives between worker processes
build zlib1g-dev gzipped data sets
build libssl-dev sha256 of the weights
build dataset-fashion-mnist 70,000 labelled images, for the first example
prebuilt dataset-fashion-mnist 70,000 labelled images, for the first example
test libgtest-dev the tests
test libgmock-dev matchers of the tests
test libbenchmark-dev the benchmarks in bench/
test python3 checks of the include rules and of written files
test iproute2 tests over several hosts as network namespaces
monitor prometheus scrapes a run, checks and tests deploy/prometheus
monitor python3 asks Prometheus for every rule
check python3 walks the compile commands
check clang proves lock annotations (-Wthread-safety), builds the fuzz targets
check libclang-rt-14-dev libFuzzer and its sanitizers
check clang-format keeps one layout
check clang-tidy finds likely bugs
check universal-ctags measures functions and classes
bench python3-torch the rival: PyTorch DDP on gloo
bench python3-numpy reads weights in bench/read_weights.py
bench libopenblas0-pthread the same matrix products for PyTorch
bench iproute2 a namespace whose loopback uses TCP cubic
image dpkg-dev names the packages that hold the programs' libraries
python python3-dev the headers of the Python module
python python3-venv an environment for PyTorch and the tests
prebuilt-wheel python3-venv holds the wheel
wheel python3-venv downloads what the wheel needs
wheel debootstrap makes the bare system
wheel iproute2 gives it a loopback network
package dpkg-dev names the packages that hold the programs' libraries
package file tells programs from other files
package lintian checks the packages against Debian's policy
package mandoc checks the manual pages
package man-db formats the manual pages
package debootstrap makes the bare system that installs the packages
slurm slurm-wlm places servers and workers
slurm munge proves to Slurm's daemons who asks
slurm python3 reads summaries
page chromium shows the status page
page python3 drives Chromium and checks what it shows
deploy docker.io runs containers
deploy docker-compose brings up deploy/compose
deploy debootstrap makes a base image where no registry can be reached
deploy dpkg-dev names the packages that hold the programs' libraries
deploy python3 asks Prometheus what the dashboard asks
deploy curl asks daemons and engine over HTTP and sockets
TXT
}

groups=" build "
list=false
package=
while [ $# -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    --prebuilt)
      package=$(realpath "${1:?--prebuilt needs a file}")
      groups=" prebuilt "
      [ "${package##*.}" = deb ] || groups+="prebuilt-wheel "
      shift
      ;;
    --test | --check | --monitor | --bench | --image | --deploy | --python | --wheel | --package | --slurm | --page) groups+="${argument#--} " ;;
    --list) list=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install-deps: unknown option $argument" >&2; usage >&2; exit 2 ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    echo "install-deps: needs root or sudo to run: $*" >&2
    exit 1
  fi
}

# Prints "name reason" for every wanted package, each name once.
wanted() {
  packages | while read -r group name reason; do
    case $groups in *" $group "*) echo "$name $reason" ;; esac
  done | awk '!seen[$1]++'
}

# Prints the lines of stdin whose package is not installed.
missing() {
  local installed
  installed=" $(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2> /dev/null |
    awk '$1 == "installed" {print $2}' | tr '\n' ' ')"
  while read -r name reason; do
    case $installed in *" $name "*) ;; *) echo "$name $reason" ;; esac
  done
}

table() { awk '{name = $1; $1 = ""; printf "  %-26s%s\n", name, $0}'; }

explain_failure() {
  cat >&2 <<TXT
install-deps: apt-get could not install the packages above.
Is Debian's archive within reach? /etc/apt/sources.list names the mirror, and
"apt-get update" shows what fails. Offline, bring these packages by other means
and run this script again; it asks for nothing that dpkg already has.
TXT
  exit 1
}

install() {
  local names=("$@") quiet=(-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  # A failing third-party repository must not stop the installation of Debian's
  # packages.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" update ||
    echo "install-deps: apt-get update failed, trying the lists at hand" >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y \
    --no-install-recommends "${names[@]}" > /dev/null || explain_failure
}

# PyTorch uses whatever provides libblas.so.3. The reference BLAS is many times
# slower than OpenBLAS, so a comparison with it would be meaningless.
choose_openblas() {
  local triplet library link target
  triplet=$(g++ -print-multiarch)
  for library in blas lapack; do
    link=lib$library.so.3-$triplet
    target=/usr/lib/$triplet/openblas-pthread/lib$library.so.3
    if [ "$(update-alternatives --query "$link" | sed -n 's/^Value: //p')" != "$target" ]; then
      echo "install-deps: lib$library.so.3 now points to OpenBLAS"
      as_root update-alternatives --quiet --set "$link" "$target"
    fi
  done
}

say_cuda() {
  local nvcc
  nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc || true)
  if [ -n "$nvcc" ]; then
    echo "CUDA: $nvcc, release $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
  else
    echo "CUDA: no nvcc on PATH or in /usr/local/cuda/bin, CPU only"
  fi
}

if $list; then
  wanted | table
  exit 0
fi
if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install-deps: needs Debian's dpkg and apt-get; on other systems install:" >&2
  wanted | table >&2
  exit 1
fi
release=$(. /etc/os-release && echo "$ID $VERSION_ID")
[ "$release" = "debian 12" ] ||
  echo "install-deps: tested on Debian 12, this is $release: names may differ" >&2

mapfile -t absent < <(wanted | missing)
if [ ${#absent[@]} -gt 0 ]; then
  echo "Installing ${#absent[@]} packages:"
  printf '%s\n' "${absent[@]}" | table
  install "${absent[@]%% *}"
else
  echo "All $(wanted | wc -l) packages are there."
fi
if [ "${package##*.}" = deb ]; then install "$package"; fi
case $groups in *" bench "*) choose_openblas ;; esac
case $groups in *" build "*) say_cuda ;; esac
