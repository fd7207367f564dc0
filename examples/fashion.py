"""Fashion-MNIST in plain PyTorch. The five lines marked `shoal` are all that training on several members takes, and set_epoch(), as with any sampler of PyTorch
that divides data: else each epoch has the order of the first one.

    python examples/fashion.py                          one process
    shoal run -n 4 -- python examples/fashion.py        four members
    torchrun --nproc-per-node 4 examples/fashion.py     the same, started by torchrun

mpirun, srun, Kubernetes and other hosts by ssh: docs/launchers.
"""

import argparse
import gzip

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shoal                                                                              # shoal: 1


def read(folder: str, part: str) -> TensorDataset:
    with gzip.open(f"{folder}/{part}-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(f"{folder}/{part}-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8)
    return TensorDataset(torch.tensor(images, dtype=torch.float32) / 255 - 0.5, torch.tensor(labels, dtype=torch.int64))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="images of one member in one step")
    args = parser.parse_args()

    shoal.init()                                                                          # shoal: 2
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = shoal.data_parallel(model, optimizer)                              # shoal: 3
    train, test = read(args.data, "train"), read(args.data, "t10k")
    loader = DataLoader(train, args.batch, sampler=shoal.DistributedSampler(train))       # shoal: 4

    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            images, labels = test.tensors
            accuracy = (model(images).argmax(1) == labels).double().mean().item()
        if shoal.rank() == 0:                                                             # shoal: 5
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test accuracy {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
