"""Attributes of items beside python-crfsuite."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from herdner._ext.attributes import AttributeIndex

pycrfsuite = pytest.importorskip("pycrfsuite", reason="needs the extra train")

ALPHABETS = ["ab:", "aé:", "a語", "a😀:", "abcdefgh"]


def random_text(rng: random.Random) -> str:
    alphabet = rng.choice(ALPHABETS)
    return "".join(
        rng.choice(alphabet) for _ in range(rng.choice([1, 2, 3, 300] if rng.random() < 0.05 else [1, 2, 3]))
    )


def random_item(rng: random.Random) -> dict[str, Any]:
    """Return a dictionary of attributes whose keys are new objects, of any width of characters, with colons."""
    values = [random_text(rng) for _ in range(3)] + [True, False, 1.0, 0.0, -2.5, 3, [random_text(rng)], {"n": 2.0}]
    return {random_text(rng): rng.choice(values) for _ in range(rng.choice([0, 3, 8, 80]))}


def peer_attributes(item: dict[str, Any]) -> dict[str, float]:
    return pycrfsuite.ItemSequence([item]).items()[0]


@pytest.mark.parametrize("seed", range(5))
def test_names_and_values_are_those_of_python_crfsuite(seed: int) -> None:
    rng = random.Random(seed)
    index = AttributeIndex()
    sequences = [[random_item(rng) for _ in range(rng.randrange(4))] for _ in range(150)]
    offsets, starts, indices, values = index.encode(sequences, True)
    names = index.names
    assert len(set(names)) == len(names)
    assert values is not None
    items = [item for sequence in sequences for item in sequence]
    assert offsets[-1] == len(items) == len(starts) - 1
    for t, item in enumerate(items):
        ours = [(names[indices[i]], values[i]) for i in range(starts[t], starts[t + 1])]
        theirs = peer_attributes(item)
        assert {name for name, _ in ours} == set(theirs)
        assert all(theirs[name] in [value for other, value in ours if other == name] for name in theirs)
        assert len(ours) > len(theirs) or dict(ours) == theirs

    known = AttributeIndex(names[::2])
    for again in (known, pickle.loads(pickle.dumps(known))):
        _, starts, indices, values = again.encode([items, items], False)
        assert values is not None
        for t, item in enumerate(items * 2):
            present = {names[2 * indices[i]] for i in range(starts[t], starts[t + 1])}
            assert present <= set(peer_attributes(item)) & set(names[::2])
            nonzero = {name for name, value in peer_attributes(item).items() if value}
            assert present >= nonzero & set(names[::2])
        assert (values != 0).all()


def test_a_name_has_one_index_for_each_division_into_key_and_text() -> None:
    index = AttributeIndex(["a:b:c"])
    _, _, indices, _ = index.encode([[{"a": "b:c"}, {"a:b": "c"}, {"a:b:c": 1.0}, ["a:b:c"], "a:b:c"]], True)
    assert indices.tolist() == [0] * 5
    assert index.names == ["a:b:c"]


def test_many_names() -> None:
    names = [f"word:{k}" for k in range(50_000)]
    _, _, indices, values = AttributeIndex(names).encode([[{"word": str(k)} for k in range(60_000)]], False)
    assert indices.tolist() == list(range(50_000))
    assert values is None


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", "a"]])
def test_names_must_be_distinct(names: list[str]) -> None:
    with pytest.raises(ValueError, match="must be distinct, got 'a' twice"):
        AttributeIndex(names)
