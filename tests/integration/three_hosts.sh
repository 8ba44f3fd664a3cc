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
worker() {  # HOST RUN INDEX [WORD...]
  on "$1" "$bin/tributary-worker" --tls "$work/tls/worker" --coordinator $coordinator \
    "${@:4}" >"$work/$2-worker-$3.log" 2>&1 &
}
server() {  # HOST ADDRESS RUN INDEX
  on "$1" "$bin/tributary-server" --tls "$work/tls/server" --coordinator $coordinator \
    --listen "$2:0" >"$work/$3-server-$4.log" 2>&1 &
}
coordinator() {  # RUN [WORD...]
  on a "$bin/tributary-coordinator" --tls "$work/tls/coordinator" --listen $coordinator \
    --job "$job" --set cluster.workers=2 --run-dir "$work/$1" "${@:2}" \
    >"$work/$1-coordinator.log" 2>&1 &
}
# Waits for all daemons; fails if one of them failed.
all_end() {
  local child failed=0
  for child in $(jobs -p); do wait "$child" || failed=1; done
  return $failed
}
fail() {
  tail -n 5 "$work"/*.log
  grep -A 12 "Direct leak\|ERROR: AddressSanitizer" "$work"/*.log | head -n 60 || true
  echo "FAILED: $1"
  exit 1
}
same_weights() {  # RUN [WORD...]: as on one machine
  local hosts here
  "$bin/tributary" train "$job" --set cluster.workers=2 "${@:2}" --run-dir "$work/$1-here" \
    >"$work/$1-here.log" 2>&1 || fail "a run on one machine"
  hosts=$(sha "$work/$1/summary.json") here=$(sha "$work/$1-here/summary.json")
  echo "$1, three hosts: $hosts"
  echo "$1, one machine: $here"
  [ "$hosts" = "$here" ] || fail "the weights differ"
}

# Each waits for another: workers and a server are there before the coordinator.
worker c servers 0
server b 10.79.0.2 servers 0
worker c servers 1
coordinator servers --set cluster.servers=2
server a 10.79.0.1 servers 1
all_end || fail "a daemon ended with an error"
same_weights servers --set cluster.servers=2

# Groups have no TLS: they listen to other machines only if every worker may.
group=(--set cluster.servers=0 --set "strategy.all_reduce={backend: gloo}")
coordinator refused "${group[@]}"
worker b refused 0
worker c refused 1
! all_end || fail "a group listens to other machines without leave"
grep -q "is open to other machines, and the ports of groups" "$work/refused-coordinator.log" ||
  fail "the job does not say why"
coordinator allowed "${group[@]}"
worker b allowed 0 --insecure-groups
worker c allowed 1 --insecure-groups
all_end || fail "a daemon of a group ended with an error"
same_weights allowed "${group[@]}"
echo "the same weights"
