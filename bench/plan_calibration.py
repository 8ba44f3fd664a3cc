#!/usr/bin/env python3
"""The constants of the cost model that no job tells, measured (docs/parallelism.md).

usage: bench/plan_calibration.py [--build build/release] [flows | cpu]

flows: how unevenly TCP shares a link. Two and four hosts send to one over plain
sockets, again and again; the slowest flow is followed. Had it been answered as
it came, the answers' last byte would follow the flows' by so much: the excess.
Prints the unevenness that explains it (common/cost/exchange_times.cc).

cpu: what the ends of bytes and messages take of a core. One to four workers and
servers, two models, among hosts of 1 Gbit/s: the CPU seconds of all processes
and of the kernel's network, less those of one worker that computes the whole
batch alone, split by least squares into bytes and messages. How long steps take
does not enter.

Wants root, and a machine that does nothing else.
"""

import argparse
import math
import os
import resource
import subprocess
import statistics

import plan_grid

RECEIVE = """
import selectors, socket, sys, time
flows, size, rounds = map(int, sys.argv[1:])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("10.77.0.2", 9000))
listener.listen()
peers = [listener.accept()[0] for _ in range(flows)]
room = bytearray(1 << 16)
for peer in peers:
    peer.setblocking(False)
for _ in range(rounds):
    time.sleep(0.03)
    selector = selectors.DefaultSelector()
    got = dict.fromkeys(peers, 0)
    trace = [(0.0, 0.0)]  # seconds, part that the slowest has delivered
    for peer in peers:
        selector.register(peer, selectors.EVENT_READ)
        peer.send(b"g")
    began = time.time()
    while min(got.values()) < size:
        for key, _ in selector.select():
            peer = key.fileobj
            got[peer] += peer.recv_into(room, min(1 << 16, size - got[peer]))
            if got[peer] >= size:
                selector.unregister(peer)
        trace.append((time.time() - began, min(got.values()) / size))
    whole = trace[-1][0]
    print(max(at / whole + 1 - part for at, part in trace) - 1)
"""

SEND = """
import socket, sys, time
size, rounds = map(int, sys.argv[1:])
for _ in range(50):
    try:
        peer = socket.create_connection(("10.77.0.2", 9000))
        break
    except OSError:
        time.sleep(0.1)
for _ in range(rounds):
    peer.recv(1)
    peer.sendall(bytes(size))
time.sleep(0.5)
"""

ROUNDS = 12


def unevenness(flows, excess):
    """The slowest flow has its even share divided by 1 + u (flows - 1) until the
    others are done: the answers' excess is (D - 1) (1 - share) / (D - share)."""
    share = (flows - 1 - excess * flows) / (flows - 1 - excess)
    return (1 / max(share, 1e-3) - 1) / (flows - 1)


def measure_flows(grid):
    found = []
    print("| Mbit/s | flows | bytes of each | excess | unevenness |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for rate in (50, 200, 1000):
        grid.hosts("rate", f"{rate}mbit")
        for flows in (2, 4):
            for size in (200_000, 800_000, rate * 20_000):
                taker = grid.on(2, "python3", "-c", RECEIVE, flows, size,
                                ROUNDS, stdout=subprocess.PIPE, text=True)
                senders = [grid.on(6 + i, "python3", "-c", SEND, size, ROUNDS)
                           for i in range(flows)]
                lines = taker.communicate()[0].split()[1:]
                for sender in senders:
                    sender.wait()
                excess = statistics.mean(map(float, lines))
                found.append(unevenness(flows, excess))
                print(f"| {rate} | {flows} | {size} | {excess:.3f} | "
                      f"{found[-1]:.2f} |", flush=True)
    print(f"median unevenness {statistics.median(found):.2f}")


def cpu_seconds():
    """CPU seconds of all ended children and of the kernel's network code."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open("/proc/stat", encoding="utf-8") as stat:
        softirq = int(stat.readline().split()[7])
    return (used.ru_utime + used.ru_stime +
            softirq / os.sysconf("SC_CLK_TCK"))


def cpu_of_a_step(grid, cell, few=20, many=120):
    spent = []
    for steps in (few, many):
        job = plan_grid.write_job(grid.folder, cell, steps)
        before = cpu_seconds()
        grid.tributary("train", cell, job)
        spent.append(cpu_seconds() - before)
    return (spent[1] - spent[0]) / (many - few)


def measure_cpu(grid):
    rows = []  # ends of bytes, ends of messages, seconds
    for model in plan_grid.MODELS:
        alone = cpu_of_a_step(
            grid, plan_grid.Cell(1000, 1, model, "all_reduce", 0))
        for workers, servers in ((1, 1), (1, 4), (2, 2), (4, 4)):
            cell = plan_grid.Cell(1000, workers, model, "parameter_server",
                                  servers)
            seconds = cpu_of_a_step(grid, cell) - alone
            sent = 2 * workers * plan_grid.parameter_bytes(model)
            messages = 2 * workers * math.ceil(
                plan_grid.parameter_bytes(model) / plan_grid.BLOCK * servers)
            rows.append((2 * sent, 2 * messages, seconds))
            print(f"{model}, {workers} workers, {servers} servers: "
                  f"{sent / 1e6:.2f} MB and {messages} messages take "
                  f"{seconds * 1e3:.1f} ms", flush=True)
    # Minimizes the sum of squared relative errors over two unknowns.
    a = [(b / s, m / s) for b, m, s in rows]
    bb = sum(x * x for x, _ in a)
    bm = sum(x * y for x, y in a)
    mm = sum(y * y for _, y in a)
    b1, m1 = sum(x for x, _ in a), sum(y for _, y in a)
    det = bb * mm - bm * bm
    print(f"an end of a byte {(b1 * mm - m1 * bm) / det * 1e9:.2f} ns, of a "
          f"message {(m1 * bb - b1 * bm) / det * 1e6:.0f} us")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["flows", "cpu"])
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    grid = plan_grid.Grid(options)
    try:
        grid.hosts("up", str(plan_grid.HOSTS), "1000mbit")
        if options.what != "cpu":
            measure_flows(grid)
        if options.what != "flows":
            grid.hosts("rate", "1000mbit")
            measure_cpu(grid)
    finally:
        grid.close()


if __name__ == "__main__":
    main()
