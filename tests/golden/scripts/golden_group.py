# SPDX-License-Identifier: Apache-2.0
"""Writes a group of reference numbers (tests/testing/golden.h)."""
import json
import pathlib

import numpy

FOLDER = pathlib.Path(__file__).parent.parent


class Group:
    def __init__(self):
        self.bytes, self.lines = b"", []

    def attribute(self, case, key, value):
        self.lines.append(f"A\t{case}\t{key}\t{json.dumps(value)}")

    def tensor(self, case, name, value, role, tolerance=None):
        kind = {"float32": "f32", "float64": "f64"}[str(value.dtype)]
        shape = ",".join(map(str, value.shape)) or "-"
        tol = "-" if tolerance is None else f"{tolerance:.2g}"
        data = value.tobytes()
        self.lines.append("\t".join(map(str, (
            "T", case, name, role, kind, shape, len(self.bytes), len(data), tol,
            "-"))))
        self.bytes += data + b"\0" * (-len(data) % 8)

    def expect(self, case, name, wide, narrow):
        """Expects `wide`, in float64, within 4 times the error of `narrow`."""
        error = numpy.abs(wide - narrow.astype("float64")).max()
        self.tensor(case, name, wide, "expect",
                    max(1e-6, 4 * error / (numpy.abs(wide).max() or 1)))

    def write(self, name):
        head = ("#A case key json-value | #T case tensor role dtype shape "
                "offset nbytes tol_f32 scale-tensor")
        (FOLDER / f"{name}.tsv").write_text("\n".join([head] + self.lines) + "\n")
        (FOLDER / f"{name}.bin").write_bytes(self.bytes)


TYPES = {"f32": "float32", "i64": "int64", "u8": "uint8"}


def shared_input(tensor, group="optim"):
    """An input of a group."""
    for line in (FOLDER / f"{group}.tsv").read_text().splitlines():
        part = line.split("\t")
        if part[:3] == ["T", "shared", tensor]:
            raw = (FOLDER / f"{group}.bin").read_bytes()
            begin, size = int(part[6]), int(part[7])
            shape = [int(n) for n in part[5].split(",")]
            return numpy.frombuffer(raw[begin:begin + size],
                                    TYPES[part[4]]).reshape(shape)
    raise LookupError(tensor)
