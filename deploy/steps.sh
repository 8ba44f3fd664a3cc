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
# Many tests wait for a lease or a pause, so twice as many tests run as there are cores.
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$((2 * $(nproc)))}

part_names=()
part_seconds=()
part_cpu=()
current_part=

# Seconds of processors that the ended commands of this script took (proc(5): cutime and
# cstime, in hundredths).
cpu_seconds() {
  awk '{sub(/^.*\) /, ""); print int(($14 + $15) / 100)}' "/proc/$$/stat"
}

# part NAME COMMAND...: runs the command and measures its time; a failure ends the
# script.
part() {
  local start=$SECONDS start_cpu
  start_cpu=$(cpu_seconds)
  current_part=$1
  shift
  printf '\n== %s\n' "$current_part"
  "$@"
  part_names+=("$current_part")
  part_seconds+=($((SECONDS - start)))
  part_cpu+=($(($(cpu_seconds) - start_cpu)))
  current_part=
}

# The machine in a few words: "2 x AMD EPYC".
machine() {
  echo "$(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
}

# Appends the parts' minutes to the file that TRIBUTARY_TIMES names. Its columns are
# date, commit, machine, script, part, minutes, minutes of processors.
record_parts() {
  local i commit
  commit=$(git rev-parse --short HEAD 2> /dev/null || echo unknown)
  git diff --quiet HEAD 2> /dev/null || commit+=+
  for i in "${!part_names[@]}"; do
    awk -v date="$(date +%F)" -v commit="$commit" -v machine="$(machine)" \
      -v script="$0" -v part="${part_names[i]}" -v s="${part_seconds[i]}" \
      -v cpu="${part_cpu[i]}" 'BEGIN {printf "%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\n",
        date, commit, machine, script, part, s / 60, cpu / 60}'
  done >> "$TRIBUTARY_TIMES"
}

# Prints the minutes of each part so far, and the failed part, if any.
print_parts() {
  local i total=0 total_cpu=0
  printf '\n'
  for i in "${!part_names[@]}"; do
    total=$((total + part_seconds[i]))
    total_cpu=$((total_cpu + part_cpu[i]))
    awk -v s="${part_seconds[i]}" -v cpu="${part_cpu[i]}" -v name="${part_names[i]}" \
      'BEGIN {printf "%6.1f min %6.1f CPU  %s\n", s / 60, cpu / 60, name}'
  done
  if [ -n "$current_part" ]; then
    echo "failed in: $current_part" >&2
  else
    awk -v s=$total -v cpu=$total_cpu \
      'BEGIN {printf "%6.1f min %6.1f CPU  in all\n", s / 60, cpu / 60}'
  fi
  [ -z "${TRIBUTARY_TIMES:-}" ] || record_parts
}
trap print_parts EXIT
