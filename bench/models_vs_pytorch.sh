#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the examples fashion-mnist-cnn (images) and shakespeare-gpt (text) with
# the same jobs in PyTorch (bench/pytorch_job.py), with the same initial weights and
# batches. First checks that the first steps' losses agree to 1e-4, then measures
# samples per second of training. Rounds are interleaved. Prints medians and their
# ratio as a table for docs/benchmarks.md.
#   bench/models_vs_pytorch.sh [ROUNDS]         samples per second
#   bench/models_vs_pytorch.sh --cpu [ROUNDS]   processor milliseconds per step of
#                                               all processes: for busy machines
#   bench/models_vs_pytorch.sh --learn          trains both to their end: final
#                                               metrics and training time
#   STEPS=3 bench/models_vs_pytorch.sh 1        a short trial
# PyTorch and the worker without a server (all_reduce with one rank) run on the same
# single core, together with the coordinator and the command line. A worker and a
# server (1 + 1) may use two cores. Needs deploy/install-deps.sh --bench and a
# release build; TRIBUTARY_BIN names another build's programs.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

mode=measure rounds=5
case ${1:-} in
  --learn) mode=reach ;;
  --cpu) mode=measure_cpu rounds=${2:-2} ;;
  ?*) rounds=$1 ;;
esac
tributary=${TRIBUTARY_BIN:-build/release/bin}/tributary
warmup=10
compared=5  # steps whose losses are compared
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=$scratch/results  # one line per run: job, program, samples per second

jobs=(fashion-mnist-cnn shakespeare-gpt)
declare -A steps=([fashion-mnist-cnn]=${STEPS:-300} [shakespeare-gpt]=${STEPS:-120})
declare -A few_to_test=([fashion-mnist-cnn]=data.test.idx.rows=64
  [shakespeare-gpt]=data.test.text.rows=4)
declare -A target=([fashion-mnist-cnn]='accuracy >= .885' [shakespeare-gpt]='loss <= 1.97')
# Schedules of fixed length, so that a shorter run keeps the learning rates.
declare -A schedule=([fashion-mnist-cnn]=constant
  [shakespeare-gpt]='{warmup_cosine: {warmup: 100, total: 1500, eta_min: 3e-4}}')
alone=(--set strategy=all_reduce --set cluster.servers=0 --set cluster.workers=1)
served=()  # as in the examples: a server and a worker

blas=$(readlink -f /usr/lib/*-linux-gnu/libblas.so.3)
if [[ $blas != *openblas* ]]; then
  echo "PyTorch would run on $blas; deploy/install-deps.sh --bench sets OpenBLAS" >&2
  exit 1
fi

on_one_core() { taskset -c $(($(nproc) - 1)) "$@"; }
value() { sed -E "s/.*\b$1=([^ ]*).*/\1/"; }

# train JOB RUN [COMMAND_BEFORE...] -- [OPTION...]
train() {
  local job=$1 run=$2 before=()
  shift 2
  while [[ $1 != -- ]]; do before+=("$1"); shift; done
  shift
  rm -rf "$run"
  "${before[@]}" "$tributary" train "examples/$job.yaml" --device cpu \
    --run-dir "$run" "$@" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; return 1; }
}

# Options to train $2 steps of the job with almost no evaluation.
steps_of() {
  short=(--set "training.steps=$2" --set "training.learning_rate_schedule=${schedule[$1]}"
    --set "${few_to_test[$1]}")
}

# The job's initial weights. They are read after one step with a rate so small that
# it changes no float32 (a zero becomes at most 1e-30).
initial_weights() {
  steps_of "$1" 1
  train "$1" "$scratch/initial-$1" -- "${alone[@]}" "${short[@]}" \
    --set training.learning_rate_schedule=constant \
    --set 'training.optimizer={sgd: {learning_rate: 1e-30}}'
}

pytorch() {
  local run=$1 job=$2
  shift 2
  on_one_core bench/pytorch_job.py "$run/job.yaml" \
    "$scratch/initial-$job/weights.safetensors" "$@"
}

same_losses() {
  local run=$scratch/compared
  steps_of "$1" $compared
  train "$1" "$run" on_one_core -- "${alone[@]}" "${short[@]}"
  local told
  told=$(pytorch "$run" "$1" --compare "$run/metrics.jsonl") ||
    { echo "$1: $told" >&2; return 1; }
  echo "$1: $(value parameters <<< "${told%%$'\n'*}") parameters, ${told##*$'\n'}"
}

# Samples per second after the warm-up, from the run's own records.
tributary() {
  local job=$1
  shift
  steps_of "$job" $((warmup + steps[$job]))
  train "$job" "$scratch/run" "$@" "${short[@]}"
  sed -E 's/.*"samples":([0-9]+).*"step_seconds":([0-9.e-]+).*/\1 \2/' \
    "$scratch/run/metrics.jsonl" |
    awk -v w=$warmup 'NR > w {n += $1; s += $2} END {printf "%.1f\n", n / s}'
}

# Samples per second of PyTorch for the job that Tributary has just resolved.
rival() {
  pytorch "$scratch/run" "$1" --warmup $warmup | value samples_per_second
}

# record JOB WHO COMMAND...: records what the command prints.
record() {
  local rate
  rate=$("${@:3}")
  echo "$1 $2 $rate" | tee -a "$results"
}
machine() {
  echo "$(lscpu | sed -n 's/^Model name: *//p' | head -1), $(nproc) cores, $(git describe --always --dirty), $(date -u +%F)"
}

# table FORMAT: prints medians of the results and their ratios.
table() {
  echo "| job | PyTorch | all_reduce, 1 worker | ratio | 1 server, 1 worker | ratio |"
  echo "| --- | --- | --- | --- | --- | --- |"
  sort -k1,2 -k3,3n "$results" | awk -v f="$1" '
    {key = $1 " " $2; value[key, ++count[key]] = $3}
    $1 != job[jobs] {job[++jobs] = $1}
    function median(key,   n) {
      n = count[key]
      if (n % 2) return value[key, (n + 1) / 2]
      return (value[key, n / 2] + value[key, n / 2 + 1]) / 2
    }
    END {
      for (i = 1; i <= jobs; i++) {
        j = job[i]
        p = median(j " pytorch"); a = median(j " all_reduce"); s = median(j " served")
        printf "| %s | " f " | " f " | %.2f | " f " | %.2f |\n", j, p, a, a / p, s, s / p
      }
    }'
}

# cpu_of FUNCTION JOB STEPS ...: seconds of processor time, including children.
cpu_of() {
  local TIMEFORMAT='%3U %3S'
  { time "$@" > /dev/null 2> "$scratch/errors"; } 2>&1 | awk '{print $1 + $2}'
}
# cpu_a_step FUNCTION JOB ...: milliseconds per step, from the difference between a
# short and a long run, which excludes start-up, reading the data and evaluation.
cpu_a_step() {
  local short_run long_run n=${steps[$2]}
  short_run=$(cpu_of "$1" "$2" $warmup "${@:3}")
  long_run=$(cpu_of "$1" "$2" $((warmup + n)) "${@:3}")
  awk "BEGIN {printf \"%.2f\n\", 1e3 * ($long_run - $short_run) / $n}"
}
train_for() {
  steps_of "$1" "$2"
  train "$1" "$scratch/run" "${@:3}" "${short[@]}"
}
rival_for() { pytorch "$scratch/run" "$1" --steps "$2"; }

measure_cpu() {
  local round job
  for ((round = 1; round <= rounds; round++)); do
    for job in "${jobs[@]}"; do
      record "$job" all_reduce cpu_a_step train_for "$job" on_one_core -- "${alone[@]}"
      record "$job" pytorch cpu_a_step rival_for "$job"
      record "$job" served cpu_a_step train_for "$job" -- "${served[@]}"
    done
  done
  echo
  echo "$(machine), $rounds rounds; processor ms a step, ratios Tributary over PyTorch"
  table %.1f
}

measure() {
  local round job
  for ((round = 1; round <= rounds; round++)); do
    for job in "${jobs[@]}"; do
      record "$job" all_reduce tributary "$job" on_one_core -- "${alone[@]}"
      record "$job" pytorch rival "$job"
      record "$job" served tributary "$job" -- "${served[@]}"
    done
  done
  echo
  echo "$(machine), $rounds rounds; samples/s, ratios Tributary over PyTorch"
  table %.0f
}

summary() {
  python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$1)" \
    "$scratch/run/summary.json"
}

# Trains each example to its end with Tributary and with PyTorch; returns 1 when
# Tributary misses a target.
reach() {
  local job metric reached missed=0 told
  local options=()
  for job in "${jobs[@]}"; do
    [[ -n ${STEPS:-} ]] && steps_of "$job" "$STEPS" && options=("${short[@]}")
    train "$job" "$scratch/run" -- "${options[@]}"
    told=$(pytorch "$scratch/run" "$job" --evaluate)
    metric=${target[$job]%% *}
    reached=$(summary "['test']['$metric']")
    printf '| %s | %d | %s | %.4f | %.0f | %.0f | %.4f | %.0f |\n' "$job" \
      "$(summary "['steps']")" "${target[$job]}" "$reached" \
      "$(summary "['training_seconds']")" "$(summary "['seconds']")" \
      "$(value "test_$metric" <<< "$told")" \
      "$(value training_seconds <<< "$told")" >> "$results"
    awk "BEGIN {exit !($reached ${target[$job]#* })}" ||
      { echo "$job misses $metric ${target[$job]#* }: $reached" >&2; missed=1; }
  done
  echo
  echo "$(machine); seconds of training alone, and from the command to the end"
  echo "| job | steps | target | Tributary | training s | in all s | PyTorch | training s |"
  echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
  cat "$results"
  return $missed
}

for job in "${jobs[@]}"; do
  initial_weights "$job"
  same_losses "$job"
done
$mode
