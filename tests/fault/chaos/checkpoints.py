# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that runs have left, and damage to them."""

import os

MANIFEST = "manifest.ckpt"
PAGE = 4096  # of the file systems


def whole_ones(directory):
    """The checkpoints with a manifest, oldest first."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    folders = [os.path.join(directory, n) for n in names if n.startswith("step-")]
    return [f for f in folders if os.path.exists(os.path.join(f, MANIFEST))]


def newest(directories):
    """The newest checkpoint of the first directory that has one, or None."""
    for directory in directories:
        if found := whole_ones(directory):
            return found[-1]
    return None


def damage(folder, how, which):
    """Damages a file of the checkpoint; `which` is a fraction of the files' number.

    Returns the file's path, or None: the job has just removed it.
    """
    try:
        names = sorted(os.listdir(folder))
        path = os.path.join(folder, names[int(which * len(names))])
        with open(path, "rb") as file:
            content = bytearray(file.read())
        with open(path, "r+b") as file:
            write_damaged(file, how, which, content)
    except (FileNotFoundError, IndexError):  # or it is empty already
        return None
    return path


def write_damaged(file, how, which, content):
    half = len(content) // 2
    if how == "truncated":
        file.truncate(half)
    elif how == "emptied":
        file.truncate(0)
    elif how == "longer":
        file.seek(0, os.SEEK_END)
        file.write(bytes(PAGE))
    elif how == "zeros at the end":
        length = min(PAGE, half)
        file.seek(-length, os.SEEK_END)
        file.write(bytes(length))
    else:  # flipped byte
        at = int(which * len(content))
        file.seek(at)
        file.write(bytes([content[at] ^ 4]))
