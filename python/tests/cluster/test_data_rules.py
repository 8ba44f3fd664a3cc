# SPDX-License-Identifier: Apache-2.0
"""Class weights and missing values of `tributary train`, against PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tributary.torch import InvalidSetting, load

sys.path.insert(0, str(Path(__file__).parent))
from processes import DEADLINE, program  # noqa: E402

pytestmark = pytest.mark.cluster

ROWS, FEATURES, CLASSES, STEPS = 50, 4, 3, 20

WEIGHTED = """
model: {sequential: [linear: {in: 4, out: 3}]}
data:
  train: {npy: {features: x.npy, labels: y.npy}}
  global_batch_size: 50
  shuffle: none
training:
  steps: 20
  loss: {cross_entropy: LOSS}
  optimizer: {sgd: {learning_rate: 0.5}}
cluster: {servers: 2, workers: 3}
"""

TABLE = """
model: {sequential: [linear: {in: 3, out: 1}]}
data:
  train:
    csv:
      path: table.csv
      columns: {label: y, numeric: [a, b], categorical: c}
      normalize: standardize
      missing: {median: true, texts: [NA, "-999"]}
  batch_size: 3
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
"""


def train(folder: Path, job: str, *more: str) -> Path:
    (folder / "job.yaml").write_text("name: rules\n" + job)
    run = folder / "run"
    subprocess.run(
        [program(), "train", str(folder / "job.yaml"), "--run-dir", str(run), *more],
        check=True,
        capture_output=True,
        timeout=DEADLINE,
    )
    return run


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [[0.5, 4.0, 1.5], None])
def test_class_weights_train_as_in_pytorch(
    tmp_path: Path, weights: list[float] | None, smoothing: float
) -> None:
    """Three workers with 17, 17 and 16 rows, and None for `balanced`."""
    random = np.random.default_rng(3)
    x = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = random.choice(CLASSES, size=ROWS, p=[0.7, 0.2, 0.1])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    rule = "balanced: true" if weights is None else f"class_weights: {weights}"
    loss = f"{{{rule}, label_smoothing: {smoothing}}}"
    job = WEIGHTED.replace("LOSS", loss)
    # The run of no steps writes the initial weights.
    first = tmp_path / "first"
    first.mkdir()
    for name in ("x.npy", "y.npy"):
        (first / name).write_bytes((tmp_path / name).read_bytes())
    frozen = "training.parameter_groups=[{parameters: '*', frozen: true}]"
    expected = load(train(first, job, "--set", frozen)).network.train()
    trained = load(train(tmp_path, job))

    if weights is None:
        weights = (ROWS / (CLASSES * np.bincount(y))).tolist()
    assert trained.record["loss"]["cross_entropy"]["class_weights"] == weights
    criterion = nn.CrossEntropyLoss(
        weight=torch.tensor(weights), label_smoothing=smoothing, reduction="none"
    )
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.5)
    for _ in range(STEPS):
        optimizer.zero_grad()
        criterion(expected(torch.tensor(x)), torch.tensor(y)).mean().backward()
        optimizer.step()
    for name, value in expected.state_dict().items():
        assert torch.allclose(trained.network.state_dict()[name], value, atol=1e-5)


def test_load_fills_what_training_filled(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,c,y\n1,2,u,1\n,4,?,2\n5,NA,u,3\n9,4,u,1\n")
    model = load(train(tmp_path, TABLE))
    assert model.preprocess is not None
    # The medians of 1 5 9 and of 2 4 4.
    filled = model.preprocess([(None, "NA", "?"), (5, 4, "u")])
    assert filled[:, :2].tolist() == [filled[0, :2].tolist()] * 2
    assert filled[:, 2].tolist() == [0, 1]


def test_load_reads_the_numbers_that_predict_reads(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,c,y\n1,2,u,1\n5,NA,u,3\n9,4,u,1\n")
    run = train(tmp_path, TABLE)
    model = load(run)
    texts = ["-999", "-999.0", "-0999", " -9.99E+2", "NA", "", "+7.", ".5", "7e0"]
    refused = ["1_000", "\uff17", "7\u00a0", "0x7", "inf", "nan", "+-7", "7e", "1e39"]
    for text in texts + refused:
        new = tmp_path / "new.csv"
        new.write_text(f"a,b,c\n{text},4,u\n")
        ended = subprocess.run(
            [program(), "predict", str(run), str(new)],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        if text in refused:
            assert ended.returncode == 2, text
            with pytest.raises(InvalidSetting, match="wanted a number"):
                model.predict([(text, 4, "u")])
        else:
            value = model.predict([(text, 4, "u")]).values.item()
            assert float(ended.stdout.split()[1]) == pytest.approx(value), text
