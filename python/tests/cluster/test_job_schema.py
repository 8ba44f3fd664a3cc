# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema that `tributary schema` prints, with a validator of others."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tributary._optimizers import KINDS

pytestmark = pytest.mark.cluster

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
PROGRAM = os.environ.get("TRIBUTARY_PROGRAM", "tributary")
JOBS = sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("bench/jobs/*.yaml")])


@pytest.fixture(scope="module")
def validator() -> Any:
    text = subprocess.run([PROGRAM, "schema"], check=True, capture_output=True).stdout
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_every_job_of_the_project_is_valid(validator: Any, path: Path) -> None:
    job = yaml.safe_load(path.read_text())
    # PyYAML reads 1e-3, which YAML 1.2 has as a number, as a text.
    text = json.dumps(job)
    for error in validator.iter_errors(json.loads(text, object_hook=numbers)):
        raise AssertionError(f"{list(error.absolute_path)}: {error.message}")


def numbers(mapping: dict[str, Any]) -> dict[str, Any]:
    def number(value: Any) -> Any:
        if not isinstance(value, str) or "e" not in value:
            return value
        try:
            return float(value)
        except ValueError:
            return value

    return {key: number(value) for key, value in mapping.items()}


@pytest.mark.parametrize(
    "key, value",
    [
        (("training", "epoch"), 5),
        (("device",), "gpu"),
        (("cluster", "workers"), 0),
        (("data", "batch_size"), "many"),
        (("model", "sequential", 0), "lineer"),
    ],
)
def test_mistakes_are_found(validator: Any, key: tuple[Any, ...], value: Any) -> None:
    job = yaml.safe_load((ROOT / "examples" / "digits.yaml").read_text())
    place = job
    for step in key[:-1]:
        place = place[step] if isinstance(place, list) else place.setdefault(step, {})
    place[key[-1]] = value
    assert not validator.is_valid(job)


@pytest.mark.parametrize("kind", KINDS)
def test_optimizers_have_the_defaults_of_the_job_file(
    validator: Any, kind: str
) -> None:
    definitions = validator.schema["$defs"]
    reference = definitions["OptimizerSpec"]["anyOf"][0]["properties"][kind]["$ref"]
    spec = definitions[reference.rsplit("/", 1)[-1]]
    fields = spec["anyOf"][0]["properties"]
    for keyword, value in KINDS[kind].defaults.items():
        if (kind, keyword) == ("adamw", "weight_decay"):  # one message with adam's
            continue
        values = value if isinstance(value, tuple) else [value]
        names = KINDS[kind].fields_of()[keyword]
        for name, one in zip(names, values, strict=True):
            if one is None:  # the servers compute it, as torch does
                continue
            wanted = json.loads(fields[name].get("default", "0"))
            assert one == wanted, f"{kind}.{name}"
