#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A job's layers in PyTorch on one device, and where the optimizer runs.

usage: bench/pytorch_client_gpu.py JOB.yaml --optimizer WHERE [--precision
           float32|bfloat16] [--device cuda|cpu] [--steps 30] [--checkpoint N]

  servers  Tributary's servers: start it with `tributary run`
  ddp      DistributedDataParallel with one rank, AdamW on the device
  offload  the order of work of ZeRO-Offload (Ren et al. 2021): gradients go to
           pinned host memory during the backward pass, then a fused AdamW runs
           on the host, then the weights go back

Prints a JSON object: the median milliseconds of a step by the host's clock, with a
wait for the device at its end, after the first ten; and the loss of the last one.
The vocabulary is padded to a multiple of 64, and operations are deterministic.
"""

import argparse
import json
import os
import statistics
import time

import torch
from pytorch_gpu import batch_of, build
from torch.nn import functional


class Offload:
    def __init__(self, model):
        self._places = list(model.parameters())
        pin = self._places[0].is_cuda
        self._stream = torch.cuda.Stream() if pin else None
        self._masters = []
        for place in self._places:
            master = torch.nn.Parameter(torch.empty(place.shape, pin_memory=pin))
            master.data.copy_(place.data)
            master.grad = torch.zeros(place.shape, pin_memory=pin)
            self._masters.append(master)
            place.register_post_accumulate_grad_hook(self._copier(master))
        self._optimizer = torch.optim.AdamW(self._masters, lr=1e-4, fused=True)

    def _copier(self, master):
        def copy(place):
            if self._stream is None:
                master.grad.copy_(place.grad)
                return
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                master.grad.copy_(place.grad, non_blocking=True)
            place.grad.record_stream(self._stream)
        return copy

    def zero_grad(self):
        for place in self._places:
            place.grad = None

    @torch.no_grad()
    def step(self):
        if self._stream is not None:
            self._stream.synchronize()
        self._optimizer.step()
        for place, master in zip(self._places, self._masters):
            place.copy_(master, non_blocking=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--optimizer", required=True,
                        choices=["servers", "ddp", "offload"])
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--checkpoint", type=int, default=0,
                        help="servers write one after every N steps")
    options = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(1)
    with open(options.job, encoding="utf-8") as file:
        job = json.load(file)
    x, labels = batch_of(job, options.device)
    model = build(job["model"]["sequential"], 64).to(options.device)
    cluster, run = None, model
    batches = ((0, None) for _ in range(options.steps))
    if options.optimizer == "servers":
        import tributary.torch as tributary

        cluster = tributary.connect(checkpoint_every=options.checkpoint or None)
        optimizer = cluster.optimizer(model, "adamw", lr=1e-4)
        batches = cluster.resume([None] * options.steps)
    elif options.optimizer == "ddp":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
        torch.distributed.init_process_group(
            "nccl" if options.device == "cuda" else "gloo", rank=0, world_size=1)
        run = torch.nn.parallel.DistributedDataParallel(model)
        fused = {"fused": True} if options.device == "cuda" else {}
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    else:
        optimizer = Offload(model)

    times = []
    for _ in batches:
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(options.device, torch.bfloat16,
                            enabled=options.precision == "bfloat16"):
            logits = run(x)
        loss = functional.cross_entropy(logits.flatten(0, -2).float(),
                                        labels.flatten())
        loss.backward()
        optimizer.step()
        if options.device == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"optimizer": options.optimizer,
                      "ms": round(statistics.median(times[10:]), 2),
                      "loss": float(loss.detach())}), flush=True)
    if options.optimizer == "ddp":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
