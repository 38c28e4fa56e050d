r"""Results of `herdner.CRF` beside those of CRFsuite: optima, predictions, marginals, and most probable labellings.

    python scripts/benchmarks/compare_crfsuite.py --corpus ../shared/data/ner/conll2003/eng.train:conll2003 \
        [--sentences 200] [--chains 10000]

The first table has the training objective (negative log-likelihood plus c1 times the L1 norm plus c2 times the squared
L2 norm) at which each program stops, with the features of sklearn-crfsuite's tutorial and a stopping rule that is
stricter than the default. Both objectives are computed from the CRFsuite model files by the same function. The second
table compares predictions and marginals of a model that CRFsuite trained on the first sentences, on all sentences of
the corpus, and the most probable labellings of short chains with all labellings of these chains.
Peer: pip install '.[train]'.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from bench_estimator import Sentences, sentences

from herdner import CRF
from herdner.crf.crfsuite_files import read_crfsuite
from herdner.crf.sequence_labels import encode_labels
from herdner.evaluation.tabular import markdown_table
from herdner.inference.linear_chain import smooth

PENALTIES = (0.0, 0.1, 1.0)
STRICT = {"max_iterations": 3000, "epsilon": 1e-7, "delta": 1e-10}
N_BEST = 10


def objective(path: Path, items: Sentences, tags: list[list[str]], c1: float, c2: float) -> float:
    """Return the training objective of the weights in a CRFsuite model file."""
    weights = read_crfsuite(path)
    encoded = weights.encode(items)
    unary = weights.unary(encoded)
    states = encode_labels(tags, encoded.offsets, weights.labels).states
    rows = np.arange(len(states))
    inner = np.delete(rows, encoded.offsets[:-1])
    score = unary[rows, states].sum() + weights.transition[states[inner - 1], states[inner]].sum()
    log_z = smooth(unary, weights.transition[None], encoded.offsets, None, nodes=False).log_z.sum()
    numbers = np.concatenate([weights.state_weights, weights.transition.ravel()])
    return float(log_z - score + c1 * np.abs(numbers).sum() + c2 * (numbers**2).sum())


def optima(items: Sentences, tags: list[list[str]], folder: Path) -> list[tuple[str, ...]]:
    """Return a row for each pair of penalties: the objectives, and their relative difference."""
    from sklearn_crfsuite import CRF as Peer  # pyright: ignore[reportMissingTypeStubs]

    rows: list[tuple[str, ...]] = []
    for c1, c2 in itertools.product(PENALTIES, PENALTIES):
        values: list[float] = []
        for kind in (CRF, Peer):
            path = folder / f"{kind.__module__}-{c1}-{c2}"
            kind(c1=c1, c2=c2, model_filename=str(path), **STRICT).fit(items, tags)
            values.append(objective(path, items, tags, c1, c2))
        ours, theirs = values
        rows.append((f"{c1:g}", f"{c2:g}", f"{ours:.6f}", f"{theirs:.6f}", f"{(ours - theirs) / max(theirs, 1):+.1e}"))
    return rows


def differences(path: Path, items: Sentences) -> tuple[int, int, float]:
    """Return the number of items, of different labels, and the largest difference of a marginal."""
    from sklearn_crfsuite import CRF as Peer  # pyright: ignore[reportMissingTypeStubs]

    ours, theirs = CRF.from_crfsuite(path), Peer(model_filename=str(path))
    n_items = n_different = 0
    largest = 0.0
    for begin in range(0, len(items), 1000):
        part = items[begin : begin + 1000]
        for mine, others in zip(ours.predict(part), theirs.predict(part), strict=True):
            n_items += len(mine)
            n_different += sum(a != b for a, b in zip(mine, others, strict=True))
        for mine, others in zip(ours.predict_marginals(part), theirs.predict_marginals(part), strict=True):
            for a, b in zip(mine, others, strict=True):
                largest = max(largest, *(abs(a[label] - b[label]) for label in b))
    return n_items, n_different, largest


def enumeration_faults(path: Path, chains: Sentences) -> tuple[int, float]:
    """Return the number of chains whose most probable labellings differ from those of the enumeration.

    The second value is the largest relative difference of a probability.
    """
    crf, weights = CRF.from_crfsuite(path), read_crfsuite(path)
    n_faults, largest = 0, 0.0
    for chain, best in zip(chains, crf.predict_n_best(chains, N_BEST), strict=True):
        unary = weights.unary(weights.encode([chain]))
        states = np.array(list(itertools.product(range(len(weights.labels)), repeat=len(chain))))
        scores = unary[np.arange(len(chain)), states].sum(axis=1)
        scores += weights.transition[states[:, :-1], states[:, 1:]].sum(axis=1)
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        names = [tuple(weights.labels[k] for k in row) for row in states.tolist()]
        by_labels = dict(zip(names, probabilities, strict=True))
        top = np.sort(probabilities)[::-1][:N_BEST]
        found = np.array([p for _, p in best])
        listed = np.array([by_labels[tuple(labels)] for labels, _ in best])
        distinct = len({tuple(labels) for labels, _ in best})
        is_right = len(found) == len(top) == distinct and np.allclose(found, top, rtol=1e-9, atol=1e-15)
        n_faults += not (is_right and np.allclose(listed, found, rtol=1e-9, atol=1e-15))
        if len(found) == len(top):
            largest = max(largest, float(np.abs(found / top - 1).max()))
    return n_faults, largest


def short_chains(items: Sentences, n_chains: int) -> Sentences:
    """Return chains of one to four items: the beginnings of sentences, again from the first when all were used."""
    sources = itertools.cycle(items)
    return [next(sources)[: 1 + k % 4] for k in range(n_chains)]


def main(
    corpus: Annotated[str, typer.Option(help="corpus, FILE:FORMAT")],
    n_sentences: Annotated[int, typer.Option("--sentences", help="number of sentences to train on")] = 200,
    n_chains: Annotated[int, typer.Option("--chains", help="number of chains to enumerate")] = 10_000,
) -> None:
    """Print the two tables."""
    from sklearn_crfsuite import CRF as Peer  # pyright: ignore[reportMissingTypeStubs]

    items, tags = sentences(corpus, 10**9)
    train = items[:n_sentences], tags[:n_sentences]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head = ("c1", "c2", "herdner", "CRFsuite", "relative difference")
        print(markdown_table(head, optima(*train, folder)), end="\n\n")
        path = folder / "model"
        Peer(c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True, model_filename=str(path)).fit(*train)
        n_items, n_different, largest = differences(path, items)
        n_faults, error = enumeration_faults(path, short_chains(items, n_chains))
    rows = [
        ("items", f"{n_items:,}"), ("different labels", f"{n_different:,}"),
        ("largest difference of a marginal", f"{largest:.1e}"), ("enumerated chains", f"{n_chains:,}"),
        (f"chains whose {N_BEST} best labellings differ", f"{n_faults:,}"),
        ("largest relative difference of a probability of a labelling", f"{error:.1e}"),
    ]  # fmt: skip
    print(markdown_table(("measure", "value"), rows))


if __name__ == "__main__":
    typer.run(main)
