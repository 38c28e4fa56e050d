"""Bayesian skip-chain CRF: marginals averaged over the posterior of the tables, compared with a point estimate.

    python scripts/papers/bayesian_crf.py [--documents 10] [--particles 16] [--quick]

A linear chain is trained on 30 of the 40 documents of corpora/herdner_news.train.conll. The transition table and the
table of links are then learned from other documents: as the mode of their posterior, and as particles of the whole
posterior (`herdner.crf.bayesian`, by Frank-Wolfe Stein sampling). The marginals under the mode and under the particles
are compared on corpora/herdner_news.dev.conll. If there are few documents, the average over the particles is less
overconfident than the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from herdner import Document, TableGraph, Tagger, make_backend
from herdner.corpora.formats import read_documents
from herdner.crf.bayesian import sample_tables
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.evaluation.calibration import EntityConfidences, ece
from herdner.ner.training.links import join_examples
from herdner.text.tags import spans_from_states, tags_from_spans

CORPORA = Path(__file__).resolve().parents[2] / "corpora"
N_BINS = 10  # bins of the calibration error


@dataclass(frozen=True)
class Scores:
    """Scores of the marginals of all tokens against the gold tags.

    Attributes:
        f1: Micro F1 of the entities of the most probable tags.
        log_loss: Mean of -log p(gold tag), in nats.
        calibration_error: Mean distance between the probability of the best tag and the share of correct tags, over
            bins of equal width.
    """

    f1: float
    log_loss: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class Data:
    """Documents with the log-potentials of their tags under a chain, and with their gold tags as states."""

    documents: list[Document]
    unaries: list[NDArray[np.float64]]
    states: list[NDArray[np.int32]]

    @staticmethod
    def of(tagger: Tagger, documents: Sequence[Document]) -> Data:
        """Compute the log-potentials of documents by a chain. Documents with tags that the chain lacks are left out."""
        extractor, index = tagger.model_.extractor(), {tag: k for k, tag in enumerate(tagger.classes_)}
        data = Data([], [], [])
        for each in documents:
            tags = tags_from_spans(each.spans or (), each.n_tokens, tagger.model_.scheme)
            if set(tags) <= index.keys():
                data.documents.append(each)
                data.unaries.append(extractor.scores(each.tokens, each.sentence_offsets))
                data.states.append(np.array([index[tag] for tag in tags], np.int32))
        return data


def graphs(model: SkipChainModel, data: Data) -> list[TableGraph]:
    """Return the compiled graph of each document under a model."""
    return [
        model.compile(unary, each.sentence_offsets, model.links(each.tokens, each.sentence_offsets))
        for each, unary in zip(data.documents, data.unaries, strict=True)
    ]


def mean_marginals(models: Sequence[SkipChainModel], data: Data) -> list[NDArray[np.float64]]:
    """Return the marginals of each document, averaged over models: float64[tokens, tags] each."""
    backend = make_backend("sum-product")
    totals = [np.zeros_like(unary) for unary in data.unaries]
    for model in models:
        for total, graph in zip(totals, graphs(model, data), strict=True):
            marginals = backend.infer(graph).marginals
            assert marginals is not None
            total += marginals
    return [total / len(models) for total in totals]


def score(marginals: Sequence[NDArray[np.float64]], data: Data, tags: tuple[str, ...]) -> Scores:
    """Return the scores of marginals against the gold tags."""
    correct = predicted = gold = 0
    for p, own, document in zip(marginals, data.states, data.documents, strict=True):
        found, true = (
            set(spans_from_states(each.astype(np.int32), tags, document.sentence_offsets))
            for each in (p.argmax(axis=1), own)
        )
        correct, predicted, gold = correct + len(found & true), predicted + len(found), gold + len(true)
    p, states = np.concatenate(marginals), np.concatenate(data.states)
    sample = EntityConfidences(p.max(axis=1), (p.argmax(axis=1) == states).astype(np.float64), np.zeros(len(p), int))
    log_loss = -np.log(np.maximum(p[np.arange(len(p)), states], 1e-300)).mean()
    return Scores(2 * correct / max(predicted + gold, 1), float(log_loss), ece(sample, "width", N_BINS))


def compare(
    documents: int, particles: int, steps: int, *, chain: int, test: int, iterations: int, l2: float, seed: int
) -> dict[str, Scores]:
    """Return the scores of the point estimate and of the posterior mean, by the name of the method."""
    news = list(read_documents(CORPORA / "herdner_news.train.conll", "conll"))
    held_out = list(read_documents(CORPORA / "herdner_news.dev.conll", "conll"))[:test]
    tagger = Tagger(templates=(linear_chain_template(),), max_iterations=iterations, calibrated=False)
    tagger.fit(news[:chain])
    learned, tested = (Data.of(tagger, each) for each in (news[chain : chain + documents], held_out))
    tags = tagger.classes_
    links = (LinkTable(skip_chain_template(), np.zeros((len(tags), len(tags)))),)
    model = SkipChainModel.for_tags(tags, tagger.model_.scheme, tagger.model_.weights.transition, links)
    examples = join_examples(model, learned.documents, learned.unaries, learned.states)
    models = sample_tables(model, examples, particles, l2=l2, n_steps=steps, seed=seed).to_models(model)
    return {  # the first particle is the mode
        "point estimate": score(mean_marginals(models[:1], tested), tested, tags),
        "posterior mean": score(mean_marginals(models, tested), tested, tags),
    }


def main(
    documents: Annotated[int, typer.Option(min=1, help="Number of documents from which the tables are learned.")] = 10,
    particles: Annotated[int, typer.Option(min=1, help="Number of particles of the posterior.")] = 16,
    l2: Annotated[float, typer.Option(help="Precision of the prior.")] = 0.1,
    seed: int = 0,
    quick: Annotated[bool, typer.Option(help="Use small sizes, to test the script.")] = False,
) -> None:
    """Print F1, log loss and calibration error of the point estimate and of the posterior mean."""
    sizes = {"steps": 4, "chain": 20, "test": 8, "iterations": 15} if quick else {
        "steps": 20, "chain": 30, "test": 1000, "iterations": 80,
    }  # fmt: skip
    if quick:
        documents, particles = min(documents, 3), min(particles, 3)
    print(f"{'':16}{'F1':>8}{'log loss':>12}{'calibration error':>20}")
    for name, each in compare(documents, particles, l2=l2, seed=seed, **sizes).items():
        print(f"{name:16}{each.f1:8.4f}{each.log_loss:12.4f}{each.calibration_error:20.4f}")


if __name__ == "__main__":
    typer.run(main)
