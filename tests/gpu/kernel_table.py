#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sums ncu's times of kernels by their names.

usage: ncu --csv --metrics gpu__time_duration.sum PROGRAM > FILE
       tests/gpu/kernel_table.py FILE [LINES]

Prints launches, milliseconds and the share of each kernel in the whole file, those
that take longest first.
"""

import csv
import sys

UNITS = {"ns": 1e-6, "nsecond": 1e-6, "us": 1e-3, "usecond": 1e-3, "ms": 1,
         "msecond": 1}


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    sums = {}
    for row in csv.DictReader(lines):
        if row.get("Metric Name") != "gpu__time_duration.sum":
            continue
        name = row["Kernel Name"]
        for word in ("void ", "<unnamed>::", "(anonymous namespace)::"):
            name = name.replace(word, "")
        name = name.split("(")[0].split("<")[0]
        one = sums.setdefault(name[-60:], [0, 0.0])
        one[0] += 1
        one[1] += float(row["Metric Value"].replace(",", "")) * UNITS[
            row["Metric Unit"]]
    whole = sum(ms for _, ms in sums.values())
    count = sum(n for n, _ in sums.values())
    print(f"{count} launches, {whole:.2f} ms in them")
    for name, (n, ms) in sorted(sums.items(), key=lambda item: -item[1][1])[
            :int(sys.argv[2]) if len(sys.argv) > 2 else 30]:
        print(f"{n:6} {ms:9.2f} ms {100 * ms / whole:5.1f} %  {name}")


if __name__ == "__main__":
    main()
