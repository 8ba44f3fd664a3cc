#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prepares a base image for the programs: installs only the packages that stage.sh
# listed in `depends` beside this script, and creates an unprivileged user and the
# directories that determine the owner of volumes.
set -eu
apt-get update -qq
apt-get satisfy -y -qq --no-install-recommends \
  "$(cat "$(dirname "$0")/depends")" > /dev/null
apt-get clean
rm -rf /var/lib/apt/lists/*

groupadd --gid 10001 tributary
useradd --uid 10001 --gid tributary --no-create-home --home-dir /nonexistent \
  --shell /usr/sbin/nologin tributary
install -d -o tributary -g tributary /runs /checkpoints /run/tributary \
  /tls/ca /tls/coordinator /tls/server /tls/worker /tls/operator /tls/monitor
