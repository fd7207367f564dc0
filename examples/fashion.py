"""A plain PyTorch script that trains on however many members start it. The five lines marked `# shoal` are all that
Shoal needs.

    python examples/fashion.py                            alone
    shoal run -n 4 -- python examples/fashion.py          four members
    torchrun --nproc-per-node 4 examples/fashion.py       the same under torchrun
"""

import argparse
import gzip
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shoal  # shoal


def read_idx(path: Path) -> torch.Tensor:
    """An IDX file of bytes: a magic number whose last byte counts dimensions, their sizes, the data."""
    data = gzip.open(path).read()
    shape = numpy.frombuffer(data, ">i4", count=data[3], offset=4)
    return torch.from_numpy(numpy.frombuffer(data, "u1", offset=4 + 4 * data[3]).reshape(shape).copy())


def fashion(folder: Path, part: str) -> TensorDataset:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz").unsqueeze(1).float() / 255
    return TensorDataset(images, read_idx(folder / f"{part}-labels-idx1-ubyte.gz").long())


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 256), nn.ReLU(), nn.Linear(256, 10))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--batch", type=int, default=128, help="images a member")
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(1)
    shoal.init()  # shoal
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = shoal.data_parallel(model, optimizer)  # shoal
    train = fashion(args.data, "train")
    sampler = shoal.DistributedSampler(train)  # shoal
    batches = DataLoader(train, args.batch, sampler=sampler)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()

    model.eval()
    images, labels = fashion(args.data, "t10k").tensors
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    if shoal.rank() == 0:  # shoal
        print(f"test accuracy {right:.4f} after {args.epochs} epochs on {shoal.size()} members")


if __name__ == "__main__":
    main()
