"""``herdner train``: a model from annotated files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from herdner.cli.common import UsageError, check_writable, command, progress
from herdner.cli.evaluate import bare, parse_sources, read_gold, show

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.document import Document
    from herdner.ner.evaluate import Scores
    from herdner.ner.lexicon import Lexicon
    from herdner.ner.tags import Scheme

WEIGHTS = ("float64", "float32", "float16")


@command
def train(
    train: Annotated[
        list[str], typer.Option("--train", metavar="FILE:FORMAT", help="Annotated file to learn from; may be repeated.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    dev: Annotated[
        list[str] | None,
        typer.Option("--dev", metavar="FILE:FORMAT", help="Annotated file to score on; may be repeated."),
    ] = None,
    map_labels: Annotated[
        bool, typer.Option("--map-labels", help="Map the corpora's classes to PER, LOC and ORG; drop the others.")
    ] = False,
    c1: Annotated[float, typer.Option("--c1", min=0, help="Weight of the L1 norm.")] = 0.0,
    c2: Annotated[float, typer.Option("--c2", min=0, help="Weight of the squared L2 norm.")] = 0.3,
    min_freq: Annotated[int, typer.Option("--min-freq", min=1, help="Rarer features are left out.")] = 2,
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="L-BFGS iterations, at most.")] = 80,
    scheme: Annotated[
        str, typer.Option("--scheme", help="Tag scheme inside the model: iobes, iob2, iob1 or bilou.")
    ] = "iobes",
    particles: Annotated[
        int,
        typer.Option("--particles", min=0, help="Particles of the tables for `herdner tag --uncertainty`, as in 32."),
    ] = 0,
    weights: Annotated[str, typer.Option("--weights", help=f"Stored as {', '.join(WEIGHTS)}.")] = "float32",
    language: Annotated[str, typer.Option("--language", help="Language of the tokenizer and the word classes.")] = "en",
    lexicon: Annotated[
        str | None,
        typer.Option(
            "--lexicon",
            metavar="MODEL",
            help="Take the word classes and gazetteers of this model, or none [default: en for English, else none].",
        ),
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="Use the Brown word classes of spacy-lookups-data (extra: train) instead.")
    ] = False,
    gazetteer: Annotated[
        list[Path] | None, typer.Option("--gazetteer", help="File with one name a line; may be repeated.")
    ] = None,
) -> None:
    """Train a model on annotated files, and score it on others."""
    check_choices(scheme, weights)
    check_writable(output)
    from herdner import Tagger
    from herdner.ner.sentences import ENGLISH, SentenceRules
    from herdner.ner.tokenize import Tokenizer, TokenizerSettings

    sources, dev_sources = parse_sources(train), parse_sources(dev or [])
    rules = TokenizerSettings(language, sentences=ENGLISH if language == "en" else SentenceRules())
    tokenizer = Tokenizer(rules)
    documents = read_gold(sources, tokenizer, map_labels)
    dev_documents = read_gold(dev_sources, tokenizer, map_labels)  # now: a bad file must not cost a training run
    tagger = Tagger(
        lexicon=word_knowledge(lexicon, language, classes, gazetteer or [], tokenizer),
        scheme=cast("Scheme", scheme),
        c1=c1, c2=c2, min_freq=min_freq, max_iterations=iterations, n_particles=particles,
        tokenizer=rules,
    )  # fmt: skip
    fit(tagger, documents, iterations)
    options = {"c1": c1, "c2": c2, "min_freq": min_freq, "iterations": iterations, "map_labels": map_labels}
    card = training_card(sources, len(documents), {**options, "particles": particles})
    scores = scored(tagger, dev_documents) if dev_documents else None
    if scores is not None:
        card["scores"] = {"files": [Path(path).name for path, _ in dev_sources], **scores.to_dict()}
    save(tagger, output, card, weights)
    if scores is not None:
        show(scores)
    print(f"model written to {output} ({output.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)


def training_card(sources: list, n_documents: int, options: dict[str, Any]) -> dict[str, Any]:
    """Where the model comes from."""
    training = [{"file": Path(path).name, "format": format} for path, format in sources]
    return {"training": training, "options": options, "training_documents": n_documents}


def check_choices(scheme: str, weights: str) -> None:
    """Words that are not among the choices are wrong use."""
    from herdner.ner.tags import SCHEMES

    for name, value, known in (("--scheme", scheme, SCHEMES), ("--weights", weights, WEIGHTS)):
        if value not in known:
            raise UsageError(f"{name} {value!r}: expected one of {', '.join(known)}")


def fit(tagger: Tagger, documents: list[Document], iterations: int) -> None:
    """Train, with the loss beside the progress bar."""
    with progress("{task.completed} of {task.total}", "{task.fields[loss]}") as display:
        task = display.add_task("L-BFGS", total=iterations, loss="")
        tagger.fit(
            documents,
            progress=lambda i, log: display.update(
                task, completed=i, loss=f"loss {log.get('loss', float('nan')):,.0f}"
            ),
        )


def word_knowledge(model: str | None, language: str, classes: bool, gazetteers: list[Path], tokenizer: Any) -> Lexicon:
    """Word classes and gazetteers: those of a model, with what is given by hand in place of them or beside them."""
    import herdner
    from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, word_classes

    model = model or ("en" if language == "en" else "none")
    base = Lexicon() if model == "none" else herdner.load(model).model_.lexicon
    try:
        words = word_classes(brown_classes(language)) if classes else base.classes
    except ImportError as error:
        raise UsageError(str(error)) from None
    lists = {}
    for path in gazetteers:
        if path.stem in lists:
            raise UsageError(f"--gazetteer {path}: a second list named {path.stem}; rename one of the files")
        try:
            lists[path.stem] = [tokenizer.tokens(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 (byte {error.start}); convert it first") from None
    if not lists:
        return Lexicon(words, base.gazetteers)
    given = Gazetteers.of(lists)
    return Lexicon(words, base.gazetteers.joined(given) if base.gazetteers is not None else given)


def scored(tagger: Tagger, gold: list[Document]) -> Scores:
    """The tagger's scores on annotated documents."""
    from herdner.ner.evaluate import evaluate

    return evaluate(gold, list(tagger.pipe(map(bare, gold))))


def save(tagger: Tagger, output: Path, card: dict[str, Any], weights: str) -> None:
    """Write the model with its training card."""
    from dataclasses import replace

    tagger.model_ = replace(tagger.model_, card=card)
    tagger.save(output, weight_type=weights)
