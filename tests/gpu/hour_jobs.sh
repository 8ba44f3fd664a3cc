# SPDX-License-Identifier: Apache-2.0
# Sourced by hour.sh: its commands that run whole jobs.
# shellcheck shell=bash disable=SC2154

# ---- k5: jobs from end to end

# train RUN [WORDS...]: runs a job with the small model in its own directory.
train() {
  local run=$1 begin=${EPOCHREALTIME/./}
  shift
  timeout "$(left)" env LD_LIBRARY_PATH="$home/lib:$libraries" "${programs:-$home/bin}/tributary" \
    train "$work/job.yaml" --run-dir "$work/$run" --set "device=$device" "$@" \
    > "$work/$run.log" 2>&1
  local status=$?
  echo "$(((${EPOCHREALTIME/./} - begin) / 1000)) ms" > "$work/$run.ms"
  [ $status = 0 ] || tail -3 "$work/$run.log"
  return $status
}

# told RUN KEY: prints a value of the run's summary.
told() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1] + "/summary.json"))
for key in sys.argv[2].split("."): value = value[key]
print(value)' "$work/$1" "$2" 2> /dev/null || echo none
}

run_job() {
  local run=$1
  shift
  check "$run" "" train "$run" "$@"
  table[-1]="$(printf '%-44s %-46s %s' "$run" "$(cat "$work/$run.ms"), weights $(told "$run" weights_sha256 | cut -c1-12)" "$(awk '{print $NF}' <<< "${table[-1]}")")"
}

same() { [ "$1" = "$2" ] && [ "$1" != none ]; }

k5() {
  if $rehearse; then unpack k5 || return 0; else want_device k5 || return 0; fi
  cat > "$work/job.yaml" <<'YAML'
name: hour
model: {mlp: {in: 16, hidden: [512, 512], out: 1, activation: tanh}}
data: {train: {synthetic: {kind: mlp_teacher, rows: 4000}}, batch_size: 40}
training: {epochs: 4, loss: mse, optimizer: {adamw: {learning_rate: 1e-3}}}
checkpoint: {every_steps: 20}
cluster: {servers: 1, workers: 1, lease_seconds: 5}
YAML
  $rehearse && sed -i 's/epochs: 4/epochs: 2/; s/512, 512/64, 64/' "$work/job.yaml"
  local two=(--set cluster.workers=2)
  run_job "servers 1, workers 1"
  run_job "servers 4, workers 1" --set cluster.servers=4
  run_job "servers 2, workers 2" --set cluster.servers=2 "${two[@]}"
  run_job "all_reduce, workers 1" --set strategy.all_reduce.backend=auto
  run_job "all_reduce over gloo, workers 2" --set strategy.all_reduce.backend=gloo "${two[@]}"
  run_job "sharded over gloo, workers 2" --set strategy.all_reduce.sharded=true --set strategy.all_reduce.backend=gloo "${two[@]}"
  check "one worker: the number of servers changes no bit" "" same \
    "$(told "servers 1, workers 1" weights_sha256)" "$(told "servers 4, workers 1" weights_sha256)"
  check "two workers: all_reduce has the servers' bits" "" same \
    "$(told "servers 2, workers 2" weights_sha256)" "$(told "all_reduce over gloo, workers 2" weights_sha256)"
  check "two workers: sharded, too" "" same \
    "$(told "servers 2, workers 2" weights_sha256)" "$(told "sharded over gloo, workers 2" weights_sha256)"
  mkdir -p "$work/fired"
  TRIBUTARY_FAILPOINT=worker-mid-push:20:kill TRIBUTARY_FAILPOINT_FIRED=$work/fired \
    run_job "a worker killed with half of step 20 pushed" --set cluster.servers=2 "${two[@]}"
  check "  it was killed" "workers lost: $(told "a worker killed with half of step 20 pushed" lost.workers)" \
    test -e "$work/fired/worker-mid-push:20"
  check "  the weights are those of the run without" "" same \
    "$(told "servers 2, workers 2" weights_sha256)" "$(told "a worker killed with half of step 20 pushed" weights_sha256)"
  rm -f "$work/fired"/*
  TRIBUTARY_FAILPOINT=worker-mid-push:30:kill TRIBUTARY_FAILPOINT_FIRED=$work/fired \
    run_job "a rank of all_reduce killed in step 30" --set strategy.all_reduce.backend=gloo "${two[@]}"
  check "  it was killed" "rollbacks: $(told "a rank of all_reduce killed in step 30" lost.rollbacks)" \
    test -e "$work/fired/worker-mid-push:30"
  check "  the weights are those of the run without" "" same \
    "$(told "servers 2, workers 2" weights_sha256)" "$(told "a rank of all_reduce killed in step 30" weights_sha256)"
  if ! $rehearse; then
    device=cpu run_job "the same job on the CPU" --set cluster.servers=2 "${two[@]}"
    verdict "loss at the end, $device and cpu" \
      "$(tail -1 "$work/servers 2, workers 2/metrics.jsonl" | grep -oE '"loss":[^,]*') $(tail -1 "$work/the same job on the CPU/metrics.jsonl" | grep -oE '"loss":[^,]*')"
  fi
  k5_other_device
  cat "$work"/*.log > "$work/k5.text"
  keep "$work/k5.text" k5.log
}

# A worker on the GPU is lost in the middle of a push. A worker on the CPU, which
# computes other bits, takes its place.
k5_other_device() {
  local address
  group_start other_device --set cluster.servers=1 --set cluster.workers=1 || return
  address=$group_address
  ours tributary-server --coordinator "$address" > "$work/other.server" 2>&1 &
  local server=$!
  rm -f "$work/fired"/*
  TRIBUTARY_FAILPOINT=worker-mid-push:20:kill TRIBUTARY_FAILPOINT_FIRED=$work/fired \
    ours tributary-worker --coordinator "$address" \
    --device "$device" > "$work/other.first" 2>&1
  timeout 120 env LD_LIBRARY_PATH="$home/lib:$libraries" "$home/bin/tributary-worker" \
    --coordinator "$address" --device cpu > "$work/other.second" 2>&1
  local status=$?
  wait "$group_pid" "$server" 2> /dev/null
  local noted
  noted=$(grep -c 'computes with other bits' "$work/other.second")
  check "a rank of $device is taken over by the CPU" "exit code $status, told: $noted" \
    test "$status $noted" = "0 $([ "$device" = cpu ] && echo 0 || echo 1)" -a \
    -e "$work/fired/worker-mid-push:20"
}

# ---- k6: two ranks of NCCL on one device

# group_start RUN WORDS...: starts a coordinator; sets its address and pid.
group_start() {
  local run=$1
  shift
  ours tributary-coordinator --job "$work/job.yaml" --run-dir "$work/$run" --listen 127.0.0.1:0 \
    "$@" > "$work/$run.coordinator" 2>&1 &
  group_pid=$!
  local deadline=$((SECONDS + 20))
  while [ $SECONDS -lt $deadline ]; do
    group_address=$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/$run.coordinator" | head -1)
    [ -z "$group_address" ] || return 0
    sleep 0.1
  done
  verdict "$run" "no coordinator: $(tail -1 "$work/$run.coordinator")" FAILED
  return 1
}

# Ranks with different host names count as ranks of two machines, so NCCL lets them
# share a device. The speeds are meaningless here.
nccl_group() {
  local run=$1
  shift
  group_start "$run" --set cluster.workers=2 --set cluster.servers=0 "$@" || return
  local pids=() statuses=() name
  for name in a b; do
    NCCL_HOSTID=$name NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=WARN timeout 100 \
      env LD_LIBRARY_PATH="$home/lib:$libraries" "$home/bin/tributary-worker" \
      --coordinator "$group_address" --device "$device" > "$work/$run.$name" 2>&1 &
    pids+=($!)
  done
  local pid
  for pid in "${pids[@]}" "$group_pid"; do wait "$pid"; statuses+=($?); done
  local over
  over=$(grep -ohE 'over (nccl|gloo)' "$work/$run.a" | sort | uniq -c | tr -s ' \n' ' ')
  check "$run" "exit codes ${statuses[*]},$over" test "${statuses[*]}" = "0 0 0"
  cat "$work/$run".? "$work/$run.coordinator" >> "$work/k6.log"
}

k6() {
  local backend=nccl
  if $rehearse; then unpack k6 || return 0; backend=gloo; else want_device k6 || return 0; fi
  cat > "$work/job.yaml" <<'YAML'
name: two-ranks
model: {mlp: {in: 16, hidden: [512, 512], out: 1, activation: tanh}}
data: {train: {synthetic: {kind: mlp_teacher, rows: 4000}}, batch_size: 40}
training: {epochs: 2, loss: mse, optimizer: {adamw: {learning_rate: 1e-3}}}
checkpoint: {every_steps: 20}
cluster: {servers: 0, workers: 2, lease_seconds: 5}
YAML
  local pipeline=(--set strategy.all_reduce.backend=$backend
    --set strategy.pipeline_parallel.stages=2
    --set strategy.pipeline_parallel.micro_batches=4
    --set strategy.pipeline_parallel.backend=$backend)
  local tensor=(--set strategy.all_reduce.backend=$backend
    --set strategy.tensor_parallel.ranks=2
    --set strategy.tensor_parallel.backend=$backend)
  nccl_group all_reduce --set strategy.all_reduce.backend=$backend
  nccl_group sharded --set strategy.all_reduce.backend=$backend --set strategy.all_reduce.sharded=true
  nccl_group pipeline "${pipeline[@]}"
  nccl_group tensor "${tensor[@]}"
  check "sharded has the bits of all_reduce" "" same \
    "$(told all_reduce weights_sha256)" "$(told sharded weights_sha256)"
  local strategy
  for strategy in pipeline tensor; do
    local -n words=$strategy
    nccl_group "$strategy again" "${words[@]}"
    check "$strategy has the same bits again" "" same \
      "$(told "$strategy" weights_sha256)" "$(told "$strategy again" weights_sha256)"
  done
  # One rank dies within a step; the other must report it and not wait for ever.
  if group_start lost --set strategy.all_reduce.backend=$backend --set cluster.on_worker_loss=fail; then
    local begin=$SECONDS
    NCCL_HOSTID=a NCCL_SOCKET_IFNAME=lo timeout 100 env LD_LIBRARY_PATH="$home/lib:$libraries" \
      "$home/bin/tributary-worker" --coordinator "$group_address" --device "$device" > "$work/lost.a" 2>&1 &
    local survivor=$!
    NCCL_HOSTID=b NCCL_SOCKET_IFNAME=lo TRIBUTARY_FAILPOINT=worker-mid-push:20:kill timeout 100 \
      env LD_LIBRARY_PATH="$home/lib:$libraries" \
      "$home/bin/tributary-worker" --coordinator "$group_address" --device "$device" > "$work/lost.b" 2>&1
    wait "$survivor"
    local status=$?
    wait "$group_pid"
    check "a lost rank ends the other" "exit code $status after $((SECONDS - begin)) s" test $status = 1
    cat "$work/lost".? >> "$work/k6.log"
  fi
  keep "$work/k6.log" k6.log
}

# ---- k7: what the way to servers costs a large model

# parts_of RUN: the median step after the first ten, in milliseconds, and its
# parts: the device's computing and the worker's waiting.
parts_of() {
  python3 -c 'import json, statistics, sys
steps = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")][10:]
ms = [statistics.median(1e3 * step[part + "_seconds"] for step in steps)
      for part in ("step", "compute", "wait")]
print("{:.0f} ms (compute {:.0f}, wait {:.0f})".format(*ms))' "$work/$1" 2> /dev/null || echo none
}

k7() {
  local tiny=() precision way
  if $rehearse; then unpack k7 || return 0; tiny=(--tiny); else want_device k7 || return 0; fi
  python3 "$root/bench/gpu_models.py" write "$work" "${tiny[@]}" || return 1
  mv "$work/gpt2s.yaml" "$work/job.yaml"
  if [ -n "${BEFORE:-}" ]; then
    cp -r "$home/bin" "$work/before"
    cp "$BEFORE" "$work/before/tributary-worker"
  fi
  for precision in float32 bfloat16; do
    for way in all_reduce servers ${BEFORE:+before}; do
      local run="GPT-2 small, $precision, $way" words=()
      words=(--set "training.precision=$precision" --set cluster.servers=4)
      [ $way != all_reduce ] || words=("${words[0]}" "${words[1]}" --set strategy.all_reduce.backend=auto)
      [ $way != before ] || local programs=$work/before
      train "$run" "${words[@]}"
      check "$run" "$(parts_of "$run")" test "$(parts_of "$run")" != none
      unset programs
    done
    check "  the same weights" "" same "$(told "GPT-2 small, $precision, all_reduce" weights_sha256)" \
      "$(told "GPT-2 small, $precision, servers" weights_sha256)"
  done
  cat "$work"/*.log > "$work/k7.text"
  keep "$work/k7.text" k7.log
}
