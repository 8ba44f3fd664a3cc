#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets: small, whole files of every kind.

usage: tests/fuzz/make_corpus.py [OUT]     (tests/fuzz/corpus)

Needs protoc. Files named found-* are inputs that once broke something; they
are kept, and not made here.
"""

import itertools
import os
import sys

import file_seeds
import message_seeds

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus")

for target, name, data in itertools.chain(
        file_seeds.jobs(), file_seeds.submitted_jobs(),
        file_seeds.checkpoints(), file_seeds.data_sets(),
        file_seeds.safetensors(), message_seeds.frames(),
        message_seeds.states(), message_seeds.handlers()):
    folder = os.path.join(OUT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
