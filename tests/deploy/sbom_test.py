#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of deploy/docker/sbom.sh for this system.

usage: sbom_test.py PROGRAM...

Every package that dpkg lists is there with its version and a package URL, every
program with its SHA-256, and every relationship names what is there.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

programs = sys.argv[1:]
script = Path(__file__).parents[2] / "deploy/docker/sbom.sh"
text = subprocess.run(
    ["sh", script, "tributary", "0.1.0", *programs], capture_output=True, text=True, check=True
).stdout
document = json.loads(text)
assert document["spdxVersion"] == "SPDX-2.3"

listed = subprocess.run(
    ["dpkg-query", "-W", "-f", "${Package} ${Architecture} ${Version}\n"],
    capture_output=True, text=True, check=True,
).stdout.split("\n")[:-1]  # fmt: skip
packages = {
    f"{p['name']} {p['SPDXID'].rsplit('-', 1)[1]} {p['versionInfo']}": p
    for p in document["packages"]
    if p["SPDXID"] != "SPDXRef-tributary"
}
assert set(packages) == set(listed), set(packages) ^ set(listed)
for package in packages.values():
    purl = package["externalRefs"][0]["referenceLocator"]
    assert purl.startswith(f"pkg:deb/debian/{package['name']}@{package['versionInfo']}?"), purl
assert any(p["name"].startswith("libgrpc++") for p in packages.values())

files = {f["fileName"]: f for f in document["files"]}
assert set(files) == set(programs)
for name, file in files.items():
    sums = {c["algorithm"]: c["checksumValue"] for c in file["checksums"]}
    assert sums["SHA256"] == hashlib.sha256(Path(name).read_bytes()).hexdigest()

elements = [*document["packages"], *document["files"]]
ids = [element["SPDXID"] for element in elements] + ["SPDXRef-DOCUMENT"]
assert len(set(ids)) == len(ids)
assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in ids)
for relationship in document["relationships"]:
    assert relationship["spdxElementId"] in ids, relationship
    assert relationship["relatedSpdxElement"] in ids, relationship
print(f"{len(packages)} packages, {len(files)} programs")
