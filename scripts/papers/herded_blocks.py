"""Does herding pay for names? Herded blocked Gibbs over sentences beside blocked Gibbs and sum-product.

    herdner train --train eng.train:conll2003 --output conll.herdner
    python scripts/papers/herded_blocks.py eng.testa:conll2003 --model conll.herdner

A sweep draws each sentence whole, by forward filtering and backward sampling, given the tags at the other ends of its
links; constraints stay intact, as a label of probability 0 never has the largest weight. Herded, no random number is
drawn: each position has K herding weights for each label to its right, to which the conditional is added; the largest
weight decides, and 1 is taken off it. Two ways of sharing them: by the label to the right alone, so that one weight
sees different conditionals when linked tags change (like HGW19's single bin, in the circular form), and by the tags at
all other ends of the sentence's links too (the blanket, as in HG16).

No paper has herded blocks. Departures: HG16 herds single variables of two labels by thresholds; start weights are those
of `herdner.sampling`, p - e_k with k drawn from p.

All samplers here are the same NumPy loop, so that their times compare: error against sweeps, milliseconds for a sweep,
and the error of random draws in the time of the herded ones. The truth is a long run of the compiled `blocked-gibbs`,
Rao-Blackwellised; half of it against the other half is the last line. Documents without links inside a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command
from ner_decoding import Scored
from numpy.typing import NDArray

import herdner
from herdner.corpora.reading import read
from herdner.graph import TableGraph
from herdner.inference import make_backend
from herdner.sampling import Record

Floats = NDArray[np.float64]
Draw = Callable[[tuple[int, ...], Floats], int]
FEWEST_LINKS = 10


class Document:
    """The sentences of a document and its links, as exponentials."""

    def __init__(self, graph: TableGraph) -> None:
        chains = graph.linked_chains
        assert not isinstance(chains, str)
        form = chains.form
        assert form.edge_table is None, "one transition table"
        self.sentences = list(zip(form.offsets[:-1].tolist(), form.offsets[1:].tolist(), strict=True))
        self.unary = np.exp(form.unary - form.unary.max(axis=1, keepdims=True))
        self.step = np.exp(form.tables[0] - form.tables[0].max())
        self.told: list[list[tuple[int, Floats]]] = [[] for _ in form.unary]  # (other end, table with its label first)
        for (v, w), table in zip(chains.scopes.tolist(), chains.table_of_edge.tolist(), strict=True):
            rows = np.exp(chains.tables[table])
            self.told[v].append((w, rows.T.copy()))
            self.told[w].append((v, rows))
        self.ends = [[other for t in range(a, b) for other, _ in self.told[t]] for a, b in self.sentences]

    def sweep(self, state: list[int], draw: Draw, context: bool, sums: Floats) -> None:
        """Draws every sentence anew; adds the conditionals that were drawn from to ``sums`` [V, K]."""
        for (a, b), ends in zip(self.sentences, self.ends, strict=True):
            around = tuple(state[other] for other in ends) if context else ()
            rows = np.empty((b - a, self.unary.shape[1]))
            for t in range(a, b):
                row = self.unary[t] if t == a else self.unary[t] * (rows[t - a - 1] @ self.step)
                for other, table in self.told[t]:
                    row = row * table[state[other]]
                rows[t - a] = row / row.sum()
            right = -1
            for t in range(b - 1, a - 1, -1):
                p = rows[t - a] if right < 0 else rows[t - a] * self.step[:, right]
                p = p / p.sum()
                sums[t] += p
                state[t] = right = draw((t, right, *around), p)


def random_draw(rng: np.random.Generator) -> Draw:
    """Labels by their probabilities."""

    def draw(key: tuple[int, ...], p: Floats) -> int:
        return min(int(np.searchsorted(np.cumsum(p), rng.random(), "right")), len(p) - 1)

    return draw


def herded_draw(rng: np.random.Generator) -> Draw:
    """Labels by herding weights, which are born when their key is first met."""
    weights: dict[tuple[int, ...], Floats] = {}

    def draw(key: tuple[int, ...], p: Floats) -> int:
        w = weights.get(key)
        if w is None:
            w = weights[key] = p.copy()
            w[min(int(np.searchsorted(np.cumsum(p), rng.random(), "right")), len(p) - 1)] -= 1.0
        w += p
        label = int(np.argmax(np.where(p > 0, w, -np.inf)))
        w[label] -= 1.0
        return label

    return draw


METHODS: dict[str, tuple[Callable[[np.random.Generator], Draw], bool]] = {
    "blocked Gibbs": (random_draw, False),
    "herded, by the label to the right": (herded_draw, False),
    "herded, by all linked tags": (herded_draw, True),
}


def error_curve(
    document: Document, start: list[int], method: str, lengths: list[int], truth: Floats, rng: np.random.Generator
) -> tuple[list[float], float]:
    """The mean error of the Rao-Blackwellised marginals at linked tokens after so many sweeps; seconds of a sweep."""
    maker, context = METHODS[method]
    draw, state, sums, errors = maker(rng), list(start), np.zeros(truth.shape), list[float]()
    linked = [t for t, told in enumerate(document.told) if told]
    began = process_time()
    for done in range(1, lengths[-1] + 1):
        document.sweep(state, draw, context, sums)
        if done in lengths:
            errors.append(float(np.abs(sums[linked] / done - truth[linked]).sum(axis=1).mean() / 2))
    return errors, (process_time() - began) / lengths[-1]


@command("herded_blocks", "Herded blocked Gibbs over sentences, marginals of linked tokens")
def main(
    experiment: Experiment,
    test: Annotated[str, typer.Argument(help="FILE:FORMAT, the documents.")],
    model: Annotated[str, typer.Option("--model", help="A model with links.")] = "en",
    documents: Annotated[int, typer.Option("--documents", min=1, help="How many.")] = 6,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each sampler on each.")] = 2,
) -> None:
    lengths = experiment.size([10, 30], [10, 30, 100, 300])
    long = experiment.size(2_000, 20_000)
    scored = Scored.of(herdner.load(model), list(read(test)))
    chosen = _documents(scored, experiment.size(2, documents))
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    others: dict[str, list[float]] = {"sum-product": [], "sum-product, seconds": [], "the truth, half against half": []}
    rng = experiment.rng()
    for i in chosen:
        _, unary, offsets, links = next(piece for piece in scored.pieces() if piece[0] == i)
        graph, start = scored.crf.compiled(unary, offsets, links), scored.crf.best_chain(unary, offsets)
        halves = [_long_run(graph, start, long, seed) for seed in experiment.seeds(2, i)]
        truth, document = (halves[0] + halves[1]) / 2, Document(graph)
        linked = [t for t, told in enumerate(document.told) if told]

        def error(marginals: Floats, linked: list[int] = linked, truth: Floats = truth) -> float:
            return float(np.abs(marginals[linked] - truth[linked]).sum(axis=1).mean() / 2)

        began = perf_counter()
        beliefs = make_backend("sum-product").infer(graph).marginals
        others["sum-product, seconds"].append(perf_counter() - began)
        assert beliefs is not None
        others["sum-product"].append(error(beliefs))
        others["the truth, half against half"].append(error(halves[0]) * 2)
        for _ in range(experiment.size(1, runs)):
            for name in METHODS:
                errors, took = error_curve(document, start.tolist(), name, lengths, truth, rng)
                found[name].append(errors)
                seconds[name].append(took)
    _show(experiment, lengths, found, seconds, others)


def _documents(scored: Scored, n: int) -> list[int]:
    """Documents of at least so many links, none within a sentence, evenly spread."""
    fit: list[int] = []
    for i, (document, links) in enumerate(zip(scored.documents, scored.links, strict=True)):
        ends = np.concatenate([link.ends for link in links])
        sentence = np.searchsorted(document.sentence_offsets, ends, "right")
        if len(ends) >= FEWEST_LINKS and (sentence[:, 0] != sentence[:, 1]).all() and (np.diff(ends) > 1).all():
            fit.append(i)
    return fit[:: max(1, len(fit) // n)][:n]


def _long_run(graph: TableGraph, start: NDArray[np.int32], n_sweeps: int, seed: int) -> Floats:
    record = Record(best=False, marginals=False, rao_blackwell=True)
    found = make_backend("blocked-gibbs", n_sweeps=n_sweeps, burn_in=n_sweeps // 20, record=record)
    marginals = found.infer(graph, seed, start=start).rao_blackwell
    assert marginals is not None
    return marginals


def _show(
    experiment: Experiment,
    lengths: list[int],
    found: dict[str, list[list[float]]],
    seconds: dict[str, list[float]],
    others: dict[str, list[float]],
) -> None:
    """The table, and what it says."""
    print(f"{'x 1000':36}" + "".join(f"{n:>8}" for n in lengths) + "   ms/sweep")
    means = {name: np.mean(errors, axis=0) for name, errors in found.items()}
    took = {name: float(np.mean(each)) for name, each in seconds.items()}
    for name, mean in means.items():
        print(f"{name:36}" + "".join(f"{1000 * e:8.2f}" for e in mean) + f"{1000 * took[name]:11.2f}")
    plain = "blocked Gibbs"
    equal: dict[str, float] = {}
    for name in means:
        if name != plain:  # errors of random draws fall like the root of time
            equal[name] = float(means[name][-1] / (means[plain][-1] * np.sqrt(took[plain] / took[name])))
            print(f"{name}: {equal[name]:.2f} of the error of random draws in the same time")
    print(", ".join(f"{name} {1000 * np.mean(each):.2f}" for name, each in others.items()) + " (x 1000)")
    figure, (axes,) = experiment.axes(1)
    for name, mean in means.items():
        axes.loglog(np.array(lengths) * took[name], mean, "o-", label=name)
    axes.axhline(float(np.mean(others["sum-product"])), color="grey", linestyle=":", label="sum-product")
    axes.set_xlabel("seconds")
    experiment.finish(
        {"lengths": lengths, "errors": means, "seconds": took, "equal time": equal, "others": others}, figure
    )


if __name__ == "__main__":
    typer.run(main)
