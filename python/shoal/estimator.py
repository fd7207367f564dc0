"""What all estimators have in common (learners.py, topics.py): their parameters in scikit-learn's manner, rows out of arrays and sparse matrices, what is learnt on
all members, and first values that are given."""

import inspect
import json
import sys

import numpy as np

from . import _C, session
from .errors import Error

_MOST = 2**32 - 1  # rows and columns


class InvalidData(Error, ValueError):
    """Data or parameters that cannot be learnt from."""

    def __init__(self, line: str):
        super().__init__(line, "invalid_argument", 2)


class NotFitted(Error, ValueError, AttributeError):
    """A model was asked before fit()."""

    def __init__(self, line: str):
        super().__init__(line, "invalid_argument", 2)


def csr(X):
    """offsets, columns, values, width of a matrix: an array, or anything with tocsr()."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        if not X.has_sorted_indices or not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        offsets, columns, values, shape = X.indptr, X.indices, X.data, X.shape
        if np.iscomplexobj(values):
            raise InvalidData("X: Complex data not supported")
        values = np.asarray(values, np.float32)
    else:
        X = np.asarray(X)
        if np.iscomplexobj(X):
            raise InvalidData("X: Complex data not supported")
        if X.ndim != 2:
            raise InvalidData(f"X: Expected 2D array, got {X.ndim}D array instead (Reshape your data with X.reshape(-1, 1) or X.reshape(1, -1))")
        X = X.astype(np.float32)
        shape = X.shape
        rows, columns = np.nonzero(X)
        values = X[rows, columns]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]) if shape[0] else np.zeros(1)
    if shape[0] == 0 or shape[1] == 0:
        raise InvalidData(f"X: Found array with {shape[0]} sample(s) and {shape[1]} feature(s) (shape={shape}) while a minimum of 1 is required.")
    if max(shape) > _MOST:
        raise InvalidData(f"X: {max(shape):,} rows or columns, and {_MOST:,} can be learnt from")
    if not np.isfinite(values).all():
        raise InvalidData("X: holds NaN or infinity, or numbers beyond 32-bit floating point")
    return np.asarray(offsets, np.uint64), np.asarray(columns, np.uint32), values, shape[1]


class Learner:
    """What all have in common: parameters are what __init__ takes, and stay as they were given; what was learnt ends with "_"."""

    _command = ""  # of the program
    _kind = None   # of estimator, in scikit-learn's words

    def get_params(self, deep: bool = True) -> dict:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params):
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InvalidData(f"{type(self).__name__}: Invalid parameter {name!r} (one of {', '.join(known)})")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_tags__(self):
        utils = sys.modules["sklearn.utils"]  # who asks has loaded it
        return utils.Tags(estimator_type=self._kind, target_tags=utils.TargetTags(required=self._kind == "classifier"),
                          transformer_tags=utils.TransformerTags() if hasattr(self, "transform") else None,
                          classifier_tags=utils.ClassifierTags() if self._kind == "classifier" else None,
                          input_tags=utils.InputTags(sparse=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _learn(self, learner: str, X, labels=None, first: tuple[str, int] | None = None):
        """rank 0's tensors, on all members. `first`: the tensor that the parameter `init` is, if it is given, and how many rows it has."""
        offsets, columns, values, width = csr(X)
        start = None
        if first is not None and self.init is not None:
            name, rows_of_it = first
            start = {name: first_values("init", self.init, (rows_of_it, width))}
        rows = _C.Rows(offsets, columns, values, np.zeros(len(offsets) - 1) if labels is None else labels, width)
        self.history_ = []
        session.require_members_for_good(learner)
        arrays = _C.fit_rows(session.current(), learner, self.get_params(), rows, labels is not None, self._epochs(), self.history_.append, start)
        self.n_features_in_ = width
        return on_all(arrays)

    def _epochs(self) -> int:
        if isinstance(self.epochs, bool) or not isinstance(self.epochs, (int, np.integer)) or self.epochs < 1:
            raise InvalidData(f"epochs: {self.epochs!r} is no number from 1 on")
        return int(self.epochs)

    def _rows(self, X):
        """X as rows for a model that was learnt."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__}: nothing was learnt yet (call fit() first)")
        offsets, columns, values, width = csr(X)
        if width != self.n_features_in_:
            raise InvalidData(f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return _C.Rows(offsets, columns, values, np.zeros(len(offsets) - 1), width)

    def _product(self, X, matrix: np.ndarray) -> np.ndarray:
        return np.asarray((X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, np.float32)) @ matrix.astype(np.float64))

    @classmethod
    def load(cls, path):
        """The model in a folder that save() or the program left."""
        config, arrays, classes = _C.kept_model(str(path), cls._command)
        config = json.loads(config)
        model = cls(**{name: config[name] for name in inspect.signature(cls).parameters if name in config})
        model.history_ = []
        model.n_features_in_ = config.get("columns") or config["items"]
        model._take(arrays, config, classes)
        return model

    def _keep(self, path, arrays: dict, names: dict | None = None, **config) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__}: nothing was learnt yet (call fit() first)")
        params = {name: value for name, value in self.get_params().items() if name not in ("epochs", "init")}
        text = json.dumps({"learner": self._command, **params, "columns": self.n_features_in_, **config}, default=lambda value: value.item())
        if session.rank() == 0:
            _C.keep_model(str(path), text, names or {}, arrays, len(self.history_))


def on_all(arrays: dict, root: int = 0) -> dict:
    """What rank `root` has, on all members."""
    here = session.current()
    if here.size == 1:
        return arrays
    forms = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    forms = json.loads(here.broadcast(json.dumps(forms).encode(), root, "what was learnt"))
    return {name: np.frombuffer(session.broadcast_bytes(here, arrays[name].tobytes() if here.rank == root else b"", root, name), form).reshape(shape)
            for name, (form, shape) in forms.items()}


def first_values(name: str, values, shape: tuple[int, ...]) -> np.ndarray:
    """First values as they are learnt from: numbers of this shape."""
    values = np.asarray(values)
    if not all(isinstance(count, (int, np.integer)) for count in shape):
        raise InvalidData(f"{name}: first values of {' by '.join(map(repr, shape))} numbers there cannot be")
    if values.shape != shape or values.dtype.kind not in "fiu" or not (np.abs(values) <= np.finfo(np.float32).max).all():
        raise InvalidData(f"{name}: first values are finite numbers of the shape {shape}, not {values.dtype} of {values.shape}")
    return np.ascontiguousarray(values, np.float32)
