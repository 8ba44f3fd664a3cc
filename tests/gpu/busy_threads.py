#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows which threads of Tributary's processes are busy, as shares of a core.

usage: tests/gpu/busy_threads.py [SECONDS]

Measures all threads of processes whose name begins with tributary over SECONDS
(2), and prints the shares of each process' threads, the busiest first.
"""

import glob
import os
import sys
import time


def ticks():
    """Processor ticks by (pid, name of the process, thread)."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as file:
                rest = file.read().rsplit(")", 1)[1]
            with open(os.path.join(path.split("/task")[0], "comm"),
                      encoding="utf-8") as file:
                process = file.read().strip()
        except OSError:
            continue  # it has ended
        if process.startswith("tributary-"):
            pid, thread = path.split("/")[2], path.split("/")[4]
            used = sum(int(field) for field in rest.split()[11:13])
            found[pid, process, thread] = used
    return found


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    before = ticks()
    time.sleep(seconds)
    shares = {}
    for key, used in ticks().items():
        pid, process, _ = key
        share = (used - before.get(key, used)) / os.sysconf("SC_CLK_TCK") / seconds
        shares.setdefault((process, pid), []).append(share)
    for (process, _), of in sorted(shares.items()):
        told = [f"{share:.2f}" for share in sorted(of, reverse=True) if share >= 0.02]
        if told:
            print(f"{process}: {' '.join(told)}")


if __name__ == "__main__":
    main()
