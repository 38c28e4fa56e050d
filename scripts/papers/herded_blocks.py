"""Herded blocked Gibbs over sentences, compared with blocked Gibbs and sum-product on names.

    herdner train --train eng.train:conll2003 --output conll.herdner
    python scripts/papers/herded_blocks.py eng.testa:conll2003 --model conll.herdner

A sweep draws each sentence as a whole by forward filtering and backward sampling, given the tags at the other ends of
its links. In `BlockedGibbs(herded=True)`, herding weights replace random numbers; none of the papers describes this
sampler.

The script compares mean total variation errors of the Rao-Blackwellised marginals of linked tokens. Runs start at the
best state of the chains and have no burn-in. Both samplers are compiled code and run in turn; times are processor
times. The error of random draws is scaled to the time of herded draws by the square root of the ratio of times. The
reference is a long run of random draws; the last line of the output compares the halves of this run.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command, summary
from ner_decoding import Scored
from numpy.typing import NDArray

import herdner
from herdner.corpora.reading import read
from herdner.graph import TableGraph
from herdner.inference import make_backend
from herdner.inference.record import Record

Floats = NDArray[np.float64]
FEWEST_LINKS = 10
METHODS = {"blocked Gibbs": False, "herded": True}
AVERAGES = Record(best=False, marginals=False, rao_blackwell=True)


@dataclass(frozen=True)
class Case:
    """Graph of a document, initial state of the samplers, and linked tokens whose marginals are compared."""

    graph: TableGraph
    start: NDArray[np.int32]
    linked: NDArray[np.int64]

    def average(self, n_sweeps: int, seed: int, herded: bool = False, burn_in: int = 0) -> Floats:
        """Return the Rao-Blackwellised marginals of linked tokens in a run."""
        sampler = make_backend("blocked-gibbs", n_sweeps=n_sweeps, burn_in=burn_in, herded=herded, record=AVERAGES)
        marginals = sampler.infer(self.graph, seed, start=self.start).rao_blackwell
        assert marginals is not None
        return marginals[self.linked]

    def errors(self, truth: Floats, herded: bool, lengths: list[int], seed: int) -> list[float]:
        """Return the error after each number of sweeps, followed by the seconds per sweep of the longest run."""
        found, began = [], 0.0
        for n in lengths:
            began = process_time()
            found.append(distance(self.average(n, seed, herded), truth))
        return [*found, (process_time() - began) / lengths[-1]]

    def by_messages(self, truth: Floats) -> tuple[float, float]:
        """Return the error and the seconds of sum-product."""
        began = process_time()
        beliefs = make_backend("sum-product").infer(self.graph).marginals
        assert beliefs is not None
        return distance(beliefs[self.linked], truth), process_time() - began


def distance(p: Floats, q: Floats) -> float:
    """Return the mean total variation distance between two sets of marginals."""
    return float(np.abs(p - q).sum(axis=1).mean() / 2)


def linked_documents(scored: Scored, n: int) -> list[Case]:
    """Return at most ``n`` documents with at least FEWEST_LINKS links, evenly spread over the corpus."""
    fit = [i for i, links in enumerate(scored.links) if sum(map(len, links)) >= FEWEST_LINKS]
    fit, found = fit[:: max(1, len(fit) // n)][:n], list[Case]()
    for i, unary, offsets, links in scored.pieces():
        if i in fit:
            ends = np.unique(np.concatenate([pairs.ravel() for pairs in links]))
            start = scored.crf.best_chain(unary, offsets)
            found.append(Case(scored.crf.compile(unary, offsets, links), start, ends.astype(np.int64)))
    return found


@command("herded_blocks", "Herded blocked Gibbs over sentences, marginals of linked tokens")
def main(
    experiment: Experiment,
    test: Annotated[str, typer.Argument(help="Annotated documents, as FILE:FORMAT.")],
    model: Annotated[str, typer.Option("--model", help="Name or file of a model with links.")] = "en",
    documents: Annotated[int, typer.Option("--documents", min=1, help="Number of documents.")] = 40,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Number of runs per sampler and document.")] = 5,
) -> None:
    lengths, long = experiment.size([10, 30, 100], [10, 30, 100, 300, 1000]), experiment.size(5_000, 50_000)
    scored = Scored.of(herdner.load(model), list(read(test)))
    found, messages, apart = [], [], []
    for k, case in enumerate(linked_documents(scored, experiment.size(min(3, documents), documents))):
        halves = [case.average(long, seed, burn_in=long // 20) for seed in experiment.seeds(2, 2 * k)]
        truth = (halves[0] + halves[1]) / 2
        messages.append(case.by_messages(truth))
        apart.append(distance(*halves))
        seeds = experiment.seeds(experiment.size(2, runs), 2 * k + 1)
        found.append([[case.errors(truth, herded, lengths, s) for herded in METHODS.values()] for s in seeds])
    of_runs = np.array(found)  # [documents, runs, methods, lengths and the seconds of a sweep]
    errors = dict(zip(METHODS, np.moveaxis(of_runs[..., :-1].mean(axis=1), 1, 0), strict=True))
    seconds = dict(zip(METHODS, np.median(of_runs[..., -1], axis=1).T, strict=True))
    slower = seconds["herded"] / seconds["blocked Gibbs"]
    equal = errors["herded"] / errors["blocked Gibbs"] * np.sqrt(slower)[:, None]
    by_messages = np.array(messages)
    print(f"{len(apart)} documents; {'x 1000, sweeps':18}" + "".join(f"{n:>8}" for n in lengths) + "   ms/sweep")
    for name, rows in errors.items():
        means = "".join(f"{1000 * e:8.2f}" for e in rows.mean(axis=0))
        print(f"{name:32}{means}{1000 * seconds[name].mean():11.3f}")
    print(f"a herded sweep takes {np.median(slower):.2f} times as long (median)")
    for n, column in zip(lengths, equal.T, strict=True):
        low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
        ahead = f"{int((column < 1).sum())} of {len(column)} documents ahead"
        print(
            f"{n} sweeps: {median:.2f} of the error of random draws in the same time ({low:.2f} to {high:.2f}), {ahead}"
        )
    print(f"sum-product {1000 * by_messages[:, 0].mean():.2f}, in the time of"
          f" {np.median(by_messages[:, 1] / seconds['blocked Gibbs']):.1f} sweeps;"
          f" the truth, half against half {1000 * np.mean(apart):.2f} (x 1000)")  # fmt: skip
    figure, (left, right) = experiment.axes(2)
    for name, rows in errors.items():
        left.loglog(np.array(lengths) * seconds[name].mean(), rows.mean(axis=0), "o-", label=name)
    left.axhline(by_messages[:, 0].mean(), color="grey", linestyle=":", label="sum-product")
    left.set(xlabel="seconds", ylabel="mean error of a marginal")
    quartiles = summary(equal)
    right.fill_between(lengths, quartiles["low"], quartiles["high"], alpha=0.3, label="quartiles of the documents")
    right.semilogx(lengths, quartiles["median"], "o-", label="median")
    right.axhline(1.0, color="grey", linestyle=":")
    right.set(xlabel="sweeps", ylabel="error, herded by random, equal time", ylim=(0, None))
    results = {
        "lengths": lengths, "errors": errors, "seconds": seconds, "equal time": equal, "sum-product": by_messages,
        "apart": apart,
    }  # fmt: skip
    experiment.finish(results, figure)
