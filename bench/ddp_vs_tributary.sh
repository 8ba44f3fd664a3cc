#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Milliseconds per training step of Tributary and of PyTorch DDP on gloo: two
# workers with one thread each (and two servers, or none with all_reduce), the same
# models, batches and data. Rounds are interleaved. Prints medians and their ratio to
# the best DDP as a table for docs/benchmarks.md.
#   [PYTORCH=PYTHON] bench/netns_cubic.sh bench/ddp_vs_tributary.sh [ROUNDS]
# Needs deploy/install-deps.sh --bench and a release build with
# -DTRIBUTARY_BUILD_BENCHMARKS=ON. PYTORCH names a Python that has a newer PyTorch
# (2.4 or later) than Debian's; DDP is then measured with that one too, with foreach
# and with fused optimizers.
#   bench/netns_cubic.sh bench/ddp_vs_tributary.sh ROUNDS BEFORE [CASES]
# Compares with Tributary's programs of another build, in the directory BEFORE,
# instead of PyTorch: for every strategy the medians of both, their ratio, and the
# ratio in each round. CASES is a regular expression for names such as
# mlp16m-sgd-servers. Needs only a release build.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-3}
before=${2:+$(realpath "$2")}
cases=${3:-.}
bin=build/release/bin
warmup=20
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=$scratch/results  # one line per run: case, program, milliseconds

declare -A widths=([mlp1024]='784,1024,1024,10' [mlp16m]='784,2640,2640,2640,10')
declare -A steps=([mlp1024]=200 [mlp16m]=30)
declare -A optimizer=([sgd]='{sgd: {learning_rate: 0.01}}'
  [adam]='{adam: {learning_rate: 0.001}}')

record() { echo "$1 $2 $3" | tee -a "$results"; }

# ddp PYTHON UPDATE MODEL OPTIMIZER: prints milliseconds per step.
ddp() {
  local arguments=(bench/pytorch_ddp.py --update "$2" --widths "${widths[$3]}"
    --optimizer "$4" --world 2 --steps "${steps[$3]}" --warmup "$warmup")
  "$1" "${arguments[@]}" --rank 1 > /dev/null &
  "$1" "${arguments[@]}" --rank 0 | sed 's/.*ms_per_step=\([0-9.]*\).*/\1/'
  wait
}

# Measures training in one process without communication.
alone() {
  $bin/training_step_bench --benchmark_format=csv --benchmark_min_time=3 \
    --benchmark_filter="/$1_$2\$" 2> /dev/null |
    awk -F, '/BM_TrainingStep/ {print $3}'
}

# tributary MODEL OPTIMIZER STRATEGY [BIN]: prints the mean step after the warm-up
# from the run's own records. BIN is another directory with programs.
tributary() {
  local run=$scratch/run
  rm -rf "$run"
  "${4:-$bin}/tributary" train "bench/jobs/$1.yaml" --run-dir "$run" \
    --set "training.steps=$((warmup + steps[$1]))" \
    --set "training.optimizer=${optimizer[$2]}" --set "strategy=$3" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; return 1; }
  sed 's/.*"step_seconds":\([0-9.e-]*\).*/\1/' "$run/metrics.jsonl" |
    awk -v w=$warmup 'NR > w {s += $1; n++} END {printf "%.3f\n", 1e3 * s / n}'
}

machine() {
  echo "$(lscpu | sed -n 's/^Model name: *//p' | head -1), $(nproc) cores, $(git describe --always --dirty), $(date -u +%F), $rounds rounds"
}

# Alternates in each round which build runs first.
compare_builds() {
  local round model kind strategy name both
  declare -A strategies=([servers]=parameter_server [all_reduce]=all_reduce
    [grpc]='{parameter_server: {transport: grpc}}'
    [sharded]='{all_reduce: {sharded: true}}')
  for ((round = 1; round <= rounds; round++)); do
    for model in mlp1024 mlp16m; do
      for kind in sgd adam; do
        for name in "${!strategies[@]}"; do
          [[ $model-$kind-$name =~ $cases ]] || continue
          strategy=${strategies[$name]}
          both=("before $before" "after $bin")
          if ((round % 2 == 0)); then both=("after $bin" "before $before"); fi
          for build in "${both[@]}"; do
            record "$model-$kind-$name" "${build%% *}" \
              "$(tributary $model $kind "$strategy" "${build#* }")"
          done
        done
      done
    done
  done
  echo
  machine
  python3 - "$results" << 'PY'
import collections, statistics, sys
times = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    case, build, ms = line.split()
    times[case][build].append(float(ms))
print("| case | before | after | ratio | of each round |\n| --- | --- | --- | --- | --- |")
for case in sorted(times):
    b, a = times[case]["before"], times[case]["after"]
    each = ", ".join(f"{y / x:.2f}" for x, y in zip(b, a))
    b, a = statistics.median(b), statistics.median(a)
    print(f"| {case} | {b:.1f} | {a:.1f} | {a / b:.3f} | {each} |")
PY
}

if [ -n "$before" ]; then
  compare_builds
  exit
fi

declare -A strategies=([grpc]='{parameter_server: {transport: grpc}}'
  [shared_memory]='{parameter_server: {transport: shared_memory}}'
  [all_reduce]=all_reduce [sharded]='{all_reduce: {sharded: true}}')
for ((round = 1; round <= rounds; round++)); do
  for model in mlp1024 mlp16m; do
    for kind in sgd adam; do
      record "$model-$kind" alone "$(alone $model $kind)"
      record "$model-$kind" ddp-debian-foreach \
        "$(ddp /usr/bin/python3 foreach $model $kind)"
      for update in ${PYTORCH:+foreach fused}; do
        record "$model-$kind" "ddp-new-$update" "$(ddp "$PYTORCH" $update $model $kind)"
      done
      for name in grpc shared_memory all_reduce sharded; do
        record "$model-$kind" $name "$(tributary $model $kind "${strategies[$name]}")"
      done
    done
  done
done

echo
machine
for python in /usr/bin/python3 ${PYTORCH:-}; do
  $python -c 'import torch; print("PyTorch", torch.__version__)'
done
python3 - "$results" << 'PY'
import collections, statistics, sys
times = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    case, program, ms = line.split()
    times[case][program].append(float(ms))
names = ["grpc", "shared_memory", "all_reduce", "sharded"]
print("| case | worker alone | best DDP | which | " +
      " | ".join(f"{name} | ratio" for name in names) + " |")
print("| --- " * (4 + 2 * len(names)) + "|")
for case, programs in times.items():
    medians = {name: statistics.median(ms) for name, ms in programs.items()}
    best, which = min((ms, name) for name, ms in medians.items()
                      if name.startswith("ddp-"))
    row = [case, f"{medians['alone']:.1f}", f"{best:.1f}", which[4:]]
    for name in names:
        row += [f"{medians[name]:.1f}", f"{medians[name] / best:.2f}"]
    print("| " + " | ".join(row) + " |")
print("\nMedians, and the lowest and highest round:")
for case, programs in times.items():
    for name, ms in programs.items():
        print(f"  {case} {name}: {statistics.median(ms):.1f} "
              f"({min(ms):.1f} to {max(ms):.1f})")
PY
