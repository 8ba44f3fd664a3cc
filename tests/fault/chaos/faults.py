# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults: in which trials each can be drawn, and with what."""

import collections
import os
import re

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))

# Rules of the proxy; BYTES is drawn from the seed.
PROXY_RULES = {
    "delay": "{w}>{s} both delay ms=5",
    "stall": "{w}>{s} both stall after=BYTES ms=1000",
    "answers lost": "{w}>{s} back drop after=BYTES ms=700",
    "resets": "{w}>{s} both reset after=BYTES every=400000 times=10",
    "flips": "{w}>{s} both flip after=BYTES every=300000 times=10",
    "replays": "{w}>{s} there replay after=BYTES every=500000 times=5",
    "coordinator resets": "*>coordinator both reset after=9000 every=9000 times=5",
    "coordinator silent": "*>coordinator back drop after=9000 ms=900",
}
GROUP_RULES = {
    "late ranks": "worker*>worker* both delay ms=3",
    "silent ranks": "worker*>worker* both stall after=BYTES ms=1000",
    "group reset": "worker*>worker* both reset after=BYTES",
}
# What the ranks send each other in a step, and by how many milliseconds at most each
# piece of it must be late for a step to last about a third of a second.
SLOW_GROUPS = {
    "all_reduce": (14_000, 250),
    "sharded": (14_000, 250),
    "ar_pp2": (78_000, 80),
}
# Signals that stop a run at its next common step.
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU")
# What a disk, a copy or a power cut can do to a file of a checkpoint.
DAMAGES = ("flipped byte", "truncated", "zeros at the end", "longer", "emptied")


class Fault:
    """A fault's kind, its time (as a fraction of the steps), and further parameters."""

    def __init__(self, kind, when, **more):
        self.kind, self.when, self.more = kind, when, more
        self.fired = False
        self.attempt = 0  # in which it fired
        self.at = 0.0  # seconds since 1970
        self.folder, self.damaged_at = None, 0.0  # of the checkpoint that it damaged
        self.__dict__.update(more)

    def __str__(self):
        more = [str(value) for _, value in sorted(self.more.items())]
        return " ".join([self.kind, *more]) + f" @{self.when:.2f}"


def failpoints():
    """The failpoints that docs/failures.md lists."""
    with open(os.path.join(SOURCE, "docs/failures.md"), encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("## Failpoints") : text.index("## Disturbed")]
    return re.findall(r"^\| `([a-z-]+)` \|", table, re.M)


# ---- what is drawn for a fault of each kind


def nothing(draw, trial):
    return {}


def a_member(draw, trial):
    role, index = draw.choice(trial.members())
    return {"role": role, "index": index}


def a_pause(draw, trial):
    return {"seconds": round(draw.uniform(0.1, 1.0), 2), **a_member(draw, trial)}


def a_long_pause(draw, trial):
    seconds = round(trial.lease + draw.uniform(1.0, 4.0), 2)
    return {"seconds": seconds, **a_member(draw, trial)}


def several(draw, trial):
    members = trial.members()
    return {"victims": draw.sample(members, draw.randint(2, len(members)))}


def seconds_of_coordinator(draw, trial):
    return {"seconds": round(draw.uniform(0.2, 1.5), 2)}


def a_failpoint(draw, trial):
    action = draw.choice(["kill", "kill", "stop", "delay=300"])
    place, count = draw.choice(failpoints()), draw.randint(1, 400)
    return {"entry": f"{place}:{count}:{action}"}


def a_rule(draw, trial):
    rules = dict(PROXY_RULES, **(GROUP_RULES if trial.has_groups() else {}))
    to = "server*" if trial.strategy.servers else "coordinator"
    rule = rules[draw.choice(sorted(rules))].format(w="worker*", s=to)
    return {"rule": rule.replace("BYTES", str(draw.randint(2000, 900000)))}


def a_link(draw, trial):
    seconds = draw.choice([draw.uniform(0.2, 1.0), draw.uniform(3, 6)])
    return {"host": draw.randint(2, 3), "seconds": round(seconds, 2)}


def a_gap(draw, trial):
    """Seconds between two signals: one key press too many, or impatience."""
    return {"seconds": draw.choice([0.002, 0.1, 1.5])}


def a_damage(draw, trial):
    which = min(round(draw.random(), 2), 0.99)  # a fraction below 1
    return {"how": draw.choice(DAMAGES), "which": which}


def other_servers(draw, trial):
    numbers = [n for n in (1, 2, 3, 4) if n != trial.strategy.servers]
    return {"number": draw.choice(numbers), "killed": draw.random() < 0.5}


def other_workers(draw, trial):
    """Numbers that divide the global batch."""
    return {"number": draw.choice([1, 4]), "killed": draw.random() < 0.5}


def two_resets(draw, trial):
    """Connections between ranks, reset once and again while steps are repeated.

    A step lasts longer than the coordinator waits for news of it, and the
    recomputation longer than groups may break in vain.
    """
    ranks, (step, late) = "worker*>worker* both", SLOW_GROUPS[trial.name]
    first, second = draw.randint(22, 28) * step, draw.randint(16, 20) * step
    return {
        "rule": f"{ranks} reset after={first} every={second} times=2",
        "delay": f"{ranks} delay ms={late}",
    }


# ---- where they can be drawn


def anywhere(trial):
    return True


def not_slurm(trial):
    return trial.way != "slurm"


def on_slurm(trial):
    return trial.way == "slurm"


def on_hosts(trial):
    return trial.way == "hosts"


def is_supervised(trial):
    return trial.way == "daemons"


def through_proxy(trial):
    return trial.way in ("train", "daemons")


# Without checkpoint.every_steps nothing says that several hosts share a directory.
def can_stop(trial):
    return trial.way != "slurm" and (trial.way != "hosts" or trial.every > 0)


def has_checkpoints(trial):
    return trial.every > 0 and not trial.small_disk


def loses_weights(trial):
    """When a member is lost, everybody goes back to a checkpoint."""
    return has_checkpoints(trial) and (trial.strategy.servers > 0 or trial.has_groups())


def has_servers(trial):
    return trial.strategy.servers > 0 and can_stop(trial)


def can_change_workers(trial):
    return (
        trial.strategy.bits == "data"
        and trial.way in ("train", "daemons")
        and trial.every > 0
        and trial.on_loss == "wait"
        and not trial.small_disk
    )


def can_break_twice(trial):
    return trial.name in SLOW_GROUPS and through_proxy(trial)


Kind = collections.namedtuple("Kind", "name weight fits more")
KINDS = [
    Kind("kill", 4, anywhere, a_member),
    Kind("kill several", 2, anywhere, several),
    Kind("pause", 2, anywhere, a_pause),
    Kind("long pause", 2, anywhere, a_long_pause),
    Kind("failpoint", 2, anywhere, a_failpoint),
    Kind("proxy", 2, through_proxy, a_rule),
    Kind("kill coordinator", 2, not_slurm, nothing),
    Kind("pause coordinator", 2, not_slurm, seconds_of_coordinator),
    Kind("kill everything", 2, not_slurm, nothing),
    *(Kind(name, 1, can_stop, nothing) for name in STOPPING),
    Kind("SIGTERM twice", 1, can_stop, a_gap),
    Kind("drain", 2, is_supervised, a_member),
    Kind("zeros in the log", 2, is_supervised, nothing),
    Kind("damage", 2, has_checkpoints, a_damage),
    Kind("damage alive", 1, loses_weights, a_damage),
    Kind("other servers", 2, has_servers, other_servers),
    Kind("other workers", 8, can_change_workers, other_workers),
    Kind("two resets", 2, can_break_twice, two_resets),
    Kind("link down", 2, on_hosts, a_link),
    Kind("one way", 2, on_hosts, a_link),
    Kind("node failure", 3, on_slurm, nothing),
    Kind("preempted", 3, on_slurm, nothing),
    Kind("time is up", 3, on_slurm, nothing),
    Kind("cancelled", 1, on_slurm, nothing),
]
# These are in effect from the beginning, and count as fired when they have acted.
FROM_THE_START = ("failpoint", "proxy", "two resets")
# At most one of each in a trial, because each of them is a trial's own reference.
ONCE = ("other workers", "other servers", "two resets")


def draw_fault(draw, trial, earliest=0.03):
    when = round(draw.uniform(earliest, max(0.85, earliest)), 3)
    taken = {fault.kind for fault in trial.faults if fault.kind in ONCE}
    kinds = [k for k in KINDS if k.fits(trial) and k.name not in taken]
    kind = draw.choices(kinds, [k.weight for k in kinds])[0]
    return Fault(
        kind.name,
        0 if kind.name in FROM_THE_START else when,
        **kind.more(draw, trial),
    )
