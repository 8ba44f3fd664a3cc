#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Daemons started by hand on three hosts, with certificates, in an order in which each must wait for
# another, complete a job with the same weights as `tributary train` on one machine.
# The hosts are network namespaces on a bridge. Needs root and iproute2; without
# them exits with 77 ("skipped").
#   three_hosts.sh BINARY_DIR JOB.yaml
set -euo pipefail
bin=$1 job=$2
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null ||
   ! ip netns add "trib-probe-$$" 2>/dev/null; then
  echo "skipped: needs root and network namespaces"
  exit 77
fi
ip netns del "trib-probe-$$"

tag=tr$$
work=$(mktemp -d)
cleanup() {
  local pids
  for n in sw a b c; do
    pids=$(ip netns pids $tag$n 2>/dev/null || true)
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
    ip netns del $tag$n 2>/dev/null || true
  done
  rm -rf "$work"
}
trap cleanup EXIT

ip netns add ${tag}sw
ip -n ${tag}sw link add br0 type bridge
ip -n ${tag}sw link set br0 up
i=0
for n in a b c; do
  i=$((i + 1))
  ip netns add $tag$n
  ip -n $tag$n link set lo up
  ip -n ${tag}sw link add p$i type veth peer name eth0 netns $tag$n
  ip -n ${tag}sw link set p$i master br0 up
  ip -n $tag$n addr add 10.79.0.$i/24 dev eth0
  ip -n $tag$n link set eth0 up
done
on() { local host=$1; shift; ip netns exec $tag$host "$@"; }
sha() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1"; }

coordinator=10.79.0.1:7070
"$bin/tributary" certificates --out "$work/tls" > /dev/null
on c "$bin/tributary-worker" --tls "$work/tls/worker" --coordinator $coordinator >"$work/worker-0.log" 2>&1 &
on b "$bin/tributary-server" --tls "$work/tls/server" --coordinator $coordinator --listen 10.79.0.2:0 \
  >"$work/server-0.log" 2>&1 &
on c "$bin/tributary-worker" --tls "$work/tls/worker" --coordinator $coordinator >"$work/worker-1.log" 2>&1 &
on a "$bin/tributary-coordinator" --tls "$work/tls/coordinator" --listen 10.79.0.1:7070 \
  --job "$job" \
  --set cluster.servers=2 --set cluster.workers=2 --run-dir "$work/hosts" \
  >"$work/coordinator.log" 2>&1 &
on a "$bin/tributary-server" --tls "$work/tls/server" --coordinator $coordinator \
  --listen 10.79.0.1:0 \
  >"$work/server-1.log" 2>&1 &
failed=0
for child in $(jobs -p); do wait "$child" || failed=1; done
if [ $failed = 1 ]; then
  tail -n 5 "$work"/*.log
  grep -A 12 "Direct leak\|ERROR: AddressSanitizer" "$work"/*.log | head -n 60
  echo "FAILED: a daemon ended with an error"
  exit 1
fi

"$bin/tributary" train "$job" --servers 2 --workers 2 --run-dir "$work/local" \
  >"$work/local.log" 2>&1 || { tail -n 5 "$work/local.log"; exit 1; }
hosts=$(sha "$work/hosts/summary.json") local_=$(sha "$work/local/summary.json")
echo "three hosts: $hosts"
echo "one machine: $local_"
[ "$hosts" = "$local_" ] || { echo "FAILED: the weights differ"; exit 1; }
echo "the same weights"
