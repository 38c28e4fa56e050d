"""Draws of documents to adapt a model with: groups, and the p-value over several draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import pytest
from bench_adapting import groups, old_f1, only_label, p_value

from herdner.evaluation.scores import f1_from_counts
from herdner.text.document import Document


def test_each_document_is_scored_once_by_a_model_that_has_not_seen_it() -> None:
    documents = [Document.from_tokens([["a"]], id=str(i)) for i in range(11)]
    found = list(groups(documents, 3, seed=1))
    assert sorted(d.id for _, scored in found for d in scored) == sorted(d.id for d in documents)
    assert all(len(chosen) == 3 for chosen, _ in found)
    assert not any({d.id for d in chosen} & {d.id for d in scored} for chosen, scored in found)


def test_the_p_value_is_the_share_of_all_swaps_of_documents() -> None:
    rng = np.random.default_rng(0)
    a, b = (np.sort(rng.integers(0, 9, (2, 6, 3)), axis=-1) for _ in range(2))  # of two draws
    b[..., 2] = a[..., 2] = np.maximum(a[..., 2], b[..., 2])
    a, b = a.sum(axis=0), b.sum(axis=0)

    def difference(swapped: np.ndarray) -> float:
        one, other = np.where(swapped[:, None], b, a), np.where(swapped[:, None], a, b)
        return float(abs(f1_from_counts(other.sum(axis=0)) - f1_from_counts(one.sum(axis=0))))

    differences = [difference(np.array(swaps)) for swaps in product([False, True], repeat=6)]
    expected = np.mean([each >= differences[0] - 1e-12 for each in differences])
    assert p_value(a, b) == pytest.approx(expected, abs=0.02)
    assert p_value(a, a) == 1


def test_documents_with_one_label_have_no_other_annotation() -> None:
    document = Document.from_tokens([["Ada", "sang", "."]], [["B-PER", "B-VERB", "O"]])
    only = only_label(document, "VERB")
    assert [span.label for span in only.spans or ()] == ["VERB"]
    assert only.partial is not None
    assert only.partial.annotated_labels == ("VERB",)


class NewLabelTagger:
    """Tagger that finds the gold entities and an entity with a new label."""

    def pipe(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            yield document.with_tags(["B-PER", "B-VERB", "O"])


def test_the_new_label_does_not_count_for_the_labels_of_the_base() -> None:
    gold = [Document.from_tokens([["Ada", "sang", "."]], [["B-PER", "O", "O"]])]
    assert old_f1(NewLabelTagger(), gold) == 1  # type: ignore[arg-type]
