"""Learners from Python: the same models as the program's, alone and on members, kept and taken up; what a user may do wrong."""

import subprocess

import numpy as np
import pytest
from pool import program

import shoal
from shoal.learners import DictionaryLearning, Factorization, InvalidData, KMeans, LinearClassifier, MetricLearning, NotFitted


class Sparse:
    """A matrix of compressed sparse rows with what of SciPy's is asked for."""

    has_sorted_indices = has_canonical_format = True

    def __init__(self, dense):
        self.dense, self.shape = dense, dense.shape
        self.row, self.col = (at.astype(np.int32) for at in np.nonzero(dense))
        self.data, self.indices = dense[self.row, self.col], self.col
        self.indptr = np.concatenate([[0], np.cumsum(np.bincount(self.row, minlength=len(dense)))]).astype(np.int32)

    def tocsr(self):
        return self

    tocoo = tocsr

    def __matmul__(self, other):
        return self.dense @ other


def samples():
    """Three classes by their largest column, half of the numbers zero."""
    random = np.random.default_rng(3)
    X = (random.normal(size=(300, 6)) * (random.random((300, 6)) < 0.5)).astype(np.float32)
    return X, X[:, :3].argmax(axis=1)


def ratings():
    random = np.random.default_rng(4)
    return ((random.normal(size=(40, 2)) @ random.normal(size=(2, 30)) + 3) * (random.random((40, 30)) < 0.5)).astype(np.float32)


LEARNERS = [
    LinearClassifier(epochs=20),
    LinearClassifier("sgd", epochs=5),
    KMeans(4),
    DictionaryLearning(3, l1=0.1, epochs=3),
    MetricLearning(2, epochs=3),
    Factorization(4, epochs=3, batch=50),
    Factorization(4, epochs=3, non_negative=True, missing="zero"),
]


def fitted(number):
    learner = type(LEARNERS[number])(**LEARNERS[number].get_params())
    if isinstance(learner, Factorization):
        return learner.fit(Sparse(np.abs(ratings())))
    return learner.fit(*samples())


def arrays(learner) -> dict:
    return {name: value for name, value in vars(learner).items() if isinstance(value, np.ndarray)}


def fit_all():
    return [arrays(fitted(number)) for number in range(len(LEARNERS))]


def test_members_have_one_model_and_k_means_that_of_one_member(pool):
    members = pool(3).run(fit_all)
    for learnt in members[1:]:
        for one, other in zip(members[0], learnt):
            assert one.keys() == other.keys()
            for name in one:
                assert np.array_equal(one[name], other[name]), name
    assert np.array_equal(members[0][2]["cluster_centers_"], fitted(2).cluster_centers_)


def test_they_begin_with_given_values():
    X, _ = samples()
    first = X[:3].copy()
    clusters = KMeans(3, epochs=1, init=first).fit(X)
    nearest = ((X[:, None] - first) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(clusters.cluster_centers_, [X[nearest == j].mean(axis=0) for j in range(3)], rtol=1e-5)
    still = Factorization(2, step=1e-30, epochs=1, init=(np.full((300, 2), 0.5), np.full((6, 2), 0.25))).fit(Sparse(X))
    assert (still.users_ == 0.5).all() and (still.items_ == 0.25).all()
    atoms = DictionaryLearning(3, l1=100.0, epochs=1, init=np.eye(3, 6)).fit(X).components_  # no code is worth its price
    np.testing.assert_array_equal(atoms, np.eye(3, 6))


@pytest.mark.parametrize("number", range(len(LEARNERS)))
def test_a_model_is_kept_and_taken_up(tmp_path, number):
    learner = fitted(number)
    learner.save(tmp_path / "model")
    again = type(learner).load(tmp_path / "model")
    assert {**again.get_params(), "epochs": 0} == {**learner.get_params(), "epochs": 0}
    for name, values in arrays(again).items():
        assert np.array_equal(values, arrays(learner)[name]), name


def test_it_is_the_programs_model(tmp_path):
    X, y = samples()
    lines = [f"{label} " + " ".join(f"{c + 1}:{value!r}" for c, value in enumerate(row.tolist()) if value) + "\n" for label, row in zip(y, X)]
    (tmp_path / "s.svm").write_text("".join(lines))
    for words, learner in (
        (["linear", "train", "s.svm", "--solver", "sdca", "--l2", "1e-4", "--epochs", "20"], LinearClassifier(epochs=20)),
        (["cluster-points", "train", "s.svm", "--clusters", "4"], KMeans(4)),
        (["dictionary", "train", "s.svm", "--atoms", "3", "--l1", "0.1", "--epochs", "3"], DictionaryLearning(3, l1=0.1, epochs=3)),
        (["metric", "train", "s.svm", "--dimensions", "2", "--epochs", "3"], MetricLearning(2, epochs=3)),
    ):
        folder = tmp_path / words[0]
        subprocess.run([program(), *words, "--test-share", "0", "--output", folder], cwd=tmp_path, check=True, capture_output=True)
        learner.fit(Sparse(X), y)
        kept = type(learner).load(folder)
        for name, values in arrays(kept).items():
            assert np.array_equal(values, arrays(learner)[name]), (words[0], name)
    LinearClassifier(epochs=20).fit(X, y).save(tmp_path / "ours")
    told = subprocess.run([program(), "linear", "predict", "s.svm", "--model", "ours"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [int(line.split("\t")[1]) for line in told.stdout.splitlines()] == LinearClassifier(epochs=20).fit(X, y).predict(X).tolist()


def test_a_whole_matrix_is_learnt_as_by_hand():
    """HALS in doubles from the same start: each column of one factor in turn to where the objective is least, then of the other; on an array, too."""
    X, random, l2 = np.abs(ratings()), np.random.default_rng(5), 0.3
    first = [random.random((count, 3)).astype(np.float32) for count in X.shape]
    P, Q = (each.astype(float) for each in first)
    for _ in range(8):
        for one, other, matrix in ((P, Q, X), (Q, P, X.T)):
            squares, products = other.T @ other + l2 * np.eye(3), matrix @ other
            for t in range(3):
                one[:, t] = np.maximum(0, one[:, t] - (one @ squares[t] - products[:, t]) / squares[t, t])
    model = Factorization(3, l2=l2, non_negative=True, missing="zero", epochs=8, init=first).fit(Sparse(X))
    np.testing.assert_allclose(model.users_, P, atol=1e-5)
    np.testing.assert_allclose(model.items_, Q, atol=1e-5)
    assert np.isclose(model.history_[-1]["training RMSE"], np.sqrt(np.mean((X - P @ Q.T) ** 2))) and np.isclose(model.mean_, X.mean())
    assert np.array_equal(Factorization(**model.get_params()).fit(X).users_, model.users_)


def test_a_whole_matrix_is_the_programs(tmp_path):
    """Users and items numbered alike: rows of a MatrixMarket file are those of the array."""
    X = np.abs(ratings())
    rows, columns = np.nonzero(X)
    lines = [f"{row + 1} {column + 1} {X[row, column].item()!r}\n" for row, column in zip(rows, columns)]
    (tmp_path / "r.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n{X.shape[0]} {X.shape[1]} {len(lines)}\n" + "".join(lines))
    words = ["factorize", "train", "r.mtx", "--missing", "zero", "--non-negative", "--factors", "4", "--epochs", "3", "--output", "m"]
    subprocess.run([program(), *words], cwd=tmp_path, check=True, capture_output=True)
    kept, learnt = Factorization.load(tmp_path / "m"), fitted(6)
    assert kept.missing == "zero" and np.array_equal(kept.users_, learnt.users_) and np.array_equal(kept.items_, learnt.items_)


def test_arrays_and_sparse_matrices_are_the_same_rows():
    X, y = samples()
    for learner in LEARNERS[:5]:
        one, other = (type(learner)(**learner.get_params()).fit(form, y) for form in (X, Sparse(X)))
        for name, values in arrays(one).items():
            assert np.array_equal(values, arrays(other)[name]), name


def test_predictions_are_those_of_the_formulas():
    X, y = samples()
    model = LinearClassifier().fit(X, np.array(["x", "y", "z"])[y])
    scores = X.astype(float) @ model.coef_ + model.intercept_
    assert np.allclose(model.predict_proba(X), np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))
    assert model.predict(X).tolist() == np.array(["x", "y", "z"])[scores.argmax(axis=1)].tolist()
    assert model.score(X, np.array(["x", "y", "z"])[y]) > 0.95
    centers = KMeans(4).fit(X)
    distances = np.linalg.norm(X[:, None] - centers.cluster_centers_[None], axis=2)
    assert np.allclose(centers.transform(X), distances, atol=1e-4)
    assert np.array_equal(centers.predict(X), distances.argmin(axis=1))
    assert np.isclose(centers.score(X), -(distances.min(axis=1) ** 2).sum())
    atoms = DictionaryLearning(3, l1=0.1).fit(X)
    codes = atoms.transform(X)
    objective = ((X - codes @ atoms.components_) ** 2).sum(axis=1) / 2 + 0.1 * np.abs(codes).sum(axis=1)
    assert np.isclose(atoms.score(X), -objective.mean(), rtol=1e-4)
    for biases in (False, True):
        factors = Factorization(4, epochs=3, batch=50, biases=biases).fit(Sparse(ratings()))
        users, items = np.nonzero(ratings())
        errors = [factors.predict([u], [i])[0] - ratings()[u, i] for u, i in zip(users, items)]
        assert np.isclose(factors.score(Sparse(ratings())), -np.sqrt(np.mean(np.square(errors))))


def test_parameters_are_got_and_set_as_scikit_learn_does():
    model = KMeans(3)
    assert model.get_params() == {"clusters": 3, "epochs": 100, "seed": 1, "init": None}
    assert model.set_params(clusters=5) is model and model.clusters == 5
    assert repr(model) == "KMeans(clusters=5, epochs=100, seed=1, init=None)"
    with pytest.raises(InvalidData, match="Invalid parameter 'atoms'"):
        model.set_params(atoms=3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: KMeans(3).predict(X), "KMeans: nothing was learnt yet"),
        (lambda X, y: KMeans(3).fit(X).predict(X[:, :2]), "X has 2 features, but KMeans is expecting 6 features"),
        (lambda X, y: KMeans(3).fit(X[0]), "X: Expected 2D array, got 1D array instead"),
        (lambda X, y: KMeans(3).fit(np.where(X == 0, np.nan, X)), "X: holds NaN or infinity"),
        (lambda X, y: KMeans(1000).fit(X), "clusters: 1000 are more than the 300 samples"),
        (lambda X, y: KMeans(3, init=X[:2]).fit(X), r"init: first values are finite numbers of the shape \(3, 6\), not float32 of \(2, 6\)"),
        (lambda X, y: Factorization(4, init=X).fit(Sparse(ratings())), "init: first values of users and of items are two arrays"),
        (lambda X, y: KMeans(3, epochs=0).fit(X), "epochs: 0 is no number from 1 on"),
        (lambda X, y: LinearClassifier(l2=0).fit(X, y), "l2: must be above zero"),
        (lambda X, y: LinearClassifier("newton").fit(X, y), "solver: 'newton' is none"),
        (lambda X, y: LinearClassifier().fit(X, y[:5]), r"y: has shape \(5,\) for 300 rows of X"),
        (lambda X, y: LinearClassifier().fit(X, y * 0), "y: all rows have one class"),
        (lambda X, y: LinearClassifier().fit(X, y + 0.5), "y has numbers that are no classes"),
        (lambda X, y: LinearClassifier("sgd", consistency="never").fit(X, y), 'no consistency is called "never"'),
        (lambda X, y: Factorization().fit(X), "X: ratings are a sparse matrix"),
        (lambda X, y: Factorization(missing="zero").fit(np.abs(X)), "missing: a whole matrix is learnt by non-negative factors alone"),
        (lambda X, y: Factorization(missing="zero", non_negative=True).fit(X), "non-negative: the data has a value below zero"),
        (lambda X, y: Factorization(missing="zero", non_negative=True, step=0.2).fit(np.abs(X)), "step: a whole matrix is learnt without steps"),
        (lambda X, y: Factorization(missing="zero", non_negative=True, consistency="ssp:3").fit(np.abs(X)), "consistency: a whole matrix is learnt under bsp alone"),
        (lambda X, y: Factorization(missing="one").fit(Sparse(ratings())), 'missing: "one" is none'),
        (lambda X, y: Factorization(4, epochs=1).fit(Sparse(ratings())).predict([40], [0]), "users: a number is not from 0 to 39"),
        (lambda X, y: KMeans.load("/nowhere"), "/nowhere: holds no model"),
    ],
)
def test_mistakes_are_one_line(call, words):
    with pytest.raises(shoal.Error, match=words) as caught:
        call(*samples())
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


def test_what_scikit_learn_catches_is_caught():
    with pytest.raises(ValueError):
        KMeans().fit([[np.inf]])
    assert issubclass(NotFitted, (ValueError, AttributeError))
