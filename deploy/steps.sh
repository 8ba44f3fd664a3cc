# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by build scripts: timed parts, and a number of parallel jobs that fits
# memory.

# Compiling a source that includes gRPC takes up to a gigabyte.
jobs_that_fit() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  [ "$gigabytes" -ge 1 ] || gigabytes=1
  echo $((cores < gigabytes ? cores : gigabytes))
}
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(jobs_that_fit)}
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$CMAKE_BUILD_PARALLEL_LEVEL}

part_names=()
part_seconds=()
current_part=

# part NAME COMMAND...: runs the command and measures its time; a failure ends the
# script.
part() {
  local start=$SECONDS
  current_part=$1
  shift
  printf '\n== %s\n' "$current_part"
  "$@"
  part_names+=("$current_part")
  part_seconds+=($((SECONDS - start)))
  current_part=
}

# Prints the minutes of each part so far, and the failed part, if any.
print_parts() {
  local i total=0
  printf '\n'
  for i in "${!part_names[@]}"; do
    total=$((total + part_seconds[i]))
    awk -v s="${part_seconds[i]}" -v name="${part_names[i]}" \
      'BEGIN {printf "%6.1f min  %s\n", s / 60, name}'
  done
  if [ -n "$current_part" ]; then
    echo "failed in: $current_part" >&2
  else
    awk -v s=$total 'BEGIN {printf "%6.1f min  in all\n", s / 60}'
  fi
}
trap print_parts EXIT
