#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the words of the command that starts a container, one per line.

usage: pod_words.py OBJECTS.yaml KIND/NAME
"""

import sys

import yaml

path, wanted = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    for item in yaml.safe_load_all(file):
        if f"{item['kind']}/{item['metadata']['name']}" == wanted:
            container = item["spec"]["template"]["spec"]["containers"][0]
            print("\n".join(container["command"] + container["args"]))
