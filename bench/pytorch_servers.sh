#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Milliseconds per step of a PyTorch program with Tributary, over servers and by
# all-reduce, beside the same program with DDP on gloo and beside Tributary's own worker:
# two ranks with one thread each, two servers, the same models, batches and data. The last
# columns are the largest distances of final weights, of DDP with the fused optimizer and
# of Tributary, from those of DDP with foreach, relative to their norm. Rounds are
# interleaved. Prints a table for docs/benchmarks.md.
#   PYTORCH=PYTHON bench/netns_cubic.sh bench/pytorch_servers.sh [ROUNDS [CASES]]
# CASES is a regular expression for names such as mlp16m-sgd. Needs python/test.sh
# before, whose environment build/python is PYTORCH by default, and torchvision for
# ResNet-18, which Tributary's own worker does not train.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5}
cases=${2:-.}
python=$(realpath -s "${PYTORCH:-build/python/bin/python}")
bin=build/release/bin
warmup=20
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=$scratch/results  # one line per run: case, program, milliseconds

declare -A model_options=([mlp1024]='--widths 784,1024,1024,10'
  [mlp16m]='--widths 784,2640,2640,2640,10' [resnet18]='--model resnet18 --batch 32')
declare -A steps=([mlp1024]=200 [mlp16m]=30 [resnet18]=30)
declare -A optimizer=([sgd]='{sgd: {learning_rate: 0.01}}'
  [adam]='{adam: {learning_rate: 0.001}}')

record() { echo "$1 $2 $3" | tee -a "$results"; }

program() {
  echo bench/pytorch_ddp.py --update "$1" "${model_options[$2]}" --optimizer "$3" \
    --steps "${steps[$2]}" --warmup "$warmup" --save "$scratch/$1.pt"
}

ms() { sed -n 's/.*ms_per_step=\([0-9.]*\).*/\1/p'; }

# ddp UPDATE MODEL OPTIMIZER
ddp() {
  local arguments
  read -ra arguments <<< "$(program "$1" "$2" "$3")"
  "$python" "${arguments[@]}" --world 2 --rank 1 > /dev/null 2>&1 &
  "$python" "${arguments[@]}" --world 2 --rank 0 2> /dev/null | ms
  wait
}

declare -A exchange=([servers]='--servers 2' [all_reduce]='--set strategy=all_reduce'
  [sharded]='--set strategy.all_reduce.sharded=true')

# tributary EXCHANGE MODEL OPTIMIZER
tributary() {
  local arguments options
  read -ra options <<< "${exchange[$1]}"
  read -ra arguments <<< "$(program tributary "$2" "$3")"
  rm -rf "$scratch/run"
  PYTHONPATH=python "$bin/tributary" run "${options[@]}" --workers 2 --python "$python" \
    --run-dir "$scratch/run" "${arguments[@]}" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; return 1; }
  ms < "$scratch/run/logs/worker-0.log"
}

# distance PROGRAM: distance of its last weights from those of DDP with foreach.
distance() {
  "$python" - "$scratch/foreach.pt" "$scratch/$1.pt" << 'PY'
import sys, torch
ddp, ours = (torch.cat([tensor.double().flatten() for tensor in torch.load(path).values()])
             for path in sys.argv[1:])
print(float((ours - ddp).norm() / ddp.norm()))
PY
}

# worker MODEL OPTIMIZER: the mean step after the warm-up, from the run's records.
worker() {
  rm -rf "$scratch/run"
  "$bin/tributary" train "bench/jobs/$1.yaml" --run-dir "$scratch/run" \
    --set "training.steps=$((warmup + steps[$1]))" \
    --set "training.optimizer=${optimizer[$2]}" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; return 1; }
  sed 's/.*"step_seconds":\([0-9.e-]*\).*/\1/' "$scratch/run/metrics.jsonl" |
    awk -v w=$warmup 'NR > w {s += $1; n++} END {printf "%.3f\n", 1e3 * s / n}'
}

for ((round = 1; round <= rounds; round++)); do
  for model in mlp1024 mlp16m resnet18; do
    for kind in sgd adam; do
      [[ $model-$kind =~ $cases ]] || continue
      for update in foreach fused; do
        record "$model-$kind" "ddp-$update" "$(ddp $update $model $kind)"
      done
      record "$model-$kind" fused-distance "$(distance fused)"
      for name in servers all_reduce sharded; do
        record "$model-$kind" $name "$(tributary $name $model $kind)"
        record "$model-$kind" distance "$(distance tributary)"
      done
      [ $model = resnet18 ] || record "$model-$kind" worker "$(worker $model $kind)"
    done
  done
done

echo
echo "$(lscpu | sed -n 's/^Model name: *//p' | head -1), $(nproc) cores, $(git describe --always --dirty), $(date -u +%F), $rounds rounds"
"$python" -c 'import torch; print("PyTorch", torch.__version__)'
python3 - "$results" << 'PY'
import collections, statistics, sys
times = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    case, program, ms = line.split()
    times[case][program].append(float(ms))
print("| case | best DDP | which | servers | over DDP | all_reduce | over DDP | sharded | "
      "over DDP | own worker | servers over own worker | fused from foreach | distance |\n" +
      "| --- " * 13 + "|")
for case in times:
    median = {name: statistics.median(t) for name, t in times[case].items()}
    best = min((name for name in median if name.startswith("ddp")), key=median.get)
    servers = median["servers"]
    worker = median.get("worker")
    print(f"| {case} | {median[best]:.1f} | {best[4:]} | " +
          "".join(f"{median[name]:.1f} | {median[name] / median[best]:.2f} | "
                  for name in ("servers", "all_reduce", "sharded")) +
          (f"{worker:.1f} | {servers / worker:.2f} |" if worker else "- | - |") +
          f" {max(times[case]['fused-distance']):.1e} | {max(times[case]['distance']):.1e} |")
PY
