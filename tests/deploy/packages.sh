#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, installs them on a bare Debian 12 and uses them there: a job
# file is trained, a C++ program is built, the commands of the tutorial run, and a
# purge leaves nothing behind. Needs root.
#   tests/deploy/packages.sh [BUILD_DIR]     default: build/release
# The packages that the bare system downloads stay in BUILD_DIR/archives.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
source deploy/steps.sh
source tests/deploy/check.sh
source tests/deploy/images.sh

work=$(mktemp -d)
root=$work/root
packages=(tributary libtributary-dev tributary-doc)

build_packages() { deploy/build_packages.sh "$build" | tail -n 3; }

# ---- what Debian's own tools say about the files

manual_pages_are_clean() {
  local page
  for page in "$build"/manual/*.1.gz; do
    zcat "$page" | mandoc -T lint -W all || return 1
    zcat "$page" | LC_ALL=C.UTF-8 man --warnings -l - 2>&1 > /dev/null | (! grep .) || return 1
  done
}

# The page is of these programs: it has each command that they know.
manual_page_is_complete() {
  local command missing=0
  for command in $("$build/bin/tributary" --complete-words "" | cut -f 1); do
    zcat "$build/manual/tributary.1.gz" | grep -x "\.SS tributary $command" > /dev/null || {
      echo "  no section about $command"
      missing=1
    }
  done
  return $missing
}

# Whoever distributes the packages gives them an address (TRIBUTARY_PACKAGE_MAINTAINER).
satisfies_policy() {
  lintian --allow-root --fail-on error,warning \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$build"/packages/*.deb
}

check_files() {
  check "manual pages have no mistakes" manual_pages_are_clean
  check "the manual page has all commands" manual_page_is_complete
  check "the packages follow Debian's policy" satisfies_policy
}

# ---- the bare system

make_bare_system() {
  local mirror archives
  mkdir -p "$build/archives" "$root/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/fast"  # nobody keeps this system
  archives=$(realpath "$build/archives")
  mirror=$(debian_sources | sed -n 's/ bookworm main$//p' | head -n 1)
  debootstrap --variant=minbase --cache-dir="$archives" --include=man-db,python3 \
    bookworm "$root" "$mirror" > "$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    return 1
  }
  debian_sources | sed 's/^/deb /' > "$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::https?::Proxy ' > "$root/etc/apt/apt.conf.d/proxy" || true
  cp /etc/resolv.conf "$root/etc/"
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  mkdir "$root/packages" "$root/test"
  cp "$build"/packages/*.deb "$root/packages"
  cp -r tests/docs tests/deploy/complete.bash tests/integration/package/consumer "$root/test"
}

# inside COMMAND...: runs it in the bare system, with processes of its own.
inside() {
  # shellcheck disable=SC2016
  unshare --mount --propagation private --pid --fork --kill-child bash -euc '
      root=$1 archives=$2
      shift 2
      mount -t proc proc "$root/proc"
      mount --rbind /dev "$root/dev"
      mount -t tmpfs tmpfs "$root/dev/shm"
      mount --bind "$archives" "$root/var/cache/apt/archives"
      chroot "$root" env -i -C /root PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
    ' - "$root" "$(realpath "$build/archives")" "$@"
}

# apt-get within the bare system; its output only when it fails.
apt() {
  inside apt-get -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@" \
    > "$work/apt.log" 2>&1 || {
    tail -n 20 "$work/apt.log" >&2
    return 1
  }
}

# Everything on the system except users' homes and files that installing any package
# changes, such as the copies of the lists of users (/etc/passwd-).
files() {
  (cd "$root" && find etc opt root srv usr var -not -path 'etc/*-' -not -path 'var/cache/*' \
    -not -path 'var/lib/apt/*' -not -path 'var/lib/dpkg/*' -not -path 'var/log/*' -not -path 'root/.local*' | sort)
}

# The compiler stands for a C++ programmer's machine. Our packages must name all other
# packages that they need.
install_compiler() {
  apt update
  apt install g++ cmake make
  files > "$work/before"
}

install_packages() {
  local files=("$root"/packages/*.deb)
  apt install "${files[@]#"$root"}"
  # shellcheck disable=SC2016
  inside dpkg-query -W -f '  ${Package} ${Version}, ${Installed-Size} KiB\n' "${packages[@]}"
}

# ---- what users do

commands_answer() {
  local name
  for name in tributary tributary-coordinator tributary-server tributary-worker; do
    inside "$name" --help > "$work/help" && grep -qi usage "$work/help" || return 1
  done
  inside tributary --version > "$work/version" && grep -qx 'tributary [0-9.]*' "$work/version"
}

manual_is_shown() {
  inside man tributary > "$work/man" && grep -q 'parameter servers' "$work/man" &&
    inside man tributary-worker > "$work/man" && grep -q -- '--coordinator' "$work/man" &&
    inside man -k tributary-server > "$work/man" && grep -q 'holds a shard' "$work/man"
}

# As bash-completion loads it: by the name of the command.
completes() {
  # shellcheck disable=SC2016
  inside bash -euc '
    source /test/complete.bash
    source /usr/share/bash-completion/completions/tributary
    complete -p tributary | grep "_tributary" > /dev/null
    completions "tributary tra" | grep -x train > /dev/null
    completions "tributary train --set training.optimizer.adam.learning" |
      grep -qx training.optimizer.adam.learning_rate=
    completions "tributary train --device=cu" | grep -x cuda > /dev/null
    test -s /usr/share/zsh/vendor-completions/_tributary
    test -s /usr/share/fish/vendor_completions.d/tributary.fish'
}

trains_and_predicts() {
  # shellcheck disable=SC2016
  inside bash -euc '
    examples=/usr/share/doc/tributary/examples
    tributary train $examples/digits.yaml --run-dir digits > train.log
    tail -n 3 train.log
    zcat $examples/data/digits.csv.gz | head -n 20 > rows.csv
    tributary predict digits rows.csv > predictions
    test "$(wc -l < predictions)" -ge 20
    rm -r digits train.log rows.csv predictions' | sed 's/^/  /'
}

builds_a_program() {
  # shellcheck disable=SC2016
  inside bash -euc '
    cmake -S /test/consumer -B /test/build
    cmake --build /test/build -j 2
    /test/build/consumer' > "$work/consumer.log" 2>&1 || {
    tail -n 20 "$work/consumer.log" >&2
    return 1
  }
  grep -q '127.0.0.1:1' "$work/consumer.log"
}

follows_the_tutorial() {
  inside python3 /test/docs/run_blocks.py --root /usr/share/doc/tributary \
    /usr/share/doc/tributary/docs/tutorial.md | sed 's/^/  /'
}

leaves_nothing() {
  apt purge "${packages[@]}" && apt autoremove --purge
  files > "$work/after"
  LC_ALL=C comm -13 <(LC_ALL=C sort "$work/before") <(LC_ALL=C sort "$work/after") \
    > "$work/left"
  cat "$work/left"
  [ ! -s "$work/left" ]
}

check_use() {
  check "the commands answer" commands_answer
  check "the manual is shown" manual_is_shown
  check "bash completes commands, options and keys" completes
  check "an example is trained and predicts" trains_and_predicts
  check "a C++ program is built with the client library" builds_a_program
}
check_tutorial() { check "the tutorial's commands run" follows_the_tutorial; }
check_purge() { check "a purge leaves nothing behind" leaves_nothing; }

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
part "install" deploy/install-deps.sh --package
part "packages" build_packages
part "files" check_files
part "bare system" make_bare_system
part "compiler" install_compiler
part "installation" install_packages
part "use" check_use
part "tutorial" check_tutorial
part "purge" check_purge
