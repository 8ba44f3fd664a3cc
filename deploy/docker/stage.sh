#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects what an image needs from a build directory:
#   DESTINATION/bin      the programs, stripped
#   DESTINATION/depends  the packages that hold their shared libraries, as a
#                        dependency line of this system's package manager
#   deploy/docker/stage.sh BUILD_DIR DESTINATION
set -euo pipefail
build=$1 destination=$2

mkdir -p "$destination"
cmake --install "$build" --component programs --strip \
  --prefix "$(realpath "$destination")" > /dev/null

# dpkg-shlibdeps must run in a source package.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
mkdir "$source/debian"
printf 'Source: tributary\n\nPackage: tributary\nArchitecture: any\n' \
  > "$source/debian/control"
programs=("$(realpath "$destination")"/bin/*)
depends=$(cd "$source" && dpkg-shlibdeps -O "${programs[@]}" 2> "$source/why") || {
  cat "$source/why" >&2
  exit 1
}
echo "${depends#shlibs:Depends=}" > "$destination/depends"
