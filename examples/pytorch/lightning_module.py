# SPDX-License-Identifier: Apache-2.0
"""A Lightning module trained through Tributary's servers. Beside it stands the version
for DistributedDataParallel, lightning_module_ddp.py.

tributary run --servers 2 --workers 2 lightning_module.py --epochs 5

Lightning's automatic optimization works: it calls optimizer.step(closure), and the
closure's backward pass sends the gradients. Three points differ from an ordinary
module:

- train_dataloader returns cluster.resume, which begins at the position of the job and
  goes back with it. All epochs of the job are therefore a single epoch of the Trainer.
- training_step takes Lightning's dataloader_iter, which Lightning calls experimental.
  With the ordinary arguments Lightning reads the next batch before the present step
  ends, when the position after the step is not yet known.
- The Trainer has one device and leaves gradients and checkpoints alone. Tributary has
  options of its own for them: accumulate= of cluster.resume replaces
  accumulate_grad_batches, clip_norm= replaces gradient_clip_val, and schedulers are
  given to cluster.resume instead of being returned by configure_optimizers.
"""

import argparse
from collections.abc import Iterator

import lightning
import torch
from fashion import fashion
from torch.utils.data import DataLoader

import tributary.torch as tributary


class Classifier(lightning.LightningModule):
    def __init__(self, cluster: tributary.Cluster, epochs: int) -> None:
        super().__init__()
        self.cluster, self.epochs = cluster, epochs
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
        )

    def training_step(self, dataloader_iter: Iterator) -> torch.Tensor:
        (_, (x, y)), _, _ = next(dataloader_iter)
        loss = torch.nn.functional.cross_entropy(self.layers(x), y)
        self.cluster.log(loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        x, y = batch
        correct = (self.layers(x).argmax(1) == y).float().mean()
        self.log("accuracy", correct, sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.cluster.optimizer(self, "adamw", lr=1e-3, weight_decay=0.01)

    def train_dataloader(self) -> Iterator:
        data = fashion("train6000")
        sampler = self.cluster.sampler(data)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        return self.cluster.resume(loader, self.epochs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with tributary.connect(checkpoint_every=100) as cluster:
        module = Classifier(cluster, options.epochs)
        trainer.fit(module)
    test = DataLoader(fashion("t10k1000"), batch_size=500)
    (figures,) = trainer.validate(module, test, verbose=False)
    if cluster.rank == 0:
        print(f"accuracy {figures['accuracy']:.4f}")


if __name__ == "__main__":
    main()
