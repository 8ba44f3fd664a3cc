# SPDX-License-Identifier: Apache-2.0
"""A small GPT-2 of Hugging Face's transformers on the characters of Shakespeare's
plays, with DistributedDataParallel: the version beside gpt.py.

torchrun --nproc-per-node 2 gpt_ddp.py --epochs 2
"""

import argparse

import torch
from shakespeare import CHARACTERS, evaluate, shakespeare
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler
from transformers import GPT2Config, GPT2LMHeadModel

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
    torch.distributed.init_process_group("gloo")
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=options.batch, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.1)
    scheduler = CosineAnnealingLR(optimizer, options.epochs * len(loader))

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for (rows,) in loader:
            optimizer.zero_grad()
            loss = replica(rows, labels=rows).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        if torch.distributed.get_rank() == 0:
            loss, characters = evaluate(model, test)
            print(f"epoch {epoch + 1}: loss {loss / characters:.4f}")

    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
