# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh: a container engine for the test. If one answers, it is used
# unchanged. Else Debian's dockerd is started with folders, a mount namespace
# and a pid namespace of its own, so that nothing of it outlives this script,
# even if this script is killed.

engine_state=   # its folder; empty: the engine was running already
engine_pid=

# The first line of a file, or nothing.
first_line() { head -n 1 "$1" 2> /dev/null || true; }

remember_network() {
  first_line /proc/sys/net/ipv4/ip_forward > "$engine_state/ip_forward"
  iptables-save -t filter | sed -n 's/^:FORWARD \([A-Z]*\).*/\1/p' > "$engine_state/forward"
  ls -d /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker > "$engine_state/cgroups" 2> /dev/null || true
}

# The default route's MTU: larger packets of the containers would be lost.
smallest_mtu() {
  local device
  device=$(ip route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
  first_line "/sys/class/net/${device:-lo}/mtu"
}

start_engine() {
  if docker info > /dev/null 2>&1; then
    echo "using the engine that answers: $(docker version -f '{{.Server.Version}}')"
    return
  fi
  engine_state=$(mktemp -d /var/tmp/tributary-engine-XXXXXX)
  remember_network
  export DOCKER_HOST=unix://$engine_state/docker.sock
  setpriv --pdeathsig KILL \
    unshare --mount --propagation private --pid --mount-proc --kill-child \
    dockerd --host "$DOCKER_HOST" --data-root "$engine_state/data" \
    --exec-root "$engine_state/exec" --pidfile "$engine_state/dockerd.pid" \
    --mtu "$(smallest_mtu)" > "$engine_state/dockerd.log" 2>&1 < /dev/null &
  engine_pid=$!
  wait_for 60 "dockerd to answer at $DOCKER_HOST" docker info || {
    tail -n 20 "$engine_state/dockerd.log" >&2
    return 1
  }
  echo "started dockerd $(docker version -f '{{.Server.Version}}'), storage $(docker info -f '{{.Driver}}')"
}

engine_is_gone() { ! kill -0 "$engine_pid" 2> /dev/null; }

# Ends the engine and takes back what it did to the machine's network.
stop_engine() {
  [ -n "$engine_state" ] || return 0
  # dockerd is the namespace's process 1 and the only child of unshare.
  pkill -TERM -P "$engine_pid" 2> /dev/null || true
  wait_for 30 "dockerd to end" engine_is_gone || kill -KILL "$engine_pid"
  wait "$engine_pid" 2> /dev/null || true
  ip link del docker0 2> /dev/null || true
  restore_firewall
  first_line "$engine_state/ip_forward" > /proc/sys/net/ipv4/ip_forward
  remove_cgroups
  rm -rf "$engine_state"
}

restore_firewall() {
  local forward
  forward=$(first_line "$engine_state/forward")
  iptables-save | grep -vi docker |
    sed "s/^:FORWARD [A-Z]*/:FORWARD ${forward:-ACCEPT}/" | iptables-restore
}

remove_cgroups() {
  local group
  for group in /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker; do
    grep -qxF "$group" "$engine_state/cgroups" || rmdir "$group" 2> /dev/null || true
  done
}

# Prints what the engine has left on the machine; empty if nothing.
leftovers() {
  [ -n "$engine_state" ] || return 0
  ! ip link show docker0 > /dev/null 2>&1 || echo "the device docker0"
  iptables-save | sed -n '/docker/I s/^/the firewall rule /p'
  sed -n "\|$engine_state| s/^/the mount /p" /proc/mounts
  pgrep -af "$engine_state" | sed 's/^/the process /' || true
  ! [ -e "$engine_state" ] || echo "the folder $engine_state"
}
