"""A session that calls every compiled entry point with small data."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

CORPORA = Path(__file__).resolve().parents[2] / "corpora"


def use(herdner: Any) -> None:
    """Train and use a tagger, run all backends on small graphs, and compute influences, scans and herded samples."""
    tag(herdner)
    infer(herdner)
    analyse(herdner)
    study(herdner)


def tag(herdner: Any) -> None:
    """Train a small tagger with links; tag with a trained model."""
    from herdner.crf.learning import Learner

    stories = list(herdner.read_documents(CORPORA / "herdner_news.train.conll", "conll"))[:3]
    herdner.Tagger(max_iterations=2, n_folds=2, learner=Learner(max_iterations=2)).fit(stories)
    text = 'Ada Lovelace met Mr. Babbage Ltd. in London.\n\n"Babbage," said Lovelace, the Smith & Co. of LONDON.'
    tagger = herdner.load("en")
    tagged = tagger.tag(text)
    list(tagger.pipe([text, tagged, "No names."] * 3, backend=herdner.make_backend("dhg", n_sweeps=2)))
    tagger.find_links(tagged)
    tagger.explain(text, offsets=(0, 12))
    for rule in ("Company", "Overlap", "Initials", "SameWord", "NameParts"):
        kind = getattr(import_module("herdner.crf.link_rules"), rule, None)
        with suppress(TypeError):
            template = import_module("herdner.crf.templates").skip_chain_template(kind and kind())
            template.links(list(tagged.tokens), tagged.sentence_offsets)


def graphs(herdner: Any) -> list[Any]:
    """Return small graphs of all forms."""
    rng = np.random.default_rng(0)
    chain = herdner.chain_graph(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)), [0, 5, 12])
    links = herdner.TableFactors([[0, 6], [1, 9], [3, 11]], rng.normal(size=(1, 3, 3)), scale=[1.0, 0.5, 2.0])
    large = herdner.TableFactors([[0, 1, 2], [2, 3, 4], [1, 4, 5]], rng.normal(size=(1, 3, 3, 3)))
    return [
        herdner.ising(0.3, rng.normal(size=(4, 5))),
        herdner.ising(0.3, rng.normal(size=(4, 4)), wrap=True),
        chain,
        herdner.FactorGraph(chain.domains, [*chain.factors, links]),
        herdner.FactorGraph(chain.domains, [*chain.factors, links, large]),
        herdner.complete_graph(np.ones((5, 5)) - np.eye(5), rng.normal(size=5)),
        herdner.boltzmann_machine(np.ones((4, 4)) - np.eye(4), rng.normal(size=4)),
    ]


def infer(herdner: Any) -> None:
    """Run all backends with most of their options on all graphs."""
    from herdner.inference.record import Record

    record = Record(table_counts=True, rao_blackwell=True, joint=True, trace=True, every=1)
    for graph in graphs(herdner):
        for name in herdner.BACKENDS:
            few = {"n_temperatures": 4} if name == "annealed-importance" else {}  # calls are repeated 1,000 times
            for options in (few, {"n_sweeps": 3}, {"n_sweeps": 3, "scan": "random"}, {"n_steps": 20}):
                with suppress(ValueError, TypeError, ImportError):
                    herdner.make_backend(name, **options).infer(graph, 0)
        for options in ({"sharing": "complete"}, {"sharing": "neighbour-sum"}, {"sharing": "bins(4)"},
                        {"sharing": "blanket", "form": "circular"}, {"sharing": "random-bins(4)"},
                        {"scan": "checkerboard", "n_threads": 2}, {"error_bound": 0.1},
                        {"weight_memory": 64}):  # fmt: skip
            for name in ("gibbs", "herded-gibbs", "dhg", "annealed-gibbs"):
                with suppress(ValueError, TypeError, ImportError):
                    herdner.make_backend(name, n_sweeps=3, **options).infer(graph, 0, record=record)
        with suppress(ValueError):
            herdner.make_backend("sum-product", table_counts=True).infer(graph)


def analyse(herdner: Any) -> None:
    """Compute influences and scans."""
    dobrushin = import_module("herdner.dobrushin")
    for graph in graphs(herdner):
        for name in dir(dobrushin):
            value = getattr(dobrushin, name)
            if callable(value) and not isinstance(value, type):
                for arguments in ((graph,), (graph, 10), (dobrushin.tightest_influence(graph), 10)):
                    with suppress(Exception):
                        value(*arguments)


def study(herdner: Any) -> None:
    """Call random public functions with seeds that are fixed."""
    from fuzz import calls

    for seed in range(400):
        with suppress(ValueError):
            calls.calls(np.random.default_rng(seed))
    compile_directly()
    from herdner.inference.linear_chain import forward_backward, span_log_probability, viterbi

    rng = np.random.default_rng(1)
    for n, states in ((12, 3), (600, 9)):
        unary, tables = rng.normal(size=(n, states)), rng.normal(size=(2, states, states))
        offsets = [0, n // 3, n // 2, n]
        for edges in (None, rng.integers(0, 2, n)):
            arrays = unary, tables[0] if edges is None else tables, offsets
            viterbi(*arrays, edges)
            forward_backward(*arrays, edges, transition_counts=True, edges=True)
            span_log_probability(*arrays, np.zeros(n, np.int32), [0, 4], [2, 6], edges)
    # Enough tokens and sequences for lanes.
    unary = rng.normal(size=(5000, 3))
    viterbi(unary, tables[0, :3, :3], np.arange(0, 5001, 10))
    forward_backward(unary, tables[0, :3, :3], np.arange(0, 5001, 10), transition_counts=True)


def compile_directly() -> None:
    """Make the objects of compiled classes that are final, or too large in the rest of the session."""
    from networks import random_network

    from herdner._ext import (
        bundles,
        conditionals,
        feature_tables,
        gibbs,
        hashing,
        herding,
        identity,
        influence,
        likelihood,
        memory,
        strings,
        variation,
    )
    from herdner._ext.descent import choose_dense
    from herdner.crf.chain_data import ChainData
    from herdner.crf.likelihood import ChainLikelihood
    from herdner.ner.identity.forms import parse_form

    rng = np.random.default_rng(0)
    keys = hashing.hash_strings(["Ada", "met", "Babbage"])
    hashing.hash_phrase(["Ada", "Lovelace"])
    feature_tables.WordTable(keys, np.arange(3, dtype=np.uint64))
    hashing.check_collisions(keys)
    hashing.build_table(keys, np.arange(3, dtype=np.uint64))
    feature_tables.FeatureWeights(
        keys, np.array([0, 1, 3, 4], np.uint32), np.array([0, 1, 2, 2], np.uint8), rng.normal(size=4), 3
    )
    random_network(["O", "B"], 3, dimensions=4).compile(["O", "B", "I"])
    features = np.array([0, 2, 4, 7, 8], np.int64), np.array([5, 6, 5, 7, 9, 5, 6, 7], np.uint64)
    allowed = np.eye(3, dtype=np.uint8)[[0, 1, 2, 1]]
    data = ChainData.of([features] * 3, [np.array([0, 2, 4])] * 3, [allowed] * 3, ["O", "B", "I"], min_freq=1)
    ChainLikelihood(data)(rng.normal(size=data.n_features + int(data.transitions.sum())))
    data.occurring_weights(np.array([True, False, True]))
    likelihood.column_hashes(np.array([0, 1, 0], np.int32), np.array([0, 2, 3]), 2)
    likelihood.count_pairs(
        np.array([0, 1, 0], np.int32), np.array([0, 2, 3]), allowed[:2], np.array([0, 1], np.int32),
        np.zeros((2, 3), np.int32),
    )  # fmt: skip
    matrix = np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1], np.int32), rng.random(6)
    made = influence.InfluenceMatrix(*matrix)
    q, rows = rng.random((5, 3)), np.ones((5, 3))
    choose_dense(made, q, rows, np.ones(3), 0.1, np.zeros(5, np.int32), np.zeros(3))
    variation.walk_random(made, q, np.ones((6, 3)))
    variation.walk_recorded(
        made, np.array([0, 1, 2], np.int32), np.ones(3), np.ones(3), np.array([0, 2], np.int32), np.zeros(4)
    )
    herding.herd(rng.random((4, 2)), rng.random(2), rng.random(2), np.zeros(9, np.int64))
    herding.herd_categorical(np.array([1, 2, 1]), 4, np.array([0, 1, 0]), np.zeros(9, np.int64))
    memory.sealed([np.arange(3.0)])
    memory.is_sealed(np.arange(3.0))
    strings.Strings().add("Ada", ("Ada",))
    bundles.bundle(
        np.array([0, 1, 5, 0, 1, 6] * 3, np.int32), np.arange(0, 19, 3), np.ones(18), np.int32(2), np.int32(7)
    )  # fmt: skip
    forms = [parse_form(text, "PER") for text in ("Ada Lovelace", "Lovelace")]
    identity.match(*forms)
    gibbs.uniform_block(1, 2)
    import herdner

    for graph in graphs(herdner):
        rows_of = herdner.compile_tables(graph).conditionals
        conditionals.CompiledConditionals(
            rows_of.sizes, rows_of.widths, rows_of.unary_at, rows_of.unary, rows_of.starts, rows_of.row_at,
            rows_of.others_at, rows_of.others, rows_of.places, rows_of.rows,
        )  # fmt: skip
