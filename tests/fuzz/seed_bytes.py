# SPDX-License-Identifier: Apache-2.0
"""The bytes that the seeds of several fuzz targets are made of."""

import os
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def part(data):
    """As Input::Part in fuzz.h."""
    return struct.pack("<H", len(data)) + data


def message(kind, text, file=None):
    """The bytes of a message given in protobuf's text format."""
    file = file or {"Ch": "checkpoint", "Co": "coordinator_state"}.get(
        kind[:2], "parameter_service")
    return subprocess.run(
        ["protoc", "-I", os.path.join(ROOT, "proto"),
         f"--encode=tributary.v1.{kind}", f"tributary/v1/{file}.proto"],
        input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def octal(data):
    """Bytes as an escaped string of protobuf's text format."""
    return "".join(f"\\{byte:03o}" for byte in data)
