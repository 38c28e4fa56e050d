"""A short session that uses every part of the package on small data, whose calls are valid."""

from __future__ import annotations

import io
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from faults import typical

import herdner
from fuzz import calls, documents, files, graphs, loaders, outside, readers
from herdner.inference import linear_chain
from herdner.inference.record import Record

CORPORA = Path(__file__).resolve().parents[2] / "corpora"
NAMED = (
    "Mr. Peter Cook met Mrs. Cook and Miss Marsh. Bill Clinton, William Clinton and the Clintons called Katie"
    " Marsh. Kate said Dr. Cook paid W. Clinton. Mrs. Mary Cook wrote to Mary, to Sir Peter and to"
    " International Monetary Fund. IMF answered Marsh. Lady Cook of Cook Islands Bank saw J. F. Smith, John"
    " Smith and John Francis Smith. Smith and Mary Cook Marsh left."
)
NAMES = (
    "Peter Cook", "Cook Islands Bank", "Cook", "Katie Marsh", "Marsh", "Bill Clinton", "William Clinton", "Clintons",
    "Kate", "W. Clinton", "Mary Cook Marsh", "Mary Cook", "Mary", "Peter", "International Monetary Fund", "IMF",
    "J. F. Smith", "John Smith", "John Francis Smith", "Smith",
)  # fmt: skip
TEXT = "Ada Lovelace met Mr. Babbage Ltd. in London.\n\nBabbage paid Lovelace. The Smith & Co. of LONDON sued Ada."


def use() -> None:
    """Use the package, and run some cases of other targets."""
    for part in (
        tagging,
        topics,
        training,
        evaluating,
        chain_models,
        estimators,
        attributes,
        sampling,
        coloured_scans,
        long_chains,
        elimination,
        studies,
        graph_files,
        names,
    ):
        part()
    for target in (
        graphs.infer, documents.chains, documents.rules, documents.layer, documents.places, calls.tags, files.models,
        files.layers, readers.readers, loaders.loaders, outside.scans, outside.images,
    ):  # fmt: skip
        for seed in range(12):
            with suppress(Exception):
                target(np.random.default_rng([7, seed]))
    for seed in range(150):
        with suppress(Exception):
            calls.calls(np.random.default_rng([8, seed]))


def tagging() -> None:
    """Tag with a small model, explain a name, use the layer and known names."""
    herdner.load("en").tag(TEXT)
    tagger = calls.tagger()
    for options in ({}, {"backend": "gibbs", "n_sweeps": 3}, {"backend": "dhg", "n_sweeps": 3}, {"links": False}):
        tagged = tagger.tag(files.TEXT, **options)
    list(tagger.pipe([files.TEXT, TEXT, "No name."], batch_size=2))
    tagger.find_links(tagged)
    tagger.explain(files.TEXT)
    known = herdner.Names.of([("Ada Lovelace", "PER")], strength=2.0)
    tagger.tag(files.TEXT, names=known)
    for document in (tagged, herdner.Tokenizer()(TEXT)):
        herdner.Document.from_json(document.to_json())


def topics() -> None:
    """Compute features with the topics of documents."""
    from herdner.ner.features import FeaturePlan, make_extractor
    from herdner.ner.lexicon import Lexicon, Topics

    rng, document = np.random.default_rng(0), herdner.Tokenizer()(TEXT)
    lexicon = Lexicon(topics=Topics(rng.random((513, 96)).astype(np.float32)))
    extractor: Any = make_extractor(FeaturePlan(("topic8[0]|word[0]", "topic64[0]")), lexicon)
    extractor.keys(document.tokens, document.sentence_offsets)


def training() -> None:
    """Train a tagger with links on few documents."""
    from herdner.crf.learning import Learner

    stories = list(herdner.read_documents(CORPORA / "herdner_news.train.conll", "conll"))[:2]
    herdner.Tagger(max_iterations=2, n_folds=2, learner=Learner(max_iterations=1)).fit(stories)


def evaluating() -> None:
    """Score, compare and report predictions."""
    from herdner.evaluation import calibration, consistency, coreference, errors, partial, report, scores
    from herdner.evaluation.report import html, markdown, values

    tagged = [calls.tagger().tag(text) for text in (files.TEXT, TEXT)]
    gold = [each.with_entities(list(each.entities)[1:]) for each in tagged]
    rng = np.random.default_rng(0)
    for mapping in ("predicted", "gold"):
        with suppress(ValueError):
            coreference.evaluate_names(tagged, tagged, mapping)
    sample = calibration.entity_confidences(gold, tagged)
    for function in (calibration.ece, calibration.expected_ece, calibration.reliability_curve):
        function(sample, "width")
    compared = herdner.compare(gold, tagged, gold, rng=rng, n_resamples=20)
    scored = herdner.evaluate(gold, tagged, rng=rng)
    for table in (compared, scored, consistency.measure_consistency(gold, {"a": tagged})):
        table.to_markdown()
    errors.find_frequent_errors(errors.match_documents(gold, tagged), gold)
    partial.partial_scores(gold, tagged)
    scores.bootstrap_interval(list(scores.pair_documents(gold, tagged)), rng, 20)
    made = values.make_report("gold", gold, [values.Prediction("a", "a.jsonl", tagged)], values.ReportSettings())
    for write in (html.to_html, markdown.to_markdown, report.to_json):
        with suppress(ImportError):
            write(made)


def chain_models() -> None:
    """Build the training data of a chain, its likelihood, and tables of links."""
    from tiny_crfs import tiny

    from herdner.crf.bayesian import sample_tables, table_parameters
    from herdner.crf.chain_data import ChainData
    from herdner.crf.learning import Learner, learn_tables
    from herdner.crf.likelihood import ChainLikelihood
    from herdner.crf.trainer import train_chain

    crf, examples = tiny(1)
    crf.unroll(examples.unary, examples.sentence_offsets, examples.links)
    crf.compile(examples.unary, examples.sentence_offsets, examples.links)
    crf.linked_chains(examples.unary, examples.sentence_offsets, examples.links)
    learn_tables(crf, examples, Learner(max_iterations=1))
    table_parameters(crf)
    sample_tables(crf, examples, 2, n_steps=2, seed=0)
    features = np.array([0, 2, 4, 7, 8], np.int64), np.array([5, 6, 5, 7, 9, 5, 6, 7], np.uint64)
    allowed = np.eye(3, dtype=np.uint8)[[0, 1, 2, 1]]
    allowed[1] = 1, 1, 0  # partially annotated
    data = ChainData.of([features] * 3, [np.array([0, 2, 4])] * 3, [allowed] * 3, ["O", "B", "I"], min_freq=1)
    ChainLikelihood(data)(np.zeros(data.n_features + int(data.transitions.sum())))
    data.occurring_weights(np.array([True, False, True]))
    train_chain(data)


def estimators() -> None:
    """Train the estimator by each algorithm, with and without links."""
    sequences = [[{"word": word, "length": len(word)} for word in text.split()] for text in (TEXT, files.TEXT) * 2]
    labels = [["B" if item["word"][0].isupper() else "O" for item in items] for items in sequences]
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        made = herdner.CRF(algorithm, max_iterations=2, random_state=0).fit(sequences, labels)
        made.predict_marginals(sequences)
        made.score(sequences, labels)
    sparse = herdner.CRF(c1=0.1, max_iterations=2).fit(sequences, labels)
    sparse.tagger_.tag(sequences[0])
    words = [text.split() for text in (TEXT, files.TEXT) * 4]
    tags = [["B" if word[0].isupper() else "O" for word in text] for text in words]
    herdner.CRF(links="same-word", max_iterations=2).fit(words, tags).predict(words)


def attributes() -> None:
    """Train on items with attributes of all types, with partial labels, and write and read CRFsuite's file."""
    items: list[Any] = [
        {"word": "Ada", "is_title": True, "is_last": False, "length": 3.0, "x" * 300: "long"},
        {"n": 2, "bytes": b"b", "nested": {"deep": ["a", "b"], "dict": {"b": 0.5}, "set": {"é", "😀"}}, "off": 0.0},
        ["a", "b", "中文"], {"only", "words"}, ("a", "a"), "Zoë",
        {"word": "中", "né": "x", "😀": "y", "is_title": False},
    ]  # fmt: skip
    sequences, labels = [items, items[::-1]] * 3, [["O", "B", "O", "I", "O", "B", "O"]] * 6
    partial: list[Any] = [["O", {"B", "I"}, None, "I", "O", None, {"O", "B"}]] * 6
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        for y in (labels, partial):
            made = herdner.CRF(algorithm, max_iterations=2, random_state=0).fit(sequences, y)
            made.predict_marginals([*sequences, [items[0]], []])
    made.to_crfsuite("chain.crfsuite")
    herdner.CRF.from_crfsuite("chain.crfsuite").predict(sequences)
    with suppress(ValueError):
        made.fit([[{"a": float("nan")}]], [["O"]])


def coloured_scans() -> None:
    """Sample in parallel, and categorical chains and grids with dense herding weights."""
    rng = np.random.default_rng(1)
    weights = np.triu(rng.random((40, 40)) < 0.05, 1) * 1.0
    binary = herdner.boltzmann_machine(weights + weights.T, rng.normal(size=40))
    graphs = [herdner.ising(0.2, rng.normal(size=(20, 24))), binary, herdner.potts(0.2, rng.normal(size=(8, 9, 5)))]
    for n_states in (3, 4, 9, 14):
        unary, table = rng.normal(size=(40, n_states)), rng.normal(size=(n_states, n_states))
        graphs.append(herdner.chain_graph(unary, table, [0, 7, 40]))
    plans: tuple[dict[str, Any], ...] = (
        {}, {"sharing": "blanket"}, {"sharing": "complete"}, {"sharing": "neighbour-sum"}, {"sharing": "bins(4)"},
        {"sharing": "random-bins(4)"},
    )  # fmt: skip
    scans = ({"scan": "checkerboard", "n_threads": 2}, {"scan": "jacobi"}, {"scan": "random"}, {"form": "threshold"})
    for graph in graphs:
        for name, sharing, scan in product(("gibbs", "herded-gibbs", "dhg"), plans, scans):
            with suppress(ValueError, TypeError):
                herdner.make_backend(name, n_sweeps=3, **sharing, **scan).infer(graph, 0)


def sampling() -> None:
    """Sample small graphs of all forms with all ways to share weights, and chains in blocks in the log domain.

    Message passing and mean field are damped.
    """
    rng = np.random.default_rng(0)
    record = Record(table_counts=True, rao_blackwell=True, joint=True, trace=True, every=1)
    plans: tuple[dict[str, Any], ...] = (
        {"sharing": "complete"}, {"sharing": "neighbour-sum"}, {"sharing": "bins(4)"}, {"sharing": "random-bins(4)"},
        {"sharing": "blanket", "form": "circular"}, {"error_bound": 0.1}, {"scan": "checkerboard"},
        {"weight_memory": 64},
    )  # fmt: skip
    for graph in typical.graphs(herdner):
        for name, options in product(("gibbs", "herded-gibbs", "dhg"), plans):
            with suppress(ValueError, TypeError):
                herdner.make_backend(name, n_sweeps=3, **options).infer(graph, 0, record=record)
        for name in ("mean-field", "icm", "max-product"):
            herdner.make_backend(name, n_sweeps=3).infer(graph, 0)
    for graph, name in product(typical.graphs(herdner)[2:5], ("sum-product", "mean-field", "max-product")):
        with suppress(ValueError):
            herdner.make_backend(name, damping=0.4).infer(graph, 0)
    for n_states in (2, 3, 4, 8, 12, 17):
        table = np.where(rng.random((n_states, n_states)) < 0.2, -np.inf, rng.normal(size=(n_states, n_states)) * 400)
        unary = rng.normal(size=(9, n_states)) * 400
        np.fill_diagonal(table, 0)
        chain = herdner.chain_graph(unary, table)
        herdner.make_backend("blocked-gibbs", n_sweeps=3).infer(chain, 0, record=Record(rao_blackwell=True))
        links = herdner.TableFactors([[0, 4], [2, 7]], table[None])
        triples = herdner.TableFactors([[0, 1, 2]], rng.choice([0.0, -np.inf], (1, *[n_states] * 3)))
        for more in ([links], [links, triples]):
            graph = herdner.FactorGraph(chain.domains, [*chain.factors, *more])
            for name in ("blocked-gibbs", "mean-field", "gibbs", "sum-product"):
                with suppress(ValueError):
                    herdner.make_backend(name, n_sweeps=3).infer(graph, 0)
            with suppress(ValueError):
                herdner.make_backend("sum-product", damping=0.4).infer(graph, 0)
    grid = herdner.ising(0.4, rng.normal(size=(9, 9)), wrap=True)
    herdner.make_backend("exact").infer(grid, 0)
    # Two threads share the replicas of one chain.
    herdner.make_backend("tempered", n_rounds=8, burn_in=4, width=1, n_chains=1, n_threads=2).infer(grid, 0)


def long_chains() -> None:
    """Decode and smooth chains that are long, or many, so that vectors of sequences or of states are used."""
    rng = np.random.default_rng(0)
    for n, n_states, length in ((5000, 3, 10), (600, 9, 200), (900, 5, 900)):
        arrays = rng.normal(size=(n, n_states)), rng.normal(size=(n_states, n_states)), np.arange(0, n + 1, length)
        linear_chain.viterbi(*arrays)
        linear_chain.forward_backward(*arrays, transition_counts=True, edges=True)


def elimination() -> None:
    """Compute exact best states and samples, with a bucket that is large enough for several threads."""
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(21, 21)), 1)
    graphs = [herdner.ising(0.4, rng.normal(size=(3, 4))), herdner.boltzmann_machine(weights + weights.T, np.zeros(21))]
    for n_states in (2, 3, 4):  # log-potentials whose exponentials are no floating-point numbers
        pairs = [[i, j] for i in range(7) for j in range(i)]
        tables = rng.normal(size=(len(pairs), n_states, n_states)) * 400
        tables[::5, 0, 1] = -np.inf
        graphs.append(herdner.FactorGraph([n_states] * 7, [herdner.TableFactors(pairs, tables)]))
    for graph in graphs:
        herdner.make_backend("exact", n_best=3, n_samples=3).infer(graph, 0)
    with suppress(ValueError):
        tables[3] = -np.inf
        herdner.make_backend("exact").infer(herdner.FactorGraph([4] * 7, [herdner.TableFactors(pairs, tables)]), 0)


def studies() -> None:
    """Compute influences, scans, certificates, convergence, particles and herded samples of small graphs."""
    from herdner import dobrushin
    from herdner.inference.gibbs import complete_sharing
    from herdner.studies import convergence, denoising, fwss, herding

    rng = np.random.default_rng(0)
    unary, table = rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
    small = [herdner.ising(0.2, rng.normal(size=(2, 3))), herdner.chain_graph(unary, table, [0, 2, 6])]
    for graph in small:
        influence = dobrushin.tightest_influence(graph)
        scan = dobrushin.optimise_scan(influence, n_steps=8)
        for function in (dobrushin.pairwise_bound, dobrushin.exact_influence, dobrushin.marginal_bounds):
            function(graph)
        dobrushin.dobrushin_variation(influence, scan.order, n_steps=8)
        dobrushin.block_influence(graph)
        focus = convergence.focus_variable(graph)
        visits = convergence.count_visits(graph, herdner.dhg(5), [2, 5], sharing=complete_sharing(), seed=0)
        with suppress(ValueError, TypeError):
            convergence.ErrorParts.of(visits, focus)
        for name in herdner.BACKENDS:
            with suppress(ValueError, TypeError, ImportError):
                herdner.make_backend(name).infer(graph, 0)
    herding.herd(rng.random((4, 2)), rng.random(2), 9)
    herding.herd_categorical([0.2, 0.3, 0.5], 9)
    target = fwss.gaussian_mixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [np.eye(2), np.eye(2)])
    for sampler in (fwss.fwss, fwss.svgd, fwss.stein_points, fwss.local_fwss):
        with suppress(TypeError, ValueError):
            points = sampler(target, 3, seed=0)
            fwss.ksd(points.x, target.density.grad(points.x), 1.0)
            fwss.mmd2(points.x, points.x, 1.0)
    fwss.sgld(target, 4, burn_in=2, n_chains=2, seed=0)
    fwss.hmc(target, 4, n_leapfrog=2, n_warmup=4, n_chains=2, seed=0)
    observed = rng.integers(0, 2, (5, 6))
    denoising.denoise(observed, denoising.FlipNoise(0.1, 2), 0.5)
    denoising.estimate_parameters(observed, denoising.FlipNoise(0.1, 2))


def graph_files() -> None:
    """Save and load graphs, condition and compile them."""
    from herdner.graph import uai_files

    graph = herdner.ising(0.2, np.ones((2, 3)))
    herdner.save_graph("graph.npz", graph)
    herdner.load_graph("graph.npz")
    uai_files.write_uai("graph.uai", graph)
    uai_files.read_uai("graph.uai")
    graph.condition({0: 1})
    herdner.compile_tables(graph)


def names() -> None:
    """Replace the names of a document, restore them, and write documents in all formats."""
    from herdner.corpora.formats import FORMATS
    from herdner.ner.identity.clusters import with_names

    document = herdner.Tokenizer()(NAMED)
    people = [(at, at + len(name)) for name in NAMES for at in range(len(NAMED)) if NAMED.startswith(name, at)]
    entities = {at: herdner.Entity(at, end, "PER", NAMED[at:end]) for at, end in sorted(people)}
    places = [herdner.Entity(entity.start, entity.end, "LOC", entity.text) for entity in entities.values()]
    for some in (list(entities.values()), places, [*list(entities.values())[::2], *places[1::2]]):
        with_names(document.with_entities(sorted(some, key=lambda entity: entity.start)))
    tagged = with_names(calls.tagger().tag(files.TEXT))
    with suppress(ValueError):
        herdner.pseudonymise(tagged, key=b"k" * 32)
    for name in FORMATS:
        stream = io.BytesIO()
        with suppress(Exception):
            herdner.write_documents([tagged], stream, name)
            list(herdner.read_documents(io.BytesIO(stream.getvalue()), name))
