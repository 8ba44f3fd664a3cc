#!/usr/bin/env bash
# A real Prometheus scrapes every process of a running job and has an answer to
# every rule of deploy/prometheus; promtool checks and tests the rules.
#   tests/deploy/prometheus.sh [FOLDER OF THE PROGRAMS]
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${1:-build/release/bin}
deploy/install-deps.sh --monitor > /dev/null
promtool check config deploy/prometheus/prometheus.yml > /dev/null
promtool check rules deploy/prometheus/rules/*.yml > /dev/null
promtool test rules deploy/prometheus/tests/*.yml

work=$(mktemp -d)
pids=()
finish() {
  kill "${pids[@]}" 2> /dev/null || true
  wait "${pids[@]}" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT

cat > "$work/job.yaml" <<'YAML'
name: monitored
model: {sequential: [{linear: {in: 20, out: 64}}, relu, {linear: {in: 64, out: 1}}]}
data:
  train: {synthetic: {kind: linear, rows: 1000, seed: 1}}
  batch_size: 20
training: {steps: 1000000000, loss: mse, optimizer: {sgd: {learning_rate: 0.0001}}}
strategy: {parameter_server: {sync: {ssp: {staleness: 2}}}}
cluster: {servers: 2, workers: 2}
checkpoint: {every_steps: 500}
YAML
"$bin/tributary" train "$work/job.yaml" --run-dir "$work/run" \
  --metrics-listen 127.0.0.1:0 > "$work/train.log" 2>&1 &
pids+=($!)
for _ in {1..100}; do
  grep -q '^metrics: ' "$work/train.log" 2> /dev/null && break
  sleep 0.2
done
targets=$(sed -n 's|^metrics: http://\([^/]*\)/.*|http://\1/targets|p' "$work/train.log")

# The same configuration, with this run's address and a second instead of five.
sed -e "s|http://127.0.0.1:7090/targets|$targets|" -e "s|5s|1s|" \
  -e "s|rules/\*.yml|$PWD/deploy/prometheus/&|" deploy/prometheus/prometheus.yml > "$work/prometheus.yml"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/data" \
  --web.listen-address "127.0.0.1:$port" --log.level warn > "$work/prometheus.log" 2>&1 &
pids+=($!)

# Five targets: the coordinator, two servers, two workers.
python3 tests/deploy/check_prometheus.py "http://127.0.0.1:$port" deploy/prometheus \
  --targets 5 || { tail -n 20 "$work"/*.log >&2; exit 1; }
