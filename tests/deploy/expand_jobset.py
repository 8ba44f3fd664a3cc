#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces each JobSet by the Jobs that its controller makes, which have a schema.

usage: expand_jobset.py < OBJECTS.yaml > EXPANDED.yaml
"""

import sys

import yaml


def expanded(item):
    if item["kind"] != "JobSet":
        yield item
        return
    for job in item["spec"]["replicatedJobs"]:
        for index in range(job["replicas"]):
            name = f"{item['metadata']['name']}-{job['name']}-{index}"
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name},
                "spec": job["template"]["spec"],
            }


yaml.safe_dump_all(
    [new for item in yaml.safe_load_all(sys.stdin) for new in expanded(item)], sys.stdout
)
