"""One member that trains and saves checkpoints in the background, in turns; started by bench/checkpoint.py. The training is the same in
all ways (shoal.data_parallel, Adam); what differs is who saves its state, every --every steps:

    none      nobody
    shoal     shoal.Checkpoints
    torch     torch.distributed.checkpoint.async_save at its best here: its memory and its plans are kept from save to save
    default   the same as its documentation shows it: staged into new memory each time

(async_save from a process of its own costs more than from a thread, here, where nobody has a core to spare.) All write each tensor
once: members share the work. Rank 0 prints one JSON line: by way and round the milliseconds of a step, of the call that saves, until the
last save of a turn is on the disk, and of CPU that a save takes of all members while nothing else is done; and the megabytes of the state.
"""

import argparse
import collections
import gc
import json
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

import shoal

BYTES_A_PARAMETER = 12  # itself and Adam's two moments, float32
WARMUP = 4


def make(megabytes: float) -> nn.Module:
    """Two square layers that make up the size, between small ones."""
    width = max(8, round((megabytes * 1e6 / BYTES_A_PARAMETER / 2) ** 0.5))
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


class Nobody:
    def __init__(self, folder: str):
        pass

    def save(self, number: int, model, optimizer) -> None:
        pass

    def drain(self) -> None:
        pass

    def check(self, model, optimizer) -> None:
        pass


class Shoal(Nobody):
    def __init__(self, folder: str):
        self._checkpoints = shoal.Checkpoints(folder)

    def save(self, number: int, model, optimizer) -> None:
        self._checkpoints.save(number, model, optimizer, number=number)

    def drain(self) -> None:
        self._checkpoints.flush()

    def check(self, model, optimizer) -> None:
        self._checkpoints.load(model, optimizer)


class Default(Nobody):
    def __init__(self, folder: str):
        self._folder, self._open = folder, None

    def save(self, number: int, model, optimizer) -> None:
        self.drain()  # as PyTorch's documentation advises: one at a time
        self._place = os.path.join(self._folder, str(number))
        self._open = dcp.async_save(self._state(model, optimizer), checkpoint_id=self._place, **self._settings())

    def drain(self) -> None:
        if self._open is not None:
            self._open.result()
            self._open = None

    def check(self, model, optimizer) -> None:
        dcp.load(self._state(model, optimizer), checkpoint_id=self._place)

    def _settings(self) -> dict:
        return {}

    @staticmethod
    def _state(model, optimizer) -> dict:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


class Torch(Default):
    def __init__(self, folder: str):
        super().__init__(folder)
        # What is off wants an accelerator, or a process that writes.
        self._stager = DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=False, use_async_staging=False,
                                                    use_non_blocking_copy=False))

    def _settings(self) -> dict:
        return {"async_stager": self._stager, "planner": dcp.DefaultSavePlanner(enable_plan_caching=True)}


WAYS = {"none": Nobody, "shoal": Shoal, "torch": Torch, "default": Default}


class Training:
    def __init__(self, args: argparse.Namespace):
        torch.manual_seed(1)
        model = make(args.megabytes)
        self.megabytes = sum(p.numel() for p in model.parameters()) * BYTES_A_PARAMETER / 1e6
        self.model, self.optimizer = shoal.data_parallel(model, torch.optim.Adam(model.parameters()))
        generator = torch.Generator().manual_seed(100 + shoal.rank())
        self.inputs = torch.randn(args.batch, 64, generator=generator)
        self.labels = torch.randint(0, 10, (args.batch,), generator=generator)
        self.saved = 0

    def step(self) -> None:
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.inputs), self.labels).backward()
        self.optimizer.step()

    def turn(self, saver: Nobody, saves: int, every: int) -> dict[str, float]:
        """`saves` times `every` steps; every save is under way while the steps behind it are taken."""
        dist.barrier()
        calls, began = 0.0, time.perf_counter()
        for at in range(saves * every):
            if at % every == 0:
                self.saved += 1
                before = time.perf_counter()
                saver.save(self.saved, self.model, self.optimizer)
                calls += time.perf_counter() - before
            self.step()
        ended = time.perf_counter()
        saver.drain()
        drained = time.perf_counter()
        dist.barrier()
        return {"step": 1e3 * (ended - began) / (saves * every), "call": 1e3 * calls / saves, "drain": 1e3 * (drained - ended)}

    def alone(self, saver: Nobody) -> dict[str, float]:
        """CPU of a whole save while training waits: what else runs here hardly changes it. Kernel threads are not counted."""
        self.step()
        dist.barrier()
        gc.collect()
        before = time.process_time()
        self.saved += 1
        saver.save(self.saved, self.model, self.optimizer)
        saver.drain()
        used = torch.tensor(time.process_time() - before)
        dist.all_reduce(used)
        return {"cpu": 1e3 * used.item()}

    def verify(self, saver: Nobody) -> None:
        """What comes back is what was saved."""
        expected = [p.detach().clone() for p in self.model.parameters()]
        self.saved += 1
        saver.save(self.saved, self.model, self.optimizer)
        saver.drain()
        dist.barrier()
        if type(saver) is Nobody:
            return
        with torch.no_grad():
            for p in self.model.parameters():
                p.zero_()
        saver.check(self.model, self.optimizer)
        assert all(torch.equal(a, b) for a, b in zip(self.model.parameters(), expected))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--saves", type=int, default=3, help="a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="127.0.0.1:29610", help="host:port of PyTorch's store, on member 0")
    args = parser.parse_args()
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
    shoal.init()
    dist.init_process_group("gloo", init_method=f"tcp://{args.store}", rank=shoal.rank(), world_size=shoal.size())
    training = Training(args)
    for _ in range(WARMUP):
        training.step()
    savers = {way: make_saver(os.path.join(args.folder, way)) for way, make_saver in WAYS.items()}
    for saver in savers.values():
        training.verify(saver)
    figures = {way: collections.defaultdict(list) for way in WAYS}
    for _ in range(args.rounds):
        for way, saver in savers.items():
            for figure, value in (training.alone(saver) | training.turn(saver, args.saves, args.every)).items():
                figures[way][figure].append(value)
            if shoal.rank() == 0:  # not counted, in PyTorch's favour: ours removes its old ones itself, in its turn
                for theirs in ("torch", "default"):
                    shutil.rmtree(os.path.join(args.folder, theirs), ignore_errors=True)
            dist.barrier()
    if shoal.rank() == 0:
        print(json.dumps({"megabytes": training.megabytes, "figures": figures}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
