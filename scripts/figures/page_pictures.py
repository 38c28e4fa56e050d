r"""Draw the plots of the documentation, each for a light and for a dark background.

    python scripts/figures/page_pictures.py docs/pages/images [--only scan] [--corpus FILE:FORMAT] [--results FOLDER]

For each of these names, the script writes NAME-light.svg and NAME-dark.svg:

* ``scan``: guarantee of three scans of an Ising grid against the number of updates;
* ``gibbs``: error of the marginals against the number of sweeps, for samplers of the Gibbs family;
* ``learning``: objective and F1 of each iteration in which links are learned;
* ``explain``: links between the mentions of a name in ``corpora/article.txt``;
* ``speed``: ratios of the table in docs/pages/speed.md, which `bench_all.py` measures;
* ``compared``: F1 and speed of ``en`` and of spaCy's small pipeline, from the table of the README;
* ``calibration``: precision against confidence on ``--corpus``;
* ``sharing``: HGW19, Fig. 1, right, from the file hgw19_fig1.json in ``--results``, which
  ``scripts/papers/hgw19_fig1.py --quick`` writes;
* ``stein``: FWSS18, Fig. 3b, from the file fwss_toy.json in ``--results``, which ``scripts/papers/fwss_toy.py`` writes.

The name ``denoise`` stands for denoise.png, three pictures side by side with transparent gaps, and ``badges`` for the
badges of the README, which show the licence and the Python versions of pyproject.toml.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import numpy as np
import typer
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from PIL import Image

import herdner
from herdner import dobrushin, make_backend
from herdner.corpora.reading import read
from herdner.crf.learning import Learner
from herdner.dobrushin.plots import plot_guarantees
from herdner.evaluation.calibration import entity_confidences, reliability_curve
from herdner.graph import FactorGraph, ising
from herdner.graph.scan import random_scan
from herdner.ner.lexicon import Lexicon
from herdner.ner.tagger import Tagger
from herdner.text.tokenize import Tokenizer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
INKS = {"light": "#1f2328", "dark": "#d1d7e0"}
COLOURS = ("#3b82c4", "#d9822b", "#3a9e6e", "#a05fbf")  # legible on both backgrounds
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "herdner", "font.size": 9, "axes.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.prop_cycle": cycler(color=COLOURS),
}  # fmt: skip
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
Draw = Callable[[Axes], object]


def save(folder: Path, name: str, draw: Draw, size: tuple[float, float] = (6.4, 3.2)) -> None:
    """Write a plot for a light and for a dark background."""
    for scheme, ink in INKS.items():
        with mpl.rc_context({**STYLE, **dict.fromkeys(INKED, ink)}):
            figure = Figure(figsize=size, layout="constrained")
            draw(figure.add_subplot())
            figure.savefig(folder / f"{name}-{scheme}.svg", transparent=True, metadata={"Date": None})


def scan() -> Draw:
    """Return a function that draws the guarantees of three scans of the grid of docs/pages/tutorials/scan.md."""
    graph = ising(J=0.25, shape=(20, 20))
    influence = dobrushin.binary_pairwise_bound(graph)
    corner = dobrushin.unit_importance(graph.n_variables, [0])
    order = np.array([*range(graph.n_variables)] * 10, np.int32)
    scans = {
        "systematic": order,
        "optimised (dogs)": dobrushin.optimise_scan(influence, order, corner).order,
        "uniform random": random_scan(),
    }
    curves = {name: dobrushin.variation_curve(influence, each, corner, len(order)) for name, each in scans.items()}
    return lambda axes: plot_guarantees(axes, curves)


def mean_errors(name: str, graph: FactorGraph, exact: np.ndarray, lengths: list[int], n_runs: int) -> list[float]:
    """Return the mean total variation distance of a backend's marginals after each number of sweeps."""
    errors = []
    for n_sweeps in lengths:
        backend = make_backend(name, n_sweeps=n_sweeps)
        runs = [0.5 * np.abs(backend.infer(graph, seed).marginals - exact).sum(axis=1).mean() for seed in range(n_runs)]
        errors.append(float(np.mean(runs)))
    return errors


def gibbs() -> Draw:
    """Return a function that draws the error of the marginals of a 6 x 6 Ising grid against the number of sweeps."""
    graph = ising(J=0.3, h=np.random.default_rng(7).normal(size=(6, 6)))
    exact = make_backend("exact").infer(graph).marginals
    assert exact is not None
    lengths = [2**k for k in range(3, 17)]
    names = ("gibbs", "herded-gibbs", "dhg", "circular-dhg")
    errors = {name: mean_errors(name, graph, exact, lengths, 8) for name in names}

    def draw(axes: Axes) -> None:
        for name, curve in errors.items():
            axes.loglog(lengths, curve, marker="o", markersize=2.5, label=name)
        axes.set(xlabel="sweeps", ylabel="error of the marginals")
        axes.legend()

    return draw


def learning() -> Draw:
    """Return a function that draws the learning curve of the link tables on the news stories that come with herdner."""
    train, development = (
        list(read(f"{REPOSITORY / 'corpora'}/herdner_news.{part}.conll:conll", tokenizer=Tokenizer()))
        for part in ("train", "dev")
    )
    tagger = Tagger(lexicon=Lexicon(), learner=Learner(), max_iterations=30, n_folds=2)
    tagger.fit(train, development=development)
    curve = tagger.learning_curve_
    assert curve is not None

    def draw(axes: Axes) -> None:
        curve.plot(axes)
        axes.figure.axes[-1].spines["right"].set_visible(True)

    return draw


def explain(axes: Axes) -> None:
    """Draw the mentions of "Winam" in the article, in the order of the text, and the links between them."""
    tagger = herdner.load("en")
    document = tagger.tag((REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8"))
    sentence_of = np.searchsorted(document.sentence_offsets, np.arange(document.n_tokens), "right")
    tokens = [t for t, token in enumerate(document.tokens) if token == "Winam"]
    entities = {span.start: entity for span, entity in zip(document.spans or (), document.entities, strict=True)}
    for x, token in enumerate(tokens):
        entity = entities[token]
        axes.text(x, -0.1, f"{entity.text}\n{entity.label}\nsentence {sentence_of[token]}", ha="center", va="top")
        axes.plot(x, 0, marker="o", color=COLOURS[0])
    for (rule, links), colour, side in zip(tagger.find_links(document).items(), COLOURS[1:], (1.0, 0.72), strict=False):
        label = rule
        for earlier, later in links.tolist():
            if earlier in tokens and later in tokens:
                x, width = tokens.index(earlier), tokens.index(later) - tokens.index(earlier)
                axes.add_patch(
                    Arc(
                        (x + width / 2, 0), width, side * width, theta1=0, theta2=180, color=colour, lw=1.4, label=label
                    )
                )
                label = None
    axes.set(xlim=(-0.6, len(tokens) - 0.4), ylim=(-0.75, 0.55 * (len(tokens) - 1)))
    axes.axis("off")
    axes.legend(title="link rule", loc="upper left")


def speed(axes: Axes) -> None:
    """Draw the ratios to other programs from the table of docs/pages/speed.md."""
    page = (REPOSITORY / "docs" / "pages" / "speed.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([^|]+) \| [^|]+ \| [\d.,]+, ([^|]+) \| \*\*([\d.,]+) times\*\*", page, re.M)
    names = [f"{what.strip()} / {peer.strip()}".replace("`", "") for what, peer, _ in lines]
    ratios = [float(ratio.replace(",", "")) for _, _, ratio in lines]
    bars = axes.barh(names[::-1], ratios[::-1], color=COLOURS[0], height=0.62)
    axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
    axes.set(xscale="log", xlabel="times as fast as the other program", xlim=(1, 2.2 * max(ratios)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="y", labelsize=8, length=0)


def compared(axes: Axes) -> None:
    """Draw the F1 of ``en`` and of spaCy's small pipeline against their speed, from the table of the README."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *`") for cell in line.split("|")[1:-1]] for line in readme.splitlines() if line[:1] == "|"]
    header, (ours, theirs) = rows[0], (next(row for row in rows if name in row[0]) for name in ("herdner", "spaCy"))
    at = header.index("tokens per second")
    right, left = (float(row[at].replace(",", "")) for row in (ours, theirs))
    for corpus, high, low in zip(header[1:4], map(float, ours[1:4]), map(float, theirs[1:4]), strict=True):
        axes.plot([left, right], [low, high], color="grey", linestyle=":", linewidth=1, zorder=1)
        axes.scatter([left], [low], color=COLOURS[1], zorder=2)
        axes.scatter([right], [high], color=COLOURS[0], zorder=2)
        name = corpus.removeprefix("F1, ").removesuffix(" without MISC")
        axes.annotate(f"{name} {high:.1f}", (right, high), (8, -3), textcoords="offset points")
        axes.annotate(f"{low:.1f}", (left, low), (-8, -3), textcoords="offset points", ha="right")
    for row, place, colour in ((ours, right, COLOURS[0]), (theirs, left, COLOURS[1])):
        axes.annotate(row[0].replace("`", ""), (place, 97), ha="center", color=colour)
    axes.set(xscale="log", xlabel="tokens per second on one core", ylabel="F1", xlim=(1e3, 1e7), ylim=(55, 100))


def calibration(corpus: str) -> Draw:
    """Return a function that draws precision against confidence on a corpus, without and with calibration."""
    tagger = herdner.load("en")
    raw = Tagger.from_model(tagger.model_, calibrated=False)
    gold = [d for d in read(corpus, core_labels="MISC" not in tagger.labels, tokenizer=Tokenizer()) if d.n_tokens]
    bare = [document.without_annotation() for document in gold]
    by_name = {name: entity_confidences(gold, list(each.pipe(bare))) for name, each in
             (("uncalibrated", raw), ("calibrated", tagger))}  # fmt: skip

    def draw(axes: Axes) -> None:
        least = min(reliability_curve(entities, "mass")[0].min() for entities in by_name.values())
        axes.plot([least, 1], [least, 1], color="grey", linestyle=":", linewidth=1)
        for (name, entities), colour in zip(by_name.items(), (COLOURS[1], COLOURS[0]), strict=True):
            confidence, right, _ = reliability_curve(entities, "mass")
            axes.plot(confidence, right, marker="o", markersize=3, label=name, color=colour)
        axes.set(xlabel="mean confidence, 15 bins with equal numbers of names", ylabel="precision")
        axes.legend()

    return draw


def sharing(results: Path) -> Draw:
    """Return a function that draws the errors of Gibbs, HG and DHG as in HGW19, Fig. 1, right."""
    found = json.loads((results / "hgw19_fig1.json").read_text(encoding="utf-8"))["results"]

    def draw(axes: Axes) -> None:
        for name in ("Gibbs", "HG", "DHG, B=64", "DHG, B=4"):
            axes.loglog(found["lengths"], found[f"right, {name}"], marker="o", markersize=2.5, label=name)
        axes.set(xlabel="sweeps", ylabel="mean error of E[$x_8$]")
        axes.legend()

    return draw


def stein(results: Path) -> Draw:
    """Return a function that draws the squared MMD of FWSS18, Fig. 3b, against the number of particles."""
    found = json.loads((results / "fwss_toy.json").read_text(encoding="utf-8"))["results"]

    def draw(axes: Axes) -> None:
        for step, values in found["mmd2"].items():
            axes.loglog(np.arange(1, len(values) + 1), values, label=f"FWSS, {step}")
        axes.loglog(*found["svgd"].values(), linestyle="", marker="o", markersize=4, label="SVGD")
        axes.set(xlabel="particles", ylabel="squared MMD")
        axes.legend()

    return draw


def denoise(folder: Path) -> None:
    """Write the clean, the noisy and the denoised picture of docs/pages/tutorials/denoise.md side by side."""
    rows, columns = np.mgrid[:64, :64]
    radius = np.hypot(rows - 32, columns - 32)
    clean = ((radius > 14) & (radius < 26)) | (abs(rows - columns) < 4)
    noisy = clean ^ (np.random.default_rng(7).random(clean.shape) < 0.15)
    with tempfile.TemporaryDirectory() as work:
        paths = [str(Path(work, f"{name}.png")) for name in ("clean", "noisy", "denoised")]
        for path, pixels in zip(paths, (clean, noisy), strict=False):
            Image.fromarray(np.uint8(255 * pixels)).save(path)
        subprocess.run([sys.executable, "-m", "herdner", "denoise", *paths[1:]], check=True, capture_output=True)
        sheet = Image.new("LA", (3 * 200 - 8, 192))
        for k, path in enumerate(paths):
            sheet.paste(Image.open(path).convert("L").resize((192, 192), Image.Resampling.NEAREST), (200 * k, 0))
        alpha = Image.new("L", sheet.size)
        for k in range(3):
            alpha.paste(255, (200 * k, 0, 200 * k + 192, 192))
        sheet.putalpha(alpha)
        sheet.save(folder / "denoise.png", optimize=True)


BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<rect width="{width}" height="20" rx="3" fill="#555"/><path d="M{left} 0h{right}v20h-{right}z" fill="#3b82c4"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{name_length}">{name}</text>
<text x="{place}" y="14" textLength="{value_length}">{value}</text></g></svg>
"""


def badges(folder: Path) -> None:
    """Write badge-license.svg and badge-python.svg with the values of pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    for name, value in (("license", project["license"]), ("python", f"{versions[0]} to {versions[-1]}")):
        lengths = 7 * len(name), 7 * len(value)
        left, right = (length + 12 for length in lengths)
        text = BADGE.format(
            name=name, value=value, width=left + right, left=left, right=right, place=left + 6,
            name_length=lengths[0], value_length=lengths[1],
        )  # fmt: skip
        (folder / f"badge-{name}.svg").write_text(text, encoding="utf-8")


PLOTS: dict[str, tuple[Callable[[], Draw], tuple[float, float]]] = {
    "scan": (scan, (6.0, 3.0)),
    "gibbs": (gibbs, (6.0, 3.2)),
    "learning": (learning, (6.0, 3.0)),
    "explain": (lambda: explain, (6.4, 2.4)),
    "speed": (lambda: speed, (7.6, 3.2)),
    "compared": (lambda: compared, (6.4, 2.8)),
}


OF_RESULTS = {"sharing": sharing, "stein": stein}


def main(
    folder: Annotated[Path, typer.Argument(help="Folder to write the pictures to.")],
    only: Annotated[list[str] | None, typer.Option(help="Name of a picture; may be repeated [default: all].")] = None,
    corpus: Annotated[str, typer.Option(help="Annotated corpus of the plot of calibration, as FILE:FORMAT.")] = "",
    results: Annotated[
        Path | None, typer.Option(help="Folder of the results of scripts/papers, for the plots sharing and stein.")
    ] = None,
) -> None:
    """Draw the plots of the documentation."""
    own = [*(["calibration"] if corpus else []), *(OF_RESULTS if results else [])]
    names = only or [*PLOTS, "denoise", "badges", *own]
    for name in names:
        print(name, flush=True)
        if name in ("denoise", "badges"):
            {"denoise": denoise, "badges": badges}[name](folder)
        elif name == "calibration":
            save(folder, name, calibration(corpus), (4.6, 3.4))
        elif name in OF_RESULTS:
            save(folder, name, OF_RESULTS[name](results or Path("out")), (6.0, 3.2))
        else:
            prepare, size = PLOTS[name]
            save(folder, name, prepare(), size)


if __name__ == "__main__":
    typer.run(main)
