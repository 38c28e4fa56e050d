"""Speed of the certification and optimisation of scans, at the sizes of Mitliagkas & Mackey 2017.

    python scripts/benchmarks/bench_dogs.py [--repeats 15] [--json] [--quick]

Each time is the shortest of several runs. The table also shows each time scaled to a machine on which one call of
libm's `exp` takes 6 ns; the targets refer to such a machine. ``--quick`` only tests that the script runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import typer
from timing import AsJson, Quick, Repeats, Row, best_times, calibration, report

import herdner
from herdner.dobrushin import (
    ScanSearch,
    binary_pairwise_bound,
    dobrushin_variation,
    pairwise_bound,
    shortest_scan,
    tightest_influence,
    unit_importance,
)
from herdner.graph import FactorGraph
from herdner.graph.scan import systematic_scan

REFERENCE_EXP = 6.0  # nanoseconds of one libm exp on the machine that the targets are for


def random_ising(side: int, seed: int = 0) -> FactorGraph:
    """Return a random Ising grid as in DoGS17 Sec. 5.1 and 5.2: fields 0 or 1, couplings uniform in [0, 0.25]."""
    rng = np.random.default_rng(seed)
    couplings = [rng.uniform(0, 0.25, (side - 1, side)), rng.uniform(0, 0.25, (side, side - 1))]
    return herdner.ising(couplings, rng.integers(0, 2, (side, side)).astype(float))


def million(side: int) -> dict[str, Callable[[], object]]:
    """Return functions that compute the influences, the certificate and the scan of DoGS17 Sec. 5.2."""
    graph = herdner.compile_tables(random_ising(side))
    influence, first = binary_pairwise_bound(graph), {0: 1.0}
    n_steps = 2 * side * side
    epsilon = dobrushin_variation(influence, systematic_scan(), first, n_steps)

    def whole() -> None:
        bound = binary_pairwise_bound(herdner.compile_tables(graph.graph))
        goal = dobrushin_variation(bound, systematic_scan(), first, n_steps)
        assert shortest_scan(bound, goal, systematic_scan(), first, n_steps)

    return {
        "influence bound": lambda: binary_pairwise_bound(graph),
        "variation of the systematic scan": lambda: dobrushin_variation(influence, systematic_scan(), first, n_steps),
        "doubling search": lambda: shortest_scan(influence, epsilon, systematic_scan(), first, n_steps),
        "all of it, and compilation": whole,
    }


def field_aspect() -> Callable[[], object]:
    """Return a function that optimises a scan as in DoGS17 Sec. 5.5: 8 x 12 target patches of a 20 x 31 Potts grid."""
    n_labels, patches = 13, np.arange(620).reshape(20, 31)
    graph = herdner.potts(0.48, np.random.default_rng(0).normal(size=(20, 31, n_labels)))
    middle = unit_importance(620, patches[6:14, 9:21].ravel().tolist())

    def select() -> None:
        influence = pairwise_bound(graph)
        goal = dobrushin_variation(influence, systematic_scan(), middle, 620)
        assert shortest_scan(influence, goal, systematic_scan(), middle, 620)

    return select


def rows(side: int, repeats: int) -> list[Row]:
    parts = million(side)
    forty = tightest_influence(herdner.ising(1 / 3.915, 0.0, (40, 40)))
    order = np.resize(np.arange(1600, dtype=np.int32), 16_000)
    one, all_of_them = ScanSearch(forty, {0: 1.0}), ScanSearch(forty, None)
    runs = dict(parts)
    runs["one"], runs["all"] = lambda: one.run(order, 0.0), lambda: all_of_them.run(order, 0.0)
    runs["aspect"] = field_aspect()
    best = best_times(runs, repeats)
    slower = REFERENCE_EXP / calibration()
    lines = [
        Row("million", f"{side} x {side}: {name}", value=best[name] * slower, unit="s",
            target=0.5 if name.startswith("all") else None, wanted="at most", setup_seconds=best[name])
        for name in parts
    ]  # fmt: skip
    for name, what in (("one", "one variable matters"), ("all", "all matter")):
        ns = 1e9 * best[name] / len(order)
        target = 300.0 if name == "one" else None
        lines.append(Row("step", f"Algorithm 2, 40 x 40, {what}", ns, value=ns * slower, unit="ns a step",
                         target=target, wanted="at most"))  # fmt: skip
    seconds = best["aspect"]
    lines.append(Row("aspect", "scan selection, 12 x 8 of 31 x 20", value=1e3 * seconds * slower, unit="ms",
                     target=2.0, wanted="at most", setup_seconds=seconds))  # fmt: skip
    return lines


def main(repeats: Repeats = 15, quick: Quick = False, as_json: AsJson = False) -> None:
    """Measure the speed of certifying and optimising scans, at the sizes of Mitliagkas and Mackey 2017."""
    note = f"; values are for one of {REFERENCE_EXP:g} ns"
    report({"all": lambda: rows(60 if quick else 1000, 1 if quick else repeats)}, quick, as_json, note)


if __name__ == "__main__":
    typer.run(main)
