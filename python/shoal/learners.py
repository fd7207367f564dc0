"""Learners without PyTorch over NumPy and SciPy's sparse matrices, in the form of scikit-learn's estimators; what `shoal linear`, `factorize`,
`cluster-points`, `dictionary` and `metric` do (docs/learners.md), by the same code.

    from shoal.learners import LinearClassifier
    model = LinearClassifier(solver="sdca", l2=1e-4).fit(X, y)
    model.score(X_test, y_test)
    model.save("rows.model")           # a folder that `shoal linear predict --model rows.model` takes

Alone, a process is the only member. After `shoal run -n 4 --` all members call fit() with the same X and y, of which each learns from its share, and all have the
same model afterwards. Parameters are those of the program's flags. fit(), alone or not, must not run in two threads at once.
"""

import numpy as np

from . import _C, session
from .estimator import InvalidData, Learner, NotFitted, csr, first_values, on_all


class LinearClassifier(Learner):
    """Multiclass logistic regression, by "sgd" or "sdca" (of which `gap` says when it is enough).

    After fit(): classes_; coef_, (columns, classes) or of two classes (columns, 1); intercept_; history_, figures of each epoch.
    """

    _command, _kind = "linear", "classifier"

    def __init__(self, solver: str = "sdca", l2: float = 1e-4, gap: float = 1e-4, step: float = 2.0, schedule: str = "sqrt", batch: int = 100, epochs: int = 50,
                 seed: int = 1, consistency: str = "bsp", sharing: str = "auto"):
        self.solver, self.l2, self.gap, self.step, self.schedule = solver, l2, gap, step, schedule
        self.batch, self.epochs, self.seed, self.consistency, self.sharing = batch, epochs, seed, consistency, sharing

    def fit(self, X, y):
        if self.solver not in ("sgd", "sdca"):
            raise InvalidData(f"solver: {self.solver!r} is none (sgd or sdca)")
        if not isinstance(self.sharing, str):
            raise InvalidData(f"sharing: {self.sharing!r} is none (auto, rows, factors, factors:halton or factors:fitted:2)")
        y = _labels(X, y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InvalidData("y: all rows have one class, there is nothing to tell apart (the number of classes has to be greater than one; got 1 class)")
        arrays = self._learn(self.solver, X, numbers.astype(np.float64))
        self.classes_, self.coef_, self.intercept_ = classes, arrays["weights"], arrays["intercept"]
        return self

    def decision_function(self, X) -> np.ndarray:
        """(samples, classes); of two classes (samples,), above zero for the second."""
        self._rows(X)
        scores = self._product(X, self.coef_) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X) -> np.ndarray:
        scores = self.decision_function(X).astype(np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)

    def predict(self, X) -> np.ndarray:
        likely = self.predict_proba(X)
        return self.classes_[likely.argmax(axis=1)]

    def score(self, X, y) -> float:
        """The share of rows whose class is right."""
        return float((self.predict(X) == np.asarray(y)).mean())

    def _take(self, arrays, config, classes) -> None:
        self.coef_, self.intercept_, self.classes_ = arrays["weights"], arrays["intercept"], np.array(classes)
        try:
            numbers = self.classes_.astype(np.float64)
            self.classes_ = numbers.astype(np.int64) if (numbers == np.round(numbers)).all() else numbers
        except ValueError:
            pass  # they are words

    def save(self, path) -> None:
        names = [_C.label_text(float(label)) if isinstance(label, (int, float, np.number)) else str(label) for label in self.classes_.tolist()]
        self._keep(path, {"weights": self.coef_, "intercept": self.intercept_}, {"classes": names}, classes=len(names))


class KMeans(Learner):
    """Centers of clusters by Lloyd's iteration, from k-means++'s first ones or those of `init`, (clusters, columns); the same bits on any number of members.

    After fit(): cluster_centers_, (clusters, columns); labels_ and inertia_ of the rows that were given; history_.
    """

    _command, _kind = "cluster-points", "clusterer"

    def __init__(self, clusters: int = 10, epochs: int = 100, seed: int = 1, init=None):
        self.clusters, self.epochs, self.seed, self.init = clusters, epochs, seed, init

    def fit(self, X, y=None):
        self.cluster_centers_ = self._learn("k-means", X, first=("centers", self.clusters))["centers"]
        self.labels_, distances = _C.nearest_centers(self.cluster_centers_, self._rows(X))
        self.inertia_ = float(distances.sum())
        return self

    def predict(self, X) -> np.ndarray:
        rows = self._rows(X)
        return _C.nearest_centers(self.cluster_centers_, rows)[0]

    def fit_predict(self, X, y=None) -> np.ndarray:
        return self.fit(X).labels_

    def transform(self, X) -> np.ndarray:
        """(samples, clusters): distances."""
        rows = self._rows(X)
        return np.sqrt(np.column_stack([_C.nearest_centers(center[None], rows)[1] for center in self.cluster_centers_]))

    def fit_transform(self, X, y=None) -> np.ndarray:
        return self.fit(X).transform(X)

    def score(self, X, y=None) -> float:
        """Less the sum of squared distances."""
        rows = self._rows(X)
        return -float(_C.nearest_centers(self.cluster_centers_, rows)[1].sum())

    def _take(self, arrays, config, classes) -> None:
        self.cluster_centers_ = arrays["centers"]

    def save(self, path) -> None:
        self._keep(path, {"centers": getattr(self, "cluster_centers_", None)})


class DictionaryLearning(Learner):
    """Atoms of which few make up a sample: half the squared error plus l1 times the codes' absolute values. init: the first atoms,
    (atoms, columns). After fit(): components_, (atoms, columns); history_."""

    _command = "dictionary"

    def __init__(self, atoms: int = 64, l1: float = 1.0, non_negative: bool = False, batch: int = 500, epochs: int = 10, seed: int = 1,
                 init=None):
        self.atoms, self.l1, self.non_negative, self.batch, self.epochs, self.seed, self.init = atoms, l1, non_negative, batch, epochs, seed, init

    def fit(self, X, y=None):
        arrays = self._learn("dictionary", X, first=("atoms", self.atoms))
        self.components_, self._codes = arrays["atoms"], arrays["codes"]
        return self

    def transform(self, X) -> np.ndarray:
        """(samples, atoms): codes."""
        rows = self._rows(X)
        return _C.sparse_codes(self.components_, self.l1, self.non_negative, rows)[0]

    def fit_transform(self, X, y=None) -> np.ndarray:
        return self.fit(X).transform(X)

    def score(self, X, y=None) -> float:
        """Less the mean of the objective."""
        rows = self._rows(X)
        return -_C.sparse_codes(self.components_, self.l1, self.non_negative, rows)[1]

    def _take(self, arrays, config, classes) -> None:
        self.components_, self._codes = arrays["atoms"], arrays["codes"]

    def save(self, path) -> None:
        self._keep(path, {"atoms": getattr(self, "components_", None), "codes": getattr(self, "_codes", None)})


class MetricLearning(Learner):
    """A linear map under which samples of one class are near each other. After fit(): components_, (dimensions, columns); history_."""

    _command = "metric"

    def __init__(self, dimensions: int = 32, apart: float = 10.0, step: float = 1.0, schedule: str = "sqrt", batch: int = 100, epochs: int = 10, seed: int = 1,
                 consistency: str = "bsp"):
        self.dimensions, self.apart, self.step, self.schedule = dimensions, apart, step, schedule
        self.batch, self.epochs, self.seed, self.consistency = batch, epochs, seed, consistency

    def fit(self, X, y):
        numbers = np.unique(_labels(X, y), return_inverse=True)[1]
        self.components_ = np.ascontiguousarray(self._learn("metric", X, numbers.astype(np.float64))["map"].T)
        return self

    def transform(self, X) -> np.ndarray:
        """(samples, dimensions)."""
        self._rows(X)
        return self._product(X, self.components_.T)

    def fit_transform(self, X, y) -> np.ndarray:
        return self.fit(X, y).transform(X)

    def _take(self, arrays, config, classes) -> None:
        self.components_ = np.ascontiguousarray(arrays["map"].T)

    def save(self, path) -> None:
        self._keep(path, {"map": np.ascontiguousarray(self.components_.T)} if hasattr(self, "components_") else {})


class Factorization(Learner):
    """Ratings as products of two thin matrices. X is a sparse matrix of users by items; what it stores is a rating, also 0. init: the first (users_, items_).

    missing="zero", with non_negative=True: what X does not store is 0 (words of documents, other counts), X may be an array, and coordinate descent over the whole
    matrix minimises half the squared error and l2 / 2 times the squared factors. It takes no steps: step, schedule and batch stay as they are.

    After fit(): users_, (users, factors), and items_; with biases one column more; mean_; history_.
    """

    _command = "factorize"

    def __init__(self, factors: int = 32, step: float = 0.1, schedule: str = "sqrt", l2: float = 0.08, batch: int = 1000, biases: bool = False,
                 non_negative: bool = False, epochs: int = 10, seed: int = 1, consistency: str = "bsp", init=None, missing: str = "unknown"):
        self.factors, self.step, self.schedule, self.l2, self.batch = factors, step, schedule, l2, batch
        self.biases, self.non_negative, self.epochs, self.seed, self.consistency = biases, non_negative, epochs, seed, consistency
        self.init, self.missing = init, missing

    def fit(self, X, y=None):
        users, items, ratings, shape = self._ratings(X)
        if self.missing == "zero":
            usual = Factorization().get_params()
            for name in ("step", "schedule", "batch"):
                if getattr(self, name) != usual[name]:
                    raise InvalidData(f"{name}: a whole matrix is learnt without steps (leave it out, or missing)")
        first = None
        if self.init is not None:
            if len(self.init) != 2:
                raise InvalidData("init: first values of users and of items are two arrays")
            width = self.factors + 1 if self.biases else self.factors
            first = {name: first_values(f"init: {name}", part, (count, width)) for name, part, count in zip(("users", "items"), self.init, shape)}
        self.history_ = []
        session.require_members_for_good("factorize")
        arrays, self.mean_ = _C.fit_ratings(session.current(), self.get_params(), users, items, ratings, *shape, self._epochs(),
                                           self.history_.append, first)
        arrays = on_all(arrays)
        self.users_, self.items_, self.n_features_in_ = arrays["users"], arrays["items"], shape[1]
        return self

    def predict(self, users, items) -> np.ndarray:
        """The ratings of pairs: numbers of users and items, of one shape."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted("Factorization: nothing was learnt yet (call fit() first)")
        users, items = np.asarray(users), np.asarray(items)
        for name, numbers, count in (("users", users, len(self.users_)), ("items", items, len(self.items_))):
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
                raise InvalidData(f"{name}: a number is not from 0 to {count - 1}")
        one, other = self.users_[users], self.items_[items]
        rating = (one[..., :self.factors] * other[..., :self.factors]).sum(axis=-1) + (0 if self.non_negative else self.mean_)
        return rating + one[..., -1] + other[..., -1] if self.biases else rating

    def score(self, X, y=None) -> float:
        """Less the root of the mean squared error on the ratings that X stores, whatever is missing."""
        users, items, ratings, _ = self._ratings(X)
        return -float(np.sqrt(np.mean((self.predict(users, items) - ratings) ** 2)))

    def _take(self, arrays, config, classes) -> None:
        self.users_, self.items_, self.mean_ = arrays["users"], arrays["items"], config["mean"]

    def save(self, path) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted("Factorization: nothing was learnt yet (call fit() first)")
        self._keep(path, {"users": self.users_, "items": self.items_}, mean=self.mean_, users=len(self.users_), items=len(self.items_))

    def _ratings(self, X):
        """users, items, ratings, and the shape of all."""
        if self.missing == "zero":
            offsets, items, ratings, width = csr(X)
            users = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint32), np.diff(offsets).astype(np.int64))
            shape = (len(offsets) - 1, width)
        elif not hasattr(X, "tocoo"):
            raise InvalidData("X: ratings are a sparse matrix of SciPy's, of which each stored number is one")
        else:
            X = X.tocoo()
            users, items, ratings, shape = np.asarray(X.row, np.uint32), np.asarray(X.col, np.uint32), np.asarray(X.data, np.float32), X.shape
        if ratings.size == 0 or not np.isfinite(ratings).all():
            raise InvalidData("X: has no rating, or one that is not finite")
        return users, items, ratings, shape


def _labels(X, y) -> np.ndarray:
    if y is None:
        raise InvalidData("y: requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    rows = X.shape[0] if hasattr(X, "tocsr") else len(np.asarray(X))
    if y.ndim != 1 or len(y) != rows:
        raise InvalidData(f"y: has shape {y.shape} for {rows} rows of X (inconsistent numbers of samples)")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidData("y: Input y contains NaN or infinity")
    if y.dtype.kind == "f" and (y != np.round(y)).any():
        raise InvalidData("Unknown label type: y has numbers that are no classes")
    return y
