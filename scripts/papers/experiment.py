"""Tools for the scripts of experiments: options, seeds, repeats, time estimates, JSON, figures, paper's results.

The main function of a script takes an `Experiment`. The decorator `command` makes the function the command line of the
script, with the function's own options and ``--quick``, ``--seed`` and ``--out``. Another module can import the
function and call it with the same options:

    @command("hgw19_fig3", "HGW19 Fig. 3: ..")
    def main(experiment: Experiment) -> None:
        n_sweeps = experiment.size(quick=2**16, full=2**24)
        experiment.announce(lambda: run(n_sweeps // 64), share=1 / 64)
        figure, (left, right) = experiment.axes(2)
        ..
        experiment.finish({"ring": errors}, figure)

This module needs only Python, numpy, typer and matplotlib (extra ``evaluate``).
"""

from __future__ import annotations

import inspect
import json
import platform
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray
from rich.markup import escape

import herdner
from herdner.corpora.registry import CorpusError
from herdner.text.io.source import FormatError

try:
    from papers_items import verdicts
except ModuleNotFoundError:  # this module is imported as papers.experiment, from the folder above
    from papers.papers_items import verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")
Quick = Annotated[bool, typer.Option("--quick", help="Make a smaller run, which takes at most a minute.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Out = Annotated[Path, typer.Option("--out", help="Output folder for NAME.json and NAME.png.")]


def command(name: str, title: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that converts a function of an `Experiment` into a command with --quick, --seed and --out.

    If the module of the function runs as the main program, the command runs at once. ``name`` and ``title`` are those
    of the experiment, and may contain options: "{side} x {side} Ising grid". ``--help`` prints the docstring of the
    function's module.
    """

    def shared(quick: Quick = False, seed: Seed = 0, out: Out = Path("out")) -> None: ...

    def made(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        common = inspect.signature(shared, eval_str=True).parameters.values()
        signature = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in (*own, *common)])

        def run(**given: Any) -> None:
            bound = signature.bind(**given)
            bound.apply_defaults()
            options = {p.name: bound.arguments[p.name] for p in own}
            quick, seed, out = (bound.arguments[p.name] for p in common)
            function(Experiment(name.format(**options), title.format(**options), quick, seed, out), **options)

        run.__doc__ = _help(sys.modules[function.__module__].__doc__ or "")
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        run.__signature__ = signature  # type: ignore[attr-defined]
        if function.__module__ == "__main__":
            try:
                typer.run(run)
            except (OSError, FormatError, CorpusError) as error:
                raise SystemExit(str(error)) from None
        return run

    return made


def _help(text: str) -> str:
    """Return a docstring without its commands, with escaped brackets, which typer would read as colours."""
    return "\n\n".join(escape(" ".join(part.split())) for part in text.split("\n\n") if part[:4] != "    ")


class Experiment:
    """Run of an experiment, with the ``name`` of its files and the ``title`` of the reproduced table or figure."""

    def __init__(self, name: str, title: str, quick: bool, seed: int, out: Path) -> None:
        self.name, self.title, self.quick, self.seed, self.out = name, title, quick, seed, out
        out.mkdir(parents=True, exist_ok=True)
        self.began = time.perf_counter()
        print(f"{title}{' (quick)' if quick else ''}", flush=True)

    def part(self, name: str, title: str) -> Experiment:
        """Return an experiment for a part of this experiment, with the same size and seed."""
        return Experiment(name, title, self.quick, self.seed, self.out)

    def size(self, quick: T, full: T) -> T:
        """Return ``quick`` in a quick run, and ``full`` in other runs."""
        return quick if self.quick else full

    def seeds(self, n: int, stream: int = 0) -> list[int]:
        """Return ``n`` seeds that depend only on the experiment's seed and on ``stream``."""
        return np.random.SeedSequence(self.seed, spawn_key=(stream,)).generate_state(n, np.uint64).tolist()

    def rng(self, stream: int = 0) -> np.random.Generator:
        """Return a random generator that differs for each ``stream``, such as 0 for graphs and 1 for noise."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1000 + stream,)))

    def announce(self, probe: Callable[[], object], share: float) -> float:
        """Print an estimate of the run's time by timing ``probe``, which does ``share`` of the work."""
        probe()  # what is done once, such as imports, is not counted
        seconds = min(timeit.repeat(probe, number=1, repeat=3)) / share
        print(f"this run will take about {_in_words(seconds)}", flush=True)
        self.began = time.perf_counter()
        return seconds

    def repeat(self, run: Callable[[int], ArrayLike], n: int, stream: int = 0) -> NDArray:
        """Return the results of ``run(seed)`` for ``n`` seeds as one array [n, ..]."""
        return np.array([run(seed) for seed in self.seeds(n, stream)])

    def axes(self, columns: int, rows: int = 1, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
        """Return a new figure and the list of its panels, row by row."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, panels = pyplot.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)
        return figure, list(panels.ravel())

    def finish(self, results: dict[str, Any], figure: Figure | None = None) -> None:
        """Write NAME.json and NAME.png, and print their paths and the lines of the papers page.

        A panel gets a legend if it has labels and no legend yet.
        """
        seconds = time.perf_counter() - self.began
        written = {
            "experiment": self.name, "title": self.title, "quick": self.quick, "seed": self.seed,
            "seconds": round(seconds, 2), "herdner": herdner.__version__, "python": platform.python_version(),
            "numpy": np.__version__, "results": results,
        }  # fmt: skip
        text = json.dumps(written, default=_plain, indent=1)
        paths = [self.out / f"{self.name}.json"]
        paths[0].write_text(text + "\n", encoding="utf-8")
        if figure is not None:
            for panel in figure.axes:
                if panel.get_xlabel().startswith("log2"):
                    panel.locator_params(axis="x", integer=True)
                if panel.get_legend() is None and panel.get_legend_handles_labels()[0]:
                    panel.legend(fontsize=7)
            figure.suptitle(self.title, fontsize=11)
            figure.tight_layout()
            paths.append(self.out / f"{self.name}.png")
            figure.savefig(paths[-1], dpi=110)
        for line in verdicts(self.name, json.loads(text)["results"]):
            print(line)
        print(f"{', '.join(map(str, paths))}: {_in_words(seconds)}")


def powers(first: int, last: int, step: int = 1) -> list[int]:
    """Return 2^first, 2^(first + step), .. up to 2^last."""
    return [2**k for k in range(first, last + 1, step)]


def slope(x: Sequence[float] | NDArray, y: Sequence[float] | NDArray) -> float:
    """Return the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def envelope(errors: ArrayLike) -> NDArray[np.float64]:
    """Return the largest error from each time on, [.., T], because errors of herding often drop to almost 0."""
    return np.flip(np.maximum.accumulate(np.flip(np.asarray(errors, np.float64), -1), -1), -1)


def summary(values: ArrayLike) -> dict[str, NDArray]:
    """Return mean, sample standard deviation, quartiles and median of ``values`` over the first axis."""
    a = np.asarray(values, np.float64)
    low, median, high = np.quantile(a, [0.25, 0.5, 0.75], axis=0)
    sd = a.std(axis=0, ddof=1) if len(a) > 1 else np.zeros(a.shape[1:])
    return {"mean": a.mean(axis=0), "sd": sd, "low": low, "median": median, "high": high}


def draw_errors(axes: Axes, names: Iterable[str], found: Mapping[str, NDArray]) -> None:
    """Draw the means and standard deviations of a `summary` [names, T] against 1 to T, with a curve for each name.

    The standard deviation is drawn at every fifth step, at different steps for each curve.
    """
    for k, name in enumerate(names):
        steps = np.arange(1, len(found["mean"][k]) + 1)
        axes.errorbar(steps, found["mean"][k], found["sd"][k], label=name, capsize=2, errorevery=(k % 5, 5))


def _in_words(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _plain(value: object) -> object:
    """Return a value that ``json`` supports, for an object that it does not support."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"no JSON for {type(value).__name__}")
