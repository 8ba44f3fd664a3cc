# SPDX-License-Identifier: Apache-2.0
"""The processors on which a program with a CUDA device runs."""

from __future__ import annotations

import torch

from tributary import _native


def stay_near(device: torch.device) -> str:
    """Restricts this thread, and those that it starts from now on, to processors
    near a CUDA device, so that pinned memory lies at the device's socket. Returns
    them, or "" if nothing changes, as on the CPU."""
    if device.type != "cuda":
        return ""
    properties = torch.cuda.get_device_properties(device)
    if not hasattr(properties, "pci_bus_id"):  # torch before 2.7
        return ""
    return _native.stay_near(
        f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:"
        f"{properties.pci_device_id:02x}.0"
    )
