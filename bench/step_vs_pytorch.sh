#!/usr/bin/env bash
# The training step of one process on one thread, Tributary over PyTorch, in
# turns so that both meet the same machine.
#
# usage: bench/step_vs_pytorch.sh BENCH [ROUNDS] [--sizes ... --batch ...
#                                                 --optimizer sgd|adam]
#
# BENCH is the built tributary_step_bench. PyTorch is Debian's python3-torch,
# which must run on the same BLAS: update-alternatives for libblas.so.3.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bench=${1:?usage: step_vs_pytorch.sh BENCH [ROUNDS] [FLAGS]}
shift
rounds=9
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  rounds=$1
  shift
fi

blas=$(readlink -f /usr/lib/*-linux-gnu/libblas.so.3)
if [[ $blas != *openblas* ]]; then
  echo "PyTorch would run on $blas; choose OpenBLAS:" >&2
  echo "  update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu" >&2
  exit 1
fi

core=$(($(nproc) - 1))  # one core, the last: the first serves interrupts
milliseconds() { # COMMAND...
  local line
  line=$(taskset -c "$core" "$@")
  echo "  $line" >&2
  echo "${line%% *}"
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

ours=() theirs=() ratios=()
for ((round = 1; round <= rounds; ++round)); do
  echo "round $round: Tributary, then PyTorch" >&2
  a=$(milliseconds "$bench" "$@")
  b=$(milliseconds /usr/bin/python3 "$here/pytorch_step.py" "$@")
  ours+=("$a") theirs+=("$b")
  ratios+=("$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.3f", a / b}')")
done
a=$(printf '%s\n' "${ours[@]}" | median)
b=$(printf '%s\n' "${theirs[@]}" | median)
echo "medians of $rounds rounds: Tributary $a ms, PyTorch $b ms, ratio" \
  "$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.3f", a / b}');" \
  "ratio of a round: median $(printf '%s\n' "${ratios[@]}" | median)," \
  "from $(printf '%s\n' "${ratios[@]}" | sort -n | head -1)" \
  "to $(printf '%s\n' "${ratios[@]}" | sort -n | tail -1)"
