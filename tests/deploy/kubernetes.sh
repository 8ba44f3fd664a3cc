#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests deploy/kubernetes without a cluster: renders the overlays, validates them
# against the schemas of Kubernetes, and starts the commands of the pods as process 1
# of PID namespaces, whose lives are then those of pods: a graceful stop, another node.
# Needs root, kubectl, and a Python with PyYAML and kubernetes-validate.
# Debian's kubectl 1.20 is too old for the overlays; 1.32 is known to work.
#   PYTHON=python3 tests/deploy/kubernetes.sh [PROGRAM_DIR, default build/release/bin]
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "${1:-build/release/bin}")
python=${PYTHON:-python3}
source tests/deploy/check.sh

work=$(mktemp -d)
# Its workers' messages are held back for 1 ms in the mean, so the job takes 11 s or
# longer on any machine, and is still there when its pods are moved.
job=(--set training.epochs=250 --set name=pods)
port=$((20000 + RANDOM % 10000))

finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || failed=$((failed + 1))
  kill -KILL $(jobs -p) 2> /dev/null || true
  rm -rf "$work"
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}
trap finish EXIT

# ---- objects

render() {
  kubectl kustomize "deploy/kubernetes/overlays/$1" > "$work/$1.rendered"
  "$python" tests/deploy/expand_jobset.py < "$work/$1.rendered" > "$work/$1.yaml"
}
validates() {
  "$python" -m kubernetes_validate --strict --quiet "$work/$1.yaml"
}
for overlay in cpu cpu-tls cpu-jobset cuda; do
  check "$overlay: it renders" render $overlay
  check "$overlay: the schemas have nothing against it" validates $overlay
  check "$overlay: options, ports, volumes and security fit" \
    "$python" tests/deploy/check_kubernetes.py "$programs" "$work/$overlay.yaml"
done
# The JobSet's own type has no schema here, so its pods are compared with those of the
# overlay from which they are taken.
takes_pods() {
  "$python" - "$work" <<'PY'
import sys
import yaml

def pods(overlay, names):
    with open(f"{sys.argv[1]}/{overlay}.yaml", encoding="utf-8") as file:
        items = {item["metadata"]["name"]: item for item in yaml.safe_load_all(file)
                 if "template" in item.get("spec", {})}
    assert set(names) <= set(items), f"{overlay} has {sorted(items)}"
    return [items[name]["spec"]["template"]["spec"] for name in names]

before = pods("cpu-tls", [f"tributary-{role}" for role in ("coordinator", "server", "worker")])
after = pods("cpu-jobset", [f"tributary-{role}-0" for role in ("coordinator", "server", "worker")])
assert before[0] == after[0] and before[2] == after[2], "coordinator or worker differ"
server = after[1]["containers"][0]
assert server["args"][3] == "--advertise=tributary-server-0-$(INDEX).tributary:7071"
assert server["args"][-1] == "--index=$(INDEX)" and server["env"][0]["name"] == "INDEX"
PY
}
check "the JobSet has the pods of its overlay" takes_pods
# cert-manager's own types have no schema here, so its certificates are compared with
# those that the pods need.
issues() {
  cat > "$work/kustomization.yaml" <<TXT
resources: [$(realpath --relative-to="$work" deploy/kubernetes/overlays/cpu-tls)]
components: [$(realpath --relative-to="$work" deploy/kubernetes/components/cert-manager)]
TXT
  kubectl kustomize --load-restrictor LoadRestrictionsNone "$work" > "$work/issued.yaml"
  local role
  for role in coordinator server worker; do
    grep -q "spiffe://tributary/$role\$" "$work/issued.yaml" || return 1
    [ "$(grep -c "secretName: tributary-tls-$role\$" "$work/issued.yaml")" = 2 ] || return 1
  done
}
check "cert-manager issues each secret that a pod mounts" issues
check "the job is the example's" cmp examples/fashion-mnist.yaml deploy/kubernetes/base/job.yaml

# ---- lives

# pod NAME KIND/NAME PORT [WORD...]: starts a pod's command with folders and ports of
# this machine. Its process 1 gets the signals that a kubelet sends.
pod() {
  local name=$1 own=$3 words
  mapfile -t words < <("$python" tests/deploy/pod_words.py "$work/cpu-tls.yaml" "$2" | sed \
    -e "s#--tls=/tls#--tls=$work/tls/${1%%-*}#" \
    -e "s#0.0.0.0:707[01]#127.0.0.1:$own#; s#0.0.0.0:7090#127.0.0.1:0#; s#127.0.0.1:7091#127.0.0.1:0#" \
    -e "s#tributary-coordinator:7070#127.0.0.1:$port#" \
    -e "s#--advertise=.*#--advertise=127.0.0.1:$own#; s#=/job/#=$PWD/examples/#" \
    -e "s#examples/job.yaml#examples/digits.yaml#; s#/runs/#$work/runs/#" \
    -e "s#/checkpoints/#$work/checkpoints/#; s#--index=.*#--index=${name##*-}#")
  PATH=$programs:$PATH unshare --pid --fork --kill-child "${words[@]}" "${@:4}" \
    > "$work/$name.log" 2>&1 &
  unshare_pid[$name]=$!
}
declare -A unshare_pid
# The process that is process 1 in the pod.
first_process() { pgrep -P "${unshare_pid[$1]}"; }
step() {
  "$programs/tributary" status --tls "$work/tls/operator" --coordinator 127.0.0.1:$port --json 2> /dev/null |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["step"])' 2> /dev/null || echo 0
}
# Waits, for two minutes at most, until the job has finished this step.
reaches() {
  local end=$((SECONDS + 120))
  while [ $SECONDS -lt $end ]; do
    [ "$(step)" -ge "$1" ] && return 0
    read -rt 0.1 <> <(:) || true
  done
  echo "the job is at step $(step)"
  return 1
}
coordinator() { pod coordinator Job/tributary-coordinator $port "${job[@]}"; }
server() { pod "server-$1" StatefulSet/tributary-server $((port + $2)); }
sha256_of() { sha256sum < "$1/weights.safetensors"; }

"$programs/tributary" train examples/digits.yaml "${job[@]}" --set cluster.servers=2 \
  --set cluster.workers=2 --run-dir "$work/undisturbed" > "$work/undisturbed.log"

job+=(--set cluster.servers=2 --set cluster.workers=2)
mkdir -p "$work/runs" "$work/checkpoints"
"$programs/tributary" certificates --out "$work/tls" > "$work/tls.log"
coordinator
server 0 1
server 1 2
for rank in 0 1; do pod worker-$rank Job/tributary-worker 0 --delay-messages-ms=2; done
check "the job of the pods begins" reaches 600

survives_sigterm() {
  local pid
  pid=$(first_process coordinator)
  kill -TERM "$pid"
  kill -0 "$pid" || return 1
  reaches $(($(step) + 1000)) && kill -0 "$pid"
}
check "a coordinator that is asked to stop does not end the job" survives_sigterm

moves_coordinator() {
  kill -KILL "$(first_process coordinator)"
  wait "${unshare_pid[coordinator]}" || true
  coordinator
  reaches 4000
}
check "another coordinator continues the job" moves_coordinator

moves_server() {
  kill -TERM "$(first_process server-1)"
  wait "${unshare_pid[server-1]}" || true
  server 1 3  # another address
  reaches 6000
}
check "a server that was moved to another address is found there" moves_server

ends() {
  local name
  for name in coordinator worker-0 worker-1; do
    wait "${unshare_pid[$name]}" || {
      tail -n 3 "$work/$name.log"
      return 1
    }
  done
}
check "coordinator and workers end with code 0" ends
check "the weights are those of an undisturbed run" \
  [ "$(sha256_of "$work/runs/job")" = "$(sha256_of "$work/undisturbed")" ]
