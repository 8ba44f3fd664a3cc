#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the objects that an overlay makes for errors that schemas cannot find.

usage: check_kubernetes.py PROGRAM_DIR OBJECTS.yaml

Every option of a command must be one that its program knows, every port, volume and
Service that is named must be there, and every container must meet the restricted pod
security standard (https://kubernetes.io/docs/concepts/security/pod-security-standards).
Prints what is wrong, a line each, and how many objects were read.
"""

import re
import subprocess
import sys

import yaml


def pod_of(item):
    return item["spec"].get("template", {}).get("spec") if "spec" in item else None


def program_and_words(container):
    """The program of Tributary that a container starts, and its arguments."""
    words = container.get("command", []) + container.get("args", [])
    text = " ".join(words)
    found = re.search(r"tributary-(coordinator|server|worker)\b", text)
    return (found.group(0) if found else None), container.get("args", [])


def options_of(program):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z-]+", text))


def check_options(where, container, folder):
    program, words = program_and_words(container)
    if program is None:
        return
    known = options_of(f"{folder}/{program}")
    for word in words:
        option = word.split("=")[0]
        if option not in known:
            yield f"{where}: {program} knows no option {option}"


def check_container(where, pod, container):
    security = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
    wanted = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for key, value in wanted.items():
        if security.get(key) != value:
            yield f"{where}: securityContext.{key} is {security.get(key)}, wanted {value}"
    resources = container.get("resources", {})
    if "memory" not in resources.get("limits", {}) or "cpu" not in resources.get("requests", {}):
        yield f"{where}: wanted a request for cpu and a limit of memory"
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            yield f"{where}: there is no volume {mount['name']}"


def check_services(items):
    """Services find pods, by ports that these have, and addresses name Services."""
    pods = [
        (item["spec"]["template"]["metadata"]["labels"], pod_of(item))
        for item in items
        if pod_of(item)
    ]
    services = {item["metadata"]["name"] for item in items if item["kind"] == "Service"}
    for item in items:
        if item["kind"] != "Service":
            continue
        name, spec = item["metadata"]["name"], item["spec"]
        found = [pod for labels, pod in pods if spec["selector"].items() <= labels.items()]
        if len(found) != 1:
            yield f"Service {name} selects {len(found)} kinds of pods"
            continue
        ports = {port["name"] for c in found[0]["containers"] for port in c.get("ports", [])}
        for port in spec["ports"]:
            if port["targetPort"] not in ports:
                yield f"Service {name}: no container has a port {port['targetPort']}"
    for _, pod in pods:
        for container in pod["containers"]:
            for word in container.get("args", []):
                named = re.fullmatch(r"--coordinator=([a-z-]+):\d+", word)
                if named and named.group(1) not in services:
                    yield f"{word}: there is no such Service"


def check(items, folder):
    claims = {i["metadata"]["name"] for i in items if i["kind"] == "PersistentVolumeClaim"}
    maps = {i["metadata"]["name"] for i in items if i["kind"] == "ConfigMap"}
    for item in items:
        pod = pod_of(item)
        if not pod:
            continue
        name = f"{item['kind']} {item['metadata']['name']}"
        if pod.get("automountServiceAccountToken") is not False:
            yield f"{name}: its pods get a token for the cluster"
        for container in pod["containers"] + pod.get("initContainers", []):
            where = f"{name}, {container['name']}"
            yield from check_options(where, container, folder)
            yield from check_container(where, pod, container)
        for volume in pod.get("volumes", []):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and claim not in claims:
                yield f"{name}: there is no claim {claim}"
            config = volume.get("configMap", {}).get("name")
            if config and config not in maps:
                yield f"{name}: there is no ConfigMap {config}"
    yield from check_services(items)


def main():
    folder, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        items = [item for item in yaml.safe_load_all(file) if item]
    problems = list(check(items, folder))
    for problem in problems:
        print(problem)
    print(f"{len(items)} objects, {len(problems)} problems")
    sys.exit(1 if problems or not items else 0)


if __name__ == "__main__":
    main()
