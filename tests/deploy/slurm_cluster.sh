# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by slurm.sh: a cluster of Slurm with two nodes on this machine. Everything that
# it writes is below $work, and its ports are its own, so that it disturbs no other.

: "${work:?a folder for all that the cluster writes}"
export SLURM_CONF=$work/slurm.conf
port=$((20000 + RANDOM % 10000))

# Two nodes of four cores each, whatever this machine has. Jobs of the partition "high"
# preempt those of "low", which get 5 s to stop and then KillWait.
write_configuration() {
  cat > "$SLURM_CONF" << CONF
ClusterName=tributary
SlurmctldHost=localhost
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=2
KillWait=30
NodeName=node1 NodeAddr=127.0.0.11 NodeHostname=localhost Port=$((port + 1)) CPUs=4
NodeName=node2 NodeAddr=127.0.0.12 NodeHostname=localhost Port=$((port + 2)) CPUs=4
PartitionName=low Nodes=node[1-2] Default=YES PriorityTier=1 GraceTime=5
PartitionName=high Nodes=node[1-2] PriorityTier=10 PreemptMode=OFF
CONF
}

start_node() { slurmd -N "$1" -f "$SLURM_CONF"; }

start_cluster() {
  write_configuration
  mkdir "$work/state"
  (umask 077 && head -c 1024 /dev/urandom > "$work/munge.key")
  munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
    --pid-file="$work/munged.pid" --log-file="$work/munged.log" --seed-file="$work/seed"
  slurmctld -f "$SLURM_CONF"
  start_node node1
  start_node node2
  wait_for 60 "two idle nodes" are_idle
}
are_idle() { [ "$(sinfo --noheader --Node --partition=low --states=idle | wc -l)" = 2 ]; }

# The processes of a node: its daemon, and the keepers of its jobs' steps.
daemon_of() { cat "$work/slurmd.$1.pid"; }

stop_cluster() {
  scancel --user=root --signal=KILL 2> /dev/null || true
  scancel --user=root 2> /dev/null || true
  wait_for 60 "the end of all jobs" has_no_jobs || true
  local name
  for name in slurmd.node1 slurmd.node2 slurmctld munged; do
    if [ -s "$work/$name.pid" ]; then kill "$(cat "$work/$name.pid")" 2> /dev/null || true; fi
  done
  wait_for 20 "the end of the daemons" has_no_daemons
}
has_no_jobs() { [ -z "$(squeue --noheader)" ]; }
# All daemons name a file of $work in their command line or environment.
has_no_daemons() { [ -z "$(processes_of_work)" ]; }
processes_of_work() {
  local process
  for process in /proc/[0-9]*; do
    if [ "${process#/proc/}" != $$ ] && [ "${process#/proc/}" != $BASHPID ] &&
      grep -qsF "$work" "$process/cmdline"; then
      echo "  ${process#/proc/} $(tr '\0' ' ' < "$process/cmdline")"
    fi
  done
}

# ---- jobs

# state JOB: as Slurm has it, RUNNING, PENDING, COMPLETED.
state() { scontrol --oneliner show job "$1" | sed 's/.* JobState=\([A-Z_]*\) .*/\1/'; }
is() { [ "$(state "$1")" = "$2" ]; }
# Slurm lets a job that it has requeued wait for two minutes, here three seconds. In the
# second in which it ended it could not start: its credential counts as revoked.
hurry() {
  local eligible
  eligible=$(scontrol --oneliner show job "$1" | sed 's/.* EligibleTime=\([^ ]*\) .*/\1/')
  [ "$(date --date="$eligible" +%s)" -le $(($(date +%s) + 3)) ] ||
    scontrol update JobId="$1" StartTime=now+3
}
restarts() { scontrol --oneliner show job "$1" | sed 's/.* Restarts=\([0-9]*\) .*/\1/'; }
