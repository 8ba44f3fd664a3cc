#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Milliseconds of a single-process training step on one core, without communication:
# Tributary and PyTorch alternate, so that both run under the same conditions, with
# the same model, batch, optimizer and BLAS.
#   bench/step_vs_pytorch.sh [ROUNDS [sgd|adam [mlp1024|mlp16m]]]
#   bench/step_vs_pytorch.sh ROUNDS adam cnn|gpt
# Needs deploy/install-deps.sh --bench and a release build with
# -DTRIBUTARY_BUILD_BENCHMARKS=ON; TRIBUTARY_BIN names another build's programs.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-9}
optimizer=${2:-sgd}
model=${3:-mlp1024}
bin=${TRIBUTARY_BIN:-build/release/bin}
declare -A widths=([mlp1024]='784,1024,1024,10' [mlp16m]='784,2640,2640,2640,10')
declare -A steps=([mlp1024]=200 [mlp16m]=30 [cnn]=100 [gpt]=60)

blas=$(readlink -f /usr/lib/*-linux-gnu/libblas.so.3)
if [[ $blas != *openblas* ]]; then
  echo "PyTorch would run on $blas; deploy/install-deps.sh --bench sets OpenBLAS" >&2
  exit 1
fi

on_one_core() { taskset -c $(($(nproc) - 1)) "$@"; }
tributary() {
  on_one_core "$bin/training_step_bench" --benchmark_format=csv \
    --benchmark_min_time=2 --benchmark_filter="/${model}_$optimizer\$" \
    2> /dev/null | awk -F, '/BM_TrainingStep/ {print $3}'
}
pytorch() {
  local rival=(bench/pytorch_models.py --model "$model")
  if [[ -n ${widths[$model]:-} ]]; then
    rival=(bench/pytorch_ddp.py --widths "${widths[$model]}"
      --optimizer "$optimizer")
  fi
  on_one_core "${rival[@]}" --steps "${steps[$model]}" |
    sed 's/.*ms_per_step=\([0-9.]*\).*/\1/'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.3f\n", a / b}'; }
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

ours=() theirs=() ratios=()
for ((round = 1; round <= rounds; round++)); do
  ours+=("$(tributary)")
  theirs+=("$(pytorch)")
  ratios+=("$(ratio "${ours[-1]}" "${theirs[-1]}")")
  echo "round $round: Tributary ${ours[-1]}, PyTorch ${theirs[-1]}," \
    "ratio ${ratios[-1]}" >&2
done
a=$(median "${ours[@]}")
b=$(median "${theirs[@]}")
echo "$model $optimizer, medians of $rounds rounds: Tributary $a ms," \
  "PyTorch $b ms, ratio $(ratio "$a" "$b"), median of the rounds' ratios" \
  "$(median "${ratios[@]}")"
