#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Brings up deploy/compose for real: builds the images around programs that are
# built already, trains Fashion-MNIST with 2 servers and 2 workers in containers,
# asks the stack's Prometheus what the dashboard and the alerts ask, kills a
# worker in mid-run, and takes everything away again. Needs Debian 12 and root;
# an engine is installed and started where none answers.
#   tests/deploy/run.sh [BUILD_DIR]     default: build/release
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}

# The engine of this system's packages before any other command-line client.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
source deploy/steps.sh
source tests/deploy/check.sh
source tests/deploy/engine.sh
source tests/deploy/images.sh
source tests/deploy/stack.sh

tag=tributary-test
work=$(mktemp -d)

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local seconds=$1 what=$2 end=$((SECONDS + $1))
  shift 2
  until "$@" > /dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "waited $seconds s in vain for $what" >&2
      return 1
    fi
    sleep 0.2
  done
}

# .env's knobs for this test.
configure() {
  export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1 COMPOSE_HTTP_TIMEOUT=120
  export TRIBUTARY_IMAGE=$tag TRIBUTARY_BASE=$tag-base TRIBUTARY_BINARIES=$tag-binaries
  export TRIBUTARY_CUDA_IMAGE=$tag-cuda PROMETHEUS_IMAGE=$tag-prometheus
  export GRAFANA_IMAGE=$tag-prometheus  # stands in; it is not started
  export PROMETHEUS_PORT=  # a free one
  export TRIBUTARY_JOB_FOLDER=$work/job
  export TRIBUTARY_SERVERS=2 TRIBUTARY_WORKERS=2 TRIBUTARY_CHECKPOINT_STEPS=200
  mkdir "$work/job"
  write_job bsp.yaml 6 bsp
  # With bounded staleness every rule has series to evaluate.
  write_job ssp.yaml 24 "{ssp: {staleness: 2}}"
}

# write_job FILE EPOCHS SYNC: Fashion-MNIST; lost members are noticed soon.
write_job() {
  sed -e "s/^  epochs: .*/  epochs: $2/" \
    -e "s/^  parameter_server: .*/  parameter_server: {sync: $3}/" \
    -e 's/^cluster: .*/cluster: {servers: 2, workers: 2, lease_seconds: 3}/' \
    examples/fashion-mnist.yaml > "$work/job/$1"
}

# A daemon as process 1 of a container: asked to stop, it ends at once and with
# the code that says so.
ends_by_sigterm() {
  local container start millis code
  container=$(docker run -d --network none -v "$PWD/examples:/job:ro" "$tag" "$@")
  # Bit 14 of the mask of handled signals.
  wait_for 60 "$1 to handle SIGTERM" docker exec "$container" \
    grep -qE '^SigCgt:.*[4-7c-f][0-9a-f]{3}$' /proc/1/status || true
  start=$(date +%s%N)
  docker stop --time 10 "$container" > /dev/null
  millis=$((($(date +%s%N) - start) / 1000000))
  code=$(state_of "$container" ExitCode)
  docker rm "$container" > /dev/null
  echo "  exit code $code after $millis ms"
  [ "$code" = 143 ] && [ $millis -lt 3000 ]
}

has_no_compiler() {
  docker run --rm "$tag" sh -c \
    'for tool in gcc g++ cc ld nvcc; do ! command -v $tool || exit 1; done'
}
has_no_rights() {
  [ "$(docker run --rm "$tag" id -u)" = 10001 ] &&
    docker run --rm "$tag" sh -c '! touch /usr/local/bin/x 2> /dev/null'
}

lists_what_it_is_made_of() {
  docker run --rm "$tag" cat /usr/share/doc/tributary/sbom.spdx.json | python3 -c '
import json, sys
document = json.load(sys.stdin)
names = {package["name"] for package in document["packages"]}
programs = [file["fileName"] for file in document["files"]]
print(" ", len(names), "packages,", len(programs), "programs")
sys.exit(not ("libgrpc++1.51" in names and "/usr/local/bin/tributary-server" in programs))'
}
# The operator gets answers, and callers without a certificate get none.
asks_who_calls() {
  local ask=(docker exec "$(id_of coordinator)" tributary status --coordinator 127.0.0.1:7070)
  "${ask[@]}" --tls /tls/operator && ! "${ask[@]}"
}

check_images() {
  check "the image has no compiler" has_no_compiler
  check "its programs run as a user without rights" has_no_rights
  check "it lists what it is made of" lists_what_it_is_made_of
  check "SIGTERM ends a coordinator" ends_by_sigterm \
    tributary-coordinator --job /job/regression.yaml --run-dir /runs/test
  check "SIGTERM ends a server" ends_by_sigterm \
    tributary-server --coordinator nowhere:7070
  check "SIGTERM ends a worker" ends_by_sigterm \
    tributary-worker --coordinator nowhere:7070
  check "the image for GPUs builds" build_cuda_image
}

# ---- what is asked of the stack

watch_training() {
  begin watched ssp.yaml
  check "everybody is healthy" everybody_is_healthy
  check "containers are confined" is_confined
  check "the coordinator answers an operator, and no stranger" asks_who_calls
  check "Prometheus answers what dashboard and alerts ask" \
    tests/deploy/check_queries.py "$(prometheus_url)" 60 deploy/grafana/dashboards/*.json
  check "the job is done" run_ends_well
  check "servers and workers end with it" everybody_goes_home
  check "Fashion-MNIST is learned to .86 (ssp)" has_learned
}

train_undisturbed() {
  begin undisturbed bsp.yaml
  check "the undisturbed job is done" run_ends_well
  check "Fashion-MNIST is learned to .86 (bsp)" has_learned
}

same_weights() {
  local undisturbed disturbed
  undisturbed=$(field "$work/undisturbed.json" weights_sha256)
  disturbed=$(field "$work/$TRIBUTARY_RUN.json" weights_sha256)
  echo "  $disturbed, lost: $(field "$work/$TRIBUTARY_RUN.json" lost)"
  [ -n "$disturbed" ] && [ "$undisturbed" = "$disturbed" ]
}

# reach STEP: waits for the job's metrics to have it.
reach() { wait_for 300 "step $1 of the job $TRIBUTARY_RUN" has_reached "$1"; }

restarts_of() { docker inspect -f '{{.RestartCount}}' "$1"; }
was_restarted() { [ "$(restarts_of "$1")" -ge 1 ]; }

# Kills a worker through the engine, so that it must be started by hand; then
# lets a server end by itself, which its restart policy starts again.
kill_one_by_one() {
  local worker server
  begin killed bsp.yaml
  reach 300
  worker=$(id_of worker 1) server=$(id_of server 2)
  docker kill "$worker" > /dev/null
  echo "  killed a worker after step $(steps_of)"
  docker start "$worker" > /dev/null
  reach 1500
  docker exec "$server" sh -c 'kill -TERM 1'
  echo "  ended a server after step $(steps_of)"
  check "the job is done though a worker and a server died" run_ends_well
  check "it has the undisturbed run's weights" same_weights
  check "the restart policy brought the server back" was_restarted "$server"
}

# All containers stop, and the job goes on when they are up again.
stop_and_go_on() {
  begin stopped bsp.yaml
  reach 700
  compose stop > "$work/stop.log" 2>&1
  echo "  stopped everything"
  bring_up
  check "the job is done though everything was stopped" run_ends_well
  check "it has the undisturbed run's weights" same_weights
}

# ---- from beginning to end

clean_up() {
  compose down --volumes --timeout 5 > "$work/down.log" 2>&1 || cat "$work/down.log"
  [ -n "$engine_state" ] || remove_images
  stop_engine
}

is_clean() {
  local left
  left=$(leftovers)
  [ -z "$left" ] || echo "$left"
  [ -z "$left" ]
}

finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || failed=$((failed + 1))
  set +e
  print_sizes > "$work/sizes" 2> /dev/null
  clean_up
  check "nothing is left of the engine" is_clean
  print_parts
  cat "$work/sizes"
  rm -rf "$work"
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

part "install" deploy/install-deps.sh --deploy
configure
trap finish EXIT
part "engine" start_engine
part "base image" make_base
part "programs" import_programs
part "images" build_images
part "image checks" check_images
part "watched" watch_training
part "undisturbed" train_undisturbed
part "killed" kill_one_by_one
part "stopped" stop_and_go_on
