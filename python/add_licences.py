#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the licences of all that a repaired wheel contains to its dist-info/licenses.

python/add_licences.py WHEEL DESTINATION

LICENSE is Tributary's own. BUNDLED.md lists the Debian packages whose code is in the
wheel, with their versions, licences and shared libraries. bundled/PACKAGE holds the
copyright file of a package, and bundled/common the licences that these files refer to.
Needs Debian's dpkg, on the machine whose libraries are in the wheel.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Packages whose code is compiled into the programs: headers and static libraries.
COMPILED_IN = ("libcli11-dev", "nlohmann-json3-dev")
COMMON = Path("/usr/share/common-licenses")
HEAD = """\
Debian packages whose code this wheel contains. The licence is that of the source
package in general. That of a library can be another one, which the package's copyright
file names: libidn2's is LGPL-3+ or GPL-2+.

| package | source | licence | files |
| --- | --- | --- | --- |
"""


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_of(library: str) -> str:
    """The Debian package of a library: libgmp10 for libgmp-1b2c3d4e.so.10.4.1.

    SystemExit: no package has a file of this name.
    """
    name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library, count=1)
    found = subprocess.run(
        ["dpkg-query", "--search", f"*/{name}"], capture_output=True, text=True
    ).stdout
    if not found:
        sys.exit(f"add_licences: no package has {name}, so {library} has no licence")
    return found.split(":")[0]


def licences_of(copyright_file: str) -> str:
    """The licences of files in general, by a machine-readable copyright file."""
    for paragraph in re.split(r"\n\s*\n", copyright_file):
        if re.search(r"^Files:\s*\*", paragraph, re.MULTILINE):
            licence = re.search(r"^License:\s*(\S.*)", paragraph, re.MULTILINE)
            if licence:
                return licence[1].strip()
    return "see its copyright file"


def referred_to(copyright_file: str) -> set[str]:
    """The common licences that a copyright file names instead of repeating them."""
    names = re.findall(rf"{COMMON}/([\w.-]*[\w-])", copyright_file)
    return {name for name in names if (COMMON / name).is_file()}


def add_package(package: str, libraries: list[str], folder: Path) -> str:
    """Copies a package's copyright into `folder`; returns its row of the table."""
    text = Path(f"/usr/share/doc/{package}/copyright").read_text(errors="replace")
    own = folder / package
    own.mkdir(parents=True)
    (own / "copyright").write_text(text)
    common = folder / "common"
    common.mkdir(exist_ok=True)
    for name in referred_to(text):
        (common / name).write_text((COMMON / name).read_text())
    query = "--showformat=${source:Package} ${source:Version}\n"
    source = output_of("dpkg-query", "--show", query, package).splitlines()[0]
    names = ", ".join(libraries) or "compiled in"
    return f"| {package} | {source} | {licences_of(text)} | {names} |"


def nanobind_row(folder: Path) -> str:
    """nanobind and its hash map are compiled in; they come from no Debian package.

    The hash map has its licence at the head of its header.
    """
    distribution = importlib.metadata.distribution("nanobind")
    files = {file.name: file for file in distribution.files or []}
    own = folder / "nanobind"
    own.mkdir(parents=True)
    (own / "LICENSE").write_text(files["LICENSE"].read_text())
    head, end, _ = files["robin_map.h"].read_text().partition("*/")
    (own / "LICENSE.robin_map").write_text(head + end + "\n")
    return f"| nanobind | {distribution.version} | BSD-3-Clause, MIT | compiled in |"


def add_licences(tree: Path) -> None:
    """Adds the licences to the unpacked wheel `tree`."""
    (metadata,) = tree.glob("*.dist-info/METADATA")
    licences = metadata.parent / "licenses"
    licences.mkdir(exist_ok=True)
    root = Path(__file__).resolve().parent.parent
    (licences / "LICENSE").write_text((root / "LICENSE").read_text())

    packages: dict[str, list[str]] = {package: [] for package in COMPILED_IN}
    for library in sorted(file.name for file in tree.glob("*.libs/*")):
        packages.setdefault(package_of(library), []).append(library)
    rows = [
        add_package(package, libraries, licences / "bundled")
        for package, libraries in sorted(packages.items())
    ]
    rows.append(nanobind_row(licences / "bundled"))
    (licences / "BUNDLED.md").write_text(HEAD + "\n".join(rows) + "\n")

    files = sorted(file for file in licences.rglob("*") if file.is_file())
    lines = "".join(f"License-File: {file.relative_to(licences)}\n" for file in files)
    text = metadata.read_text()
    text = re.sub(r"^Metadata-Version: .*\n", "Metadata-Version: 2.4\n", text)
    metadata.write_text(re.sub(r"^(Version: .*\n)", rf"\1{lines}", text, flags=re.M))


def main() -> None:
    wheel, destination = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        tool = (sys.executable, "-m", "wheel")
        output_of(*tool, "unpack", "--dest", folder, wheel)
        (tree,) = Path(folder).iterdir()
        add_licences(tree)
        output_of(*tool, "pack", "--dest-dir", destination, str(tree))


if __name__ == "__main__":
    main()
