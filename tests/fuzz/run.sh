#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang and runs each from its seeds; prints the
# results last. An input that breaks something is kept and named.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'TXT'
usage: tests/fuzz/run.sh [SECONDS_PER_TARGET [TARGET...]]     (5, all)

SEED=N in the environment begins with other inputs (1; 0: another each time).
What is found beside the seeds goes to build/fuzz/found/TARGET and is used
again. A broken input is best kept as tests/fuzz/corpus/TARGET/found-NAME.
TXT
}

case ${1:-} in -h | --help) usage; exit 0 ;; esac
seconds=${1:-5}
targets=("${@:2}")
build=build/fuzz
# A small file must not make a reader take much: inputs have at most 16 KiB,
# and gzip unpacks a thousandfold.
limits=(-max_len=16384 -malloc_limit_mb=64 -rss_limit_mb=1024 -timeout=10)

source deploy/steps.sh
trap - EXIT
cmake --preset asan --log-level=WARNING > /dev/null
mkdir -p $build
if ! cmake --build --preset asan --target fuzzers > $build/build.log 2>&1; then
  grep -A 20 -m 3 '^FAILED' $build/build.log >&2
  exit 1
fi
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(cd tests/fuzz && printf '%s\n' *_fuzz.cc | sed 's/\.cc$//')
fi

fuzz() {
  local name=$1 found=$build/found/$1 dictionary=()
  mkdir -p "$found"
  [ ! -e "tests/fuzz/$name.dict" ] || dictionary=(-dict="tests/fuzz/$name.dict")
  UBSAN_OPTIONS=print_stacktrace=1 "build/asan/bin/$name" -max_total_time="$seconds" \
    -seed="${SEED:-1}" "${limits[@]}" "${dictionary[@]}" -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$found" "tests/fuzz/corpus/$name" \
    > "$build/$name.log" 2>&1 || echo "exit status $?" >> "$build/$name.log"
}

for name in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$CMAKE_BUILD_PARALLEL_LEVEL" ]; do wait -n; done
  fuzz "$name" &
done
wait

failures=0
printf '\n%-24s %12s %10s %7s  %s\n' target executions per_second edges result
for name in "${targets[@]}"; do
  log=$build/$name.log
  result=ok
  if grep -q '^exit status' "$log"; then
    result=$(grep -m 1 -E '^fuzz: |^SUMMARY|^==.*ERROR|exit status' "$log")
    failures=$((failures + 1))
  fi
  awk -v name="$name" -v result="$result" -v limit="$seconds" '
    /^stat::number_of_executed_units/ {runs = $2}
    /^stat::average_exec_per_sec/ {rate = $2}
    {for (i = 1; i < NF; ++i) if ($i == "cov:") edges = $(i + 1)}
    END {printf "%-24s %12d %10d %7d  %s\n", name, runs, rate, edges, result}' "$log"
done
if [ $failures -gt 0 ]; then
  for name in "${targets[@]}"; do
    grep -q '^exit status' "$build/$name.log" || continue
    printf '\n== %s\n' "$name"
    tail -n 60 "$build/$name.log"
  done
  echo "$failures of ${#targets[@]} targets found something" >&2
  exit 1
fi
