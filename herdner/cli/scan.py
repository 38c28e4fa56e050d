"""``herdner scan``: what is guaranteed of the order in which a Gibbs sampler updates variables, and a better one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.common import command, working
from herdner.cli.options import JsonOption
from herdner.cli.usage import UsageError, check_figure, check_writable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from herdner.dobrushin import Influence
    from herdner.graph import FactorGraph

_MOST_WORK = 2e9  # entries that a random scan may visit


@dataclass(frozen=True)
class _Question:
    """What is asked: of which graph, for which variables, of how many steps."""

    graph: FactorGraph
    shape: tuple[int, int] | None
    wraps: bool
    importance: dict[int, float] | None
    n_steps: int


@command
def scan(
    ising: Annotated[
        str | None, typer.Option(metavar="ROWSxCOLUMNS", help="An Ising grid, of states -1 and +1.")
    ] = None,
    coupling: Annotated[float, typer.Option(help="J of J s s' over the neighbours of --ising.")] = 0.25,
    field: Annotated[float, typer.Option(help="h of h s of each variable of --ising.")] = 0.0,
    wrap: Annotated[bool, typer.Option("--wrap", help="--ising joins its opposite sides.")] = False,
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A graph file, .npz as herdner.save_graph writes it.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="I,J,..", help="The variables that matter, by number; may be repeated [default: all]."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Updates of the scan [default: 10 sweeps].")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Look for a short scan with this guarantee, of at most --steps.")
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Runs of Algorithm 2, each on the last one's scan.")] = 1,
    exact: Annotated[
        int, typer.Option(metavar="STATES", min=0, help="Enumerate blankets of at most so many states.")
    ] = 0,
    certify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certify this scan too: variables by number, one a line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the optimised scan: a variable a line.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the guarantees, as .png, .pdf or .svg.")] = None,
    json_: JsonOption = False,
) -> None:
    """Certify the scans of a Gibbs sampler by Dobrushin's influences, and optimise one (DoGS).

    The guarantee of a scan bounds how far the joint distribution of the targets may still be from the truth after its
    last update, in total variation, from any start. One that is not below the number of targets says nothing.
    """
    from herdner.dobrushin import tightest_influence

    check_writable(output)
    check_figure(figure, "--figure")
    asked = _question(ising, coupling, field, wrap, graph, target, steps)
    with working("measuring influence"):
        influence = tightest_influence(asked.graph, exact)
    with working("optimising the scan"):
        scans, notes = _scans(asked, influence, certify, epsilon, iterations)
        curves, notes = _curves(asked, influence, scans, notes)
    if output is not None:
        _write(output, scans["dogs"])
    if figure is not None:
        _draw(figure, asked, curves, scans["dogs"])
    _report(asked, influence, {name: float(curve[-1]) for name, curve in curves.items()}, curves, notes, json_)


def _question(
    ising: str | None, coupling: float, field: float, wrap: bool, path: Path | None, target: list[str] | None,
    steps: int | None,
) -> _Question:  # fmt: skip
    import herdner
    from herdner.base.memory import check_memory
    from herdner.dobrushin import unit_importance

    if (ising is None) == (path is None):
        raise UsageError("give either a grid by --ising ROWSxCOLUMNS or a graph by --graph FILE")
    for name, number in (("--coupling", coupling), ("--field", field)):
        if not math.isfinite(number):
            raise UsageError(f"{name} must be a finite number, not {number}")
    shape = None
    if ising is not None:
        match = re.fullmatch(r"(\d{1,9})[xX](\d{1,9})", ising)
        if match is None:
            raise UsageError(f"--ising {ising!r}: expected ROWSxCOLUMNS, as in 40x40")
        shape = (int(match[1]), int(match[2]))
        if not all(shape):
            raise UsageError(f"--ising {ising}: a grid has at least one row and one column")
        n = shape[0] * shape[1]
        check_memory(
            24.0 * n + 40.0 * (steps or 10 * n), f"--ising {ising}", "ask for a smaller grid, or fewer --steps"
        )
    graph = herdner.load_graph(path) if path is not None else herdner.ising(coupling, field, shape, wrap=wrap)
    numbers = [part.strip() for group in target or () for part in group.split(",")]
    wrong = next((part for part in numbers if not part.isdecimal()), None)
    if wrong is not None:
        raise UsageError(f"--target {wrong!r}: expected variables by number, as in 0,5")
    chosen = unit_importance(graph.n_variables, [int(part) for part in numbers]) if numbers else None
    return _Question(graph, shape, wrap, chosen, steps or 10 * graph.n_variables)


def _scans(
    asked: _Question, influence: Influence, certify: Path | None, epsilon: float | None, iterations: int
) -> tuple[dict[str, NDArray[np.int32]], list[str]]:
    """The orders of steps to be certified, and what there is to say of them."""
    from herdner.dobrushin import ScanSteps, optimise_scan, shortest_scan
    from herdner.graph.scan import systematic_scan

    steps = {} if certify is None else {certify.name: ScanSteps.of(_read(certify), influence)}
    steps["systematic"] = ScanSteps.of(systematic_scan(), influence, asked.n_steps)
    scans = {name: scan.order for name, scan in steps.items() if scan.order is not None}
    notes: list[str] = []
    found = None
    if epsilon is not None:
        found = shortest_scan(influence, epsilon, None, asked.importance, asked.n_steps, refine=True)
        if found is None:
            notes.append(f"no scan of {asked.n_steps} updates was found with a guarantee of {epsilon:g}")
    if found is None:
        found = optimise_scan(influence, None, asked.importance, asked.n_steps, iterations=iterations)
    scans["dogs"] = found.order
    notes.append(f"the scan dogs took {found.seconds:.3g} s to find")
    return scans, notes


def _curves(
    asked: _Question, influence: Influence, scans: dict[str, NDArray[np.int32]], notes: list[str]
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    from herdner.dobrushin import variation_curve
    from herdner.graph.scan import random_scan

    curves = {name: variation_curve(influence, order, asked.importance) for name, order in scans.items()}
    if asked.n_steps * max(1, len(influence.values)) > _MOST_WORK:
        return curves, [*notes, "the uniform random scan was left out, as it would take long"]
    curves["uniform random"] = variation_curve(influence, random_scan(), asked.importance, asked.n_steps)
    return curves, notes


def _report(
    asked: _Question, influence: Influence, bounds: dict[str, float], curves: dict[str, NDArray[np.float64]],
    notes: list[str], as_json: bool,
) -> None:  # fmt: skip
    import json

    trivial = float(asked.graph.n_variables if asked.importance is None else len(asked.importance))
    updates = {name: len(curve) - 1 for name, curve in curves.items()}
    total = influence.total
    if as_json:
        rows = [
            {"scan": name, "updates": updates[name], "guarantee": bound, "vacuous": not bound < trivial}
            for name, bound in bounds.items()
        ]
        norms = {"1": total.one, "infinity": total.infinity, "spectral": total.spectral}
        print(json.dumps({"theorem": influence.theorem, "norms": norms, "targets": trivial, "scans": rows}))
        return
    print(f"{asked.graph.n_variables} variables, {trivial:g} of importance; influences bounded by {influence.theorem}")
    print(total)
    print(f"\n{'scan':24}{'updates':>10}  guarantee (of {trivial:g})")
    for name, bound in bounds.items():
        print(f"{name:24}{updates[name]:>10}  {bound:.4g}{'' if bound < trivial else '  says nothing'}")
    print("\n" + "\n".join(notes))


def _read(path: Path) -> NDArray[np.int64]:
    """A scan file; ValueError that names the line."""
    import numpy as np

    numbers: list[int] = []
    with path.open(encoding="utf-8", errors="replace") as stream:
        for at, line in enumerate(stream, 1):
            text = line[:40].strip()
            if text and not (text.isdecimal() and len(text) < 12):
                raise ValueError(f"{path}, line {at}: expected the number of a variable, not {text!r}")
            if text:
                numbers.append(int(text))
    if not numbers:
        raise ValueError(f"{path}: an empty scan; expected the number of a variable in each line")
    return np.array(numbers, np.int64)


def _write(path: Path, order: NDArray[np.int32]) -> None:
    from herdner.base.files import atomic_write

    with atomic_write(path) as stream:
        stream.write("".join(f"{i}\n" for i in order.tolist()).encode())


def _draw(path: Path, asked: _Question, curves: dict[str, NDArray[np.float64]], order: NDArray[np.int32]) -> None:
    from matplotlib.figure import Figure

    from herdner.base.files import atomic_write
    from herdner.dobrushin.plots import plot_distances, plot_guarantees

    one = asked.importance is not None and len(asked.importance) == 1 and asked.shape is not None
    drawing = Figure(figsize=(5 * (1 + one), 3.8), layout="constrained")
    panels = drawing.subplots(1, 1 + one, squeeze=False)
    plot_guarantees(panels[0, 0], curves)
    if one and asked.importance is not None and asked.shape is not None:
        plot_distances(panels[0, 1], order, asked.shape, next(iter(asked.importance)), wrap=asked.wraps)
    with atomic_write(path) as stream:
        drawing.savefig(  # pyright: ignore[reportUnknownMemberType]
            stream, format=path.suffix.lower().lstrip("."), dpi=120
        )
