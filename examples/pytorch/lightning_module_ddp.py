# SPDX-License-Identifier: Apache-2.0
"""A Lightning module trained with DistributedDataParallel: the version beside
lightning_module.py.

torchrun --nproc-per-node 2 lightning_module_ddp.py --epochs 5

Lightning gives the loader a DistributedSampler.
"""

import argparse

import lightning
import torch
from fashion import fashion
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
        )

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.layers(x), y)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        x, y = batch
        correct = (self.layers(x).argmax(1) == y).float().mean()
        self.log("accuracy", correct, sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=0.01)

    def train_dataloader(self) -> DataLoader:
        data = fashion("train6000")
        loader = DataLoader(data, batch_size=32, shuffle=True)
        return loader


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=options.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Classifier()
    trainer.fit(module)
    test = DataLoader(fashion("t10k1000"), batch_size=500)
    (figures,) = trainer.validate(module, test, verbose=False)
    if trainer.global_rank == 0:
        print(f"accuracy {figures['accuracy']:.4f}")


if __name__ == "__main__":
    main()
