#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a network namespace of its own whose loopback uses TCP cubic.
# Where bbr is the default, it paces the loopback and reduces every rate by a
# third. Needs root; the namespace ends with the command.
#   bench/netns_cubic.sh COMMAND [ARGUMENT...]
set -euo pipefail
if [ $# -eq 0 ]; then
  awk 'NR > 1 && !/^#/ {exit} NR > 1 && !/SPDX/ {sub(/^# ?/, ""); print}' "$0" >&2
  exit 2
fi

# Inside a namespace, the sysctl that selects the algorithm fails if cubic is not on
# the allowed list; a route's attribute works.
exec unshare --net bash -euo pipefail -c '
  ip link set lo up
  for destination in 127.0.0.0/8 127.0.0.1; do
    ip route change local "$destination" dev lo table local proto kernel \
      scope host src 127.0.0.1 congctl cubic
  done
  exec "$@"' netns_cubic "$@"
