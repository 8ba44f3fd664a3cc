# SPDX-License-Identifier: Apache-2.0
"""deploy/slurm/tributary.sbatch on a stand-in for Slurm, with two nodes.

The stand-ins of srun and scontrol run a step's task in place, say the nodes'
addresses, and note that the script has asked for the queue. What slurmctld does, to
end an allocation and to start a requeued job again, is done here.
"""

import os
import signal

import processes
from ways import Train

SRUN = """#!/usr/bin/env bash
while [[ ${1:-} == --* ]]; do
  [[ $1 != --nodelist=* ]] || export SLURMD_NODENAME=${1#*=}
  shift
done
exec "$@"
"""
SCONTROL = """#!/usr/bin/env bash
case "$*" in
  "--oneliner show node "*)
    echo "NodeName=node1 NodeAddr=127.0.0.11"
    echo "NodeName=node2 NodeAddr=127.0.0.12" ;;
  "requeue $SLURM_JOB_ID") touch "$TRIBUTARY_RUNS/requeued" ;;
  *) echo "unexpected: scontrol $*" >&2; exit 1 ;;
esac
"""
KILL_WAIT = 30  # seconds from SIGTERM to SIGKILL, as Slurm has them
JOB = "7"


class Slurm(Train):
    """Starts the batch script, and the job by hand when Slurm would not."""

    def __init__(self, run):
        super().__init__(run)
        self.runs = os.path.join(run.folder, "runs")
        self.requeued = os.path.join(self.runs, "requeued")
        self.is_by_hand = False

    def prepare(self):
        stub = os.path.join(self.run.folder, "slurm")
        os.makedirs(stub)
        os.makedirs(self.runs)
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            path = os.path.join(stub, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        self.run.variables.update(
            PATH=f"{stub}:{self.run.tools.binaries}:{os.environ['PATH']}",
            SLURM_JOB_ID=JOB,
            SLURM_JOB_NODELIST="node[1-2]",
            SLURMD_NODENAME="node1",
            TRIBUTARY_RUNS=self.runs,
        )

    def run_dir(self, number):
        return os.path.join(self.runs, JOB, str(number - 1))

    def options(self):
        groups = ["--insecure-groups"] if self.trial.has_groups() else []
        return ["--launch", "slurm", *groups]

    def begin(self):
        if self.is_by_hand:
            return super().begin()
        self.run.variables["SLURM_RESTART_COUNT"] = str(self.run.attempt.number - 1)
        script = os.path.join(self.run.tools.source, "deploy/slurm/tributary.sbatch")
        words = ["job.yaml", *self.options()[2:]]
        if self.trial.every:
            words += ["--set", f"checkpoint.every_steps={self.trial.every}"]
        self.run.leader = self.run.start("bash", script, *words)

    def start(self, words):
        """By hand, in an allocation of salloc."""
        self.is_by_hand = True
        super().start(words)

    def requeues(self):
        """Whether Slurm starts the job again after the end of its script."""
        if self.is_by_hand:
            return False
        kinds = {f.kind for f in self.run.fired_now()}
        if self.has_asked():
            os.remove(self.requeued)
            return True
        return bool(kinds & {"node failure", "damage", "preempted"})

    def has_asked(self):
        """Whether the script has asked Slurm to requeue it."""
        return os.path.exists(self.requeued)

    # ---- what slurmctld does

    def kill(self):
        """A node fails, and with it the allocation."""
        return self.run.marked.signal(signal.SIGKILL)

    def terminate(self):
        """SIGTERM to every process of the job, and after KILL_WAIT the end."""
        number = self.run.attempt.number

        def end():
            if self.run.attempt.number == number:
                self.run.marked.signal(signal.SIGKILL)

        self.run.at(KILL_WAIT, end)
        self.run.note_signal("SIGTERM")
        return self.run.marked.signal(signal.SIGTERM)

    def time_is_up(self):
        if self.is_by_hand:
            return self.terminate()
        self.run.note_signal("SIGTERM")  # the script sends it
        return processes.send(self.run.leader_pid(), signal.SIGUSR1)
