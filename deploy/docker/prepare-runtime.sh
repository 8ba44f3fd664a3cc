#!/bin/sh
# Makes a base image fit for the programs: the packages that stage.sh wrote
# down beside this script and no others, a user without rights, and the folders
# that volumes take their owner from.
set -eu
apt-get update -qq
apt-get satisfy -y -qq --no-install-recommends \
  "$(cat "$(dirname "$0")/depends")" > /dev/null
apt-get clean
rm -rf /var/lib/apt/lists/*

groupadd --gid 10001 tributary
useradd --uid 10001 --gid tributary --no-create-home --home-dir /nonexistent \
  --shell /usr/sbin/nologin tributary
install -d -o tributary -g tributary /runs /checkpoints
