"""Readers and writers of the graph files and result tables of the program by HGW19's authors.

A graph file is text with numbers separated by white space: N and M; N biases B_i; then for each of M pairs the two
variables, 0 to N - 1, and their coupling W_ij. Variables have the values -1 and +1: log p(x) = sum B_i x_i + sum W_ij
x_i x_j + constant (HGW19, Sec. 2.1). The paper's graphs are rings of 8 with parameters in [0, 1] (G1) and [-1, 1] (G2),
and full graphs of 8 with parameters in [0, 0.5] and [0, 0.1] (G3) and [-0.5, 0.5] (G4). An example of a smaller graph
file:

    3 2
    0.5
    -0.1
    0.25
    0 1 0.3
    1 2 -0.7

A table of results has a line for each power of two of sweeps and six columns, separated by tabs: D^all, D^z, D^herding,
D^approx, D^cor, D^bin, each the mean over runs. The line named 2^k shows the errors after 2^(k - 1) sweeps, because the
program counts one sweep as 2^1. (With this reading, D^cor of the first line is 0, as it must be for a single sample,
and the results of Gibbs sampling agree with herdner's.)

A table of Fig. 9 (G3) has one number per line. Line k is the error of the mean of the last variable, with values 0 and
1, after 2^(k - 1) sweeps, averaged over 100 trials.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import numpy as np

from herdner.base.arrays import Floats
from herdner.base.seeds import Seed, generator
from herdner.graph.builders import boltzmann_machine
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import Graph
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.sharing import Sharing
from herdner.studies.convergence.counts import count_visits
from herdner.studies.convergence.exact import conditional

COLUMNS = ("all", "z", "herding", "approx", "cor", "bin")
"""The parts of the error in the order of the authors' tables; names are those of `Errors`."""

_MAX_LENGTH = 2**26  # characters of a file


def read_boltzmann(path: str | Path) -> FactorGraph:
    """Read a Boltzmann machine from a graph file.

    Raises:
        ValueError: The file is too short or too long, has an invalid number, or has an invalid or repeated pair. The
            message is one line with the file and line number.
    """
    words = _Words(Path(path))
    n, m = words.whole("the number of variables"), words.whole("the number of pairs")
    if not n:
        words.fail("a graph needs at least one variable, not 0")
    if 2 + n + 3 * m > len(words.found):  # also before anything that large is made
        words.at = len(words.found)
        words.fail(f"the file ends early: {n} variables and {m} pairs are {2 + n + 3 * m} numbers, not {words.at}")
    biases = [words.number(f"the bias of variable {i}") for i in range(n)]
    edges: list[tuple[int, int]] = []
    couplings: list[float] = []
    seen: set[tuple[int, int]] = set()
    for _ in range(m):
        i, j = (words.whole("a variable of a pair") for _ in range(2))
        for named in (i, j):
            if named >= n:
                words.fail(f"the pair {i} {j} names variable {named}, but the variables are 0 to {n - 1}")
        if i == j:
            words.fail(f"the pair {i} {j} names variable {i} twice")
        if (min(i, j), max(i, j)) in seen:
            words.fail(f"the pair {i} {j} comes twice; give one coupling for it")
        seen.add((min(i, j), max(i, j)))
        edges.append((i, j))
        couplings.append(words.number(f"the coupling of {i} and {j}"))
    if words.at < len(words.found):
        words.fail(f"{words.found[words.at][1][:20]!r} comes after the last of {m} pairs", ahead=True)
    pairs = np.array(edges, np.int32).reshape(-1, 2)
    return boltzmann_machine(couplings, biases, (-1, 1), edges=pairs)


class _Words:
    """The words of a file with their line numbers."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MAX_LENGTH + 1)
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"{path}: a graph file may have at most {_MAX_LENGTH} characters")
        self.path, self.at = path, 0
        self.found = [(line, word) for line, row in enumerate(text.split("\n"), 1) for word in row.split()]

    def fail(self, why: str, ahead: bool = False) -> None:
        place = self.at if ahead else max(self.at - 1, 0)
        line = self.found[min(place, len(self.found) - 1)][0] if self.found else 1
        raise ValueError(f"{self.path}, line {line}: {why}")

    def _next(self, what: str) -> str:
        if self.at >= len(self.found):
            self.fail(f"the file ends before {what}")
        self.at += 1
        return self.found[self.at - 1][1]

    def whole(self, what: str) -> int:
        word = self._next(what)
        if not (word.isascii() and word.isdigit() and len(word) < 9):
            self.fail(f"expected {what}, an integer, got {word[:20]!r}")
        return int(word)

    def number(self, what: str) -> float:
        word = self._next(what)
        value = _number(word)
        if not math.isfinite(value):
            self.fail(f"expected {what}, a number, got {word[:20]!r}")
        return value


def _number(word: str) -> float:
    """Return the number that a word represents, or NaN if it represents none, also for digits with underscores."""
    try:
        return math.nan if "_" in word else float(word)
    except ValueError:
        return math.nan


def error_table(
    graph: Graph, plan: Gibbs, lengths: Sequence[int], runs: int = 10, seed: Seed = None, *,
    sharing: Sharing | None = None, spread: bool = False,
) -> Floats:  # fmt: skip
    """Return the error parts `COLUMNS` of a sampler after each number of sweeps.

    As in the authors' program, each run begins at a uniformly random state with uniformly random weights, updates the
    variables in order, and counts the state right after each update of the last variable.

    Args:
        graph: A small graph.
        plan: The sampler.
        lengths: Increasing numbers of sweeps.
        runs: Number of runs to average.
        seed: Random seed or generator.
        sharing: See `count_visits`.
        spread: True to return the means and the standard deviations.

    Returns:
        float64[lengths, 6], or float64[2, lengths, 6] with ``spread``.

    Raises:
        ValueError: There are no runs, or an argument does not fit `count_visits`.
    """
    if runs < 1:
        raise ValueError(f"`runs` must be at least 1, got {runs}")
    rng = generator(seed)
    columns, each = attrgetter(*COLUMNS), range(runs)
    found = [[columns(e) for e in count_visits(graph, plan, lengths, seed=rng, sharing=sharing).errors] for _ in each]
    both = _mean_and_spread(np.array(found))
    return both if spread else both[0]


def _mean_and_spread(runs: Floats) -> Floats:
    """Return the mean of runs [N, ..] and their standard deviation (0 for a single run), [2, ..]."""
    return np.stack([runs.mean(axis=0), runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(runs.shape[1:])])


def expectation_table(
    graph: Graph, plan: Gibbs, lengths: Sequence[int], trials: int = 100, seed: Seed = None
) -> Floats:
    """Return the error of the mean of the last variable after each number of sweeps (HGW19, Fig. 9).

    As in the authors' program, each trial continues with the state and the herding weights of the previous trial: all
    trials are parts of one run.

    Args:
        graph: A small graph of binary variables.
        plan: The sampler.
        lengths: Increasing numbers of sweeps.
        trials: Number of trials to average.
        seed: Random seed or generator.

    Returns:
        float64[2, lengths, 2]: the mean over trials and the standard deviation, by states 0 and 1 and by conditionals
        (Rao-Blackwell).

    Raises:
        ValueError: The variable is not binary, there are no trials, or an argument does not fit `count_visits`.
    """
    if trials < 1:
        raise ValueError(f"`trials` must be at least 1, got {trials}")
    found = count_visits(graph, plan, [k * lengths[-1] + n for k in range(trials) for n in lengths], seed=seed)
    target = found.focus.target
    if target.shape[1] != 2:
        raise ValueError(f"expectation_table needs a binary last variable, got {target.shape[1]} states")
    visits = found.visits.sum(axis=1).reshape(trials, len(lengths), *target.shape)
    before = np.concatenate([np.zeros_like(visits[:1, -1:]), visits[:-1, -1:]])
    shares = (visits - before) / np.reshape(lengths, (-1, 1, 1))
    truth = target[:, 1].sum()
    off = np.abs([shares[..., 1].sum(axis=-1) - truth, shares.sum(axis=-1) @ conditional(target)[:, 1] - truth])
    return _mean_and_spread(np.moveaxis(off, 0, -1))


def table_text(lengths: Sequence[int], table: Floats) -> str:
    """Return a table in the authors' format: 512 sweeps are "2^10", and each column has 15 digits and a tab.

    Raises:
        ValueError: A number of sweeps is no power of two.
    """
    lines: list[str] = []
    for n, row in zip(lengths, table, strict=True):
        if n < 1 or n & (n - 1):
            raise ValueError(f"the authors' tables need powers of two, got {n} sweeps")
        lines.append("\t".join([f"2^{n.bit_length()}", *(f"{value:.15f}" for value in row)]) + "\t\n")
    return "".join(lines)


def read_table(path: str | Path) -> tuple[list[int], Floats]:
    """Read the numbers of sweeps and the error columns, float64[numbers of sweeps, 6], of a table of results.

    Raises:
        ValueError: A line is invalid; the message gives its number.
    """
    lengths, rows = list[int](), list[list[float]]()
    for at, line in _lines(path):
        name, *words = line.split()
        power, values = re.fullmatch(r"2\^([1-9]|[1-5][0-9]|6[0-3])", name), [_number(word) for word in words]
        if power is None or not all(0 <= value < math.inf for value in values):
            raise ValueError(f"{path}, line {at}: expected 2^k and six numbers of at least 0, not {line[:40]!r}")
        if len(values) != len(COLUMNS):
            raise ValueError(f"{path}, line {at}: expected six numbers after {name}, not {len(values)}")
        lengths.append(2 ** (int(power[1]) - 1))
        rows.append(values)
    return lengths, np.array(rows)


def read_expectations(path: str | Path) -> tuple[list[int], Floats]:
    """Read the numbers of sweeps and the errors of a table of Fig. 9 of HGW19.

    Raises:
        ValueError: A line is invalid; the message gives its number.
    """
    found: list[float] = []
    for at, line in _lines(path):
        found.append(_number(line))
        if not 0 <= found[-1] < math.inf or len(found) > 62:
            wanted = "expected one number of at least 0, on at most 62 lines"
            raise ValueError(f"{path}, line {at}: {wanted}, not {line[:40]!r}")
    return [2**k for k in range(len(found))], np.array(found)


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines of a table with their line numbers; raise `ValueError` if all lines are empty."""
    empty = True
    with Path(path).open(encoding="utf-8", errors="replace") as stream:
        for at, line in enumerate(stream, 1):
            if line.strip():
                empty = False
                yield at, line.strip()
    if empty:
        raise ValueError(f"{path}: an empty table of results")
