"""Figures that several pages show: each has one source, and the pages are written from it.

    python docs/figures.py

writes the figures into the README and the pages. ``tests/test_figures.py`` checks that the pages agree. Sources:

* the cards of the shipped models, which their training scripts write: ``en.ieer`` is the F1 on IE-ER;
* the table of docs/pages/compared.md, which ``scripts/models/compare_spacy.py`` prints: ``compared.en.testa``;
* the table of docs/pages/speed.md, which ``scripts/benchmarks/bench_all.py`` writes: ``speed.en``, in tokens a second;
* the table of docs/pages/install.md, which ``scripts/benchmarks/bench_install.py`` prints: ``install.all``, in MB;
* the sizes of the model files: ``size.en``, in MB.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from pathlib import Path

import herdner

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = REPOSITORY / "docs" / "pages"
CORPORA = {  # name of a figure: beginning of the corpus in a card, and in the table of compared.md
    "ieer": ("ieer", "IE-ER"),
    "testa": ("conll2003 testa", "CoNLL-2003"),
    "worldwide": ("worldwide dev", "Worldwide"),
    "btc": ("btc dev", "Broad Twitter Corpus"),
    "wnut17": ("wnut17 dev", "WNUT-17"),
    "tweebank": ("tweebank dev", "Tweebank-NER"),
}
CROSS_VALIDATED = {  # training data of `en`
    "wikigold": ("wikigold", "wikigold"),
    "ewt": ("uner_ewt", "English Web Treebank"),
    "litbank": ("litbank", "LitBank"),
}
TAGGERS = {"spacy": "en_core_web_sm", "en": "en"}
FIGURE = re.compile(r"\{([\w.]+):([^{}]+)\}")
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def figures() -> dict[str, float]:
    """Return all figures by their names; shares are in per cent."""
    return dict([*of_cards(), *of_comparison(), *of_speed(), *of_sizes()])


def of_cards() -> Iterator[tuple[str, float]]:
    """Yield the F1 of the English models from their cards."""
    for name in ("en", "en_core7"):
        scores = herdner.load(name).card["f1"]
        for key, (corpus, _) in CORPORA.items():
            yield f"{name}.{key}", scores[min((each for each in scores if each.startswith(corpus)), key=len)]
        for label, f1 in scores.items():
            if label.isupper() or label == "micro":
                yield f"{name}.{label}", f1
    yield "en.lower", herdner.load("en").card["f1"]["ieer, lower case"]
    yield "en.capitals", herdner.load("en").card["f1"]["ieer, capitals"]
    scores = herdner.load("en").card["cross_validated"]
    for key, (corpus, _) in CROSS_VALIDATED.items():
        yield f"en.{key}", scores[corpus]["f1"]


def of_comparison() -> Iterator[tuple[str, float]]:
    """Yield F1 and the names with differing labels from the table of compared.md."""
    text, corpus = (PAGES / "compared.md").read_text(encoding="utf-8"), ""
    differing: dict[str, tuple[int, int]] = dict.fromkeys(TAGGERS, (0, 0))
    for line in text.splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) != 8 or cells[1] not in TAGGERS.values():
            continue
        corpus = cells[0] or corpus
        titles = {**CORPORA, **CROSS_VALIDATED}.items()
        key = next((key for key, (_, title) in titles if corpus.startswith(title)), None)
        if key is None:
            continue
        tagger = next(key for key, name in TAGGERS.items() if name == cells[1])
        yield f"compared.{tagger}.{key}", float(cells[2])
        if key in ("testa", "ieer"):  # the corpora of the README
            n, of = map(int, cells[7].partition(" (")[0].split(" of "))
            differing[tagger] = differing[tagger][0] + n, differing[tagger][1] + of
    for tagger, (n, of) in differing.items():
        yield f"compared.{tagger}.differing", 100 * n / of


def of_speed() -> Iterator[tuple[str, float]]:
    """Yield tokens per second, and their ratio rounded down to tens, from the table of speed.md."""
    page = (PAGES / "speed.md").read_text(encoding="utf-8")
    (row,) = re.findall(
        r"^\| text to entities, with links \| ([\d,]+) ns a token \| ([\d,]+), [^|]*\| \*\*([\d.]+) times\*\*",
        page,
        re.M,
    )
    ours, theirs, ratio = (float(cell.replace(",", "")) for cell in row)
    yield "speed.en", round(1e9 / ours, -3)
    yield "speed.spacy", round(1e9 / theirs, -3)
    yield "speed.ratio", ratio // 10 * 10


def of_sizes() -> Iterator[tuple[str, float]]:
    """Yield the sizes of the model `en` and of the installation."""
    yield "size.en", (Path(herdner.__file__).parent / "data" / "en.herdner").stat().st_size / 1e6
    page = (PAGES / "install.md").read_text(encoding="utf-8")
    (total,) = re.findall(r"^\| all \| +\| (\d+) \|", page, re.M)
    yield "install.all", float(total)


LIMITS = (
    ("IE-ER (56 articles)", "ieer"), ("CoNLL-2003 English, `eng.testa`, without MISC", "testa"),
    ("English Worldwide Newswire, its own annotation", "worldwide"), ("wikigold (one half), without MISC", "wikigold"),
    ("Universal NER, English Web Treebank", "ewt"), ("Broad Twitter Corpus", "btc"), ("WNUT-17", "wnut17"),
    ("Tweebank-NER", "tweebank"), ("LitBank, novels", "litbank"), ("IE-ER in lower case", "lower"),
    ("IE-ER in capitals", "capitals"),
)  # fmt: skip
ROW = " | ".join(f"{{MODEL.{key}:.1f}}" for key in ("ieer", "testa", "worldwide", "btc", "tweebank", "wnut17"))
LABELS = ("micro", "PER", "LOC", "ORG", "NORP", "DATE", "MONEY", "MISC")
# The places of figures in pages: text with {NAME:FORMAT} for each figure, which must occur once in the page.
USES = {
    "README.md": [
        "| herdner `en` | **{compared.en.testa:.1f}** | **{compared.en.ieer:.1f}** | **{compared.en.ewt:.1f}** |"
        " **{compared.en.differing:.1f} %** | **{speed.en:,.0f}** | {size.en:.1f} MB |",
        "| spaCy `en_core_web_sm` | {compared.spacy.testa:.1f} | {compared.spacy.ieer:.1f} | {compared.spacy.ewt:.1f} |"
        " {compared.spacy.differing:.1f} % | {speed.spacy:,.0f} |",
        "over {speed.ratio:.0f} times as fast as spaCy's small pipeline",
        "takes {install.all:.0f} MB",
        "F1 is {en.wnut17:.0f} on WNUT-17",
    ],
    "docs/pages/index.md": ["the English model `en` has {size.en:.1f} MB"],
    "docs/pages/tutorials/spacy.md": [
        f"\n| {title} | {{compared.spacy.{key}:.2f}} |"
        for title, key in (
            ("IE-ER, development files", "ieer"), ("English Worldwide Newswire, dev", "worldwide"),
            ("CoNLL-2003, `eng.testa`, without MISC", "testa"),
        )
    ],
    "docs/pages/limits.md": [
        *(f"\n| {title} | {{en.{key}:.1f}} |\n" for title, key in LIMITS),
        *(f"| `{model}` | {ROW.replace('MODEL', model)} |" for model in ("en", "en_core7")),
        "|---|---|---|---|---|---|---|---|\n| "
        + " | ".join(f"{{en_core7.{label}:.1f}}" for label in LABELS) + " |",
    ],
}  # fmt: skip


def formatted(value: float, form: str) -> str:
    """Return a number in a format of Python; halves are rounded up."""
    with localcontext(Context(rounding=ROUND_HALF_UP)):
        return format(Decimal(repr(value)), form)


def written(page: str, values: dict[str, float]) -> str:
    """Return the text of a page with the figures of all its `USES`.

    Raises:
        ValueError: The text around a figure does not occur exactly once in the page.
    """
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for use in USES[page]:
        parts = FIGURE.split(use)  # text, name, format, text, ...
        pattern = NUMBER.join(map(re.escape, parts[::3]))
        if (n := len(re.findall(pattern, text))) != 1:
            raise ValueError(f"{page} has {n} places like {use!r}; docs/figures.py expects one")
        new = FIGURE.sub(lambda match: formatted(values[match[1]], match[2]), use)
        text = re.sub(pattern, lambda _, new=new: new, text)
    return text


def main() -> None:
    """Write the figures into the pages."""
    values = figures()
    for page in USES:
        text = written(page, values)
        if text != (REPOSITORY / page).read_text(encoding="utf-8"):
            (REPOSITORY / page).write_text(text, encoding="utf-8")
            print(page, file=sys.stderr)


if __name__ == "__main__":
    main()
