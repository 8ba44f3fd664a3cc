# SPDX-License-Identifier: Apache-2.0
"""Processors near a device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tributary.torch._near import stay_near


@pytest.mark.parametrize(
    ("properties", "near"),
    [
        ({}, ""),
        (
            {"pci_domain_id": 1, "pci_bus_id": 0x3B, "pci_device_id": 2},
            "near 0001:3b:02.0",
        ),
    ],
)
def test_a_device_is_named_as_linux_does(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, int], near: str
) -> None:
    device = torch.device("cuda", 1)

    def of(asked: torch.device) -> SimpleNamespace:
        assert asked == device
        return SimpleNamespace(**properties)

    monkeypatch.setattr(torch.cuda, "get_device_properties", of)
    assert stay_near(device) == near
    assert stay_near(torch.device("cpu")) == ""
