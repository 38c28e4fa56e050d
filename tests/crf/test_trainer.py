"""The trainer beside the enumerated joint, finite differences, and CRFsuite."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cpu import cpu_seconds
from data import news

from herdner._ext.bundles import bundle
from herdner._ext.likelihood import number_keys
from herdner.crf.chain_data import ChainData
from herdner.crf.crfsuite_files import chain_weights, crfsuite_sequences, read_crfsuite
from herdner.crf.likelihood import Borders, ChainLikelihood, ImpossibleTags
from herdner.crf.trainer import StoppingRule, train_chain
from herdner.crf.weights import ChainWeights
from herdner.inference.linear_chain import forward_backward
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.training.allowed_tags import allowed_tags
from herdner.text.tags import allowed_transitions, convert_tags

LABELS = ("O", "B", "I")
OFFSETS = (np.array([0, 3, 4]), np.array([0, 2]))
LONG = StoppingRule(3000, 0.0, 10)


def tiny(open_: bool = False, seed: int = 0, base: ChainWeights | None = None) -> ChainData:
    """Two documents of three sentences over nine features, some of which always occur together; ``open_``: tokens may
    have several tags.
    """
    rng = np.random.default_rng(seed)
    features, allowed = [], []
    for offsets in OFFSETS:
        chosen = [np.flatnonzero(rng.random(6) < 0.5) for _ in range(offsets[-1])]
        lists = [np.concatenate([own, own[own < 2] + 6, own[own == 0]]) for own in chosen]  # 6 and 7 go with 0 and 1
        starts = np.append(0, np.cumsum([len(own) for own in lists]))
        features.append((starts.astype(np.int64), (np.concatenate(lists) + 1).astype(np.uint64)))
        may = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, offsets[-1])]
        allowed.append(may | (rng.random(may.shape) < 0.4).astype(np.uint8) if open_ else may)
    return ChainData.of(features, OFFSETS, allowed, LABELS, min_freq=1, base=base)


def enumerated(data: ChainData, vector: np.ndarray, borders: Borders, weights: np.ndarray) -> float:
    """Minus the weighted log-probability that tokens have tags they may have, over all taggings of each sentence."""
    found = data.weights_of(vector)
    scores = np.zeros((data.n_tokens, 3))
    keyed = {int(key): row for key, row in zip(found.keys, range(len(found.keys)), strict=True)}
    keys = {int(key): int(column) for key, column in zip(data.keys, data.columns, strict=True)}
    for t in range(data.n_tokens):
        dense = data.uses[data.starts[t] : data.middles[t]].tolist()
        others = data.uses[data.middles[t] : data.starts[t + 1]].tolist()
        owners = {len(data.dense) + int(np.searchsorted(data.entry_starts, e, "right")) - 1: 0 for e in others}
        for e in others:
            owners[len(data.dense) + int(np.searchsorted(data.entry_starts, e, "right")) - 1] += 1
        times = {c: n // np.diff(data.entry_starts)[c - len(data.dense)] for c, n in owners.items()}
        for c in dense:
            times[c] = times.get(c, 0) + 1
        for key, column in keys.items():
            row = keyed[key]
            for e in range(found.starts[row], found.starts[row + 1]):
                scores[t, found.entry_tags[e]] += times.get(column, 0) * found.entry_weights[e]
    total = 0.0
    for s, (begin, end) in enumerate(itertools.pairwise(data.sentence_offsets.tolist())):
        all_, right = [], []
        for x in itertools.product(range(3), repeat=end - begin):
            value = sum(scores[begin + t, k] for t, k in enumerate(x)) + borders.start[x[0]] + borders.end[x[-1]]
            value += sum(found.transition[a, b] + borders.transition[a, b] for a, b in itertools.pairwise(x))
            all_.append(value)
            if all(data.allowed[begin + t, k] for t, k in enumerate(x)):
                right.append(value)
        total += weights[data.documents[s]] * (np.logaddexp.reduce(all_) - np.logaddexp.reduce(right))
    return total


BORDERS = {
    "free": Borders.free(3),
    "forbidden": Borders(np.array([[0, 0, -np.inf], [0, 0, 0], [0, 0, 0.0]]), np.zeros(3), np.array([0, 0.5, 0])),
}


@pytest.mark.parametrize(("open_", "borders"), [(False, "free"), (True, "free"), (True, "forbidden")])
def test_the_likelihood_is_that_of_the_enumerated_joint(open_, borders):
    data, weights = tiny(open_), np.array([1.0, 0.3])
    likelihood = ChainLikelihood(data, 0.0, document_weights=weights, borders=BORDERS[borders])
    vector = np.random.default_rng(1).normal(size=likelihood.n_weights)
    value, _ = likelihood(vector)
    assert value == pytest.approx(enumerated(data, vector, BORDERS[borders], weights), rel=1e-12)


@pytest.mark.parametrize("open_", [False, True])
def test_the_slope_is_that_of_finite_differences(open_):
    data = tiny(open_)
    n = ChainLikelihood(data).n_weights
    likelihood = ChainLikelihood(data, np.linspace(0.2, 0.9, n), origin=np.full(n, 0.1))
    vector = np.random.default_rng(2).normal(size=likelihood.n_weights)
    _, slope = likelihood(vector)
    for i, found in enumerate(slope):
        step = np.zeros(len(vector))
        step[i] = 1e-5
        assert found == pytest.approx((likelihood(vector + step)[0] - likelihood(vector - step)[0]) / 2e-5, abs=1e-7)


def repeated_words(real: bool) -> ChainData:
    """60 sentences in which the three features of a word occur together, beside rare features and partial labels."""
    rng = np.random.default_rng(8)
    words = rng.choice(20, 400, p=np.arange(1, 21) / 210)
    lists = [[3 * w, 3 * w + 1, 3 * (w // 2) + 2, 100 + rng.integers(200)] for w in words]
    starts = 4 * np.arange(401)
    keys = np.array(lists).ravel().astype(np.uint64) + np.uint64(1)
    allowed = np.eye(3, dtype=np.uint8)[(words + rng.integers(0, 2, 400)) % 3]
    allowed[rng.random(400) < 0.1] = [1, 1, 0]
    offsets = np.append(0, np.sort(rng.choice(np.arange(1, 400), 59, replace=False)))
    values = [np.where(rng.random(1600) < 0.7, 1.0, rng.normal(size=1600))] if real else None
    return ChainData.of([(starts, keys)], [np.append(offsets, 400)], [allowed], LABELS, min_freq=1, values=values)


@pytest.mark.parametrize("real", [False, True])
def test_the_likelihood_of_bundles_is_that_of_their_features(real):
    data = repeated_words(real)
    likelihood = ChainLikelihood(data, 0.0)
    vector = np.random.default_rng(9).normal(size=likelihood.n_weights)
    table = np.zeros((len(data.dense), 3))
    table[data.dense] = vector[: int(data.dense.sum())]
    entries = vector[int(data.dense.sum()) : data.n_features]
    scores = np.zeros((data.n_tokens, 3))
    for t in range(data.n_tokens):
        scores[t] = table[data.uses[data.starts[t] : data.middles[t]]].sum(axis=0)
        for i in range(data.middles[t], data.starts[t + 1]):
            value = 1.0 if data.values is None else data.values[i]
            scores[t, data.entry_tags[data.uses[i]]] += value * entries[data.uses[i]]
    transition = np.zeros((3, 3))
    transition[data.transitions] = vector[data.n_features :]
    chains = forward_backward(scores, transition, data.sentence_offsets)
    restricted = np.where(data.allowed, scores, -np.inf)
    expected = chains.log_z.sum() - forward_backward(restricted, transition, data.sentence_offsets).log_z.sum()
    value, slope = likelihood(vector)
    assert value == pytest.approx(expected, rel=1e-12)
    for i in np.random.default_rng(10).choice(len(vector), 40, replace=False):
        step = np.zeros(len(vector))
        step[i] = 1e-5
        assert slope[i] == pytest.approx((likelihood(vector + step)[0] - likelihood(vector - step)[0]) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("real", [False, True])
def test_bundles_are_features_that_several_tokens_share(real):
    rng = np.random.default_rng(11)
    words = rng.integers(0, 8, 100)
    uses = np.stack([words, 8 + words, 16 + words // 2, 20 + np.arange(100)], axis=1).astype(np.int32).ravel()
    starts, values = 4 * np.arange(101), np.ones(400)
    values[2::40] = 0.5
    tokens, bundles, numbers = bundle(uses, starts, values if real else None, 8, 120)
    columns, column_starts, entries, entry_starts = tokens
    for t in range(100):
        found = []
        for row in columns[column_starts[t] : column_starts[t + 1]]:
            found += bundles[0][bundles[1][row] : bundles[1][row + 1]].tolist()
            found += (bundles[2][bundles[3][row] : bundles[3][row + 1]] + 8).tolist()
        found += (entries[entry_starts[t] : entry_starts[t + 1]] + 8).tolist()
        assert sorted(found) == sorted(uses[4 * t : 4 * t + 4].tolist())
    assert len(bundles[1]) - 1 < 30
    assert len(columns) < 250
    if real:
        assert np.count_nonzero(numbers == 0.5) == 10
    else:
        assert numbers is None


def test_features_at_the_same_tokens_are_one_column_with_the_penalty_of_both():
    data = tiny()
    assert len(data.sizes) < len(data.keys)
    likelihood = ChainLikelihood(data, 0.5)
    vector = np.random.default_rng(3).normal(size=likelihood.n_weights)
    weights = data.weights_of(vector)
    squares = (weights.entry_weights**2).sum() + (weights.transition**2).sum()
    assert likelihood(vector)[0] - ChainLikelihood(data)(vector)[0] == pytest.approx(0.5 * squares, rel=1e-12)
    assert data.vector_of(weights) == pytest.approx(vector, abs=1e-14)


def test_the_number_of_threads_changes_no_bit():
    data = news_data()
    vector = np.random.default_rng(4).normal(size=ChainLikelihood(data).n_weights) / 4
    values = [ChainLikelihood(data, 0.3, n_threads=n)(vector) for n in (1, 2, 4)]
    assert all(value == values[0][0] and (slope == values[0][1]).all() for value, slope in values)


def test_the_optimum_does_not_depend_on_the_start():
    data = tiny(open_=True)
    first = train_chain(data, c2=0.3, stopping_rule=LONG)
    again = train_chain(data, c2=0.3, stopping_rule=LONG, start=np.random.default_rng(5).normal(size=len(first)))
    assert again == pytest.approx(first, abs=1e-5)


def test_documents_of_weight_0_count_for_nothing():
    data = tiny()
    both = train_chain(data, c2=0.3, stopping_rule=LONG, document_weights=np.array([1.0, 0.0]))
    value, slope = ChainLikelihood(data, 0.3, document_weights=np.array([1.0, 0.0]))(both)
    twice = ChainLikelihood(data, 0.3, document_weights=np.array([2.0, 0.0]))(both)[0]
    assert np.abs(slope).max() < 1e-4
    assert twice - value == pytest.approx(value - 0.3 * (data_norm(data, both)), rel=1e-9)
    met = data.occurring_weights(np.array([True, False]))
    assert np.abs(both[~met]).max() < np.abs(both[met]).max()


def data_norm(data: ChainData, vector: np.ndarray) -> float:
    weights = data.weights_of(vector)
    return float((weights.entry_weights**2).sum() + (weights.transition**2).sum())


def test_without_data_the_weights_stay_at_the_base():
    base = tiny(seed=0).weights_of(np.random.default_rng(6).normal(size=ChainLikelihood(tiny()).n_weights))
    data = tiny(seed=7, base=base)
    origin = data.vector_of(base)
    found = train_chain(data, c2=0.3, stopping_rule=LONG, origin=origin, document_weights=np.zeros(2))
    kept = data.weights_of(found, base)
    assert {**as_dict(kept)} == pytest.approx(as_dict(base), abs=1e-12)


def as_dict(weights: ChainWeights) -> dict[tuple[int, int], float]:
    pairs = zip(weights.entry_keys.tolist(), weights.entry_tags.tolist(), strict=True)
    return {pair: w for pair, w in zip(pairs, weights.entry_weights.tolist(), strict=True) if w}


def test_tags_that_the_scheme_forbids_are_refused():
    features = [(np.array([0, 1, 2]), np.array([1, 2], np.uint64))]
    data = ChainData.of(features, [np.array([0, 2])], [allowed_tags(["O", "I"], LABELS)], LABELS, min_freq=1)
    with pytest.raises(ImpossibleTags, match="document 0: forbidden transitions rule out every tag sequence"):
        train_chain(data, borders=BORDERS["forbidden"])


def news_data(min_freq: int = 2) -> ChainData:
    documents = news("train")
    extractor = make_extractor(default_plan(()), Lexicon())
    gold = [convert_tags(d.tags, None, "iobes", d.sentence_offsets) for d in documents]
    labels = tuple(dict.fromkeys(tag for tags in gold for tag in tags))
    features = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
    offsets = [d.sentence_offsets for d in documents]
    return ChainData.of(features, offsets, [allowed_tags(tags, labels) for tags in gold], labels, min_freq=min_freq)


@pytest.mark.slow
def test_objective_and_optimum_are_those_of_crfsuite(tmp_path):
    import pycrfsuite

    documents, data = news("train"), news_data()
    extractor = make_extractor(default_plan(()), Lexicon())
    features = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    trainer.set_params({"c1": 0, "c2": 0.3, "feature.minfreq": 2, "epsilon": 1e-9, "delta": 0, "max_iterations": 2000})
    gold = iter([convert_tags(d.tags, None, "iobes", d.sentence_offsets) for d in documents])
    sequences = crfsuite_sequences(features, [d.sentence_offsets for d in documents])
    tags = [
        tags[a:b] for d, tags in zip(documents, gold, strict=True) for a, b in itertools.pairwise(d.sentence_offsets)
    ]
    for sentence, right in zip(sequences, tags, strict=True):
        trainer.append(sentence, right)
    trainer.train(str(tmp_path / "m"))
    loss = trainer.logparser.last_iteration["loss"]
    weights = chain_weights(read_crfsuite(tmp_path / "m"))
    assert len(data.weights_of(np.ones(ChainLikelihood(data).n_weights)).entry_weights) == len(weights.entry_weights)
    likelihood = ChainLikelihood(data, 0.3)
    assert likelihood(data.vector_of(weights))[0] == pytest.approx(loss, rel=1e-6)
    own = train_chain(data, c2=0.3, stopping_rule=LONG)
    assert likelihood(own)[0] == pytest.approx(loss, rel=1e-6)
    assert likelihood(own)[0] <= likelihood(data.vector_of(weights))[0] * (1 + 1e-9)


def test_a_penalty_may_be_a_whole_number():
    data = news_data()
    vector = np.linspace(-1, 1, ChainLikelihood(data).n_weights)
    assert ChainLikelihood(data, 1)(vector)[0] == ChainLikelihood(data, 1.0)(vector)[0]


def test_progress_is_told_falling_losses():
    losses: list[tuple[int, float]] = []
    train_chain(
        tiny(),
        c2=0.3,
        stopping_rule=StoppingRule(20, 0.0),
        progress=lambda n, report: losses.append((n, report["loss"])),
    )
    assert [n for n, _ in losses] == list(range(1, len(losses) + 1))
    assert all(a >= b for (_, a), (_, b) in itertools.pairwise(losses))


def test_a_constrained_chain_trained_on_open_tags_finds_the_closed_ones():
    """Tokens that may have any tag but whose neighbours force one: IOBES forbids all others."""
    labels = ("O", "B-X", "E-X")
    borders = allowed_transitions(labels, "iobes")
    tables = Borders(*(np.where(table, 0.0, -np.inf) for table in (borders.follow, borders.start, borders.end)))
    sentences = [["O", "B-X", "E-X"]] * 4
    features = [(np.array([0, 1, 2, 3]), np.array([1, 2, 3], np.uint64)) for _ in sentences]
    allowed = [allowed_tags(tags, labels) for tags in sentences]
    for each in allowed:
        each[2] = 1  # after B only E can come
    data = ChainData.of(features, [np.array([0, 3])] * 4, allowed, labels, min_freq=1)
    vector = train_chain(data, c2=0.01, borders=tables)
    value, _ = ChainLikelihood(data, borders=tables)(vector)
    assert value < 1.0


def test_keys_that_were_chosen_to_collide_are_numbered_in_time():
    """Test a million keys that share their lower bits after the usual shift; a table of fixed slots takes hours."""
    i = np.arange(1, 10**6 + 1, dtype=np.uint64)
    keys = i << np.uint64(32) | i
    distinct, numbers = number_keys(np.concatenate([keys, keys[::-1]]))
    assert (distinct == keys).all()
    assert (numbers[10**6 :] == np.arange(10**6)[::-1]).all()


def mix(h: np.ndarray) -> np.ndarray:
    """Return the hashes of `hashing.pxd`, which fixed slots of a table would depend on."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> np.uint64(33)) * np.uint64(factor)
    return h ^ h >> np.uint64(33)


def test_pairs_of_features_that_were_chosen_to_collide_are_bundled_in_time():
    """Test 35,000 pairs that fixed slots would put into 256 of 2^18 slots, so that each look-up visits half of them."""
    n, most, second = 6_000, np.uint64((1 << 18) - 1), np.arange(6_000, dtype=np.uint64)
    slots = [mix(np.uint64(first + 1) << np.uint64(32) | second) & most for first in range(n)]
    colliding = np.concatenate([np.column_stack([np.full(n, f), second])[s < 256] for f, s in enumerate(slots)])
    others = np.random.default_rng(3).integers(0, n, colliding.shape)
    singles = np.repeat(np.arange(n), 32)  # so that each feature is frequent enough to be bundled
    starts = np.concatenate([2 * np.arange(len(others)), 2 * len(others) + np.arange(len(singles) + 1)])

    def seconds(pairs: np.ndarray) -> float:
        uses = np.concatenate([pairs.ravel(), singles]).astype(np.int32)
        return min(cpu_seconds(lambda: bundle(uses, starts, None, 0, n)) for _ in range(2))

    assert len(colliding) > 30_000
    assert seconds(colliding) < 4 * seconds(others) + 0.1
