# SPDX-License-Identifier: Apache-2.0
"""A small GPT-2 of Hugging Face's transformers on the characters of Shakespeare's
plays, through Tributary's servers. Beside it stands the version for
DistributedDataParallel, gpt_ddp.py.

tributary run --servers 2 --workers 2 gpt.py --epochs 2

Checkpoints have Hugging Face's names, such as transformer.h.0.attn.c_attn.weight. The
scheduler belongs to the loop, which sets it to the job's position after a restart. The
servers clip the norm of the averaged gradient.
"""

import argparse

import torch
from shakespeare import CHARACTERS, evaluate, shakespeare
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

import tributary.torch as tributary

LENGTH = 64


def build() -> GPT2LMHeadModel:
    """A GPT-2 of two layers for rows of 64 characters."""
    config = GPT2Config(
        vocab_size=CHARACTERS,
        n_positions=LENGTH,
        n_embd=128,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16, help="rows of each rank")
    parser.add_argument("--lr", type=float, default=3e-3)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = build()
    data, test = shakespeare(LENGTH)
    with tributary.connect(checkpoint_every=200) as cluster:
        sampler = cluster.sampler(data)
        loader = DataLoader(data, batch_size=options.batch, sampler=sampler)
        optimizer = cluster.optimizer(
            model,
            "adamw",
            lr=options.lr,
            weight_decay=0.1,
            clip_norm=1.0,
            steps_per_epoch=len(loader),
        )
        scheduler = CosineAnnealingLR(optimizer, options.epochs * len(loader))

        # `tributary run` prints the sum of all ranks' parts.
        def report(_: int) -> None:
            loss, characters = evaluate(model, test, cluster.rank, cluster.world_size)
            cluster.evaluated(loss_sum=loss, samples=characters)

        for _, (rows,) in cluster.resume(
            loader, options.epochs, step_scheduler=scheduler, on_epoch_end=report
        ):
            optimizer.zero_grad()
            loss = model(rows, labels=rows).loss
            loss.backward()
            optimizer.step(loss=loss)


if __name__ == "__main__":
    main()
