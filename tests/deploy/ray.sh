#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains Fashion-MNIST with Ray for real: starts clusters on this machine, kills actors, a
# node and the driver, interrupts a run, sweeps a learning rate with Ray Tune, and compares
# the weights with those of a run without Ray. Needs the programs and python/tributary with
# its module (python/test.sh builds both); installs Ray from PyPI in build/ray.
#   PYTHON=python3 tests/deploy/ray.sh [PROGRAM_DIR, default build/release/bin]
# EPOCHS (default 25) must last for half a minute; on a slow machine fewer are enough.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "${1:-build/release/bin}")
epochs=${EPOCHS:-25}
environment=${RAY_ENVIRONMENT:-$PWD/build/ray}
python=$environment/bin/python
source deploy/steps.sh
source tests/deploy/check.sh
work=$(mktemp -d)
export PATH=$programs:$PATH PYTHONPATH=$PWD/python RAY_USAGE_STATS_ENABLED=0
export TRIBUTARY_TEST=$work  # marks all processes of this test

install_ray() {
  [ -x "$environment/bin/ray" ] && return
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet 'ray[default,tune]>=2.40' 'numpy>=1.23'
}

train_undisturbed() {
  tributary train examples/fashion-mnist.yaml --set training.epochs="$epochs" \
    --run-dir "$work/undisturbed" > "$work/undisturbed.log"
  tail -n 4 "$work/undisturbed.log"
}

# on_ray MODE RUN: ray_run.py in this mode; its output goes to RUN.log.
on_ray() { "$python" tests/deploy/ray_run.py "$1" "$work/$2" "$epochs" > "$work/$2.log" 2>&1; }
# trains MODE: the run ends well.
trains() {
  on_ray "$1" "$1" || {
    tail -n 20 "$work/$1.log"
    return 1
  }
}
field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }
of() { field "$work/$1/summary.json" "${@:2}"; }

has_learned() {
  echo "  test accuracy $(of "$1" test accuracy) after $(of "$1" seconds) s"
  awk -v accuracy="$(of "$1" test accuracy)" 'BEGIN {exit !(accuracy >= 0.86)}'
}
has_the_same_weights() {
  echo "  sha256 $(of "$1" weights_sha256), undisturbed $(of undisturbed weights_sha256)"
  [ "$(of "$1" weights_sha256)" = "$(of undisturbed weights_sha256)" ]
}
# has_lost RUN WORKERS SERVERS: at least.
has_lost() {
  echo "  lost: $(of "$1" lost)"
  [ "$(of "$1" lost workers)" -ge "$2" ] && [ "$(of "$1" lost servers)" -ge "$3" ]
}
exports_metrics() {
  grep -q 'metrics: ray_tributary_.* ray_tributary_.* ray_tributary_' "$work/$1.log"
}
# The driver repeats the logs of actors with their names.
shows_logs() { grep -q '(worker-1 pid=.*rank 1 of 2' "$work/$1.log"; }

# Drivers, trials, actors and daemons of this test. Ray's own agents end some time later.
left() {
  local environment process
  grep -lszx "TRIBUTARY_TEST=$work" /proc/[0-9]*/environ | while read -r environment; do
    process=${environment%/environ}
    if grep -qsE '^(tributary|python|ray::(Member|Implicit))' "$process/comm"; then
      echo "  ${process#/proc/} $(tr '\0' ' ' < "$process/cmdline")"
    fi
  done
}
nothing_left() {
  local end=$((SECONDS + 20))
  while [ -n "$(left)" ] && [ $SECONDS -lt $end ]; do sleep 0.2; done
  left
  [ -z "$(left)" ]
}

# begins RUN: starts a run in the background and waits until it trains.
begins() {
  on_ray plain "$1" &
  driver=$!
  local end=$((SECONDS + 90))
  until [ "$(grep -c step "$work/$1/metrics.jsonl" 2> /dev/null)" -gt 1000 ] 2> /dev/null; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
process_of() { pgrep -f "ray_run.py plain $work/$1 "; }

stops() {
  begins stopped || return 1
  kill -INT "$(process_of stopped)"
  wait $driver || true
  echo "  status $(of stopped status), checkpoint of step $(of stopped checkpoint_step)"
  [ "$(of stopped status)" = interrupted ] && nothing_left
}

is_cancelled() {
  on_ray cancelled cancelled || return 1
  echo "  status $(of cancelled status)"
  grep -q 'the task was cancelled' "$work/cancelled.log" &&
    [ "$(of cancelled status)" = interrupted ] && nothing_left
}
loses_driver() {
  begins driver || return 1
  kill -KILL "$(process_of driver)"
  wait $driver || true
  [ ! -e "$work/driver/summary.json" ] && nothing_left
}
continues() {
  on_ray plain driver && has_the_same_weights driver &&
    grep 'going on with a job whose coordinator has ended' "$work/driver/logs/coordinator.log"
}

refuses() {
  ! on_ray refused refused || return 1
  tail -n 1 "$work/refused.log"
  tail -n 1 "$work/refused.log" | grep 'waited 5 s for a placement group (SPREAD)' > /dev/null
}

sweeps() {
  RAY_ADDRESS=local "$python" examples/ray/sweep.py examples/digits.yaml "$work/sweep" \
    > "$work/sweep.log" 2>&1 || {
    tail -n 20 "$work/sweep.log"
    return 1
  }
  grep -E '^(learning rate|best)' "$work/sweep.log"
  [ "$(grep -c '^learning rate' "$work/sweep.log")" = 4 ] &&
    grep -q '^learning rate 1e-05: .* after epoch 4$' "$work/sweep.log"
}
has_best_weights() {
  [ -s "$(sed -n 's/^run directory: //p' "$work/sweep.log")/weights.safetensors" ]
}

disturb() {
  check "a run goes on when a worker's and a server's actor are killed" trains actors
  check "both were lost" has_lost actors 1 1
  check "Fashion-MNIST is learned to .86" has_learned actors
  check "the weights are those of the undisturbed run" has_the_same_weights actors
  check "Ray exports step, loss and samples per second" exports_metrics actors
  check "the driver shows the members' logs by name" shows_logs actors
  check "nothing is left of it" nothing_left
}
lose_node() {
  check "a run goes on when a node is killed" trains node
  check "a server and a worker were lost" has_lost node 1 1
  check "the weights are those of the undisturbed run" has_the_same_weights node
  check "nothing is left of it" nothing_left
}
end_early() {
  check "Ctrl-C stops with a checkpoint and leaves nothing" stops
  check "ray.cancel stops with a checkpoint and leaves nothing" is_cancelled
  check "a killed driver leaves nothing" loses_driver
  check "started again, it continues to the same weights" continues
  check "resources that are not there are named" refuses
}
sweep() {
  check "Ray Tune sweeps the learning rate and ends the worst trial early" sweeps
  check "the best trial has left its weights" has_best_weights
  check "nothing is left of it" nothing_left
}

finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || failed=$((failed + 1))
  print_parts
  if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

trap finish EXIT
trap 'exit 1' INT TERM
part "install" install_ray
part "undisturbed" train_undisturbed
part "actors" disturb
part "node" lose_node
part "ends" end_early
part "sweep" sweep
