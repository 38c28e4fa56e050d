"""Scales and tables stored as one repeated number have the same meaning as full arrays."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, compile_tables
from herdner.inference import BACKENDS, make_backend


def chain_of(n, repeated):
    rng = np.random.default_rng(5)
    unary, pairs = rng.normal(size=(1, 3)), rng.normal(size=(1, 3, 3))
    nodes = np.arange(n)
    scopes = (nodes[:, None], np.stack([nodes[:-1], nodes[1:]], axis=1))
    groups = []
    for scope, tables, scale in zip(scopes, (unary, pairs), (0.5, 1.5), strict=True):
        if repeated:
            groups.append(TableFactors(scope, tables, scale=np.broadcast_to(scale, len(scope))))
        else:
            groups.append(TableFactors(scope, tables, np.zeros(len(scope), np.int32), np.full(len(scope), scale)))
    return FactorGraph(np.full(n, 3), groups)


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_every_backend_reads_repeated_numbers(name):
    results = [make_backend(name).infer(compile_tables(chain_of(6, repeated)), seed=1) for repeated in (True, False)]
    assert results[0].state.tolist() == results[1].state.tolist()
    assert results[0].log_potential == results[1].log_potential
    if results[1].marginals is not None:
        assert np.array_equal(results[0].marginals, results[1].marginals)
