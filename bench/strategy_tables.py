#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of every strategy with every kind of model, as two tables.

usage: bench/strategy_tables.py [BUILD]      BUILD: default build/release

Runs the golden trainings (PyTorch, float64) and the strategy matrix through
real processes and prints, for strategies by models, the worst error over its
tolerance and the greatest relative distance of the weights from a single
process after 50 steps. Fails when a test does.
"""

import collections
import re
import subprocess
import sys


def run(binary):
    """The output of a test program, and whether it passed."""
    done = subprocess.run([binary], capture_output=True, text=True, check=False)
    return done.stdout, done.returncode == 0


def table(title, pattern, output, show):
    """Prints the greatest value for each row and column that `pattern` finds."""
    worst = collections.defaultdict(dict)
    for column, row, value in re.findall(pattern, output):
        value = float(value)
        worst[row][column] = max(value, worst[row].get(column, 0.0))
    columns = sorted({c for values in worst.values() for c in values})
    print(f"\n{title}\n")
    print("| strategy | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 1) + "|")
    for row, values in worst.items():
        cells = [show(values[c]) if c in values else "" for c in columns]
        print(f"| {row} | " + " | ".join(cells) + " |")


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build/release"
    golden, golden_passed = run(f"{build}/bin/golden_training_test")
    table("Worst error over tolerance", r"\[ golden \] (\w+) (\w+) \S+, worst "
          r"error/tolerance ([0-9.]+)", golden, lambda v: f"{v:.3f}")
    matrix, matrix_passed = run(f"{build}/bin/strategy_matrix_test")
    table("Greatest relative distance from a single process",
          r"\[ matrix \] (\w+) (\w+), \d+ workers: distance (\S+)", matrix,
          lambda v: f"{v:.1e}")
    return 0 if golden_passed and matrix_passed else 1


if __name__ == "__main__":
    sys.exit(main())
