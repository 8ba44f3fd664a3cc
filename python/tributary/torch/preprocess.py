# SPDX-License-Identifier: Apache-2.0
"""How raw rows become the inputs of a trained model, as its model.json says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tributary._errors import InvalidSetting

Record = dict[str, Any]

# A number in a file. float() reads others, too, such as 1_000.
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_TOO_LARGE = 3.4028235677973366e38  # becomes infinite in float32


def as_bytes(word: str | Mapping[str, str]) -> bytes:
    """A word of model.json: text, or {"hex": ...} if it is not UTF-8."""
    if isinstance(word, str):
        return word.encode()
    return bytes.fromhex(word["hex"])


def as_text(word: str | Mapping[str, str]) -> str:
    """The same as text; bytes that are not UTF-8 become lone surrogates."""
    return as_bytes(word).decode(errors="surrogateescape")


def as_word(value: Any) -> bytes:
    """A value of a categorical column, as it stands in a file."""
    if isinstance(value, bytes):
        return value
    return str(value).encode(errors="surrogateescape")


def as_number(value: Any) -> float:
    """A number, or a text that is one in a file; NaN: none that float32 can hold."""
    try:
        if isinstance(value, (str, bytes)):
            value = as_word(value).strip()
            if not _NUMBER.fullmatch(value):
                return float("nan")
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
    return number if abs(number) < _TOO_LARGE else float("nan")


class Preprocess(nn.Module):
    """Raw rows to the model's inputs, in the arithmetic of the training.

    It takes

    - a tensor [rows, ...] of raw numbers or bytes, of a table with one column for
      each numeric column and then one for each categorical one, which holds the
      number of the category, or -1 for none of them (`encode` makes it);
    - of a table a list of rows, each a mapping from column names to values or a
      sequence of values in the order of `columns`;
    - of a text a string, bytes or a list of them: one sample each.

    If the job filled missing values, NaN in a tensor becomes the training's value of
    its column, and so do None, NaN and the job's texts for missing values in a list
    of rows. If such a text is a number, all its spellings and the number itself
    count. A missing category counts as none of the categories.

    Tensors stay in PyTorch's graph, so a model can be exported together with its
    preprocessing: nn.Sequential(model.preprocess, model).

    unknown: "error", or "zeros": a category that the training data did not have
    counts as none of them, as it does in a test set.
    """

    def __init__(self, record: Record, unknown: str = "error") -> None:
        super().__init__()
        if unknown not in ("error", "zeros"):
            raise InvalidSetting(f'unknown is "error" or "zeros", got {unknown!r}')
        self.unknown = unknown
        self.source: str = record["source"]
        self.feature_shape: tuple[int, ...] = tuple(record["feature_shape"])
        numeric = record.get("numeric")
        self.byte_divisor = float(numeric["byte_divisor"]) if numeric else 0.0
        self.numeric = int(numeric["count"]) if numeric else 0
        mean = torch.tensor(numeric.get("mean", []) if numeric else [])
        deviation = torch.tensor(numeric.get("deviation", []) if numeric else [])
        # Not a buffer, because module.float() would round it.
        self._offset: list[float] = numeric.get("offset", []) if numeric else []
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("deviation", deviation, persistent=False)
        table = record.get("csv") or {}
        fill = torch.tensor(table.get("fill", []), dtype=torch.float64)
        fill = self._less_offset(fill.reshape(1, -1))[0]
        self.register_buffer("fill", fill, persistent=False)
        self._missing = {as_bytes(word) for word in table.get("missing", ())}
        numbers = map(as_number, self._missing)
        self._missing_numbers = {number for number in numbers if number == number}
        self._skips_missing = bool(table.get("skip_missing"))
        self._columns = [
            (column.get("name"), column["index"]) for column in table.get("numeric", ())
        ]
        self._categories: list[dict[bytes, int]] = []
        for one in table.get("categorical", ()):
            column = one["column"]
            self._columns.append((column.get("name"), column["index"]))
            words = one.get("categories", ())
            self._categories.append({as_bytes(word): i for i, word in enumerate(words)})
        text = record.get("text")
        self.length = int(text["length"]) if text else 0
        self._bytes = bool(text) and text["tokens"] == "bytes"
        vocabulary = text["vocabulary"] if text else []
        self._ids = {token: i for i, token in enumerate(vocabulary)}
        self._vocabulary = vocabulary

    @property
    def columns(self) -> list[str | int]:
        """Of a table: the columns of the inputs, by name, or by number from 0."""
        return [
            index if name is None else as_text(name) for name, index in self._columns
        ]

    def forward(self, rows: Any) -> torch.Tensor:
        x = rows if isinstance(rows, torch.Tensor) else self.encode(rows)
        if self.length or not self.numeric + len(self._categories):
            return x
        numbers = x[:, : self.numeric] if self._categories else x
        numbers = self._less_offset(numbers)
        if self.fill.numel() > 0:
            numbers = torch.where(torch.isnan(numbers), self.fill, numbers)
        numbers = self._normalize(numbers)
        if not self._categories:
            return numbers.reshape(x.shape[0], *self.feature_shape)
        blocks = [numbers]
        for i, words in enumerate(self._categories):
            code = x[:, self.numeric + i : self.numeric + i + 1]
            number = torch.arange(len(words), device=x.device)
            blocks.append((code == number).to(torch.float32))
        return torch.cat(blocks, dim=1)

    def _less_offset(self, x: torch.Tensor) -> torch.Tensor:
        """float32 numbers; the offset is subtracted before they are rounded."""
        if not self._offset or not x.numel():
            return x.to(torch.float32)
        offset = torch.tensor(self._offset, dtype=torch.float64, device=x.device)
        exact = x.to(torch.float64)
        if len(self._offset) > 1:
            exact = exact.flatten(1)
        return (exact - offset).reshape(x.shape).to(torch.float32)

    def _normalize(self, x: torch.Tensor) -> torch.Tensor:
        if self.byte_divisor not in (0.0, 1.0):
            x = x / self.byte_divisor
        if self.mean.numel() == 0:
            return x
        if self.mean.numel() == 1:
            return (x - self.mean) / self.deviation
        flat = (x.flatten(1) - self.mean) / self.deviation
        return flat.reshape(x.shape)

    def encode(self, rows: Any) -> torch.Tensor:
        """Rows of a table or texts as numbers, before normalization."""
        if self.length:
            return self._encode_text(rows)
        if self.source != "csv":
            return torch.as_tensor(rows)
        if isinstance(rows, Mapping):
            raise InvalidSetting("wanted a list of rows, got one row; write [row]")
        encoded = [self._encode_row(i, row) for i, row in enumerate(rows)]
        width = self.numeric + len(self._categories)
        # Numbers are rounded to float32 once, as the training's reader does.
        dtype = torch.float64 if self._offset else torch.float32
        return torch.tensor(encoded, dtype=dtype).reshape(-1, width)

    def _encode_row(self, number: int, row: Any) -> list[float]:
        if not isinstance(row, Mapping):
            if len(row) != len(self._columns):
                raise InvalidSetting(
                    f"row {number}: wanted {len(self._columns)} values, those of "
                    f"the columns {self.columns}, got {len(row)}"
                )
            row = dict(zip(self.columns, row, strict=True))
        values = []
        for i, column in enumerate(self.columns):
            if column not in row:
                raise InvalidSetting(f"row {number}: wanted a column {column!r}")
            value = row[column]
            if self._is_missing(value, i < self.numeric):
                if self._skips_missing:
                    raise InvalidSetting(
                        f"row {number}: column {column!r}: wanted a value, because "
                        "the model was trained without rows that lack one "
                        f"(missing: skip), got {value!r}"
                    )
                values.append(float("nan") if i < self.numeric else -1)
            elif i < self.numeric:
                values.append(self._number(number, column, value))
            else:
                codes = self._categories[i - self.numeric]
                values.append(self._code(number, column, value, codes))
        return values

    def _is_missing(self, value: Any, numeric: bool) -> bool:
        if not self._missing:
            return False
        if value is None or value != value:  # NaN differs from itself
            return True
        word = as_word(value)
        number = as_number(value if numeric else word)
        return word.strip() in self._missing or number in self._missing_numbers

    def _number(self, row: int, column: str | int, value: Any) -> float:
        number = as_number(value)
        if number == number:
            return number
        raise InvalidSetting(
            f"row {row}: column {column!r}: wanted a number, got {value!r}"
        )

    def _code(
        self, row: int, column: str | int, value: Any, codes: dict[bytes, int]
    ) -> int:
        code = codes.get(as_word(value), -1)
        if code >= 0 or self.unknown == "zeros":
            return code
        raise InvalidSetting(
            f"row {row}: column {column!r}: wanted a category of the training data "
            f'(unknown="zeros" makes it none of them), got {value!r}'
        )

    def _encode_text(self, texts: Any) -> torch.Tensor:
        if isinstance(texts, (str, bytes)):
            texts = [texts]
        encoded = [self.tokens(text) for text in texts]
        for i, ids in enumerate(encoded):
            if len(ids) > self.length:
                raise InvalidSetting(
                    f"text {i}: wanted at most {self.length} tokens, got {len(ids)}"
                )
            if len(ids) != len(encoded[0]):
                raise InvalidSetting(
                    f"text {i}: wanted {len(encoded[0])} tokens as the first text "
                    f"has, got {len(ids)}; call once for each length"
                )
        return torch.tensor(encoded, dtype=torch.int64)

    def tokens(self, text: str | bytes) -> list[int]:
        """The ids of a text's tokens."""
        if self._bytes:
            units: Iterable[int] = text.encode() if isinstance(text, str) else text
        else:
            units = map(ord, text.decode() if isinstance(text, bytes) else text)
        ids = []
        for at, unit in enumerate(units):
            if unit not in self._ids:
                what = f"byte 0x{unit:02X}" if self._bytes else repr(chr(unit))
                raise InvalidSetting(f"token {at} is {what}, not in the training text")
            ids.append(self._ids[unit])
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """The inverse of `tokens`."""
        units = [self._vocabulary[i] for i in ids]
        if self._bytes:
            return bytes(units).decode(errors="surrogateescape")
        return "".join(map(chr, units))
