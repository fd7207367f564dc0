"""Ratings by embeddings that are in tables: no member needs to hold all rows; the layers behind them are trained by data_parallel().

    python examples/ratings.py ml-1m.csv.gz                          user,item,rating,...: one process
    shoal run -n 4 -- python examples/ratings.py ml-1m.csv.gz        four members, each with the rows of a quarter of the users and items

docs/tables.md, Embeddings.
"""

import argparse
import gzip

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shoal


class Ratings(nn.Module):
    """Where user and item meet: the product of their rows, and what a small network makes of both."""

    def __init__(self, width: int, mean: float, consistency: str):
        super().__init__()
        self.mean = mean
        self.users, self.items = (
            shoal.nn.TableEmbedding(shoal.Table(name, width, consistency=consistency, rule="adagrad:0.1", initial=shoal.Initial.normal(0, 0.1, seed)))
            for seed, name in enumerate(["users", "items"]))
        self.both = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, users, items):
        user, item = self.users(users), self.items(items)
        return self.mean + (user * item).sum(1) + self.both(torch.cat([user, item], 1)).squeeze(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ratings", help="user,item,rating: integers, a line each, after a line of names; packed by gzip")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=4096, help="ratings of all members in one step")
    parser.add_argument("--consistency", default="bsp", help="of the tables: how old what is read may be")
    args = parser.parse_args()

    shoal.init()
    torch.manual_seed(1)
    with gzip.open(args.ratings) as file:
        table = numpy.loadtxt(file, delimiter=",", skiprows=1, usecols=(0, 1, 2))
    pairs, ratings = torch.from_numpy(table[:, :2]).long(), torch.from_numpy(table[:, 2]).float()
    held_out = torch.rand(len(ratings)) < 0.1
    train = TensorDataset(pairs[~held_out], ratings[~held_out])
    loader = DataLoader(train, args.batch // shoal.size(), sampler=shoal.DistributedSampler(train), drop_last=True)

    model = Ratings(args.width, ratings[~held_out].mean().item(), args.consistency)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = shoal.data_parallel(model, optimizer)

    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for of, rating in loader:
            optimizer.zero_grad()
            F.mse_loss(model(of[:, 0], of[:, 1]), rating).backward()
            optimizer.step()
        with torch.no_grad():
            predicted = model(pairs[held_out, 0], pairs[held_out, 1])
        if shoal.rank() == 0:
            print(f"epoch {epoch + 1}: held-out RMSE {(predicted - ratings[held_out]).square().mean().sqrt():.4f}", flush=True)


if __name__ == "__main__":
    main()
