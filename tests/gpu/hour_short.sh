# SPDX-License-Identifier: Apache-2.0
# Sourced by hour.sh: its parts for a quarter of an hour, the most important first.
# shellcheck shell=bash disable=SC2154

# say WORDS...: prints a line at once and keeps it for OUT.
say() { printf '%s\n' "$*" | tee -a "$work/short.text"; }

torch_version() {
  python3 -c 'import importlib.metadata as m; print(m.version("torch"))' 2> /dev/null
}

# ---- k0: the host's memory, and copies between it and the device

k0() {
  want_device k0 || return 0
  say "$(nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader)"
  say "$(nproc) cores of $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), NUMA nodes $(ls -d /sys/devices/system/node/node[0-9]* | wc -l), torch $(torch_version)"
  timeout "$(left)" env LD_LIBRARY_PATH="$home/lib:$libraries" "$home/bin/gpu_tests" \
    --host --tsv "$work/k0.tsv" | tee -a "$work/short.text"
  check "host measured" "$(grep -c '^speed' "$work/k0.tsv") speeds" \
    test "$(grep -c '^speed' "$work/k0.tsv")" -ge 15
  keep "$work/short.text" k0.txt
}

# ---- k4s: large models in bfloat16 beside the best PyTorch

k4s() {
  local tiny=() known
  if $rehearse; then unpack k4s || return 0; tiny=(--tiny); else want_device k4s || return 0; fi
  known="$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null || echo cpu)"
  known=$work/$(tr -cs 'A-Za-z0-9.\n' - <<< "$known")-torch-$(torch_version).json
  ! $rehearse && [ -r "$root/bench/baselines/${known##*/}" ] && cp "$root/bench/baselines/${known##*/}" "$known"
  python3 "$root/bench/gpu_models.py" write "$work/jobs" "${tiny[@]}" || return 1
  write_worker
  timeout "$(left)" python3 "$root/bench/gpu_models.py" measure "$work/jobs" \
    --worker "$work/worker" --device "$device" --seconds 150 --all "$(left)" \
    --models gpt2s,resnet50 --precisions bfloat16 --tsv "$work/k4s.tsv" \
    --variants eager,padded,padded+deterministic,padded+compiled,padded+host \
    --baselines "$known" 2>&1 | tee -a "$work/short.text"
  check "models measured" "$(wc -l < "$work/k4s.tsv" || echo 0) of 2" \
    test "$(wc -l < "$work/k4s.tsv" || echo 0)" = 2
  [ ! -r "$known" ] || keep "$known" "${known##*/}"
  # Each kernel's time, with the profiler's overhead between kernels.
  if have ncu && ! $rehearse; then
    local model
    for model in gpt2s resnet50; do
      timeout "$(($(left) < 70 ? $(left) : 70))" ncu --csv --clock-control none \
        --metrics gpu__time_duration.sum --launch-skip 200 --launch-count 2600 --kill yes \
        "$work/worker" --measure-compute "$work/jobs/$model.yaml" --measure-rows \
        "$([ $model = gpt2s ] && echo 8 || echo 128)" --set device=cuda \
        --set training.precision=bfloat16 > "$work/$model.csv" 2>&1
      say "$model: $(python3 "$root/tests/gpu/kernel_table.py" "$work/$model.csv" 30)"
    done
  fi
  keep "$work/short.text" k4s.txt
}

# ---- k7s: where a step with servers waits

# The shares of a core that the threads of a run's processes use while it trains.
k7s_run() {
  local name=$1 steps=$2
  shift 2
  train "$name" --set "training.steps=$steps" "$@" &
  local pid=$!
  : > "$work/busy"
  while kill -0 "$pid" 2> /dev/null; do
    if [ -s "$work/$name/metrics.jsonl" ]; then
      python3 "$root/tests/gpu/busy_threads.py" 2 > "$work/busy"
      break
    fi
    sleep 0.1
  done
  wait "$pid"
  say "$(printf '%-44s %s' "$name" "$(parts_of "$name")")"
  sed 's/^/    /' "$work/busy" | sort | uniq -c | tee -a "$work/short.text"
  check "$name" "$(parts_of "$name")" test "$(parts_of "$name")" != none
}

k7s() {
  local tiny=() servers bucket steps=40
  if $rehearse; then unpack k7s || return 0; tiny=(--tiny); else want_device k7s || return 0; fi
  python3 "$root/bench/gpu_models.py" write "$work" "${tiny[@]}" || return 1
  mv "$work/gpt2s.yaml" "$work/job.yaml"
  local half=(--set training.precision=bfloat16)
  k7s_run "all_reduce" $steps "${half[@]}" --set strategy.all_reduce.backend=auto
  k7s_run "servers 4, clip_norm" $steps "${half[@]}" --set cluster.servers=4 --set training.clip_norm=1
  while read -r servers bucket; do
    local words=(--set "cluster.servers=$servers")
    [ "$bucket" = default ] || words+=(--set "strategy.parameter_server.bucket_bytes=$bucket")
    k7s_run "servers $servers, bucket $bucket" $steps "${half[@]}" "${words[@]}"
  done <<< $'4 default\n4 64MiB\n4 16MiB\n16 default\n16 64MiB\n1 default'
  k7s_run "servers 4, a step late" $steps "${half[@]}" --set cluster.servers=4 \
    --set 'strategy.parameter_server.sync={bsp: {delay: 1}}'
  k7s_run "servers 4, SGD" $steps "${half[@]}" --set cluster.servers=4 \
    --set 'training.optimizer={sgd: {learning_rate: 1e-4}}'
  keep "$work/short.text" k7s.txt
}

# ---- kpt: the PyTorch client on a device

# kpt_job MODEL WHERE PRECISION [WORDS of tributary run...]
kpt_job() {
  local model=$1 where=$2 precision=$3 steps=30
  shift 3
  local run="$model, $precision, $where" words=()
  words=("$root/bench/pytorch_client_gpu.py" "$work/jobs/$model.yaml" --optimizer "$where"
    --precision "$precision" --device "$device" --steps $steps)
  if [ "$where" = servers ]; then
    words=(-m tributary run --run-dir "$work/$run" "$@" "${words[@]}" --checkpoint "${every:-0}")
  fi
  PYTHONPATH=$home/python LD_LIBRARY_PATH=$home/lib PYTHON=python3 \
    timeout "$(left)" python3 "${words[@]}" > "$work/$run.log" 2>&1
  local status=$? told
  told=$(grep -oE '\{"optimizer".*\}' "$work/$run.log" | tail -1)
  say "$(printf '%-36s %s' "$run$named" "${told:-$(tail -3 "$work/$run.log")}")"
  check "$run$named" "$(grep -oE '"ms": [0-9.]+' <<< "$told")" test $status = 0 -a -n "$told"
}

kpt() {
  local tiny=() named= every=0 precision where
  if $rehearse; then unpack kpt || return 0; tiny=(--tiny); else want_device kpt || return 0; fi
  if [ ! -d "$home/python" ]; then
    say "kpt: the bundle has no Python package"
    return 0
  fi
  python3 "$root/bench/gpu_models.py" write "$work/jobs" "${tiny[@]}" || return 1
  for precision in bfloat16 float32; do
    for where in ddp servers offload; do
      kpt_job gpt2s $where $precision --servers 4
    done
  done
  # A server that is lost: the job goes back to a checkpoint and ends with the same bits.
  every=10
  named=", undisturbed" kpt_job mlp servers float32 --servers 2
  mv "$work/mlp, float32, servers" "$work/undisturbed"
  mkdir -p "$work/fired"
  named=", a server killed in step 15" TRIBUTARY_FAILPOINT=server-complete:15:kill \
    TRIBUTARY_FAILPOINT_FIRED=$work/fired kpt_job mlp servers float32 --servers 2
  check "the server was killed" "$(ls "$work/fired")" test -e "$work/fired/server-complete:15"
  check "the weights are those of the run without" \
    "$(told undisturbed weights_sha256 | cut -c1-12) $(told "mlp, float32, servers" weights_sha256 | cut -c1-12)" \
    same "$(told undisturbed weights_sha256)" "$(told "mlp, float32, servers" weights_sha256)"
  keep "$work/short.text" kpt.txt
}
