"""Calibration errors of entity confidences: without links, with links, and after the model's own calibration.

    herdner train --train ../shared/data/ner/conll2003/eng.train:conll2003 --output conll.herdner
    python scripts/papers/calibration.py --model conll.herdner --test ../shared/data/ner/conll2003/eng.testa:conll2003

ECE, the expected calibration error, is the mean distance between the confidence and the precision of the entities in a
bin (Naeini, Cooper and Hauskrecht 2015). The ECE uses 15 bins of equal width or of equal mass. The ECE is never 0,
because the precision in each bin is noisy; "by chance" is the ECE of exact confidences. Brier score and log loss are
proper scores, which also measure sharpness. Each method is scored on the entities that it predicts. All methods except
"chain" predict the same entities, so their differences from "links" are paired: a difference below 0 means that the
method is better calibrated than "links". Confidence intervals are computed by resampling documents. The script writes
calibration.json, .md and .png.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from experiment import Experiment, command
from numpy.typing import NDArray

import herdner
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.calibration import MEASURES, EntityConfidences, entity_confidences, reliability_curve
from herdner.evaluation.tabular import markdown_table
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

Floats = NDArray[np.float64]


def resampled(found: EntityConfidences, draw: NDArray[np.int64]) -> EntityConfidences:
    """Return the entities of the drawn documents; ``draw`` may contain a document several times."""
    order = np.argsort(found.document, kind="stable")
    ends = np.searchsorted(found.document[order], np.arange(draw.max() + 2))
    rows = np.concatenate([order[ends[i] : ends[i + 1]] for i in draw])
    return EntityConfidences(found.confidence[rows], found.is_correct[rows], found.document[rows])


def measured(
    methods: dict[str, EntityConfidences], n_documents: int, rng: np.random.Generator, n_resamples: int
) -> dict:
    """Return each measure of each method, and its difference from "links", with 95 % intervals."""
    draws = [rng.integers(0, n_documents, n_documents) for _ in range(n_resamples)]
    samples: dict[str, dict[str, Floats]] = {}
    for name, found in methods.items():
        parts = [resampled(found, draw) for draw in draws]
        samples[name] = {m: np.array([f(part) for part in parts if len(part.is_correct)]) for m, f in MEASURES.items()}
    rows: dict[str, Any] = {}
    for name, found in methods.items():
        rows[name] = {"entities": len(found.is_correct), "precision": found.is_correct.mean()}
        for measure, function in MEASURES.items():
            rows[name][measure] = {"value": function(found), "interval": interval(samples[name][measure])}
            if name == "calibrated" and "links" in methods:
                change = samples[name][measure] - samples["links"][measure]
                rows[name][measure]["less links"] = {
                    "value": function(found) - function(methods["links"]), "interval": interval(change)
                }  # fmt: skip
    return rows


def interval(values: Floats) -> list[float]:
    """Return the central 95 % interval of resampled values."""
    return np.quantile(values, [0.025, 0.975]).tolist()


def predictions(tagger: Tagger, bare: Sequence[Document]) -> dict[str, list[Document]]:
    """Return the documents predicted by each method that the model supports, by the name of the method."""
    model = tagger.model_
    raw = Tagger.from_model(model, calibrated=False)
    found = {"chain": list(raw.pipe(bare, links=False)), "links": list(raw.pipe(bare))}
    if model.calibration is not None:
        found["calibrated"] = list(tagger.pipe(bare))
    return found


def table(rows: dict[str, Any], caption: str) -> str:
    """Return a Markdown table of the measures, followed by the differences from "links"."""
    header = ("method", "entities", "precision", *MEASURES)
    cells = [
        (name, f"{row['entities']:,}", f"{row['precision']:.2%}", *(_cell(row[m]) for m in MEASURES))
        for name, row in rows.items()
    ]
    for name, row in rows.items():
        if "less links" in row["Brier"]:
            cells.append((f"{name} - links", "", "", *(_cell(row[m]["less links"]) for m in MEASURES)))
    return markdown_table(header, cells, caption)


def _cell(value: dict[str, Any]) -> str:
    low, high = value["interval"]
    return f"{value['value']:.4f} ({low:.4f} to {high:.4f})"


@command("calibration", "Confidence of entities")
def main(
    experiment: Experiment,
    test: Annotated[str, typer.Option(help="Annotated documents, as FILE:FORMAT.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
) -> None:
    experiment.title += f", {Path(test.partition(':')[0]).name}"
    tagger = herdner.load(model)
    known = tagger.labels
    source = parse_source(test)
    gold = [d for d in read(source, core_labels="MISC" not in known, tokenizer=Tokenizer()) if len(d.tokens)]
    gold = gold[: experiment.size(quick=20, full=len(gold))]
    bare = [document.without_annotation() for document in gold]
    methods = {name: entity_confidences(gold, found) for name, found in predictions(tagger, bare).items()}
    rows = measured(methods, len(gold), experiment.rng(), experiment.size(quick=100, full=1000))
    text = table(rows, f"{len(gold)} documents; 95 % intervals by bootstrap over documents")
    (experiment.out / "calibration.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    figure, panels = experiment.axes(2)
    curves: dict[str, dict[str, Any]] = {}
    for panel, equal in zip(panels, ("width", "mass"), strict=True):
        panel.plot([0, 1], [0, 1], color="grey", linestyle=":", linewidth=1)
        curves[equal] = {name: reliability_curve(found, equal) for name, found in methods.items()}
        for name, (confidence, right, _) in curves[equal].items():
            panel.plot(confidence, right, marker="o", markersize=3, label=name)
        panel.set(xlabel=f"mean confidence, bins of equal {equal}", ylabel="precision")
    experiment.finish({"methods": rows, "reliability": curves}, figure)
