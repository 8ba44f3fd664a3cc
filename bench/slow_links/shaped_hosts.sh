#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulates hosts by network namespaces. Each has one link, limited in both
# directions, to one switch (a bridge in a namespace of its own). The machine's own
# network does not change. Needs root, iproute2 and the kernel's tbf.
#   bench/slow_links/shaped_hosts.sh up N RATE [PREFIX]   hosts PREFIX1..PREFIXN at
#                                              10.77.0.1..N; RATE as 200mbit
#   bench/slow_links/shaped_hosts.sh rate RATE [PREFIX]   another rate for all links
#   bench/slow_links/shaped_hosts.sh down [PREFIX]
#   ip netns exec PREFIX2 COMMAND              run something on host 2
# A burst of 256 KB lets packets of 64 KB, TCP's largest, pass at once. Uses TCP
# cubic, because bbr, where it is the default, would pace by itself.
set -euo pipefail

burst=256kb
limits() { echo "tbf rate $1 burst $burst latency 50ms"; }

# The switch's ports: p1 ... pN.
ports() { ip -n "${1}sw" -o link show master br0 | sed 's/.*: \(p[0-9]*\)@.*/\1/'; }

up() { # N RATE PREFIX
  local i
  ip netns add "${3}sw"
  ip -n "${3}sw" link add br0 type bridge
  ip -n "${3}sw" link set br0 up
  for ((i = 1; i <= $1; i++)); do
    ip netns add "$3$i"
    ip -n "$3$i" link set lo up
    ip -n "${3}sw" link add "p$i" type veth peer name eth0 netns "$3$i"
    ip -n "${3}sw" link set "p$i" master br0
    ip -n "${3}sw" link set "p$i" up
    ip -n "$3$i" addr add "10.77.0.$i/24" dev eth0
    ip -n "$3$i" link set eth0 up
    # Up: limits what leaves the host. Down: limits what leaves the switch's port.
    # shellcheck disable=SC2046  # words of the limit
    tc -n "$3$i" qdisc add dev eth0 root $(limits "$2")
    # shellcheck disable=SC2046
    tc -n "${3}sw" qdisc add dev "p$i" root $(limits "$2")
    ip -n "$3$i" route change 10.77.0.0/24 dev eth0 proto kernel scope link \
      src "10.77.0.$i" congctl cubic
  done
}

rate() { # RATE PREFIX
  local port
  for port in $(ports "$2"); do
    # shellcheck disable=SC2046
    tc -n "${2}sw" qdisc change dev "$port" root $(limits "$1")
    # shellcheck disable=SC2046
    tc -n "$2${port#p}" qdisc change dev eth0 root $(limits "$1")
  done
}

down() { # PREFIX
  local name
  for name in $(ip netns list | awk '{print $1}' | grep -E "^$1([0-9]+|sw)\$"); do
    ip netns del "$name"
  done
}

case "${1:-}" in
up) up "$2" "$3" "${4:-host}" ;;
rate) rate "$2" "${3:-host}" ;;
down) down "${2:-host}" ;;
*)
  awk 'NR > 1 && !/^#/ {exit} NR > 1 && !/SPDX/' "$0"
  exit 2
  ;;
esac
