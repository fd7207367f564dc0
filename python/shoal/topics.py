"""Topic models (latent Dirichlet allocation) over matrices of counts and lists of words, in the form of scikit-learn's estimators; what `shoal
topics` does (docs/topics.md), by the same code.

    from shoal.topics import LDA
    model = LDA(k=20).fit([text.split() for text in texts])     # or a sparse matrix of documents by words
    model.top_words(10)
    model.transform(others)                                     # (documents, 20): their topics
    model.save("texts.topics")                                  # a folder that `shoal topics infer texts.topics ...` takes

Alone, a process is the only member. After `shoal run -n 4 --` all members call fit() with the same documents, of which each learns from its share,
and all have the same model afterwards. fit(), alone or not, must not run in two threads at once.
"""

import json
import os

import numpy as np

from . import _C, session
from .estimator import InvalidData, Learner, NotFitted, csr, on_all

_ALPHA_SUM = 5.0  # of alpha=None


class LDA(Learner):
    """Topics by Gibbs sampling: how many tokens of each word have each topic (docs/topics.md).

    k        topics
    alpha    prior of topics in a document: a number for each topic alike, or one for each of them; None: 5 / k
    beta     prior of a word in a topic
    sweeps   times that each token's topic is drawn
    optimize fit alpha and beta to the counts from sweep 100 on
    sampler  as of `shoal topics train`: "auto", "exact", "lightlda", "warplda", "xy" or "gibbs"
    seed     of all that is drawn; the same seed, threads and members give the same model, to the bit
    threads  of this member; None: as many as it has cores
    start    what tokens begin with: "random", any topic; "online", one drawn after those before it, with less memory where there are many topics
    parallel of several members: "rotation", "data", or "auto", which takes what sends less

    X is a matrix of documents by words that counts tokens: SciPy's sparse ones, arrays, data frames; or an iterable of documents that are lists of
    words. After fit(): alpha_, beta_ as they are now; vocabulary_, the words of the columns; history_, the log-likelihood a token of all data and
    topics after every 10th sweep.
    """

    _kind = None

    def __init__(self, k: int = 100, alpha=None, beta: float = 0.01, sweeps: int = 200, optimize: bool = True, sampler: str = "auto", seed: int = 0,
                 threads: int | None = None, start: str = "random", parallel: str = "auto"):
        self.k, self.alpha, self.beta, self.sweeps = k, alpha, beta, sweeps
        self.optimize, self.sampler, self.seed, self.threads = optimize, sampler, seed, threads
        self.start, self.parallel = start, parallel

    def fit(self, X, y=None, words=None):
        """words: what a matrix's columns are called; without it they are called by their numbers, from 0."""
        texts = self._texts(X, words)
        self._learn_from(texts)
        return self

    def partial_fit(self, X, y=None, new_words: bool = False):
        """More documents into the model, or the first ones. What it has counted stays as it is: only the new documents' topics are drawn, `sweeps`
        times, from what the model makes of them on, with all counts and with alpha_ and beta_ as they are; then their counts are the model's, too.
        Words that it does not know are left out, or with new_words come behind its own. doc_topic_ has the new documents behind the others."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        if _are_lists(X):
            texts = _C.Texts.of_lists(X, self._inner(), bool(new_words))
        else:
            texts = self._known(X)
            texts.name(self.vocabulary_)
        if texts.tokens == 0:
            raise InvalidData("X: no document has a word (a minimum of 1 is required)")
        before = self._documents
        self._learn_from(texts, self._inner())
        self._documents = before and tuple(np.concatenate(pair) for pair in zip(before, self._documents))
        return self

    def transform(self, X) -> np.ndarray:
        """(documents, k): theta of each, of 32 bits; a row sums to 1. By fold-in without draws (CVB0): the same each time. Words that the model
        does not know are left out; a document without others has the prior's topics."""
        return self._inner().infer(self._known(X), self._threads())

    def fit_transform(self, X, y=None, words=None) -> np.ndarray:
        texts = self._texts(X, words)
        self._learn_from(texts)
        return self._inner().infer(texts, self._threads())

    def score(self, X, y=None) -> float:
        """Log-probability a token of one half of each document after its other half: the greater the better."""
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X, hidden=None) -> float:
        """How many words a hidden token might be, as the model sees it: half of each document's tokens, by the seed, is foretold after the other
        half, as `shoal topics evaluate` does. hidden: documents that are foretold, row by row, after those of X, where there are two halves
        already."""
        shown, hidden = self._known(X).halves(int(self.seed)) if hidden is None else (self._known(X), self._known(hidden))
        log_probability, tokens, _ = self._inner().foretell(shown, hidden, self._threads())
        if tokens == 0:
            raise InvalidData("X: no token can be foretold (documents need two words that the model knows)")
        return float(np.exp(-log_probability / tokens))

    def top_words(self, n: int = 10) -> list[list[str]]:
        """Of each topic its most frequent words."""
        return self._inner().top_words(n)

    @property
    def components_(self) -> np.ndarray:
        """(k, words): tokens of each word in each topic, and beta; a row over its sum is the topic's distribution over words. Made at each call."""
        counts = self._fitted()["offsets"]
        values = np.full((len(counts) - 1, len(self.alpha_)), self.beta_)
        values[np.repeat(np.arange(len(counts) - 1), np.diff(counts).astype(np.int64)), self._model["topics"]] += self._model["counts"]
        return values.T

    @property
    def doc_topic_(self) -> np.ndarray:
        """(documents, k): topics of those that were learnt from, as the last sweep left them: (C_dk + alpha_k) / (L_d + sum of alpha). Made at each
        call."""
        lengths, topics, counts = self._learnt_from()
        values = np.tile(self.alpha_, (len(lengths), 1))
        values[np.repeat(np.arange(len(lengths)), lengths), topics] += counts
        return values / values.sum(axis=1, keepdims=True)

    def to_pyldavis(self, X=None) -> dict:
        """What pyLDAvis.prepare(**arguments) takes, of at most 200 topics, 3,000 words and 2,000 documents; X: others than were learnt from."""
        return json.loads(self._inner().pyldavis(*self._learnt_from()) if X is None else self._inner().pyldavis_with(self._known(X)))

    def save(self, path) -> None:
        """A folder as `shoal topics train` leaves it; rank 0 writes it."""
        lengths, topics, counts = self._documents or (np.zeros(0, np.uint32),) * 3
        config = {"learner": "topics", "topics": len(self._fitted()["alpha"]), "alpha": _text_of(self.alpha), "beta": float(self.beta),
                  "optimised": bool(self.optimize), "sweeps": int(self.sweeps), "seed": int(self.seed), "threads": self.threads,
                  "sampler": self.sampler, "start": self.start, "parallel": self.parallel,
                  "words": {"stop_words": "none", "keep_case": any(word != word.lower() for word in self.vocabulary_)},
                  "documents": len(lengths), "tokens": int(self._model["counts"].sum()), "vocabulary": self.n_features_in_}
        about = f"{len(lengths):,} documents, {config['tokens']:,} tokens"
        if session.rank() == 0:
            self._inner().keep(str(path), json.dumps(config), lengths, topics, counts, about)

    @classmethod
    def load(cls, path):
        """The model in a folder that save() or the program left; doc_topic_ is of its documents, in the order of doc_topics.tsv, where it has them
        (what --method stream left has none)."""
        config, arrays, words, documents = _C.kept_topics(str(path))
        config = json.loads(config)
        threads = config.get("threads")  # where members had different ones, of each
        model = cls(k=len(arrays["alpha"]), alpha=_alpha_from(config.get("alpha"), len(arrays["alpha"])), beta=config.get("beta", 0.01),
                    sweeps=config.get("sweeps", 200), optimize=config.get("optimised", True), sampler=config.get("sampler", "auto"),
                    seed=config.get("seed", 0), threads=threads if isinstance(threads, int) else None, start=config.get("start", "random"),
                    parallel=config.get("parallel", "auto"))
        model.history_ = []
        model._take(arrays, words, documents)
        return model

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def _texts(self, X, words=None):
        """Documents with a vocabulary of their own."""
        if _are_lists(X):
            if words is not None:
                raise InvalidData("words: documents that are lists of words have them already")
            texts = _C.Texts.of_lists(X, None, True)
        else:
            texts, width = _counted(X)
            words = [str(number) for number in range(width)] if words is None else [str(word) for word in words]
            if len(words) != width:
                raise InvalidData(f"words: {len(words)} for {width} columns of X")
            texts.name(words)
        if texts.tokens == 0:
            raise InvalidData("X: no document has a word (a minimum of 1 is required)")
        return texts

    def _known(self, X):
        """Documents in the model's words."""
        inner = self._inner()
        if _are_lists(X):
            return _C.Texts.of_lists(X, inner, False)
        texts, width = _counted(X)
        if width != self.n_features_in_:
            raise InvalidData(f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return texts

    def _learn_from(self, texts, before=None) -> None:
        alpha = self._checked()
        optimize, beta = bool(self.optimize), float(self.beta)
        if before is not None:
            alpha, beta, optimize = self.alpha_, self.beta_, False
            if len(alpha) != self.k:
                raise InvalidData(f"k: {self.k} for a model of {len(alpha)} topics (fit() begins anew)")
        session.require_members_for_good("topics")
        here = session.current()
        self.history_ = []
        arrays, own = _C.fit_topics(here, texts, alpha, beta, int(self.sweeps), optimize, str(self.sampler), str(self.start), str(self.parallel),
                                    int(self.seed), self._threads(), before, self.history_.append)
        parts = [on_all(own if here.rank == root else {}, root) for root in range(here.size)]
        self._take(on_all(arrays), texts.words, _in_order(parts, len(texts)))

    def _checked(self) -> np.ndarray:
        """alpha of each topic."""
        for name, most in (("k", 2**24), ("sweeps", 10**6)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
                raise InvalidData(f"{name}: {value!r} is no number from 1 to {most}")
        if not isinstance(self.seed, (int, np.integer)) or not 0 <= self.seed < 2**64:
            raise InvalidData(f"seed: {self.seed!r} is no number from 0 on")
        alpha = _numbers(_ALPHA_SUM / self.k if self.alpha is None else self.alpha, "alpha")
        _numbers(self.beta, "beta")
        if alpha.size not in (1, self.k) or np.size(self.beta) != 1:
            raise InvalidData(f"alpha: has {alpha.size} numbers for {self.k} topics (one for all, or one for each topic; beta is one number)")
        return np.broadcast_to(alpha.ravel(), self.k)

    def _threads(self) -> int:
        if self.threads is None:
            said = os.environ.get("OMP_NUM_THREADS", "")  # by launchers: how many cores a member has beside others on its host
            return int(said) if said.isdecimal() and 0 < int(said) < 4096 else len(os.sched_getaffinity(0))
        if isinstance(self.threads, bool) or not isinstance(self.threads, (int, np.integer)) or not 1 <= self.threads <= 4096:
            raise InvalidData(f"threads: {self.threads!r} is no number from 1 to 4096")
        return int(self.threads)

    def _take(self, arrays: dict, words: list, documents) -> None:
        self._model, self._documents, self._made = arrays, documents, None
        self.vocabulary_, self.n_features_in_ = words, len(words)
        self.alpha_, self.beta_ = arrays["alpha"], float(arrays["beta"][0])

    def _fitted(self) -> dict:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__}: nothing was learnt yet (call fit() first)")
        return self._model

    def _inner(self):
        arrays = self._fitted()
        if getattr(self, "_made", None) is None:
            self._made = _C.TopicModel(**{**arrays, "beta": self.beta_}, words=self.vocabulary_)
        return self._made

    def _learnt_from(self):
        self._fitted()
        if self._documents is None:
            raise NotFitted(f"{type(self).__name__}: a model's folder does not have its documents' counts (call transform(X), or name X)")
        return self._documents


def _are_lists(X) -> bool:
    """Whether X is documents as lists of words, rather than a matrix."""
    if isinstance(X, (str, bytes)) or not hasattr(X, "__iter__") and not hasattr(X, "tocsr"):
        raise InvalidData(f"X: a {type(X).__name__} is no documents (a matrix of counts, or a list of lists of words)")
    if hasattr(X, "tocsr"):
        return False
    if hasattr(X, "__array__"):
        return getattr(X, "dtype", None) == object
    if isinstance(X, (list, tuple)):
        first = next((word for document in X if hasattr(document, "__iter__") for word in document), "")
        return not isinstance(first, (int, float, np.number))
    return True


def _counted(X):
    """A matrix of counts as documents, and how many words it has."""
    offsets, columns, values, width = csr(X)
    if values.size and (values.min() < 0 or (values != np.round(values)).any()):
        raise InvalidData("X: holds numbers that count nothing (tokens of a word are whole numbers from 0 on; Negative values in data passed to LDA)")
    if values.size and values.max() > 2**24:
        raise InvalidData(f"X: counts {values.max():,.0f} tokens of a word in a document, and {2**24:,} can be learnt from")
    return _C.Texts.of_counts(offsets, columns, values.astype(np.uint32)), width


def _numbers(values, name: str) -> np.ndarray:
    """Above 0, all of them."""
    try:
        numbers = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise InvalidData(f"{name}: {values!r} is no number above 0") from None
    if numbers.ndim != 1 or not numbers.size or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise InvalidData(f"{name}: {values!r} is no number above 0")
    return numbers


def _in_order(parts: list[dict], count: int):
    """Members' documents as one: of `count` documents how many topics each has; then all these topics, and with how many tokens."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    lengths = np.zeros(count, np.uint32)
    lengths[joined["documents"]] = joined["lengths"]
    order = np.argsort(np.repeat(joined["documents"], joined["lengths"]), kind="stable")
    return lengths, joined["topics"][order], joined["counts"][order]


def _text_of(alpha) -> str:
    """As config.json of `shoal topics train` has it."""
    return f"{_ALPHA_SUM:g} in all" if alpha is None else ",".join(repr(float(value)) for value in np.atleast_1d(alpha))


def _alpha_from(text, k: int):
    if text is None or text == _text_of(None):
        return None
    if text.endswith(" in all"):
        return float(text.removesuffix(" in all")) / k
    values = [float(value) for value in text.split(",")]
    return values if len(values) > 1 else values[0]
