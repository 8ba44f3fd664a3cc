# SPDX-License-Identifier: Apache-2.0
"""One trial of chaos.py: starts the processes of a job, injects its faults after
their numbers of steps, restarts processes that a fault has ended, and checks how
the job ends."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time

LIMIT_SECONDS = 200
# The ports and the network belong to this process alone, so several can run in
# parallel.
FIRST_PORT = 12000 + os.getpid() % 200 * 100
PORTS = itertools.cycle(range(FIRST_PORT, FIRST_PORT + 100))
NETWORK = f"10.78.{os.getpid() % 256}"


def summary(run):
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def can_make_hosts():
    if os.geteuid() != 0:
        return False
    probe = f"chaos-probe-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return made.returncode == 0


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """Three network namespaces, NETWORK.1 to 3, on a bridge of their own."""

    def __init__(self, seed):
        self.switch = f"chaos-sw-{os.getpid()}-{seed}"
        self.remove()
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "br0", "up")
        for i in (1, 2, 3):
            name = f"{NETWORK}.{i}"
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self.switch, "link", "add", f"p{i}", "type", "veth", "peer",
               "name", "eth0", "netns", name)
            ip("-n", self.switch, "link", "set", f"p{i}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"{name}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def remove(self):
        for name in [f"{NETWORK}.{i}" for i in (1, 2, 3)] + [self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def disturb(self, fault, on):
        if fault.kind == "link down":
            ip("-n", self.switch, "link", "set", f"p{fault.host}", "down" if on else "up")
        else:  # drops packets from this host to the first one
            ip("-n", f"{NETWORK}.{fault.host}", "route", "add" if on else "del",
               "blackhole", f"{NETWORK}.1/32")


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def alive(pid):
    return pid > 0 and state_of(pid) not in ("gone", "Z", "X")


def free_port():
    """One of PORTS; the kernel uses none of them for outgoing connections."""
    while True:
        port = next(PORTS)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Run:
    def __init__(self, trial, folder, binaries):
        self.trial, self.folder, self.binaries = trial, folder, binaries
        self.mark = f"TRIBUTARY_CHAOS={os.path.basename(folder)}-{os.getpid()}"
        os.makedirs(os.path.join(folder, "fired"))
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(trial.job())
        self.attempt = 0
        self.run = ""           # run directory of the current attempt
        self.leader = None      # `tributary train` or the coordinator
        self.members = []       # daemons: (role, process)
        self.address = ""
        self.later = []         # (time, action)
        self.killed_all = False
        self.resume = False
        self.hosts = self.proxy = None

    # ---- starting

    def environment(self):
        environment = dict(os.environ)
        name, value = self.mark.split("=")
        environment[name] = value
        entries = [f.entry for f in self.trial.faults if f.kind == "failpoint"]
        if entries:
            environment["TRIBUTARY_FAILPOINT"] = ",".join(entries)
            environment["TRIBUTARY_FAILPOINT_FIRED"] = os.path.join(self.folder, "fired")
        if self.proxy is not None:
            environment["TRIBUTARY_PROXY"] = self.control
            environment["LD_PRELOAD"] = os.path.join(self.binaries, "libredirect_connections.so")
        return environment

    def start(self, program, *words, host=None):
        command = [os.path.join(self.binaries, program), *map(str, words)]
        if host is not None:
            command = ["ip", "netns", "exec", f"{NETWORK}.{host}"] + command
        with open(os.path.join(self.folder, "output"), "a", encoding="utf-8") as output:
            print("+", " ".join(command), file=output, flush=True)
            return subprocess.Popen(command, cwd=self.folder, env=self.environment(),
                                    stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def start_proxy(self):
        rules = [f.rule for f in self.trial.faults if f.kind == "proxy"]
        if not rules:
            return
        self.control = f"/tmp/chaos-{os.getpid()}-{self.trial.seed}"
        self.proxy = subprocess.Popen(
            [os.path.join(self.binaries, "fault-proxy"), "--control", self.control,
             "--seed", str(self.trial.seed), *rules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.proxy.stdout.readline()  # waits until the proxy listens

    def start_leader(self):
        newest = self.newest_checkpoint() if self.resume else None
        self.attempt += 1
        self.run = os.path.join(self.folder, f"run{self.attempt}")
        words = ["--resume", newest] if newest else ["job.yaml"]
        if self.trial.way == "daemons" and not newest:
            self.address = f"127.0.0.1:{free_port()}"
            return self.start_coordinator()
        self.address = ""
        if self.trial.small_disk:
            words += ["--set", f"checkpoint.directory={self.folder}/disk"]
        if self.hosts is not None:
            words += ["--listen", f"{NETWORK}.1:0", "--worker-hosts",
                      f"{NETWORK}.2,{NETWORK}.3", "--launch", "ip netns exec {host}"]
        # The proxy flips bits of messages, which it cannot tell apart under TLS.
        if any(f.kind == "proxy" and " flip " in f.rule for f in self.trial.faults):
            words.append("--insecure")
        self.leader = self.start("tributary", "train", *words, "--run-dir", self.run,
                                 host=1 if self.hosts is not None else None)

    def start_coordinator(self):
        words = []
        if self.trial.small_disk:
            words += ["--set", f"checkpoint.directory={self.folder}/disk"]
        self.leader = self.start("tributary-coordinator", "--job", "job.yaml", "--run-dir",
                                 self.run, "--listen", self.address, *words)

    def newest_checkpoint(self):
        """The latest complete checkpoint of any attempt, or None."""
        best = None
        for top in [os.path.join(self.folder, "disk")] + [
                os.path.join(self.folder, f"run{i}", "checkpoints")
                for i in range(self.attempt + 1)]:
            for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
                path = os.path.join(top, name)
                if os.path.exists(os.path.join(path, "manifest.ckpt")):
                    if best is None or name >= os.path.basename(best):
                        best = path
        return best

    def tend_members(self):
        """Starts a daemon for each place whose process has ended."""
        if not self.address:
            return
        self.members = [(r, p) for r, p in self.members if not p.poll()]
        strategy = self.trial.strategy
        workers = 1 if self.trial.name == "data_parallel" else strategy.workers
        for role, wanted in (("server", strategy.servers), ("worker", workers)):
            while sum(r == role for r, _ in self.members) < wanted:
                self.members.append((role, self.start(
                    f"tributary-{role}", "--coordinator", self.address,
                    "--join-timeout", 20)))

    # ---- faults

    def steps_done(self):
        try:
            with open(os.path.join(self.run, "metrics.jsonl"), "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 4096))
                steps = re.findall(rb'"step":\s*(\d+)', file.read())
                return int(steps[-1]) if steps else 0
        except OSError:
            return 0

    def pid_of(self, role, index):
        try:
            with open(os.path.join(self.run, "logs/coordinator.log"), encoding="utf-8") as file:
                found = re.findall(rf"{role} {index} is .*pid (\d+)", file.read())
        except OSError:
            return 0
        return int(found[-1]) if found else 0

    def signal(self, pid, what):
        if not alive(pid):
            return False
        os.kill(pid, what)
        return True

    def at(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def pause(self, pid, seconds):
        self.at(seconds, lambda: self.signal(pid, signal.SIGCONT))
        return self.signal(pid, signal.SIGSTOP)

    def cause(self, fault):
        kind, leader = fault.kind, self.leader_pid()
        if kind == "kill":
            return self.signal(self.pid_of(fault.role, fault.index), signal.SIGKILL)
        if kind == "kill several":
            pids = {self.pid_of(*victim) for victim in fault.victims}
            return any([self.signal(pid, signal.SIGKILL) for pid in pids])
        if kind in ("pause", "long pause"):
            return self.pause(self.pid_of(fault.role, fault.index), fault.seconds)
        if kind == "pause coordinator":
            return self.pause(leader, fault.seconds)
        if kind == "kill coordinator":
            self.killed_all |= not self.address
            return self.signal(leader, signal.SIGKILL)
        if kind == "kill everything":
            self.killed_all = True
            fired = self.signal(leader, signal.SIGKILL)
            for _, process in self.members:
                process.kill()
            return fired
        if kind in ("SIGINT", "SIGTERM"):
            return self.signal(leader, getattr(signal, kind))
        self.hosts.disturb(fault, True)
        self.at(fault.seconds, lambda: self.hosts.disturb(fault, False))
        return True

    def leader_pid(self):
        return self.leader.pid if self.leader.poll() is None else 0

    def continue_stopped(self):
        """Continues processes half a second after a failpoint stopped them."""
        for fault in self.trial.faults:
            if fault.kind != "failpoint" or fault.fired:
                continue
            mark = os.path.join(self.folder, "fired", fault.entry.rsplit(":", 1)[0])
            if not os.path.exists(mark):
                continue
            with open(mark, encoding="utf-8") as file:
                words = file.read().split()
            if len(words) < 2:
                continue  # still being written
            fault.fired = True
            if words[1] == "stop":
                self.at(0.5, lambda pid=int(words[0]): self.signal(pid, signal.SIGCONT))

    # ---- the trial

    def execute(self, wanted):
        """Runs the trial. Returns None, or what is wrong with how it ended."""
        try:
            if self.trial.way == "hosts":
                self.hosts = Hosts(self.trial.seed)
            if self.trial.small_disk:
                os.mkdir(os.path.join(self.folder, "disk"))
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "chaos",
                                os.path.join(self.folder, "disk")], check=True)
            self.start_proxy()
            self.start_leader()
            return self.watch() or self.judge(wanted)
        finally:
            self.clean()

    def watch(self):
        until = time.monotonic() + LIMIT_SECONDS
        waiting = [f for f in self.trial.faults if f.kind not in ("failpoint", "proxy")]
        while time.monotonic() < until:
            for due, what in [e for e in self.later if e[0] <= time.monotonic()]:
                self.later.remove((due, what))
                what()
            self.continue_stopped()
            while waiting and self.steps_done() >= waiting[0].when * self.trial.steps:
                fault = waiting.pop(0)
                fault.fired = self.cause(fault)
            code = self.leader.poll()
            if code is None:
                self.tend_members()
            elif code == 0:
                return None
            elif self.caused(code):
                self.go_on(code)
            else:
                return f"exit code {code}: {self.last_words()}"
            time.sleep(0.005)
        return f"it still runs after {LIMIT_SECONDS} s: {self.last_words()}"

    def caused(self, code):
        """Whether a fault explains this exit code of the leader."""
        self.continue_stopped()
        faults = [f for f in self.trial.faults if f.fired]
        if code == -signal.SIGKILL:
            return any(f.kind in ("kill coordinator", "kill everything", "failpoint")
                       for f in faults)
        return code in (130, 143) and any(
            f.kind in ("SIGINT", "SIGTERM") for f in faults)

    def go_on(self, code):
        """Restarts a coordinator that was killed; otherwise resumes the run."""
        if code == -signal.SIGKILL and self.address:
            return self.start_coordinator()
        for _, process in self.members:
            process.wait(timeout=60)
        self.members, self.resume = [], True
        if code == -signal.SIGKILL:
            self.killed_all = True
        return self.start_leader()

    def last_words(self):
        with open(os.path.join(self.folder, "output"), encoding="utf-8", errors="replace") as file:
            return " | ".join(file.read().splitlines()[-3:])[-600:]

    def judge(self, wanted):
        for role, process in self.members:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                return f"a {role} does not end"
        result = summary(self.run)
        if result["status"] != "done":
            return f"status {result['status']}: {result['message']}"
        if wanted is not None and result["weights_sha256"] != wanted:
            return f"weights {result['weights_sha256']}, undisturbed {wanted}"
        with open(os.path.join(self.run, "metrics.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line)["step"] for line in file]
        if steps != list(range(result["start_step"] + 1, self.trial.steps + 1)):
            gaps = [(a, b) for a, b in zip(steps, steps[1:]) if b != a + 1]
            return f"{len(steps)} steps from {steps[:1]} to {steps[-1:]}, gaps {gaps[:3]}"
        return self.leftovers()

    def leftovers(self):
        until = time.monotonic() + 15
        while self.processes() and time.monotonic() < until:
            time.sleep(0.05)
        if self.processes():
            return f"processes are left: {self.processes()}"
        for folder, _, names in os.walk(self.run):
            for name in names:
                if ".partial-" in name:
                    return f"a half-written file is left: {folder}/{name}"
            if (os.path.basename(folder).startswith("step-") and not self.killed_all
                    and "manifest.ckpt" not in names):
                return f"a checkpoint without a manifest is left: {folder}"
        return None

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = self.mark.encode() in file.read().split(b"\0")
            except OSError:
                continue
            if mine and alive(int(pid)):
                found.append(int(pid))
        return found

    def clean(self):
        for pid in self.processes():
            self.signal(pid, signal.SIGKILL)
        if self.proxy is not None:
            told, _ = self.proxy.communicate()  # closes its input, which ends it
            rules = [f for f in self.trial.faults if f.kind == "proxy"]
            for fault, line in zip(rules, told.splitlines()):
                fault.fired = int(line.split()[0]) > 0
        if self.trial.small_disk:
            subprocess.run(["umount", "-l", os.path.join(self.folder, "disk")],
                           capture_output=True, check=False)
        if self.hosts is not None:
            self.hosts.remove()
