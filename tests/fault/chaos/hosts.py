# SPDX-License-Identifier: Apache-2.0
"""Hosts for a run: network namespaces on this machine, whose links can fail."""

import os
import subprocess

# The network belongs to this process alone, so several can run in parallel.
NETWORK = f"10.78.{os.getpid() % 256}"
NAMES = [f"{NETWORK}.{i}" for i in (1, 2, 3)]


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
        for i, name in enumerate(NAMES, start=1):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            link = ["link", "add", f"p{i}", "type", "veth", "peer"]
            ip("-n", self.switch, *link, "name", "eth0", "netns", name)
            ip("-n", self.switch, "link", "set", f"p{i}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"{name}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def remove(self):
        for name in [*NAMES, self.switch]:
            subprocess.run(
                ["ip", "netns", "del", name], capture_output=True, check=False
            )

    def disturb(self, fault, on):
        if fault.kind == "link down":
            state = "down" if on else "up"
            ip("-n", self.switch, "link", "set", f"p{fault.host}", state)
        else:  # drops packets from this host to the first one
            # Faults of one host may overlap: the first that ends ends them all.
            act = ["replace", "blackhole"] if on else ["flush", "type", "blackhole"]
            ip("-n", f"{NETWORK}.{fault.host}", "route", *act, f"{NETWORK}.1/32")
