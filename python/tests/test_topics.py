"""Topic models from Python: topics are found, the model is the program's, figures are those of the formulas, members have one model; mistakes."""

import json
import pickle
import subprocess
import sys
from math import lgamma
from pathlib import Path

import numpy as np
import pytest
from pool import launch, program
from test_learners import Sparse

import shoal
from shoal.learners import NotFitted
from shoal.topics import LDA

TOPICS, WORDS = 4, 40
WORDS_OF = [["kernel", "driver", "device", "module"], ["font", "glyph", "letter", "serif"]]
ROOT = Path(__file__).parents[2]


def counts(documents: int = 200, seed: int = 1) -> np.ndarray:
    """Documents of 30 tokens, nine of ten from ten words that belong to their number mod 4."""
    random = np.random.default_rng(seed)
    matrix = np.zeros((documents, WORDS), np.int64)
    for d in range(documents):
        own = random.integers(10, size=27) * TOPICS + d % TOPICS
        np.add.at(matrix[d], np.concatenate([own, random.integers(WORDS, size=3)]), 1)
    return matrix


def lists(matrix: np.ndarray) -> list[list[str]]:
    return [[f"w{word}" for word in np.repeat(np.arange(matrix.shape[1]), row)] for row in matrix]


def lda(**parameters) -> LDA:
    return LDA(**{"k": TOPICS, "alpha": 0.1, "sweeps": 30, "seed": 7, "threads": 2, **parameters})


def fitted() -> LDA:
    return lda().fit(counts())


def state(model: LDA) -> dict:
    lengths, topics, tokens = model._documents or (None,) * 3
    return {**model._model, "lengths": lengths, "document topics": topics, "tokens": tokens}


def same(one: LDA, other: LDA) -> bool:
    return all(np.array_equal(values, state(other)[name]) for name, values in state(one).items())


def test_the_topics_that_made_the_data_are_found():
    model = fitted()
    found = {tuple(sorted(int(word) for word in words)) for words in model.top_words(10)}
    assert found == {tuple(range(group, WORDS, TOPICS)) for group in range(TOPICS)}
    shares = model.transform(counts(40, seed=2))
    group_of = [int(words[0]) % TOPICS for words in model.top_words(1)]
    assert [group_of[topic] for topic in shares.argmax(axis=1)] == [d % TOPICS for d in range(40)]
    assert [look["sweep"] for look in model.history_] == [10, 20, 30]
    assert model.history_[0]["log_likelihood"] < model.history_[-1]["log_likelihood"] < 0


def test_each_sampler_finds_them():
    for sampler in ("exact", "lightlda", "warplda", "xy", "gibbs"):
        model = lda(sampler=sampler).fit(counts())
        assert np.array_equal(model.transform(counts()).argmax(axis=1)[:TOPICS], model.transform(counts()).argmax(axis=1)[-TOPICS:])
        assert len(set(model.transform(counts()).argmax(axis=1))) == TOPICS, sampler
    assert same(lda().fit(counts()), lda(sampler="exact").fit(counts())) and not same(fitted(), lda(sampler="gibbs").fit(counts()))


def test_tokens_begin_as_start_says():
    first = [lda(start=start, sweeps=1, optimize=False).fit(counts()).history_[0]["log_likelihood"] for start in ("random", "online")]
    assert first[1] > first[0] + 0.1  # topics drawn after those before are ahead of any topics
    assert same(lda(start="random").fit(counts()), fitted())


def test_counts_are_those_of_the_data():
    matrix = np.vstack([counts(), np.zeros(WORDS, np.int64)])
    model = lda(optimize=False).fit(Sparse(matrix))
    assert np.allclose((model.components_ - model.beta_).sum(axis=0), matrix.sum(axis=0))
    in_documents = model.doc_topic_ * (matrix.sum(axis=1)[:, None] + model.alpha_.sum()) - model.alpha_
    assert np.allclose(in_documents, np.round(in_documents)) and np.allclose(in_documents.sum(axis=1), matrix.sum(axis=1))
    assert np.allclose(in_documents.sum(axis=0), (model.components_ - model.beta_).sum(axis=1))
    assert np.allclose(model.doc_topic_[-1], 1 / TOPICS)


def test_matrices_and_lists_of_words_are_the_same_documents():
    matrix = counts()
    model = fitted()
    assert same(model, lda().fit(Sparse(matrix))) and same(model, lda().fit(matrix.astype(np.float32)))
    from_lists = lda().fit(document for document in lists(matrix))
    order = [from_lists.vocabulary_.index(f"w{word}") for word in range(WORDS)]
    assert np.allclose(from_lists.components_[:, order].sum(axis=0), model.components_.sum(axis=0))
    named = lda().fit(matrix, words=[f"w{word}" for word in range(WORDS)])
    assert np.array_equal(named.transform(matrix), named.transform(lists(matrix)))
    assert np.array_equal(named.transform([["w1", "not there", "w5"]]), named.transform([["w1", "w5"]]))
    assert np.allclose(named.transform([["not there"]]), named.alpha_ / named.alpha_.sum())


def shoal_topics(*words, cwd):
    return subprocess.run([program(), "topics", *words], cwd=cwd, check=True, capture_output=True, text=True).stdout


def test_it_is_the_programs_model(tmp_path):
    documents = lists(counts())
    (tmp_path / "t.txt").write_text("".join(f"{n} {n} {' '.join(words)}\n" for n, words in enumerate(documents)))
    shoal_topics("train", "t.txt", "--format", "yahoo", "-k", "4", "--alpha", "0.1", "--sweeps", "30", "--seed", "7", "--threads", "2",
                 "--test-share", "0", "--keep-every", "0", "--output", "theirs", cwd=tmp_path)
    ours = lda().fit(documents)
    theirs = LDA.load(tmp_path / "theirs")
    assert theirs.vocabulary_ == ours.vocabulary_
    assert all(np.array_equal(theirs._model[name], ours._model[name]) for name in ours._model)
    ours.save(tmp_path / "ours")
    for name in ("model.safetensors", "vocab.txt", "word_topic.txt", "topic-keys.txt"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes(), name
    rows = [[line.split("\t")[3] for line in (tmp_path / at / "doc_topics.tsv").read_text().splitlines()] for at in ("ours", "theirs")]
    assert rows[0] == rows[1]
    told = shoal_topics("infer", "ours", "t.txt", "--format", "yahoo", cwd=tmp_path)
    for line, shares in zip(told.splitlines()[1:], ours.transform(documents), strict=True):
        for pair in line.split("\t")[3].split():
            topic, share = pair.split(":")
            assert np.isclose(shares[int(topic)], float(share), rtol=1e-3), line
    told = shoal_topics("evaluate", "ours", "t.txt", "--format", "yahoo", "--seed", "7", "--json", cwd=tmp_path)
    figures = {line["figure"]: line for line in map(json.loads, told.splitlines())}
    assert np.isclose(figures["completion"]["perplexity"], ours.perplexity(documents))


def test_figures_are_those_of_the_formulas():
    model = fitted()
    shown, hidden = counts(50, seed=3), counts(50, seed=4)
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    probabilities = model.transform(shown).astype(float) @ phi
    perplexity = np.exp(-(hidden * np.log(probabilities)).sum() / hidden.sum())
    assert np.isclose(model.perplexity(shown, hidden), perplexity, rtol=1e-5)
    assert np.isclose(model.score(shown), -np.log(model.perplexity(shown)))
    # The words' and topics' parts of ln p(w, z), and the documents' (Griffiths and Steyvers), of the model before its prior is fitted.
    tokens, in_documents = model.components_ - model.beta_, model.doc_topic_ * (counts().sum(axis=1)[:, None] + model.alpha_.sum()) - model.alpha_
    rise = np.vectorize(lambda count, a: lgamma(count + a) - lgamma(a))
    whole = rise(np.round(tokens), model.beta_).sum() - rise(np.round(tokens.sum(axis=1)), WORDS * model.beta_).sum()
    whole += rise(np.round(in_documents), model.alpha_).sum() - rise(counts().sum(axis=1), model.alpha_.sum()).sum()
    assert np.isclose(model.history_[-1]["log_likelihood"], whole / counts().sum())


def test_a_model_is_kept_and_taken_up(tmp_path):
    for alpha in (None, 0.25, [0.1, 0.2, 0.3, 0.4]):
        model = lda(alpha=alpha).fit(counts())
        model.save(tmp_path / "model")
        again = LDA.load(tmp_path / "model")
        assert again.get_params() == model.get_params()
        assert np.array_equal(again.transform(counts()), model.transform(counts()))
        assert np.array_equal(again.doc_topic_, model.doc_topic_) and again.to_pyldavis() == model.to_pyldavis()
    more = counts(40, seed=8)
    again.partial_fit(more)
    assert np.array_equal(again.doc_topic_[:200], model.doc_topic_) and again.doc_topic_.shape == (240, TOPICS)
    again.save(tmp_path / "again")  # with all of its documents
    assert np.array_equal(LDA.load(tmp_path / "again").doc_topic_, again.doc_topic_)
    (tmp_path / "again" / "doc_counts.safetensors").unlink()  # as --method stream leaves it
    with pytest.raises(NotFitted, match="does not have its documents' counts"):
        LDA.load(tmp_path / "again").doc_topic_
    taken_along = pickle.loads(pickle.dumps(model))
    assert same(taken_along, model) and np.array_equal(taken_along.transform(counts()), model.transform(counts()))


def test_more_documents_come_into_a_model():
    model, more = fitted(), np.vstack([counts(60, seed=5), np.zeros(WORDS, np.int64)])
    before, documents, prior = model.components_, model.doc_topic_, model.alpha_
    assert model.partial_fit(more) is model
    grown = model.components_ - before
    assert (grown >= 0).all() and np.allclose(grown.sum(axis=0), more.sum(axis=0)) and np.array_equal(model.alpha_, prior)
    assert np.array_equal(model.doc_topic_[:200], documents) and model.doc_topic_.shape == (261, TOPICS)
    assert np.array_equal(model.doc_topic_[200:260].argmax(axis=1), model.transform(more[:60]).argmax(axis=1))
    in_documents = model.doc_topic_[200:] * (more.sum(axis=1)[:, None] + prior.sum()) - prior
    assert np.allclose(in_documents.sum(axis=0), grown.sum(axis=1))
    # What is new given what was before: the difference of two joint probabilities.
    rise = np.vectorize(lambda count, a: lgamma(count + a) - lgamma(a))

    def joint(components):
        tokens = np.round(components - model.beta_)
        return rise(tokens, model.beta_).sum() - rise(tokens.sum(axis=1), WORDS * model.beta_).sum()

    whole = joint(model.components_) - joint(before)
    whole += rise(np.round(np.abs(in_documents)), prior).sum() - rise(more.sum(axis=1), prior.sum()).sum()
    assert np.isclose(model.history_[-1]["log_likelihood"], whole / more.sum())
    assert same(lda().partial_fit(counts()), fitted())


def test_new_words_come_in_if_they_are_asked_for():
    model = lda().fit(counts(), words=[f"w{word}" for word in range(WORDS)])
    more = [["w1", "w5", "w9", "w13", "comet"], ["w1", "w17", "comet", "tail"]] * 10
    left_out = pickle.loads(pickle.dumps(model)).partial_fit(more)
    assert len(left_out.vocabulary_) == WORDS and np.isclose((left_out.components_ - model.components_).sum(), 60)
    model.partial_fit(more, new_words=True)
    assert model.vocabulary_[WORDS:] == ["comet", "tail"] and model.components_.shape == (TOPICS, WORDS + 2)
    assert model.components_[:, WORDS].argmax() == model.transform([["w1", "w5", "w9"]]).argmax()
    assert np.allclose((model.components_ - model.beta_).sum(axis=0)[WORDS:], [20, 10])


def test_the_program_updates_models_alike(tmp_path):
    (tmp_path / "more.txt").write_text("".join(f"{n} {n} {' '.join(words)} comet\n" for n, words in enumerate(lists(counts(60, seed=5)))))
    more = [[*words, "comet"] for words in lists(counts(60, seed=5))]
    lda().fit(lists(counts())).save(tmp_path / "old")
    for new_words in (False, True):
        output = f"new-{new_words}"
        shoal_topics("update", "old", "more.txt", "--format", "yahoo", "--sweeps", "30", "--seed", "7", "--threads", "2", "--output", output,
                     *(["--new-words"] if new_words else []), cwd=tmp_path)
        ours, theirs = LDA.load(tmp_path / "old").partial_fit(more, new_words=new_words), LDA.load(tmp_path / output)
        assert ours.vocabulary_ == theirs.vocabulary_ and ("comet" in theirs.vocabulary_) == new_words
        assert all(np.array_equal(theirs._model[name], ours._model[name]) for name in ours._model)
        old, new = ((tmp_path / at / "doc_topics.tsv").read_text().splitlines() for at in ("old", output))
        assert new[:201] == old and len(new) == 261
    again = subprocess.run([program(), "topics", "update", "old", "more.txt", "--output", output], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 2 and "holds a model already" in again.stderr and again.stderr.count("\n") == 1


def test_pyldavis_gets_probabilities():
    model = fitted()
    for arguments, documents in ((model.to_pyldavis(), 200), (model.to_pyldavis(counts(9)), 9)):
        assert np.shape(arguments["topic_term_dists"]) == (TOPICS, WORDS) and np.shape(arguments["doc_topic_dists"]) == (documents, TOPICS)
        for name in ("topic_term_dists", "doc_topic_dists"):
            assert np.allclose(np.sum(arguments[name], axis=1), 1, atol=1e-3) and np.min(arguments[name]) > 0
        assert arguments["doc_lengths"] == [30] * documents and len(arguments["vocab"]) == len(arguments["term_frequency"]) == WORDS


def fit_twice():
    matrix = np.vstack([np.zeros(WORDS, np.int64), counts()])
    return [state(lda(threads=1, **how).fit(matrix)) for how in ({"seed": 1}, {"seed": 2}, {"seed": 1, "parallel": "data"})]


def test_members_have_one_model(pool):
    members = pool(3).run(fit_twice)
    alone = lda(threads=3, seed=1).fit(np.vstack([np.zeros(WORDS, np.int64), counts()]))
    for fits in members:
        for one, other in zip(members[0], fits):
            assert all(np.array_equal(values, other[name]) for name, values in one.items())
        assert fits[0]["lengths"][0] == 0 and fits[0]["tokens"].sum() == counts().sum() == alone._documents[2].sum()
        assert not np.array_equal(fits[0]["topics"], fits[1]["topics"])


def test_the_example_runs_on_members(tmp_path):
    (tmp_path / "t.txt").write_text("".join(" ".join(5 * WORDS_OF[d % 2]) + "\n" for d in range(100)))
    run = launch(2, [sys.executable, str(ROOT / "examples" / "topics.py"), "t.txt", "-k", "2", "--sweeps", "20"], cwd=tmp_path,
                 stdout=subprocess.PIPE, text=True)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 0 and "held-out perplexity" in output
    assert sorted(map(sorted, LDA.load(tmp_path / "t.topics").top_words(4))) == sorted(map(sorted, WORDS_OF))


def test_scikit_learn_takes_it():
    base = pytest.importorskip("sklearn.base")
    pipeline = pytest.importorskip("sklearn.pipeline")
    linear = pytest.importorskip("sklearn.linear_model")
    copy = base.clone(lda(alpha=[1, 2, 3, 4]))
    assert copy.get_params() == lda(alpha=[1, 2, 3, 4]).get_params()
    steps = pipeline.make_pipeline(lda(), linear.LogisticRegression())
    assert steps.fit(counts(), np.arange(200) % TOPICS).score(counts(40, seed=2), np.arange(40) % TOPICS) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lda().transform(counts()), "LDA: nothing was learnt yet"),
        (lambda: lda().components_, "LDA: nothing was learnt yet"),
        (lambda: lda(k=0).fit(counts()), "k: 0 is no number from 1 to"),
        (lambda: lda(sweeps=1.5).fit(counts()), "sweeps: 1.5 is no number from 1 to"),
        (lambda: lda(alpha=[1, 2]).fit(counts()), "alpha: has 2 numbers for 4 topics"),
        (lambda: lda(alpha=-1).fit(counts()), "alpha: -1 is no number above 0"),
        (lambda: lda(alpha="many").fit(counts()), "alpha: 'many' is no number above 0"),
        (lambda: lda(beta=0).fit(counts()), "beta: 0 is no number above 0"),
        (lambda: lda(sampler="best").fit(counts()), 'there is no sampler "best"'),
        (lambda: lda(start="slow").fit(counts()), 'there is no start "slow"'),
        (lambda: lda(parallel="pipes").fit(counts()), "pipes"),
        (lambda: lda(threads=0).fit(counts()), "threads: 0 is no number from 1 to 4096"),
        (lambda: lda(seed=-1).fit(counts()), "seed: -1 is no number from 0 on"),
        (lambda: lda().fit(counts() * 0.5), "X: holds numbers that count nothing"),
        (lambda: lda().fit(-counts()), "X: holds numbers that count nothing"),
        (lambda: lda().fit(counts() * 0), "X: no document has a word"),
        (lambda: lda().fit([[], []]), "X: no document has a word"),
        (lambda: lda().fit("a b c"), "X: a str is no documents"),
        (lambda: lda().fit(3), "X: a int is no documents"),
        (lambda: lda().fit(["a b c"]), "document 1 is no list of words"),
        (lambda: lda().fit([["a"], ["b", 2]]), "document 2 has what is no word"),
        (lambda: lda().fit([["a\nb"]]), "document 1 has a word that is empty or has a line break"),
        (lambda: lda().fit([["\ud800"]]), "document 1 has a word that is no UTF-8"),
        (lambda: lda().fit(counts(), words=["a"]), "words: 1 for 40 columns of X"),
        (lambda: lda().fit(counts(), words=["a"] * WORDS), "words: a word comes twice"),
        (lambda: fitted().transform(counts()[:, :2]), "X has 2 features, but LDA is expecting 40 features"),
        (lambda: fitted().perplexity(counts(3), counts(2)), "3 documents are shown, 2 hidden"),
        (lambda: fitted().perplexity([["1"]]), "X: no token can be foretold"),
        (lambda: fitted().partial_fit(counts()[:, :2]), "X has 2 features, but LDA is expecting 40 features"),
        (lambda: fitted().partial_fit([["not there"]]), "X: no document has a word"),
        (lambda: fitted().set_params(k=5).partial_fit(counts()), "k: 5 for a model of 4 topics"),
        (lambda: LDA.load("/nowhere"), "/nowhere: holds no model"),
        (lambda: lda().set_params(topics=3), "LDA: Invalid parameter 'topics'"),
    ],
)
def test_mistakes_are_one_line(call, words):
    with pytest.raises(shoal.Error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
