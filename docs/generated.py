"""Generated parts of pages: the options of all commands, and the cards of the models."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import herdner
from herdner.corpora.registry import info
from herdner.ner.model_file import shipped_models

LOW_F1 = 60.0  # in per cent; a card lists corpora and labels with a lower F1 as weaknesses
CORPUS_TITLES = {
    "btc": "Broad Twitter Corpus", "conll2003": "CoNLL-2003", "ieer": "IE-ER", "uner_ewt": "English Web Treebank",
    "wikigold": "wikigold", "wnut17": "WNUT-17", "worldwide": "English Worldwide Newswire",
    "norne": "NorNE", "uner_da": "Danish Dependency Treebank", "uner_sv": "Talbanken", "uner_pt": "Bosque",
    "gum": "GUM", "litbank": "LitBank", "tweebank": "Tweebank-NER",
    "swedish_ner": "Swedish NER corpus", "mobie": "MobIE", "ler": "German court decisions",
}  # fmt: skip

UNER = "the labels of Universal NER: titles and professions are outside names, states are LOC"
CONVENTIONS = {
    "en": "the annotation guide of `corpora/README.md`: titles and articles are outside names, facilities are LOC",
    "en_core7": "for PER, LOC and ORG those of `en`; for the other labels those of Worldwide Newswire"
    " ([Limits](limits.md#the-model-en_core7))",
    "da": UNER,
    "de": "streets, stops and routes are LOC; courts and brands are ORG; initials of persons are PER",
    "nb": "states and their governments are LOC; products, events and words derived from names are not annotated",
    "pt": UNER,
    "sv": "those of the Swedish NER corpus and of Universal NER, which are not unified",
}
LIMITS = {
    "en": "made for news; organisations in posts and on the web have a low F1; a separate sign @ can be tagged",
    "en_core7": "as `en`, without a network; MISC is unreliable, because it has many kinds of names",
    "da": "80,000 tokens of training text, mostly news; one development file",
    "de": "trained on traffic messages with few persons, on court decisions, and on filled templates of news",
    "nb": "216,000 tokens of training text, mostly news; one development file",
    "pt": "172,000 tokens of training text, news of Portugal and Brazil; one development file",
    "sv": "164,000 tokens of training text, mostly news; two small development files",
}


def commands() -> str:
    """Return the help of each command in Markdown, as Typer writes it, with options as code."""
    command = [sys.executable, "-m", "typer", "herdner.cli", "utils", "docs", "--name", "herdner"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    text = text[text.index("\n## ") :]
    return re.sub("(`[^`\\n]*`)|(--[a-z][a-z-]*)", lambda match: match[1] or f"`{match[2]}`", text)


def models() -> str:
    """Return a card for each shipped model, from the model file and the registry of corpora."""
    return "\n".join(line for name in sorted(shipped_models()) for line in card(name))


def card(name: str) -> Iterator[str]:
    """Yield the lines of a model's card."""
    model = herdner.load(name).model_
    about = model.card
    size = len(shipped_models()[name].read_bytes()) / 1e6
    network = "" if model.network is None else f" and a neural network of {len(model.network.bias)} units"
    yield f"\n## `{name}`\n"
    facts = {
        "language": about["language"],
        "labels": ", ".join(about["labels"]),
        "size": f"{size:.1f} MB: {len(model.weights.keys):,} features, {len(model.weights.entry_weights):,} weights",
        "kind": f"skip-chain CRF with hand-made features{network}",
        "tags": f"{len(model.weights.tags)}, {model.scheme.upper()}",
        "conventions": CONVENTIONS[name],
        "limits": LIMITS[name],
        "training data": f"{about['n_documents']:,} documents",
        "training script": f"`{about['made_by']}`",
        **({"calibration": about["calibration"]} if "calibration" in about else {}),
        "licence": "MIT, like herdner; the licences of some sources require attribution",
    }
    yield from table(("property", "value"), facts.items())
    yield "\nThe model was trained with these texts and word lists:\n"
    yield from table(("source", "licence", "citation"), sources(about))
    yield (
        "\nMicro F1 of exact spans and F1 of each label, in per cent, with 95 % intervals by bootstrap over documents."
        " They\nwere measured after training, on files that were not used for training:\n"
    )
    yield from table(("corpus", "names", "F1", "PER", "LOC", "ORG"), score_rows(about["scores"]))
    if "cross_validated" in about:
        yield from cross_validation(about["cross_validated"])
    by_label = {label: f1 for label, f1 in about["f1"].items() if label in about["labels"]}
    if by_label:
        intervals = about["scores"]["worldwide dev, seven labels"]["label_intervals"]
        yield f"\nF1 by label on {CORPUS_TITLES['worldwide']}, dev, with its own labels:\n"
        rows = ((label, with_interval(f1, intervals[label])) for label, f1 in descending(by_label))
        yield from table(("label", "F1"), rows)
    scores = {**about["scores"], **about.get("cross_validated", {})}
    f1 = by_label | {name: each["f1"] for name, each in scores.items()}
    yield from weaknesses(f1, {name: each["labels"] for name, each in scores.items()})


def score_rows(scores: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield corpus, number of names, F1 and F1 of each label, with intervals."""
    for name, each in sorted(scores.items(), key=lambda item: -item[1]["f1"]):
        labels = [with_interval(each["labels"][x], each["label_intervals"][x]) for x in ("PER", "LOC", "ORG")]
        yield corpus_title(name), f"{each['names']:,}", with_interval(each["f1"], each["interval"]), *labels


def with_interval(f1: float, interval: tuple[float, float] | None) -> str:
    """Return an F1 and its 95 % interval, if there is one, as text."""
    if interval is None:
        return f"{f1:.1f}"
    return f"{f1:.1f} ({interval[0]:.1f} to {interval[1]:.1f})"


def cross_validation(scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of corpora that are used for training, each half tagged by a model trained without it."""
    yield (
        "\nThe next corpora are training data of the model. Their scores are cross-validated: each half of the"
        " documents\nis tagged by a chain and a network that were trained without this half, with the links of the"
        " model.\n"
    )
    yield from table(("corpus", "names", "F1", "PER", "LOC", "ORG"), score_rows(scores))


def weaknesses(f1: Mapping[str, float], by_label: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield a list of the corpora, and of the labels in each corpus, with a low F1."""
    found = [f"{corpus_title(name)} ({value:.1f})" for name, value in descending(f1) if value < LOW_F1]
    found += [
        f"{label} in {corpus_title(corpus)} ({value:.1f})"
        for corpus, labels in by_label.items()
        for label, value in descending(labels)
        if value < LOW_F1
    ]
    yield f"\n**Weaknesses** (F1 below {LOW_F1:.0f}): {', '.join(found) or 'none on these files'}."


def sources(about: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield source, licence and citation of the corpora and word lists of a card."""
    for name, corpus in about["corpora"].items():
        source = info(name).source
        yield (f"[{name}]({source})" if source.startswith("http") else name), corpus["licence"], corpus["citation"]
    for name, description in about["word_knowledge"].items():
        licence = re.search(r" \(([^()]*)\)", description)
        yield f"{name}: {description.replace(licence[0], '')}", licence[1], ""


def descending(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the scores in descending order."""
    return sorted(scores.items(), key=lambda item: -item[1])


def corpus_title(name: str) -> str:
    """Return the title of a corpus and its part, such as "CoNLL-2003 testa" for "conll2003 testa"."""
    corpus, space, rest = name.replace("classes", "labels").partition(" ")
    key = corpus.rstrip(",")
    return CORPUS_TITLES.get(key, key) + corpus[len(key) :] + space + rest


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for row in (header, ("---",) * len(header), *rows):
        yield f"| {' | '.join(row)} |"


PAGES: dict[str, Callable[[], str]] = {"commands": commands, "models": models}
"""Functions that generate the end of a page, by the name of the page."""
