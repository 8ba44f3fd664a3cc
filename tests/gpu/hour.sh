#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests a machine with one GPU within an hour, in seven commands of less than ten
# minutes each. Each ends with a table. Nothing is compiled: it runs the bundle of
# tests/gpu/bundle.sh.
#
# usage: tests/gpu/hour.sh [--rehearse] k1|k2|k3|k4|k5|k6|k7|all|k0|k4s|k7s|kpt|short
#
#   k1  what the machine is; every kernel against the CPU; faults        ~3 min
#   k2  compute-sanitizer: memory, races, uninitialised reads, barriers  ~9 min
#   k3  kernels compared with the device's limits; hardware counters     ~6 min
#   k4  whole models compared with PyTorch, float32 and bfloat16         ~9 min
#   k5  jobs with servers and all-reduce; kill -9; equal weights         ~9 min
#   k6  two ranks of NCCL on one device                                  ~4 min
#   k7  a step of a large model through servers and without              ~3 min
#
# `short` answers the most important questions in a quarter of an hour:
#   k0   the host's memory, and copies between it and the device          1 min
#   k7s  a step with servers: number of servers, blocks, busy threads     4 min
#   k4s  GPT-2 small and ResNet-50, bfloat16, each kernel; best PyTorch   5 min
#   kpt  the PyTorch client, DDP, offloading; a server killed             4 min
# kpt wants a bundle with the Python package.
#
# --rehearse runs k4 to k7, k4s, k7s and kpt with tiny jobs, on the CPU and over Gloo,
# to try them without a device.
# Environment: BUNDLE (default .gpu/bundle.tar.xz), OUT (a directory for results,
# at most one file per command), LIMIT (seconds per command, default 570),
# BUDGET (seconds of `all`, default 3300), BEFORE (another tributary-worker, with
# which k7 trains as well).
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bundle=${BUNDLE:-$root/.gpu/bundle.tar.xz}
limit=${LIMIT:-570}
budget=${BUDGET:-3300}
rehearse=false
device=cuda
table=()
failed=0
home=
libraries=

# ---- shared functions

# verdict NAME VALUE [ok|FAILED]: adds a line to the table at the end.
verdict() {
  table+=("$(printf '%-44s %-46s %s' "$1" "$2" "${3:-}")")
  [ "${3:-}" != FAILED ] || failed=1
}

# check NAME VALUE TEST...: adds a line; ok if the test succeeds.
check() {
  local name=$1 value=$2
  shift 2
  if "$@"; then verdict "$name" "$value" ok; else verdict "$name" "$value" FAILED; fi
}

# Only our programs find their libraries, cuBLAS and NCCL.
ours() {
  local program=$1
  shift
  LD_LIBRARY_PATH=$home/lib:$libraries "$home/bin/$program" "$@"
}

# left: prints the seconds that this command has left.
left() { echo $((limit - SECONDS > 1 ? limit - SECONDS : 1)); }

unpack() {
  if [ ! -r "$bundle" ]; then
    echo "$1: no bundle at $bundle; tests/gpu/bundle.sh makes it on a machine with CUDA and all packages"
    failed=1
    return 1
  fi
  home=${TMPDIR:-/tmp}/tributary-gpu-$(cksum < "$bundle" | cut -d' ' -f1)
  # Another command may unpack it at the same time.
  if [ ! -e "$home" ]; then
    local unpacked=$home.$$
    if mkdir "$unpacked" && python3 - "$bundle" "$unpacked" <<'PY'; then
import sys, tarfile
tarfile.open(sys.argv[1]).extractall(sys.argv[2])
PY
      mv -T "$unpacked" "$home" 2> /dev/null || true
    else
      failed=1
    fi
    rm -rf "$unpacked"
    [ $failed = 0 ] || return 1
  fi
  # The directories in which pip and the toolkit install CUDA's libraries.
  libraries=$({
    python3 - <<'PY' 2> /dev/null
import glob, site, sys
for base in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    for folder in glob.glob(base + "/nvidia/*/lib"):
        print(folder)
PY
    ls -d /usr/local/cuda/lib64 /usr/local/nvidia/lib64 2> /dev/null
  } | awk '!seen[$0]++' | paste -sd:) || true
}

# Ends the command with a message if there is no device for it.
want_device() {
  local what=$1 said
  unpack "$what" || return 1
  if ! said=$(ours gpu_tests --filter "no such check" --checks 2>&1); then
    echo "$what: gpu_tests does not run here: $(tail -1 <<< "$said")"
    return 1
  fi
  if grep -q '^skipped: no device' <<< "$said"; then
    echo "$what: ${said//$'\n'/ }. It wants one NVIDIA GPU with its driver, and cuBLAS (libcublas.so.13 or .12)."
    return 1
  fi
}

have() { command -v "$1" > /dev/null; }

keep() {
  [ -z "${OUT:-}" ] || { mkdir -p "$OUT" && cp "$1" "$OUT/$2"; }
}

finish() {
  local name=$1
  echo
  echo "== $name: commit $(cat "$home/commit" 2> /dev/null || echo none), $SECONDS s =="
  [ ${#table[@]} -eq 0 ] || printf '%s\n' "${table[@]}"
  if [ $failed != 0 ]; then
    echo "== $name: FAILED"
  elif [ ${#table[@]} -eq 0 ]; then
    echo "== $name: skipped"
  else
    echo "== $name: ok"
  fi
}

# ---- k1: the machine, agreement with the CPU, faults

k1() {
  want_device k1 || return 0
  local log=$work/k1.tsv begin=$SECONDS
  verdict "driver, device" "$(nvidia-smi --query-gpu=driver_version,name,memory.total --format=csv,noheader 2>&1 | head -1)"
  verdict "PCIe generation, width (now, most)" "$(nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current,pcie.link.gen.max,pcie.link.width.max --format=csv,noheader 2>&1 | head -1)"
  verdict "processor" "$(nproc) of $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1)"
  verdict "glibc here, wanted" "$(ldd --version | head -1 | grep -oE '[0-9.]+$'), $(cat "$home/glibc")"
  for library in libcublas.so.13 libcublasLt.so.13 libnccl.so.2 libcudnn.so.9; do
    local at
    at=$(IFS=:; for d in $libraries; do [ ! -e "$d/$library" ] || { echo "$d"; break; }; done)
    verdict "$library" "${at:-not found}"
  done
  verdict "nvcc, ncu, compute-sanitizer" "$(for t in nvcc ncu compute-sanitizer; do have $t && echo -n "$t " || echo -n "- "; done)"
  # Loads all kernels (cuBLAS's too) at the start, or each at its first launch.
  for loading in LAZY EAGER; do
    local started=${EPOCHREALTIME/./}
    CUDA_MODULE_LOADING=$loading ours gpu_tests --checks --filter relu > /dev/null
    verdict "start and one kernel, $loading loading" "$(((${EPOCHREALTIME/./} - started) / 1000)) ms"
  done
  timeout "$(left)" env LD_LIBRARY_PATH="$home/lib:$libraries" "$home/bin/gpu_tests" --checks --tsv "$log"
  check "kernels against the CPU" \
    "$(grep -c '^check' "$log") checks, $(grep -c 'FAILED$' "$log") failed" \
    test "$(grep -c 'FAILED$' "$log")" = 0 -a "$(grep -c '^check' "$log")" -gt 50
  while IFS=$'\t' read -r _ name error tolerance _; do
    verdict "  $name" "error $error, tolerance $tolerance" FAILED
  done < <(grep 'FAILED$' "$log")
  check "a lasting fault is told by CopyOut" "" ours gpu_tests --lasting-fault
  local test
  for test in "$home"/bin/golden_*_test; do
    [ -x "$test" ] || continue
    test=$(basename "$test")
    TRIBUTARY_SOURCE_DIR=$root ours "$test" --gtest_filter='*Cuda*' > "$work/$test" 2>&1
    check "$test on the device" "$(grep -E 'PASSED|SKIPPED' "$work/$test" | head -1 | tr -s ' ')" \
      grep -qE 'PASSED  \] [1-9]' "$work/$test"
    grep -qE 'PASSED  \] [1-9]' "$work/$test" || tail -5 "$work/$test"
  done
  keep "$log" k1.tsv
  verdict "seconds" $((SECONDS - begin))
}

# ---- k2: compute-sanitizer

k2() {
  want_device k2 || return 0
  if ! have compute-sanitizer; then
    echo "k2: compute-sanitizer is not on PATH (it comes with the CUDA toolkit)"
    return 0
  fi
  local tool share filter log
  # NCCL asks for kernels that are not in its build, and continues without them.
  local more=(--report-api-errors no)
  while read -r tool share filter; do  # share: percent of the time
    log=$work/$tool.log
    timeout $((limit * share / 100)) env LD_LIBRARY_PATH="$home/lib:$libraries" \
      compute-sanitizer --tool "$tool" "${more[@]}" --error-exitcode 9 \
      "$home/bin/gpu_tests" --checks --quick ${filter:+--filter "$filter"} > "$log" 2>&1
    local status=$?
    tail -3 "$log"
    check "$tool" "$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -1 | sed 's/=* *//') (exit $status)" test $status = 0
    cat "$log" >> "$work/k2.log"
    more=()  # an option of memcheck alone
  done <<'TOOLS'
memcheck 40
racecheck 20 attention|softmax|norm|sum|embedding
synccheck 15 attention|softmax|norm|sum|embedding
initcheck 20 attention|convolution|norm|pool
TOOLS
  head -c 15000000 "$work/k2.log" > "$work/k2.short"
  keep "$work/k2.short" k2.log
}

# ---- k3: kernels beside ceilings

k3() {
  want_device k3 || return 0
  timeout "$(left)" env LD_LIBRARY_PATH="$home/lib:$libraries" \
    "$home/bin/gpu_tests" --speeds --tsv "$work/k3.tsv"
  while IFS=$'\t' read -r kind name achieved ceiling unit; do
    [ "$kind" = speed ] || continue
    verdict "$name" "$achieved of $ceiling $unit" "$(awk -v a="$achieved" -v c="$ceiling" 'BEGIN {if (c > 0) printf "%3.0f %%", 100 * a / c}')"
  done < "$work/k3.tsv"
  check "speeds measured" "$(grep -c '^speed' "$work/k3.tsv")" test "$(grep -c '^speed' "$work/k3.tsv")" -gt 30
  if have ncu && [ "$(left)" -gt 60 ]; then
    timeout "$(left)" env LD_LIBRARY_PATH="$home/lib:$libraries" ncu \
      --clock-control none --set basic --csv \
      -k regex:"Attention|ToBfloat16|AddBias|LayerNorm|Embedding|Im2Col|Col2Im|CrossEntropy|Normalize" \
      -c 24 "$home/bin/gpu_tests" --speeds > "$work/k3.csv" 2>&1
    verdict "ncu" "$(grep -c '^"' "$work/k3.csv") lines of counters"
    cat "$work/k3.csv" >> "$work/k3.tsv"
  else
    verdict "ncu" "not there, or no time left"
  fi
  keep "$work/k3.tsv" k3.tsv
}

# ---- k4: whole models beside PyTorch

# A worker that finds its libraries.
write_worker() {
  printf '#!/bin/bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$home/lib:$libraries" \
    "$home/bin/tributary-worker" > "$work/worker"
  chmod +x "$work/worker"
}

k4() {
  local tiny=()
  if $rehearse; then unpack k4 || return 0; tiny=(--tiny); else want_device k4 || return 0; fi
  python3 "$root/bench/gpu_models.py" write "$work/jobs" "${tiny[@]}" || return 1
  write_worker
  timeout "$(left)" python3 "$root/bench/gpu_models.py" measure "$work/jobs" \
    --worker "$work/worker" --device "$device" --seconds 90 --all $(($(left) - 20)) \
    --tsv "$work/k4.tsv" | tee "$work/k4.txt"
  check "models measured" "$(wc -l < "$work/k4.tsv" 2> /dev/null || echo 0) of 8" \
    test "$(wc -l < "$work/k4.tsv" 2> /dev/null || echo 0)" = 8
  keep "$work/k4.txt" k4.txt
}

# ---- k5, k6 and k7: jobs

source "$root/tests/gpu/hour_jobs.sh"
source "$root/tests/gpu/hour_short.sh"

# ---- main

if [ "${1:-}" = --rehearse ]; then
  rehearse=true
  device=cpu
  shift
fi
command=${1:-}
case $command in
  k[1-7] | k0 | k4s | k7s | kpt)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    $command || failed=1
    finish "$command"
    exit $failed
    ;;
  all | short)
    commands=(k1 k4 k5 k6 k7 k2 k3)  # the most informative first
    [ "$command" = all ] || commands=(k0 k7s k4s kpt)
    words=()
    if $rehearse; then words=(--rehearse); fi
    status=0
    for command in "${commands[@]}"; do
      if [ $SECONDS -gt $((budget - 60)) ]; then
        echo "$command: left out, the budget of $budget s is spent"
        continue
      fi
      LIMIT=$((budget - SECONDS < limit ? budget - SECONDS : limit)) \
        "${BASH_SOURCE[0]}" "${words[@]}" "$command" || status=1
    done
    exit $status
    ;;
  *)
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
