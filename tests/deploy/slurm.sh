#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains Fashion-MNIST with Slurm for real: starts munged, slurmctld and two slurmd on
# this machine, submits deploy/slurm/tributary.sbatch, kills a worker, a node's daemon and
# a whole node, preempts the job and lets its time run out, and compares the weights with
# those of a run without Slurm. Needs Debian 12 and root; installs Slurm.
#   tests/deploy/slurm.sh [PROGRAM_DIR, default build/release/bin]
# EPOCHS (default 60) must last for a minute; on a slow machine fewer are enough.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "${1:-build/release/bin}")
epochs=${EPOCHS:-60}
export PATH=$programs:/usr/sbin:$PATH
source deploy/steps.sh
source tests/deploy/check.sh

work=$(mktemp -d)
# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local seconds=$1 what=$2 end=$((SECONDS + $1))
  shift 2
  until "$@" > /dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "waited $seconds s in vain for $what" >&2
      return 1
    fi
    sleep 0.2
  done
}
source tests/deploy/slurm_cluster.sh

export TRIBUTARY_RUNS=$work/runs
field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }

# ---- without Slurm

train_undisturbed() {
  tributary train examples/fashion-mnist.yaml --set training.epochs="$epochs" \
    --run-dir "$work/undisturbed" > "$work/undisturbed.log"
  tail -n 4 "$work/undisturbed.log"
}

# ---- a step of Slurm as tributary starts it

# on_node2 WORD...: what `--launch slurm` starts.
on_node2() {
  salloc --quiet --nodes=2 --ntasks-per-node=1 srun --overlap --nodes=1 --ntasks=1 \
    --nodelist=node2 --cpu-bind=none --mpi=none sh -c 'trap "" TERM; exec "$@"' sh "$@"
}
passes_input() { [ "$(echo secret | on_node2 cat)" = secret ]; }
passes_exit_codes() {
  local code=0
  on_node2 sh -c 'exit 37' 2> /dev/null || code=$?
  [ $code = 37 ]
}

# In an allocation the command needs an address, because it does not run on a node.
trains_in_salloc() {
  salloc --quiet --nodes=2 --ntasks-per-node=1 tributary train examples/digits.yaml \
    --servers 2 --launch "slurm --mem=0" --listen 127.0.0.10:0 --run-dir "$work/digits" \
    > "$work/digits.log" 2>&1 || {
    tail -n 5 "$work/digits.log" "$work"/digits/logs/*
    return 1
  }
  grep -q 'server 1 is .* at 127.0.0.12:' "$work/digits/logs/coordinator.log"
}
refuses_without_allocation() {
  local code=0
  tributary train examples/digits.yaml --launch slurm > "$work/refused.log" 2>&1 || code=$?
  cat "$work/refused.log"
  [ $code = 2 ] && grep -q 'wanted an allocation of Slurm' "$work/refused.log"
}

check_steps() {
  check "a step gets the standard input of its launcher" passes_input
  check "a step's exit code is its launcher's" passes_exit_codes
  check "without an allocation the command is refused" refuses_without_allocation
  check "in an allocation servers and workers run on its nodes" trains_in_salloc
}

# ---- the job

submit() {
  job=$(sbatch --parsable --output="$work/job.log" --cpus-per-task=4 --time=30 \
    deploy/slurm/tributary.sbatch examples/fashion-mnist.yaml \
    --set training.epochs="$epochs" --set cluster.lease_seconds=3)
}
newest() { readlink -f "$TRIBUTARY_RUNS/$job/newest"; }
log() { cat "$(newest)/logs/coordinator.log"; }
step() { tail -n 1 "$(newest)/metrics.jsonl" 2> /dev/null | sed 's/.*"step":\([0-9]*\).*/\1/'; }
has_reached() { [ "$(step)" -ge "$1" ]; }
# advances STEPS: waits until the job, which may have to start first, has gone on so far.
advances() {
  local begin
  begin=$(step)
  wait_for 120 "step $((${begin:-0} + $1)), it is at $(step)" has_reached $((${begin:-0} + $1))
}
pid_of() { log | sed -n "s/.*$1 is .*pid \([0-9]*\).*/\1/p" | tail -n 1; }

loses_worker() {
  kill -KILL "$(pid_of 'worker 1')"
  advances 300
}
loses_daemon() {
  kill -KILL "$(daemon_of node2)"
  advances 300 || return 1
  start_node node2
  wait_for 60 "node2 to be in use again" is_in_use node2
}
is_in_use() { sinfo --noheader --Node --nodes="$1" --states=alloc,mix | grep . > /dev/null; }

# Simulates a power failure of a node: kills its daemon, its steps and their processes.
loses_node() {
  local task tasks
  tasks=$(grep -lsz "^SLURMD_NODENAME=node2$" /proc/[0-9]*/environ | cut -d / -f 3)
  kill -KILL "$(daemon_of node2)"
  for task in $tasks; do kill -KILL "$(ps -o ppid= -p "$task")" "$task" || true; done
  start_node node2
  wait_for 60 "the loss of a server" tells_loss && advances 300
}
tells_loss() { log | grep 'server 1 (.* was lost' > /dev/null; }

was_stopped() {
  [ "$(field "$TRIBUTARY_RUNS/$job/$1/summary.json" status)" = interrupted ] &&
    [ -n "$(tributary checkpoint list "$TRIBUTARY_RUNS/$job/$1")" ]
}
# Slurm may set the delay again after it was shortened, so it is shortened repeatedly.
has_started() {
  ! is "$job" PENDING || hurry "$job" || true
  test -s "$TRIBUTARY_RUNS/$job/$1/metrics.jsonl"
}
# goes_on START: the job's next start continues from a checkpoint.
goes_on() {
  wait_for 60 "the job to be in the queue again" is "$job" PENDING
  wait_for 180 "start $1 of the job" has_started "$1"
  advances 300
}

is_preempted() {
  sbatch --quiet --partition=high --nodes=2 --exclusive --output=/dev/null --wrap true
  wait_for 90 "the job to leave its nodes" is_not_running
  wait_for 60 "its summary" was_stopped 0
}
is_not_running() { ! is "$job" RUNNING; }
runs_out_of_time() {
  scancel --batch --signal=USR1 "$job"
  wait_for 90 "its summary" was_stopped 1
}
is_requeued() {
  scontrol requeue "$job"
  wait_for 90 "its summary" was_stopped 2
}
# Flips a bit of a server's file in the newest checkpoint of start 2, while the job is queued.
damages_newest() {
  local file
  damaged=$(tributary checkpoint newest "$TRIBUTARY_RUNS/$job/2")
  file=$(ls "$damaged"/shard-* | head -n 1)
  python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(9000)
    byte = file.read(1)[0]
    file.seek(9000)
    file.write(bytes([byte ^ 1]))' "$file"
  ! tributary checkpoint verify "$damaged" > /dev/null
}
says_passed_over() { grep -q "$damaged is passed over: " "$work/job.log"; }

ends_well() {
  wait_for 600 "the end of the job" is "$job" COMPLETED || {
    tail -n 20 "$work/job.log"
    return 1
  }
  tail -n 4 "$work/job.log"
}
has_lost_both() {
  local summary
  summary=$(newest)/summary.json
  echo "  lost: $(field "$summary" lost)"
  [ "$(field "$summary" lost servers)" -ge 1 ] && [ "$(field "$summary" lost workers)" -ge 1 ]
}
has_learned() {
  local accuracy
  accuracy=$(field "$(newest)/summary.json" test accuracy)
  echo "  test accuracy $accuracy"
  awk -v accuracy="$accuracy" 'BEGIN {exit !(accuracy >= 0.86)}'
}
has_the_same_weights() {
  local own undisturbed
  own=$(field "$(newest)/summary.json" weights_sha256)
  undisturbed=$(field "$work/undisturbed/summary.json" weights_sha256)
  echo "  sha256 $own, undisturbed $undisturbed"
  [ "$own" = "$undisturbed" ]
}

disturb() {
  submit
  check "a job begins to train" advances 100
  check "a worker that is killed is replaced" loses_worker
  check "a job goes on without a node's daemon, and with it again" loses_daemon
  check "a preempted job stops with a checkpoint" is_preempted
  check "it resumes by itself" goes_on 1
  check "a job whose time is up stops with a checkpoint" runs_out_of_time
  check "it requeues itself and resumes" goes_on 2
  check "a requeued job stops with a checkpoint" is_requeued
  check "its newest checkpoint is damaged meanwhile" damages_newest
  check "it resumes by itself" goes_on 3
  check "it says that the damaged checkpoint is passed over" says_passed_over
  check "a lost node's server and worker are started again" loses_node
  check "the job is done" ends_well
  check "its last start has lost a server and a worker" has_lost_both
  check "Fashion-MNIST is learned to .86" has_learned
  check "the weights are those of the undisturbed run" has_the_same_weights
  check "a cancelled job stops with a checkpoint" is_cancelled
}

is_cancelled() {
  submit
  wait_for 60 "the second job" test -s "$TRIBUTARY_RUNS/$job/0/metrics.jsonl"
  advances 100 || return 1
  scancel "$job"
  wait_for 60 "its summary" was_stopped 0
}

# ---- from beginning to end

is_clean() {
  processes_of_work
  [ -z "$(processes_of_work)" ]
}
finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || failed=$((failed + 1))
  set +e
  part "stop" stop_cluster
  check "no process is left" is_clean
  print_parts
  if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

part "install" deploy/install-deps.sh --slurm
trap finish EXIT
trap 'exit 1' INT TERM
part "cluster" start_cluster
part "undisturbed" train_undisturbed
part "steps" check_steps
part "job" disturb
