"""Collections: names of the first pass as evidence in the second, against a computation by lists of known names."""

from __future__ import annotations

import math
import pickle
import re
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from herdner import Names, Tagger
from herdner.ner.known_names import CollectionNames, collection
from herdner.ner.known_names.collection import LEARNED, LONGEST_NAME, PooledEvidence
from herdner.text.document import Document
from herdner.text.tags import Span

TEXTS = [
    "Ada Reyes met Bo Lim in Lima. Reyes left with Lim, who works at the Bank of Peru.",
    "Winam Ferries Ltd. sails to Odero. The ferry of Winam Ferries sank, said Charlotte Akinyi of Kisumu.",
    "off to Odero with Akinyi",
    "Odero won again",
    "I like Lima and Odero Shipping",
    "Odero and Winam will meet in Kisumu on Monday, Akinyi said.",
    "",
    "Lim of the Bank of Peru left Odero.",
    "The winner is Odero, and Odero is glad. Mr. Odero lives in Lima.",
]


@pytest.fixture(scope="module")
def tagger(news_tagger: Tagger) -> Tagger:
    return news_tagger


@pytest.fixture(scope="module", autouse=True)
def small_sketch() -> Iterator[None]:
    """Make the sketch small, because laws create it for each example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "_SKETCH_WIDTH", 1 << 14)
        yield


def found(documents: Sequence[Document]) -> list[tuple]:
    return [(document.text, document.tags, document.entities) for document in documents]


# --- an oracle: two passes in plain Python; the evidence is a list of known names for each document


def shares_of(document: Document) -> dict[str, tuple[dict[str, float], int]]:
    """Sum of the confidences for each label, and number of mentions, of each spelling."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    mentions: dict[str, int] = defaultdict(int)
    for entity in document.entities:
        sums[entity.text][entity.label] += entity.confidence or 0.0
        mentions[entity.text] += 1
    return {name: (sums[name], mentions[name]) for name in sums}


def known_from_others(
    shares: Sequence[dict], own: int, labels: Sequence[str], document: Document
) -> list[tuple[str, str, float]]:
    entries: list[tuple[str, str, float]] = []
    for name in {name for each in shares for name in each}:
        others = [each[name] for i, each in enumerate(shares) if i != own and name in each]
        # None of these texts has a name both inside and outside of a longer name.
        is_inside = any(name in entity.text != name for entity in document.entities)
        if not others or is_inside:
            continue
        pooled = {label: sum(sums[label] / n for sums, n in others) for label in labels}
        prior, no_name = (1 - LEARNED.prior_of_no_name) / len(labels), LEARNED.prior_of_no_name
        n_occurrences = len(re.findall(rf"\b{name}\b", document.text))
        for label in labels:
            odds = (pooled[label] + prior) / (len(others) - sum(pooled.values()) + no_name)
            strength = LEARNED.strength * (math.log(odds) - math.log(prior / no_name))
            entries.append((name, label, strength / max(n_occurrences, 1) ** LEARNED.repetition))
    return entries


def test_two_passes_equal_lists_of_known_names_made_from_the_other_documents(tagger: Tagger) -> None:
    texts = [text for text in TEXTS if "Ltd." not in text and "Shipping" not in text]
    first = list(tagger.pipe(texts))
    shares = [shares_of(document) for document in first]
    expected: list[Document] = []
    for i, text in enumerate(texts):
        entries = known_from_others(shares, i, tagger.labels, first[i])
        expected.append(tagger.tag(text, names=Names.of(entries)) if entries else tagger.tag(text))
    result = list(tagger.pipe(texts, collection=True))
    assert [each.tags for each in result] == [each.tags for each in expected]
    confidences = [[e.confidence for d in side for e in d.entities] for side in (result, expected)]
    assert np.allclose(*confidences, atol=1e-4)  # the counts are in units of 1 / 65,536
    plain = [e.confidence for document in first for e in document.entities]
    assert plain != confidences[0]


def test_names_inside_a_longer_name_get_no_evidence() -> None:
    def tagged(tokens: str, *spans: Span) -> Document:
        return Document.from_tokens([tokens.split()]).with_decoded(spans, "iob2", np.full(len(spans), 0.9))

    other = tagged("Peru beat Bank of Chile", Span(0, 1, "LOC"), Span(2, 5, "ORG"))
    inside = tagged("the Bank of Peru", Span(1, 4, "ORG"))
    across = tagged("Bank of Chile Peru", Span(2, 4, "PER"))
    names = gathered([other, inside, across])
    assert list(names.span_evidence(inside)) == []
    assert {each.span[:2] for each in names.span_evidence(across)} == {(0, 3)}
    assert {each.span[:2] for each in names.span_evidence(tagged("Peru and Peru"))} == {(0, 1), (2, 3)}


def test_log_odds_of_the_pooled_labels() -> None:
    evidence = PooledEvidence(strength=2.0, prior_of_no_name=0.5)
    # Of 10 documents, 8 have the first label and 1 the second; the prior is worth 0.25 for each, 0.5 for no name.
    expected = [2 * (math.log(8.25 / 1.5) - math.log(1 / 2)), 2 * (math.log(1.25 / 1.5) - math.log(1 / 2))]
    assert evidence.log_odds(10, [8, 1]) == pytest.approx(expected)
    assert evidence.log_odds(0, [0, 0]) == [0.0, 0.0]


# --- laws


@examples(30)
@given(order=st.permutations(range(len(TEXTS))), n_jobs=st.sampled_from([1, 2, 3]), size=st.sampled_from([1, 2, 64]))
def test_results_depend_neither_on_the_order_nor_on_threads_nor_on_batches(
    news_tagger: Tagger, order: list[int], n_jobs: int, size: int
) -> None:
    """Bit for bit."""
    expected = found(list(news_tagger.pipe(TEXTS, collection=True)))
    texts = [TEXTS[i] for i in order]
    result = found(list(news_tagger.pipe(texts, collection=True, n_jobs=n_jobs, batch_size=size)))
    assert result == [expected[i] for i in order]


NAMES = ["Ada", "Odero", "Lim", "Bank of Peru", "Winam Ferries", "Lima"]


@st.composite
def tagged_documents(draw: st.DrawFn) -> Document:
    """Document of names with labels and confidences, separated by commas."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=6))
    tokens: list[str] = []
    spans: list[Span] = []
    for name in names:
        words = name.split()
        spans.append(Span(len(tokens), len(tokens) + len(words), draw(st.sampled_from(["LOC", "ORG", "PER"]))))
        tokens += [*words, ","]
    confidences = [draw(st.floats(0, 1)) for _ in spans]
    return Document.from_tokens([tokens] if tokens else []).with_decoded(spans, "iob2", np.array(confidences))


def gathered(documents: Sequence[Document], max_names: int = 1000) -> CollectionNames:
    names = CollectionNames(["PER", "LOC", "ORG"], max_names)
    for document in documents:
        names.add(document)
    return names


@examples(60)
@given(st.lists(tagged_documents(), max_size=12), st.randoms(use_true_random=False), st.sampled_from([1000, 3, 0]))
def test_counts_do_not_depend_on_the_order_or_on_parts(documents: list[Document], random, max_names: int) -> None:
    """Whether names are counted exactly or in the sketch."""
    expected = gathered(documents, max_names)
    shuffled = random.sample(documents, len(documents))
    assert gathered(shuffled, max_names).checksum() == expected.checksum()
    cuts = sorted(random.randint(0, len(documents)) for _ in range(3))
    parts = [gathered(shuffled[a:b], max_names) for a, b in pairwise([0, *cuts, len(documents)])]
    total = CollectionNames(["PER", "LOC", "ORG"], max_names)
    for part in random.sample(parts, len(parts)):
        total.update(pickle.loads(pickle.dumps(part)))
    assert total.checksum() == expected.checksum()
    assert total.n_documents == len(documents)


@examples(60)
@given(st.lists(tagged_documents(), max_size=12), st.sampled_from([1000, 0]))
def test_counts_equal_sums_over_documents(documents: list[Document], max_names: int) -> None:
    names = gathered(documents, max_names)
    shares = [shares_of(document) for document in documents]
    for name in NAMES:
        own = [each[name] for each in shares if name in each]
        expected = [len(own), *(sum(sums[label] / n for sums, n in own) for label in ("LOC", "ORG", "PER"))]
        assert names.counts(name.split()) == pytest.approx(expected, abs=0.01)


def test_a_document_is_no_evidence_for_itself(tagger: Tagger) -> None:
    for text in TEXTS:
        assert found(list(tagger.pipe([text], collection=True))) == found([tagger.tag(text)])


def test_known_names_take_precedence(tagger: Tagger) -> None:
    names = Names.of([("Odero", "LOC", math.inf)])
    for document in tagger.pipe(TEXTS, names=names, collection=True):
        assert all(e.label == "LOC" for e in document.entities if e.text == "Odero")


def test_uncertain_names_count_as_evidence_before_they_are_removed(tagger: Tagger) -> None:
    every = list(tagger.pipe(TEXTS, collection=True))
    sure = list(tagger.pipe(TEXTS, collection=True, min_confidence=0.8, min_confidence_of="mention"))
    expected = [[e for e in document.entities if (e.confidence or 0) >= 0.8] for document in every]
    assert [list(document.entities) for document in sure] == expected


def test_names_longer_than_the_limit_are_left_out() -> None:
    tokens = ["Very"] * (LONGEST_NAME + 1)
    document = Document.from_tokens([tokens]).with_decoded([Span(0, len(tokens), "ORG")], "iob2", np.array([1.0]))
    names = gathered([document])
    assert len(names) == 0
    assert names.counts(tokens) == [0, 0, 0, 0]


def test_evidence_stays_within_a_sentence() -> None:
    spans = [Span(0, 2, "PER")]
    whole = Document.from_tokens([["Ada", "Lim", "left"]]).with_decoded(spans, "iob2", np.array([0.9]))
    split = Document.from_tokens([["Ada"], ["Lim", "left"]])
    names = gathered([whole, whole, split])
    assert {each.span[:2] for each in names.span_evidence(whole)} == {(0, 2)}
    assert not list(names.span_evidence(split))


# --- uses


def test_generators_contexts_and_failures(tagger: Tagger) -> None:
    expected = found(list(tagger.pipe(TEXTS, collection=True)))
    assert found(list(tagger.pipe((text for text in TEXTS), collection=True))) == expected
    pairs = list(tagger.pipe(((text, i) for i, text in enumerate(TEXTS)), as_tuples=True, collection=True))
    assert found([document for document, _ in pairs]) == expected
    assert [i for _, i in pairs] == list(range(len(TEXTS)))
    broken = Document.from_tokens([["Ada", "met", "Bo"]], id="broken")
    broken.sentence_offsets[-1] = 2
    failures = []
    result = tagger.pipe([*TEXTS, broken], collection=True, on_error=failures.append)
    assert found(list(result)) == expected
    assert len(failures) == 1


def test_an_empty_collection(tagger: Tagger) -> None:
    assert list(tagger.pipe([], collection=True)) == []
    assert found(list(tagger.pipe(["", " "], collection=True))) == found(list(tagger.pipe(["", " "])))


def test_samplers_repeat(tagger: Tagger) -> None:
    options = {"backend": "gibbs", "n_sweeps": 5, "seed": 3, "collection": True}
    assert found(list(tagger.pipe(TEXTS, n_jobs=2, **options))) == found(list(tagger.pipe(TEXTS, **options)))


def test_explanations_include_the_evidence(tagger: Tagger) -> None:
    names = tagger.gather(TEXTS)
    inference = replace(tagger.inference(), collection=names)
    known = [each.to_dict() for each in tagger.explain(TEXTS[0], inference)]
    plain = [each.to_dict() for each in tagger.explain(TEXTS[0])]
    assert known != plain
    assert inference.to_dict()["collection"] == names.checksum()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"backend": "none"}, "none"), ({"seed": -1}, "seed"), ({"batch_size": 0}, "batch_size")],
)
def test_wrong_options(tagger: Tagger, options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        list(tagger.pipe(TEXTS, collection=True, **options))


def test_collections_of_other_labels_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="only if their labels and their `max_names` are equal"):
        CollectionNames(["PER"]).update(CollectionNames(["LOC"]))
    with pytest.raises(ValueError, match="max_names"):
        CollectionNames(["PER"], -1)


# --- memory


def numbered(first: int, n: int) -> Document:
    tokens = [f"N{i}" for i in range(first, first + n)]
    spans = [Span(i, i + 1, "PER") for i in range(n)]
    return Document.from_tokens([tokens]).with_decoded(spans, "iob2", np.full(n, 0.9))


def test_memory_is_bounded_however_many_names_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_SKETCH_WIDTH", 1 << 20)
    names = CollectionNames(["PER", "LOC", "ORG"], max_names=20_000)
    for first in range(0, 20_000, 1000):
        names.add(numbered(first, 1000))
    assert names.is_exact
    assert len(names) == 20_000
    names.add(numbered(20_000, 1000))
    assert not names.is_exact
    tracemalloc.start()
    for first in range(21_000, 31_000, 1000):
        names.add(numbered(first, 1000))
    current = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert current < 1_000_000
    assert names.counts(["N7"])[0] == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_frequent_names_are_found_among_thrice_as_many_as_are_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_SKETCH_WIDTH", 1 << 17)
    names = CollectionNames(["PER", "LOC", "ORG"], max_names=1 << 17)
    for first in range(0, 300_000, 2_000):
        names.add(numbered(first, 2_000))
        names.add(Document.from_tokens([["Odero"]]).with_decoded([Span(0, 1, "LOC")], "iob2", np.array([0.8])))
    assert not names.is_exact
    n, loc, org, per = names.counts(["Odero"])
    assert n == pytest.approx(150, abs=5)
    assert loc == pytest.approx(120, abs=5)
    assert org == 0
    assert per < 5
    assert names.counts(["nowhere"])[0] < 5
