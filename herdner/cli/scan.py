"""Command ``herdner scan``: guarantees for the update order (scan) of a Gibbs sampler, and a better scan."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import show_activity
from herdner.cli.usage import UsageError, check_distinct, check_figure, check_output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from herdner.dobrushin import Influence
    from herdner.graph import FactorGraph

_MAX_WORK = 2e9  # largest number of influences to visit for the bound of the uniform random scan


@dataclass(frozen=True)
class _ScanTask:
    """Input for the optimisation of a scan (order in which a Gibbs sampler updates the variables).

    Attributes:
        graph: The graph.
        shape: Rows and columns of the grid; None if the graph is read from a file.
        wraps: Whether opposite sides of the grid are joined.
        importance: Weight of each target variable; None: all variables are targets.
        n_steps: Number of updates.
    """

    graph: FactorGraph
    shape: tuple[int, int] | None
    wraps: bool
    importance: dict[int, float] | None
    n_steps: int


@command
def scan(
    ising: Annotated[str | None, typer.Option(
        metavar="ROWSxCOLUMNS", help="Size of an Ising grid with states -1 and +1.")] = None,
    coupling: Annotated[float, typer.Option(help="J of the potential J s s' of neighbours in --ising.")] = 0.25,
    field: Annotated[float, typer.Option(help="h of the potential h s of each variable in --ising.")] = 0.0,
    wrap: Annotated[bool, typer.Option("--wrap", help="Join the opposite sides of --ising.")] = False,
    graph: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Graph file: .npz, written by herdner.save_graph, or .uai.")] = None,
    target: Annotated[list[str] | None, typer.Option(
        metavar="I,J,..", help="Indices of the target variables; may be repeated [default: all].")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Number of updates [default: 10 sweeps].")] = None,
    epsilon: Annotated[float | None, typer.Option(
        help="Find a short scan with this guarantee and at most --steps updates.")] = None,
    iterations: Annotated[int, typer.Option(
        min=1, help="Runs of DoGS17 Algorithm 2; each starts at the previous scan.")] = 1,
    exact: Annotated[int, typer.Option(
        metavar="STATES", min=0, help="Enumerate Markov blankets with at most this many joint states.")] = 0,
    certify: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Also certify this scan: one index of a variable per line.")] = None,
    output: Annotated[Path | None, typer.Option(
        "--output", "-o", help="Write the optimised scan: one index per line.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the guarantees (.png, .pdf or .svg).")] = None,
    json_: opt.JsonOption = False,
) -> None:  # fmt: skip
    """Certify scans (orders of updates) of a Gibbs sampler by Dobrushin influences, and optimise a scan (DoGS).

    The guarantee of a scan is an upper bound on the total variation distance between the joint distribution of the
    targets after the last update and the true one, for any start. It is trivial unless it is below the number of
    targets.
    """
    from herdner.dobrushin import tightest_influence

    check_output(output, [graph, certify])
    check_distinct({"--output": output, "--figure": figure})
    check_figure(figure)
    task = _scan_task(ising, coupling, field, wrap, graph, target, steps)
    with show_activity("computing influences"):
        influence = tightest_influence(task.graph, exact)
    with show_activity("optimising the scan"):
        scans, notes = _scans(task, influence, certify, epsilon, iterations)
        curves = _curves(task, influence, scans, notes)
    if output is not None:
        _write_scan(output, scans["dogs"])
    if figure is not None:
        _draw(figure, task, curves, scans["dogs"])
    _print_guarantees(task, influence, curves, notes, json_)


def _scan_task(
    ising: str | None, coupling: float, field: float, wrap: bool, path: Path | None, target: list[str] | None,
    steps: int | None,
) -> _ScanTask:  # fmt: skip
    import herdner
    from herdner.base.memory import check_memory
    from herdner.dobrushin import unit_importance

    if (ising is None) == (path is None):
        raise UsageError(
            f"{'there is no graph' if path is None else 'there are two graphs'}: give either --ising ROWSxCOLUMNS or"
            " --graph FILE"
        )
    for name, number in (("--coupling", coupling), ("--field", field)):
        if not math.isfinite(number):
            raise UsageError(f"{name} must be a finite number, got {number}")
    shape = None
    if ising is not None:
        match = re.fullmatch(r"(\d{1,9})[xX](\d{1,9})", ising)
        if match is None:
            raise UsageError(f"--ising {ising!r}: expected ROWSxCOLUMNS, as in 40x40")
        shape = (int(match[1]), int(match[2]))
        if not all(shape):
            raise UsageError(f"--ising {ising}: a grid must have at least one row and one column")
        n = shape[0] * shape[1]
        check_memory(24.0 * n + 40.0 * (steps or 10 * n), f"--ising {ising}", "use a smaller grid or fewer --steps")
    graph = herdner.load_graph(path) if path is not None else herdner.ising(coupling, field, shape, wrap=wrap)
    indices = [part.strip() for group in target or () for part in group.split(",")]
    invalid = next((part for part in indices if not part.isdecimal()), None)
    if invalid is not None:
        raise UsageError(f"--target {invalid!r}: expected indices of variables, as in 0,5")
    importance = unit_importance(graph.n_variables, [int(part) for part in indices]) if indices else None
    return _ScanTask(graph, shape, wrap, importance, steps or 10 * graph.n_variables)


def _scans(
    task: _ScanTask, influence: Influence, certify: Path | None, epsilon: float | None, iterations: int
) -> tuple[dict[str, NDArray[np.int32]], list[str]]:
    """Return the scans to certify, as a dict by name, and notes for the user about the search for the scan "dogs"."""
    from herdner.dobrushin import ScanSteps, optimise_scan, shortest_scan
    from herdner.graph.scan import systematic_scan

    steps = {} if certify is None else {certify.name: ScanSteps.of(_read_scan(certify), influence)}
    steps["systematic"] = ScanSteps.of(systematic_scan(), influence, task.n_steps)
    scans = {name: scan.order for name, scan in steps.items() if scan.order is not None}
    notes: list[str] = []
    search = None
    if epsilon is not None:
        search = shortest_scan(influence, epsilon, None, task.importance, task.n_steps, refine=True)
        if search is None:
            notes.append(f"no scan of {task.n_steps} updates with a guarantee of {epsilon:g} was found")
    if search is None:
        search = optimise_scan(influence, None, task.importance, task.n_steps, iterations=iterations)
    scans["dogs"] = search.order
    notes.append(f"the search for the scan dogs took {search.seconds:.3g} s")
    return scans, notes


def _curves(
    task: _ScanTask, influence: Influence, scans: dict[str, NDArray[np.int32]], notes: list[str]
) -> dict[str, NDArray[np.float64]]:
    """Return a dict from scan names to the error bounds after 0, 1, .., T updates.

    The uniform random scan is added. If its guarantee takes too long to compute, a note is appended to ``notes``.
    """
    from herdner.dobrushin import variation_curve
    from herdner.graph.scan import random_scan

    curves = {name: variation_curve(influence, order, task.importance) for name, order in scans.items()}
    if task.n_steps * max(1, len(influence.values)) > _MAX_WORK:
        notes.append("the uniform random scan is left out, because its guarantee takes too long to compute")
    else:
        curves["uniform random"] = variation_curve(influence, random_scan(), task.importance, task.n_steps)
    return curves


def _print_guarantees(
    task: _ScanTask, influence: Influence, curves: dict[str, NDArray[np.float64]], notes: list[str], as_json: bool
) -> None:
    import json

    trivial = float(task.graph.n_variables if task.importance is None else len(task.importance))
    guarantees = [(name, len(curve) - 1, float(curve[-1])) for name, curve in curves.items()]
    total = influence.total
    if as_json:
        rows = [
            {"scan": name, "updates": updates, "guarantee": bound, "trivial": not bound < trivial}
            for name, updates, bound in guarantees
        ]
        norms = {"1": total.one, "infinity": total.infinity, "spectral": total.spectral}
        print(json.dumps({"theorem": influence.theorem, "norms": norms, "targets": trivial, "scans": rows}))
        return
    print(f"{task.graph.n_variables} variables, {trivial:g} targets; influences bounded by {influence.theorem}")
    print(total)
    print(f"\n{'scan':24}{'updates':>10}  guarantee (of {trivial:g})")
    for name, updates, bound in guarantees:
        print(f"{name:24}{updates:>10}  {bound:.4g}{'' if bound < trivial else '  trivial'}")
    print("\n" + "\n".join(notes))


def _read_scan(path: Path) -> NDArray[np.int64]:
    """Read a scan from a file with one variable index per line; raise `ValueError` that cites an invalid line."""
    import numpy as np

    indices: list[int] = []
    with path.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            text = line[:40].strip()
            if text and not (text.isdecimal() and len(text) < 12):
                raise ValueError(f"{path}, line {number}: expected the index of a variable, got {text!r}")
            if text:
                indices.append(int(text))
    if not indices:
        raise ValueError(f"{path}: the scan is empty; write the index of a variable on each line")
    return np.array(indices, np.int64)


def _write_scan(path: Path, order: NDArray[np.int32]) -> None:
    from herdner.base.files import atomic_write

    with atomic_write(path) as stream:
        stream.write("".join(f"{i}\n" for i in order.tolist()).encode())


def _draw(path: Path, task: _ScanTask, curves: dict[str, NDArray[np.float64]], order: NDArray[np.int32]) -> None:
    """Draw, for each scan, the guaranteed error bound after each update.

    For a single target of a grid, also draw its distance from the updated variables.
    """
    from matplotlib.figure import Figure

    from herdner.base.files import atomic_write
    from herdner.dobrushin.plots import plot_distances, plot_guarantees

    has_distances = task.importance is not None and len(task.importance) == 1 and task.shape is not None
    figure = Figure(figsize=(5 * (1 + has_distances), 3.8), layout="constrained")
    panels = figure.subplots(1, 1 + has_distances, squeeze=False)
    plot_guarantees(panels[0, 0], curves)
    if has_distances and task.importance is not None and task.shape is not None:
        plot_distances(panels[0, 1], order, task.shape, next(iter(task.importance)), wrap=task.wraps)
    with atomic_write(path) as stream:
        figure.savefig(  # pyright: ignore[reportUnknownMemberType]
            stream, format=path.suffix.lower().lstrip("."), dpi=120
        )
