"""`herdner.CRF` beside sklearn-crfsuite and enumeration, and as an estimator of scikit-learn."""

from __future__ import annotations

import io
import itertools
import pickle
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn_crfsuite", reason="needs the extra train")

import pycrfsuite
from labelled_sequences import generate
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict

from herdner import CRF
from herdner.crf.likelihood import ImpossibleTags
from herdner.inference import UnsupportedRecord
from herdner.inference.backends.exact import Exact


def test_sgd_comes_near_the_optimum() -> None:
    items, tags = generate(2, 200)
    best = CRF(c2=1.0).fit(items, tags).training_log_
    near = CRF("l2sgd", c2=1.0, max_iterations=300).fit(items, tags).training_log_
    assert best is not None
    assert near is not None
    assert min(line["loss"] for line in near) < best[-1]["loss"] * 1.01


def enumerate_chain(crf: CRF, row: list[dict[str, Any]]) -> dict[tuple[str, ...], float]:
    """Return the probability of each labelling of a sequence."""
    weights, (unary,) = crf._fitted_weights(), [crf._fitted_weights().unary(crf._fitted_weights().encode([row]))]
    labellings = list(itertools.product(range(len(weights.labels)), repeat=len(row)))
    scores = np.array([
        sum(unary[t, k] for t, k in enumerate(states))
        + sum(weights.transition[pair] for pair in itertools.pairwise(states))
        for states in labellings
    ])  # fmt: skip
    names = [tuple(weights.labels[k] for k in states) for states in labellings]
    return dict(zip(names, np.exp(scores - logsumexp(scores)), strict=True))


def test_n_best_probabilities_and_samples_agree_with_enumeration() -> None:
    items, tags = generate(6, 100)
    crf = CRF(c2=0.5).fit(items, tags)
    short = [row[:4] for row in generate(7, 30)[0]]
    for row, best in zip(short, crf.predict_n_best(short, 7), strict=True):
        exact = enumerate_chain(crf, row)
        top = sorted(exact.values(), reverse=True)[:7]
        assert [p for _, p in best] == pytest.approx(top, rel=1e-9)
        assert all(exact[tuple(labels)] == pytest.approx(p, rel=1e-9) for labels, p in best)
        assert np.exp(crf.log_probability([row], [best[0][0]])[0]) == pytest.approx(best[0][1], rel=1e-9)
    row = short[0]
    exact = enumerate_chain(crf, row)
    drawn = [tuple(labels) for labels in crf.sample([row], 4000)[0]]
    distance = sum(abs(drawn.count(labels) / 4000 - p) for labels, p in exact.items()) / 2
    assert distance < 0.05


def test_partial_labels_sum_over_the_possible_ones() -> None:
    items, tags = generate(8, 100)
    crf = CRF().fit(items, tags)
    row, exact = items[0][:3], enumerate_chain(crf, items[0][:3])
    partial = [{"A", "B"}, None, "C"][: len(row)]
    expected = sum(
        p
        for labels, p in exact.items()
        if all(label in (options or "ABC") for label, options in zip(labels, partial, strict=True))
    )
    assert np.exp(crf.log_probability([row], [partial])[0]) == pytest.approx(expected, rel=1e-9)
    hidden = [[None if k % 3 == 0 else label for k, label in enumerate(row)] for row in tags]
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        assert CRF(algorithm).fit(items, hidden).score(items, tags) > 0.6


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_fixed_transitions(algorithm: str) -> None:
    items, tags = generate(9, 60)
    forbidden = {("A", "B"): -np.inf, ("C", "C"): 0.5}
    allowed = [k for k, row in enumerate(tags) if ("A", "B") not in itertools.pairwise(row)]
    crf = CRF(algorithm, transitions=forbidden).fit([items[k] for k in allowed], [tags[k] for k in allowed])
    assert all(("A", "B") not in itertools.pairwise(row) for row in crf.predict(items))
    assert crf.transition_features_[("C", "C")] == 0.5
    with pytest.raises(ImpossibleTags):
        CRF(algorithm, transitions=forbidden).fit(items, tags)


def test_fixed_transitions_of_unknown_labels_are_reported() -> None:
    items, tags = generate(9, 20)
    with pytest.warns(UserWarning, match="^`transitions` has labels that `y` lacks, .* no effect: D, E$"):
        CRF(transitions={("A", "E"): -np.inf, ("D", "A"): -np.inf, ("A", "C"): 0.5}).fit(items, tags)


def test_allowed_labels_restrict_predictions() -> None:
    items, tags = generate(9, 60)
    crf = CRF().fit(items, tags)
    allowed = [[{"A", "C"} if t else None for t in range(len(row))] for row in items]
    predicted = crf.predict(items, allowed)
    assert all(label != "B" for row in predicted for label in row[1:])


def test_weights_of_sequences_count_like_repetitions() -> None:
    items, tags = generate(10, 40)
    repeated = CRF(c2=0.3, epsilon=1e-9, delta=1e-12).fit(items + items[:10] * 2, tags + tags[:10] * 2)
    weighted = CRF(c2=0.3, epsilon=1e-9, delta=1e-12).fit(items, tags, sample_weight=[3.0] * 10 + [1.0] * 30)
    assert weighted.state_features_ == pytest.approx(repeated.state_features_, abs=1e-4)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], ["a", 1.0], [None, 1.0]])
def test_weights_of_sequences_must_be_numbers(weights: Any) -> None:
    with pytest.raises(ValueError, match="`sample_weight` must have a finite weight, at least 0, for each of 2 seq"):
        CRF().fit([[{"a": 1}]] * 2, [["A"]] * 2, sample_weight=weights)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 9])
def test_any_number_of_labels(n_labels: int) -> None:
    """With one label, the rows of a sequence are narrower than the vectors of the loops."""
    items = [[{"word": str((s + t) % n_labels)} for t in range(1 + s % 40)] for s in range(80)]
    tags = [[f"L{item['word']}" for item in row] for row in items]
    for algorithm in ("lbfgs", "ap"):
        crf = CRF(algorithm, c2=0.1, max_iterations=20).fit(items, tags)
        assert crf.score(items, tags) == 1.0
        assert len(crf.predict_marginals_single(items[-1])[0]) == n_labels


def test_warm_start_needs_fewer_iterations() -> None:
    items, tags = generate(11, 100)
    crf = CRF(warm_start=True)
    first = len(crf.fit(items, tags).training_log_ or ())
    assert len(crf.fit(items, tags).training_log_ or ()) < first / 2


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_mini_batches_with_new_attributes_and_labels(algorithm: str) -> None:
    items, tags = generate(12, 400)
    crf = CRF(algorithm)
    for _ in range(3):
        for begin in range(0, 400, 40):
            crf.partial_fit(items[begin : begin + 40], tags[begin : begin + 40])
    assert crf.score(*generate(13, 200)) > 0.75
    crf.partial_fit([[{"word": "unseen"}]], [["D"]])
    assert set(crf.classes_ or ()) == {"A", "B", "C", "D"}
    assert crf.score(*generate(13, 200)) > 0.55


def test_one_mini_batch_is_one_epoch() -> None:
    items, tags = generate(12, 50)
    batch = CRF("ap").partial_fit(items, tags)
    epoch = CRF("ap", max_iterations=1).fit(items, tags)
    assert batch.state_features_ == pytest.approx(epoch.state_features_, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_mini_batches_continue_from_the_weights_of_fit(algorithm: str, tmp_path: Path) -> None:
    (items, tags), (test, gold) = generate(12, 400), generate(13, 200)
    trained = CRF("lbfgs", c2=0.1).fit(items, tags)
    trained.to_crfsuite(tmp_path / "model")
    row, labels = [{"word": "unseen", "even": False}], ["D"]
    results = []
    for crf in (trained, CRF.from_crfsuite(tmp_path / "model")):
        before = crf.score(test, gold)
        crf.set_params(algorithm=algorithm, c2=1e-3, calibration_eta=0.01).partial_fit([row], [labels])
        assert crf.score(test, gold) > before - 0.05
        assert crf.classes_[:3] == CRF.from_crfsuite(tmp_path / "model").classes_
        assert list(crf.predict([row])[0]) == labels or algorithm == "l2sgd"
        results.append(crf.state_features_)
    assert results[0] == pytest.approx(results[1], abs=1e-12)


def test_one_step_of_sgd_from_fitted_weights_follows_the_gradient() -> None:
    items, tags = generate(12, 50)
    crf = CRF(c2=0.5).fit(items, tags)
    row, gold, rate = items[0], tags[0], 0.01
    before, marginals = crf.state_features_, crf.predict_marginals_single(row)
    crf.set_params(algorithm="l2sgd", c2=0.0, calibration_eta=rate).partial_fit([row], [gold])
    expected = dict(before)
    for attributes, right, probabilities in zip(pycrfsuite.ItemSequence(row).items(), gold, marginals, strict=True):
        for name, value in attributes.items():
            for label, probability in probabilities.items():
                if (name, label) in before:
                    expected[name, label] += rate * value * ((label == right) - probability)
    after = crf.state_features_
    assert {key: after[key] for key in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_ctrl_c_keeps_the_weights_of_the_last_iteration(algorithm: str, c1: float) -> None:
    items, tags = generate(12, 60)

    class Interrupted(CRF):
        """Estimator that gets Ctrl-C after its third iteration."""

        n_scores = 0

        def score(self, *arguments: Any) -> float:
            self.n_scores += 1
            if self.n_scores == 3:
                signal.raise_signal(signal.SIGINT)
            return 0.0

    crf = Interrupted(algorithm, c1=c1)
    with pytest.raises(KeyboardInterrupt, match="the weights of the last complete iteration are kept"):
        crf.fit(items, tags, items, tags)
    expected = CRF(algorithm, c1=c1, max_iterations=3).fit(items, tags)
    assert crf.state_features_ == expected.state_features_
    assert crf.transition_features_ == expected.transition_features_
    assert len(crf.training_log_ or ()) == 2
    assert len(crf.predict(items)) == 60


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
def test_a_progress_bar_shows_iterations_and_losses(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items, tags = generate(12, 20)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    crf = CRF(algorithm, max_iterations=4, progress=True).fit(items, tags)
    shown, last = stream.getvalue(), (crf.training_log_ or [])[-1]
    assert "training" in shown
    assert f"iteration {last['iteration']} " in shown
    assert f"loss {last['loss']:.1f}" in shown
    stream.truncate(0)
    CRF(algorithm, max_iterations=4).fit(items, tags)
    assert not stream.getvalue()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    items, tags = generate(14, 60)
    one, two = (CRF(n_threads=n).fit(items, tags) for n in (1, 2))
    assert one.state_features_ == two.state_features_


@pytest.mark.slow
def test_conventions_of_scikit_learn() -> None:
    items, tags = generate(15, 60)
    crf = CRF(c2=0.1, transitions={("A", "A"): 1.0})
    assert clone(crf).get_params() == crf.get_params()
    search = GridSearchCV(CRF(), {"c2": [0.1, 1.0]}, cv=3).fit(items, tags)
    assert search.best_params_["c2"] in (0.1, 1.0)
    assert len(cross_val_predict(CRF(), items, tags, cv=3)) == 60
    fitted = crf.fit(items, tags)
    assert list(map(list, pickle.loads(pickle.dumps(fitted)).predict(items))) == list(map(list, fitted.predict(items)))
    with pytest.raises(NotFittedError, match="call `fit`"):
        CRF().predict(items)


def test_predictions_are_lists_whatever_the_lengths_of_the_sequences() -> None:
    items, tags = generate(15, 60)
    crf = CRF(c2=0.1).fit(items, tags)
    equal = [row[:3] for row in items if len(row) > 2]
    for X in (items, equal, equal[:1], []):
        labels, marginals = crf.predict(X), crf.predict_marginals(X)
        assert labels.shape == marginals.shape == (len(X),)
        assert labels.tolist() == [crf.predict_single(row) for row in X]
        assert all(isinstance(row, list) for row in (*labels, *marginals))
    predicted = crf.predict(equal)
    assert (predicted == predicted.tolist()).all()
    assert (predicted == predicted.tolist()).shape == (len(equal), 3)
    assert not (predicted != np.array(predicted.tolist())).any()
    assert (crf.predict(items) == crf.predict(items)).shape == (60,)
    assert len(cross_val_predict(CRF(max_iterations=3), items[:8], tags[:8], cv=LeaveOneOut())) == 8


def test_features_of_token_lists_and_plain_strings() -> None:
    tokens = [["Ada", "met", "Bob"], ["Bob", "left"]]
    tags = [["N", "V", "N"], ["N", "V"]]
    crf = CRF(features=lambda words: [{"word": word, "first": word[0]} for word in words]).fit(tokens, tags)
    assert crf.predict([["Bob", "met", "Ada"]]).tolist() == [["N", "V", "N"]]
    assert CRF().fit(tokens, tags).score(tokens, tags) == 1.0


def test_sequences_may_be_generators() -> None:
    items, tags = generate(3, 20)
    crf = CRF(max_iterations=5).fit(((item for item in row) for row in items), (iter(row) for row in tags))
    expected = [list(row) for row in crf.predict(items)]
    assert [list(row) for row in crf.predict((item for item in row) for row in items)] == expected
    crf.set_params(features=lambda row: (dict(item) for item in row))
    assert [list(row) for row in crf.predict(items)] == expected


def test_scores_need_a_label_for_each_item() -> None:
    items, tags = generate(3, 20)
    crf = CRF(max_iterations=5).fit(items, tags)
    with pytest.raises(ValueError, match="`X` and `y` must have equal lengths, got 20 and 19"):
        crf.score(items, tags[1:])
    with pytest.raises(ValueError, match="sequence 0 must have a label for each item, got 8 items and 9 labels"):
        crf.score([items[0][:1] * 8], [["A"] * 9])


def test_tables_of_weights() -> None:
    table = CRF().fit(*generate(16, 50)).explain_weights(3)
    assert sum(kind == "state" and label == "A" for kind, label, _, _ in table.rows) == 3
    assert "->" in str(table)
    assert table._repr_html_().startswith("<table>")


@pytest.mark.parametrize(
    ("items", "tags", "message"),
    [
        ([[{"a": 1}]], [["A", "B"]], "sequence 0 must have a label for each item, got 1 item and 2 labels"),
        ([[{"a": 1}]], [], "must have equal lengths, got 1 and 0"),
        ([[{"a": float("nan")}]], [["A"]], "attribute 'a' must have a finite number, got nan"),
        ([[{"a": object}]], [["A"]], "attribute 'a' must have a text or a number"),
        ([[{3: 1}]], [["A"]], "a name of an attribute must be a string, got 3"),
        (["abc"], [["A"]], "a sequence must be a list of items, got 'abc'"),
        ([[{"a": 1}]], ["A"], "must be a list of lists of labels"),
        (None, [["A"]], "`X` must be a list of sequences, got None"),
        ([[{"a": 1}]], None, "`y` must be a list of lists of labels, got None"),
        ([None], [["A"]], "sequence 0 must be a list of items, got None"),
        ([[{"a": 1}]], [None], "sequence 0 of `y` must be a list of labels, got None"),
        ([[{"a": 10**400}]], [["A"]], "attribute 'a' must have a number below 1e308, got 1000"),
        ([[{"a": b"\xff"}]], [["A"]], r"a value must be text in UTF-8, got b'\\xff'"),
        ([[{"a": 1}]], [[3]], r"a string, a set of strings or None, got 3; replace numbers by names, as in names\[3\]"),
        ([[{"a": 1}]], [[set()]], "a set of labels must not be empty"),
        ([], [], "must have at least one item"),
        ([[{"a": 1}] * 300], [[f"L{k}" for k in range(300)]], "there must be 1 to 256 labels, got 300"),
    ],
)
def test_bad_sequences(items: Any, tags: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        CRF().fit(items, tags)


def test_data_frames_are_refused_with_advice() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"a": ["x", "y"]})
    with pytest.raises(TypeError, match="a list of sequences, got a data frame; pass the rows of each"):
        CRF().fit(frame, [["A", "B"]])
    with pytest.raises(TypeError, match="sequence 0 must be a list of items, got a data frame; pass"):
        CRF().fit([frame], [["A", "B"]])
    crf = CRF(max_iterations=2, features=lambda frame: frame.to_dict("records")).fit([frame], [["A", "B"]])
    assert crf.attributes_ == ["a:x", "a:y"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "svm"}, "`algorithm` must be one of lbfgs, l2sgd, ap, pa, arow, got 'svm'"),
        ({"c1": -1.0}, "`c1` must be a finite number of at least 0"),
        ({"linesearch": "Backtracking"}, "`linesearch` must be 'MoreThuente' or None"),
        ({"trainer_cls": object}, "are not supported"),
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1"),
        ({"transitions": {("A", "B"): np.nan}}, "`transitions` must be a finite number"),
        ({"transitions": {"AB": -np.inf}}, "the keys of `transitions` must be pairs of labels, got 'AB'"),
        ({"transitions": [("A", "B")]}, "`transitions` must be a dictionary or None, got "),
        ({"links": 3}, "`links` must be the name of a rule, a rule, a function or None, got 3"),
        ({"model_filename": 3}, "`model_filename` must be a path or None, got 3"),
        ({"features": 3}, "`features` must be a function or None, got 3"),
        ({"averaging": "no"}, "`averaging` must be True, False or None, got 'no'"),
        ({"random_state": "a"}, "seed must be a whole number"),
    ],
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CRF(**options).fit(*generate(0, 3))


def test_nested_too_deeply() -> None:
    value: Any = 1.0
    for _ in range(100):
        value = {"a": value}
    with pytest.raises(ValueError, match="nested at most 64 levels"):
        CRF().fit([[value]], [["A"]])


def linked_sequences(seed: int, n: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return token lists in which each name has one hidden label, which only some of its mentions show."""
    rng = random.Random(seed)
    tokens: list[list[str]] = []
    tags: list[list[str]] = []
    for _ in range(n):
        names = {f"Name{rng.randrange(10**6)}": rng.choice("PO") for _ in range(3)}
        words, labels = [], []
        for _ in range(5):
            name, label = rng.choice(sorted(names.items()))
            clue = rng.choice(["clear" + label, "unclear", "unclear"])
            words += [clue, name, "."]
            labels += ["-", label, "-"]
        tokens.append(words)
        tags.append(labels)
    return tokens, tags


def clues(words: list[str]) -> list[dict[str, Any]]:
    return [
        {"before": words[t - 1] if t else "", "is name": word.startswith("Name")}
        | ({} if t % 3 == 1 else {"word": word})
        for t, word in enumerate(words)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("links", ["same-word", lambda words: same_names(words)])
def test_links_carry_labels_between_mentions(links: Any) -> None:
    (tokens, tags), (test, gold) = linked_sequences(0, 60), linked_sequences(1, 60)
    chain = CRF(features=clues, c2=0.1).fit(tokens, tags).score(test, gold)
    crf = CRF(features=clues, c2=0.1, links=links).fit(tokens, tags)
    assert crf.score(test, gold) > chain + 0.03
    marginals = crf.predict_marginals_single(test[0])
    best = [max(row, key=row.get) for row in marginals]  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert sum(a == b for a, b in zip(best, crf.predict_single(test[0]), strict=True)) >= len(best) - 1
    with pytest.raises(ValueError, match="cannot have links"):
        crf.to_crfsuite("never.crfsuite")
    with pytest.raises(ValueError, match="`tagger_` cannot use links; call `predict_single`"):
        _ = crf.tagger_


def linked_probabilities(crf: CRF, words: list[str]) -> dict[tuple[str, ...], float]:
    """Return the probability of each labelling of a linked sequence by enumeration."""
    weights, table = crf._fitted_weights(), crf._link_table
    unary = weights.unary(weights.encode([clues(words)]))
    states = list(itertools.product(range(len(weights.labels)), repeat=len(words)))
    scores = np.array([
        sum(unary[t, k] for t, k in enumerate(row))
        + sum(weights.transition[pair] for pair in itertools.pairwise(row))
        + sum(table[row[a], row[b]] for a, b in same_names(words))
        for row in states
    ])  # fmt: skip
    names = [tuple(weights.labels[k] for k in row) for row in states]
    return dict(zip(names, np.exp(scores - logsumexp(scores)), strict=True))


def test_n_best_probabilities_and_samples_include_links() -> None:
    crf = CRF(features=clues, c2=0.1, links=lambda words: same_names(words)).fit(*linked_sequences(0, 40))
    words = ["clearP", "Name1", ".", "unclear", "Name1", ".", "unclear", "Name1"]
    exact = linked_probabilities(crf, words)
    top = sorted(exact.values(), reverse=True)[:6]
    assert [p for _, p in crf.predict_n_best([words], 6)[0]] == pytest.approx(top, rel=1e-9)
    for labels, probability in crf.predict_n_best([words, []], 3)[0]:
        assert exact[tuple(labels)] == pytest.approx(probability, rel=1e-9)
        assert np.exp(crf.log_probability([words], [labels])[0]) == pytest.approx(probability, rel=1e-9)
    partial = ["-", "P", "-", "-", {"P", "O"}, "-", "-", None]
    expected = sum(p for labels, p in exact.items() if labels[:4] == ("-", "P", "-", "-") and labels[4] in "PO"
                   and labels[5:7] == ("-", "-"))  # fmt: skip
    assert np.exp(crf.log_probability([words], [partial])[0]) == pytest.approx(expected, rel=1e-9)
    drawn = [tuple(labels) for labels in crf.sample([words], 4000)[0]]
    assert abs(drawn.count(max(exact, key=exact.__getitem__)) / 4000 - max(exact.values())) < 0.05
    crf.set_params(links=None)  # the chain alone
    assert np.exp(crf.log_probability([words], [labels])[0]) != pytest.approx(probability, rel=1e-3)
    assert crf.tagger_ is not None


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["exact", "sum-product", "viterbi", "max-product", Exact(), "gibbs"])
def test_backends_decode_chains(backend: Any) -> None:
    (items, tags), (test, _) = generate(4, 200), generate(5, 30)
    crf = CRF(c2=0.01).fit(items, tags)
    labels, marginals = crf.predict(test), crf.predict_marginals(test)
    crf.set_params(backend=backend)
    if backend != "gibbs":
        assert list(map(list, crf.predict([*test, []]))) == [*map(list, labels), []]
    if backend == "max-product":
        with pytest.raises(UnsupportedRecord, match="max-product cannot record marginals"):
            crf.predict_marginals(test)
        return
    for ours, exact in zip(crf.predict_marginals(test), marginals, strict=True):
        for a, b in zip(ours, exact, strict=True):
            assert a == pytest.approx(b, abs=0.15 if backend == "gibbs" else 1e-9)


def test_encoded_sequences_have_the_same_predictions() -> None:
    (items, tags), (test, _) = generate(4, 100), generate(5, 40)
    crf = CRF(c2=0.01).fit(items, tags)
    encoded = crf.encode(test)
    assert list(map(list, crf.predict(encoded))) == list(map(list, crf.predict(test)))
    assert list(crf.predict_marginals(encoded)) == list(crf.predict_marginals(test))
    weights, borders = crf._fitted_weights(), encoded.offsets
    for row, begin, end in zip(test, borders[:-1], borders[1:], strict=True):
        assert (weights.score(row) == weights.unary(encoded)[begin:end]).all()
    with pytest.raises(ValueError, match="if `allowed` is set, `X` must be the sequences of items"):
        crf.predict(encoded, [None] * 40)
    with pytest.raises(ValueError, match="if `backend` or `links` is set, `X` must be the sequences"):
        clone(crf).set_params(backend="exact").fit(items, tags).predict(encoded)
    with pytest.raises(ValueError, match="the sequences were encoded for other weights; call `encode` again"):
        crf.fit(items, tags).predict(encoded)


def test_unknown_backends_are_refused() -> None:
    crf = CRF(max_iterations=2).fit(*generate(4, 20)).set_params(backend="exakt")
    for call in (lambda: crf.predict([[{"word": "w1"}]]), lambda: crf.fit(*generate(4, 20))):
        with pytest.raises(ValueError, match="there is no backend 'exakt'; did you mean 'exact'"):
            call()


def same_names(words: list[str]) -> list[tuple[int, int]]:
    """Return pairs of neighbouring mentions of a name."""
    places = [t for t, word in enumerate(words) if word.startswith("Name")]
    return [
        (a, b)
        for k, b in enumerate(places)
        for a in [next((p for p in reversed(places[:k]) if words[p] == words[b]), None)]
        if a is not None
    ]


def test_rules_need_strings() -> None:
    items, tags = generate(0, 10)
    with pytest.raises(TypeError, match="needs sequences of strings"):
        CRF(links="same-word").fit(items, tags)
    with pytest.raises(ValueError, match="at least 2 sequences"):
        CRF(links=lambda _: []).fit(items[:1], tags[:1])
