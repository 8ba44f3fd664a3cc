#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Certificates that are replaced while a job runs, and then expire: no step fails, a
# worker that is started again with the new ones is taken, one with the old ones is
# not, and the weights are those of an undisturbed run.
#   certificates_renewed.sh BINARY_DIR JOB.yaml
set -euo pipefail
bin=$1 job=$2
work=$(mktemp -d)
cleanup() {
  kill -KILL $(jobs -p) 2> /dev/null || true
  wait 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  echo "FAILED: $1"
  tail -n 5 "$work"/*.log
  exit 1
}
sha() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1"; }
settings=(--set training.epochs=40 --set cluster.servers=1 --set cluster.workers=2)

"$bin/tributary" train "$job" "${settings[@]}" --run-dir "$work/undisturbed" > "$work/undisturbed.log"

# 14 s.
SECONDS=0
"$bin/tributary" certificates --out "$work/tls" --days 0.00016 > "$work/certificates.log"
cp -r "$work/tls/worker" "$work/expired"
"$bin/tributary-coordinator" --tls "$work/tls/coordinator" --listen 127.0.0.1:0 --job "$job" \
  "${settings[@]}" --run-dir "$work/run" > "$work/coordinator.log" 2>&1 &
coordinator=$!
until address=$(sed -n 's/.*: coordinator \([^ ]*\) waits.*/\1/p' "$work/coordinator.log") &&
  [ -n "$address" ]; do
  [ $SECONDS -lt 10 ] || fail "the coordinator does not listen"
  read -rt 0.05 <> <(:) || true
done
worker() {
  "$bin/tributary-worker" --tls "$work/tls/worker" --coordinator "$address" --index "$1" \
    --delay-messages-ms 10 > "$work/worker-$1$2.log" 2>&1 &
}
"$bin/tributary-server" --tls "$work/tls/server" --coordinator "$address" > "$work/server.log" 2>&1 &
worker 0 ""
worker 1 ""
victim=$!
"$bin/tributary" certificates --out "$work/tls" --days 1 >> "$work/certificates.log"
until [ $SECONDS -ge 15 ]; do
  kill -0 $coordinator 2> /dev/null || fail "the job ended before the certificates did"
  read -rt 0.1 <> <(:) || true
done
kill -KILL $victim
"$bin/tributary-worker" --tls "$work/expired" --coordinator "$address" --join-timeout 2 \
  > "$work/expired.log" 2>&1 && fail "an expired certificate was taken"
worker 1 -again
wait $coordinator || fail "the coordinator ended with an error"

[ "$(sha "$work/run/summary.json")" = "$(sha "$work/undisturbed/summary.json")" ] ||
  fail "the weights differ"
lost=$(python3 -c 'import json,sys
lost = json.load(open(sys.argv[1]))["lost"]
print(lost["workers"], lost["servers"], lost["rollbacks"])' "$work/run/summary.json")
[ "$lost" = "1 0 0" ] || fail "lost workers, servers and rollbacks are $lost, wanted 1 0 0"
echo "the same weights; one worker was lost, the one that was killed"
