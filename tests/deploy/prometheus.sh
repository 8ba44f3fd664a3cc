#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real Prometheus scrapes every process of two running jobs. It has an answer to every
# rule of deploy/prometheus, the dashboard's queries show each run alone, and the end of a run
# raises no alert. promtool checks and tests the rules.
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

# start_run NAME SERVERS WORKERS RATE CHECKPOINT_STEPS: a job that does not end; adds the
# address of its list of targets to $targets.
targets=()
start_run() {
  local name=$1 target=
  cat > "$work/$name.yaml" <<YAML
name: $name
model: {sequential: [{linear: {in: 20, out: 64}}, relu, {linear: {in: 64, out: 1}}]}
data:
  train: {synthetic: {kind: linear, rows: 1000, seed: 1}}
  test: {synthetic: {kind: linear, rows: 100, seed: 2}}
  batch_size: 20
training: {steps: $((1000000000 + $2)), loss: mse, optimizer: {sgd: {learning_rate: $4}}}
strategy: {parameter_server: {sync: {ssp: {staleness: $3}}}}
cluster: {servers: $2, workers: $3}
checkpoint: {every_steps: $5}
evaluation: {every_steps: 100}
YAML
  : > "$work/$name.log"  # sed may ask for it before the program below has opened it
  "$bin/tributary" train "$work/$name.yaml" --run-dir "$work/$name" \
    --metrics-listen 127.0.0.1:0 > "$work/$name.log" 2>&1 &
  pids+=($!)
  for _ in {1..300}; do
    target=$(sed -n 's|^metrics: http://\([^/]*\)/.*|http://\1/targets|p' "$work/$name.log")
    [ -z "$target" ] || break
    sleep 0.2
  done
  targets+=("$target")
}

# As a regular expression the first name stands for the second one, too.
start_run two.runs 2 2 0.0001 500
start_run two-runs 1 3 0.0002 300

# The same configuration, with these runs' addresses and a second instead of five.
sed -e "s|- url: http://127.0.0.1:7090/targets|- url: ${targets[0]}|" -e "s|5s|1s|" \
  -e "s|rules/\*.yml|$PWD/deploy/prometheus/&|" deploy/prometheus/prometheus.yml > "$work/prometheus.yml"
printf '      - url: %s\n        refresh_interval: 1s\n' "${targets[1]}" >> "$work/prometheus.yml"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/data" \
  --web.listen-address "127.0.0.1:$port" --log.level warn > "$work/prometheus.log" 2>&1 &
pids+=($!)

# Ten targets: the coordinators, three servers, five workers.
python3 tests/deploy/check_prometheus.py "http://127.0.0.1:$port" deploy/prometheus \
  --targets 10 || { tail -n 20 "$work"/*.log >&2; exit 1; }
for dashboard in deploy/grafana/dashboards/*.json; do
  python3 tests/deploy/check_runs.py "http://127.0.0.1:$port" 120 "$dashboard" \
    two.runs two-runs || { tail -n 20 "$work"/*.log >&2; exit 1; }
done

# When a run is stopped, its five targets disappear before Prometheus reports them as down,
# also when others read the list beside it.
while curl -fsS "${targets[1]}"; do sleep 0.1; done > "$work/looks.log" 2>&1 &
pids+=($!)
"$bin/tributary" stop "$work/two-runs" > "$work/stop.log"
python3 tests/deploy/check_prometheus.py "http://127.0.0.1:$port" deploy/prometheus \
  --targets 5 || { tail -n 20 "$work"/*.log >&2; exit 1; }
