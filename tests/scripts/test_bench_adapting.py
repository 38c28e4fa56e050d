"""Draws of documents to adapt a model with: groups, and the p-value over several draws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bench_adapting import groups, p_value

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
