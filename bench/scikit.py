"""K-means, non-negative factors and sparse codes beside scikit-learn, from equal first values: the objective where each ends, and seconds.

    python bench/scikit.py            Fashion-MNIST's test images; needs scikit-learn in this Python
    python bench/scikit.py --quick    a smoke test

Each objective is taken by one piece of code for both, over all samples: of k-means the sum of squared distances, of factors the sum of squared errors, of codes half
the squared error and l1 times the codes' absolute values. Ratios are ours over theirs: below 1 ours is lower.
"""

from __future__ import annotations

import argparse
import gzip
import pathlib
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse
import side_by_side as sbs
import sklearn.cluster
import sklearn.decomposition

from shoal.learners import DictionaryLearning, Factorization, KMeans


def k_means(images: np.ndarray, seed: int, args) -> tuple[Callable, Callable, Callable]:
    first, _ = sklearn.cluster.kmeans_plusplus(images, args.clusters, random_state=seed)
    epochs = 300

    def objective(centers: np.ndarray) -> float:
        squares = (images**2).sum(axis=1)[:, None] - 2 * images @ centers.T + (centers**2).sum(axis=1)
        return float(squares.min(axis=1).sum())

    return (lambda: KMeans(args.clusters, epochs=epochs, init=first).fit(images).cluster_centers_,
            lambda: sklearn.cluster.KMeans(args.clusters, init=first, n_init=1, max_iter=epochs, tol=0).fit(images).cluster_centers_, objective)


def factors(images: np.ndarray, seed: int, args) -> tuple[Callable, Callable, Callable]:
    generator = np.random.default_rng(seed)
    scale = 2 * np.sqrt(images.mean() / args.factors)
    first = [(scale * generator.random(shape)).astype(np.float32) for shape in ((len(images), args.factors), (images.shape[1], args.factors))]
    given = scipy.sparse.csr_matrix(images)

    def ours() -> tuple[np.ndarray, np.ndarray]:
        model = Factorization(args.factors, l2=0, non_negative=True, missing="zero", epochs=args.passes, init=first).fit(given)
        return model.users_, model.items_

    def theirs() -> tuple[np.ndarray, np.ndarray]:
        model = sklearn.decomposition.NMF(args.factors, init="custom", solver="cd", max_iter=args.passes, tol=0)
        weights = model.fit_transform(images, W=first[0].copy(), H=np.ascontiguousarray(first[1].T))
        return weights, model.components_.T

    return ours, theirs, lambda parts: float(((images - parts[0] @ parts[1].T) ** 2).sum())


def codes(images: np.ndarray, seed: int, args) -> tuple[Callable, Callable, Callable]:
    generator = np.random.default_rng(seed)
    first = images[generator.choice(len(images), args.atoms, replace=False)]
    first = (first / np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-9)).astype(np.float32)
    batch, epochs = 500, 5

    def objective(atoms: np.ndarray) -> float:
        found = sklearn.decomposition.sparse_encode(images, atoms, algorithm="lasso_cd", alpha=args.l1, max_iter=2000)
        return float(((images - found @ atoms) ** 2).sum() / 2 + args.l1 * np.abs(found).sum())

    return (lambda: DictionaryLearning(args.atoms, args.l1, batch=batch, epochs=epochs, init=first).fit(images).components_,
            lambda: sklearn.decomposition.MiniBatchDictionaryLearning(args.atoms, alpha=args.l1, batch_size=batch, max_iter=epochs, fit_algorithm="cd", dict_init=first,
                                                                      random_state=seed, tol=0, max_no_improvement=None).fit(images).components_, objective)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz", help="images in IDX, gzip")
    parser.add_argument("--count", type=int, default=2000, help="images")
    parser.add_argument("--rounds", type=int, default=5, help="seeds")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--factors", type=int, default=16)
    parser.add_argument("--passes", type=int, default=200, help="of the factors")
    parser.add_argument("--atoms", type=int, default=64)
    parser.add_argument("--l1", type=float, default=2.0, help="of the codes; pixels are from 0 to 1")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.count, args.rounds, args.passes = 300, 1, 5
    images = np.frombuffer(gzip.open(args.data).read(), np.uint8, offset=16).reshape(-1, 784)[: args.count].astype(np.float32) / 255
    sbs.print_header(f"{len(images)} images, {args.rounds} seeds, one process: objective of ours over scikit-learn's, median (least..most); seconds")
    for task in (k_means, factors, codes):
        ratios, seconds = [], ([], [])
        for seed in range(1, args.rounds + 1):
            *both, objective = task(images, seed, args)
            values = []
            for which, fit in enumerate(both):
                began = time.perf_counter()
                learnt = fit()
                seconds[which].append(time.perf_counter() - began)
                values.append(objective(learnt))
            ratios.append(values[0] / values[1])
        print(f"{task.__name__:>10} {sbs.median(ratios):.4f} ({sbs.spread(ratios)}); {sbs.median(seconds[0]):.2f} s beside {sbs.median(seconds[1]):.2f}", flush=True)


if __name__ == "__main__":
    main()
