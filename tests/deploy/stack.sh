# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh: functions that inspect the stack of deploy/compose.

compose() {
  docker-compose -f deploy/compose/docker-compose.yml --project-name "$tag" "$@"
}
# ids_of SERVICE, id_of SERVICE [NUMBER]: containers, running or not. Several
# times as fast as asking docker-compose.
ids_of() {
  docker ps -a --filter "label=com.docker.compose.project=$tag" \
    --filter "label=com.docker.compose.service=$1" --format '{{.Names}} {{.ID}}' |
    sort | cut -d' ' -f2
}
id_of() { ids_of "$1" | sed -n "${2:-1}p"; }
state_of() { docker inspect -f "{{.State.$2}}" "$1"; }

# in_run_dir COMMAND...: in this run's directory, whether or not the job runs.
in_run_dir() {
  docker run --rm --volume "${tag}_runs:/runs:ro" "$tag" \
    sh -c 'cd "/runs/$0" && "$@"' "$TRIBUTARY_RUN" "$@"
}
field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }

is_healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]; }
has_ended() { [ "$(state_of "$1" Status)" = exited ]; }
steps_of() {
  docker exec "$(id_of coordinator)" sh -c 'wc -l < "/runs/$0/metrics.jsonl"' "$TRIBUTARY_RUN"
}
has_reached() { [ "$(steps_of)" -ge "$1" ]; }

bring_up() {
  compose up -d --no-build --scale grafana=0 > "$work/up.log" 2>&1 || {
    tail -n 20 "$work/up.log" >&2
    return 1
  }
}

everybody_is_healthy() {
  local role
  for role in coordinator server worker; do
    while read -r container; do
      wait_for 120 "$role $container to be healthy" is_healthy "$container" || return 1
    done < <(ids_of "$role")
  done
}

# All six containers have limits, and no rights that a daemon does not need.
is_confined() {
  local role container confined='^[^ ]+ true \[ALL\] true \[no-new-privileges:true\] (tributary|nobody)$'
  for role in coordinator server worker prometheus; do
    ids_of "$role"
  done | while read -r container; do
    docker inspect -f '{{.Name}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{gt .HostConfig.Memory 0}} {{.HostConfig.SecurityOpt}} {{.Config.User}}' "$container"
  done > "$work/confined"
  ! grep -vE "$confined" "$work/confined" && [ "$(wc -l < "$work/confined")" = 6 ]
}

prometheus_url() { echo "http://$(compose port prometheus 9090)"; }

# Waits for the job's end and keeps its summary.
run_ends_well() {
  local coordinator
  coordinator=$(id_of coordinator)
  wait_for 900 "the job $TRIBUTARY_RUN to end" has_ended "$coordinator" &&
    [ "$(state_of "$coordinator" ExitCode)" = 0 ] &&
    in_run_dir cat summary.json > "$work/$TRIBUTARY_RUN.json" || {
    compose logs --no-color --tail 3 coordinator server worker
    in_run_dir tail -n 10 logs/coordinator.log
    return 1
  }
}

everybody_goes_home() {
  local container
  for container in $(ids_of server; ids_of worker); do
    wait_for 120 "container $container to end with its job" has_ended "$container" || return 1
    [ "$(state_of "$container" ExitCode)" = 0 ] || return 1
  done
}

has_learned() {
  local accuracy
  accuracy=$(field "$work/$TRIBUTARY_RUN.json" test accuracy)
  echo "  test accuracy $accuracy, $(field "$work/$TRIBUTARY_RUN.json" seconds) s"
  awk -v a="$accuracy" 'BEGIN {exit !(a >= 0.86)}'
}

# begin RUN JOB
begin() {
  export TRIBUTARY_RUN=$1 TRIBUTARY_JOB=$2
  bring_up
}
