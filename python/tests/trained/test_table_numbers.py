# SPDX-License-Identifier: Apache-2.0
"""Preprocess reads the numbers of a table's rows as `tributary predict` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tributary.torch import InvalidSetting
from tributary.torch.preprocess import Preprocess


def table(*missing: str) -> Preprocess:
    """Reads a number and one of two categories; a missing number becomes 3."""
    words = {"column": {"index": 1, "name": "c"}, "categories": ["5", "True"]}
    columns = {"numeric": [{"index": 0, "name": "a"}], "categorical": [words]}
    texts = {"missing": ["", "?", *missing], "fill": [3.0]} if missing else {}
    return Preprocess(
        {
            "source": "csv",
            "feature_shape": [3],
            "numeric": {"count": 1, "byte_divisor": 0},
            "csv": {**columns, **texts},
        }
    )


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("-999", ["-999.0", b"-0999", " -9.99e2\n", -999, -999.0, np.float32(-999)]),
        ("1e2", ["100", "+1E+02", 100, np.int64(100)]),
        ("0", ["0.0", "-0", "1e-400", 0, 0.0, -0.0]),
    ],
)
def test_a_missing_number_counts_in_every_form(text: str, forms: list[Any]) -> None:
    rows = [(form, form) for form in forms]
    assert table("NA", text)(rows).tolist() == [[3, 0, 0]] * len(forms)


def test_a_missing_text_that_is_no_number_counts_as_it_is() -> None:
    preprocess = table("0x5", "nan", "1")
    # As a word, True is not the number 1.
    rows = [(5, "0x5"), ("nan", 5), (None, True), (float("nan"), "?"), ("", None)]
    wanted = [[5, 0, 0], [3, 1, 0], [3, 0, 1], [3, 0, 0], [3, 0, 0]]
    assert preprocess(rows).tolist() == wanted


@pytest.mark.parametrize(
    "text", ["5", " +5.\n", b"\t5e0 ", ".5e+1", "0005", "\v50E-1\f"]
)
def test_a_text_is_read_as_a_number_of_a_file(text: str | bytes) -> None:
    assert table()([(text, "5")]).tolist() == [[5, 1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        *("1_000", "\uff15", "5\u00a0", "\x1c5", "0x5", "inf", "nan", "+-5", "- 5"),
        *(".", "5e", "5f", "", "\ud800", b"\xb2", "3.4028235677973366e38"),
    ],
)
def test_other_texts_are_no_numbers(text: str | bytes) -> None:
    with pytest.raises(InvalidSetting, match="column 'a': wanted a number, got"):
        table()([(text, "5")])
