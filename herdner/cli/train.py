"""Command ``herdner train``: training of a model on annotated files."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from herdner.base.extras import MissingExtra
from herdner.base.files import atomic_write
from herdner.base.messages import format_size
from herdner.base.progress import show_progress
from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import print_note, show_activity
from herdner.cli.gold import GoldFiles, parse_renames, parse_sources, print_table, text_keys
from herdner.cli.groups import TableOptions
from herdner.cli.usage import UsageError, check_distinct, check_figure, check_output, is_set, usage_errors

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import FileAndFormat
    from herdner.crf.learning import Learner
    from herdner.crf.link_rules import Rule
    from herdner.crf.templates import Template
    from herdner.evaluation.scores import Scores
    from herdner.ner.lexicon import Lexicon
    from herdner.text.document import Document
    from herdner.text.tokenize import Tokenizer, TokenizerSettings

logger = logging.getLogger(__name__)


# fmt: off
@dataclass(frozen=True)
class LinkOptions:
    """Options for links and for the training of link tables."""

    link: Annotated[list[str] | None, typer.Option(
        "--link", metavar="RULE", help="Rule that links mentions: same-word, same-stem, acronym, last-name, company, "
        "with options as in same-word:nearest=5; may be repeated; none: a linear chain without links [default: "
        "same-word].")] = None
    objective: Annotated[Literal["pseudo-likelihood", "token-pseudo-likelihood", "piecewise", "mcmc"], typer.Option(
        "--objective", help="Objective for learning the link tables.")] = "pseudo-likelihood"
    l2: Annotated[float, typer.Option("--l2", min=0, help="L2 penalty on the link tables.")] = 2.0
    joint: Annotated[bool, typer.Option(
        "--joint", help="Learn the transitions of the chain together with links.")] = False
    folds: Annotated[int, typer.Option(
        "--folds", min=1, help="Number of folds. The links are learned from predictions on held-out folds.")] = 4

    def card(self) -> dict[str, object]:
        """Return the options as an entry of the model card."""
        return {
            "rules": self.link or ["same-word"], "objective": self.objective, "l2": self.l2, "joint": self.joint,
            "folds": self.folds,
        }  # fmt: skip


@dataclass(frozen=True)
class LexiconOptions:
    """Options for word classes and gazetteers."""

    lexicon: Annotated[str | None, typer.Option(
        "--lexicon", metavar="MODEL", help="Model from which to take word classes and gazetteers, or none [default: en "
        "for English, else none].")] = None
    classes: Annotated[bool, typer.Option(
        "--classes", help="Use the Brown word classes of spacy-lookups-data (extra: train) instead of the classes of "
        "--lexicon.")] = False
    gazetteer: Annotated[list[Path] | None, typer.Option(
        "--gazetteer", help="File with one name per line and # before comments; may be repeated.")] = None


_BaseOption = Annotated[str | None, typer.Option(
    "--base", metavar="MODEL", help="Adapt this model. Its features, tag scheme, word classes and links stay; its "
    "weights are the centre of the L2 penalty. The files may have new labels.")]
_WeightOption = Annotated[list[float] | None, typer.Option(
    "--weight", min=0, help="Weight of the documents of a --train file; one for each file, in the same "
    "order.")]
_GuidelineOption = Annotated[str | None, typer.Option(
    "--guideline", metavar="FILE", help="The --train files follow different annotation guidelines: learn from all, "
    "and tag by the guidelines of this file.")]
_C2Option = Annotated[float | None, typer.Option(
    "--c2", min=0, help="L2 penalty of the linear-chain model; ten times as large for weights of a --base "
    "[default: 0.3].")]
_MinFreqOption = Annotated[int | None, typer.Option(
    "--min-freq", min=1, help="Drop features that occur fewer times [default: 2; with --base 1].")]
_TrainerOption = Annotated[Literal["herdner", "crfsuite"], typer.Option(
    "--trainer", help="Trainer of the chain. Both minimise the same objective.")]
_SchemeOption = Annotated[Literal["iobes", "iob2", "iob1", "bilou"], typer.Option(
    "--scheme", help="Tag scheme of the model.")]
_FigureOption = Annotated[Path | None, typer.Option(
    "--figure", help="Draw the learning curve of the links (extra: evaluate).")]
# fmt: on


@command
def train(
    context: typer.Context,
    train: Annotated[list[str], typer.Option(
        "--train", metavar="FILE:FORMAT", help="Annotated file to learn from; may be repeated.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    links: LinkOptions,
    words: LexiconOptions,
    tables: TableOptions,
    base: _BaseOption = None,
    weight: _WeightOption = None,
    guideline: _GuidelineOption = None,
    dev: Annotated[list[str] | None, typer.Option(
        "--dev", metavar="FILE:FORMAT", help="Annotated file to score the model on; may be repeated.")] = None,
    input_: opt.InputOption = None,
    rename_labels: opt.RenameLabelsOption = False,
    rename: opt.RenameOption = None,
    c1: Annotated[float, typer.Option("--c1", min=0, help="L1 penalty of the linear-chain model.")] = 0.0,
    c2: _C2Option = None,
    min_freq: _MinFreqOption = None,
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="Largest number of L-BFGS iterations.")] = 80,
    trainer: _TrainerOption = "herdner",
    scheme: _SchemeOption = "iobes",
    figure: _FigureOption = None,
    weight_type: Annotated[Literal["float64", "float32", "float16"], typer.Option(
        "--weight-type", help="Type of the stored weights.")] = "float32",
    language: Annotated[str, typer.Option("--language", help="Language of the tokenizer and of word classes.")] = "en",
    strict: opt.StrictOption = False,
) -> None:  # fmt: skip
    """Train a model on annotated files, and score the model on development files.

    The linear-chain model is trained first. Then the links between mentions of one name are learned from held-out
    predictions: those of linear-chain models that were trained without the predicted documents. With --dev, the links
    of the iteration with the best score are kept.

    If one file has a label that another file never has, the other file counts as not annotated with this label: tokens
    outside its entities may have it. In columns, the tag ? allows any tag, and PER|ORG any tag of these labels. JSON
    lines list the annotated labels as "annotated_labels".
    """
    from herdner import Tagger, Tokenizer
    from herdner.crf.crfsuite_files import check_crfsuite

    if trainer != "herdner":
        check_crfsuite()
    check_figure(figure)
    check_distinct({"--output": output, "--figure": figure})
    templates, learner = _links(links, language)
    sources, dev_sources = parse_sources(train, input_), parse_sources(dev or [], input_)
    corpora = [source.path for source in [*sources, *dev_sources]]
    check_output(output, [*corpora, base, words.lexicon, *(words.gazetteer or ())], is_text=False)
    base_tagger, tokenizer_settings = _load_base(context, base, language)
    tokenizer = Tokenizer(tokenizer_settings)
    # The language is checked before training, because files of tokens are read without its rules; they need no spaCy.
    with usage_errors("" if base else "--language"), suppress(MissingExtra):
        tokenizer.load_rules()
    files = GoldFiles(sources, rename_labels, parse_renames(rename), None, strict, tables.read_options())
    read = partial(files.read, tokenizer)
    documents, fit_options = _read_training(sources, read, base_tagger, weight, guideline)
    dev_documents = read(dev_sources)  # before training, so that errors in the files are reported early
    _warn_about_training_texts(documents, dev_documents)
    penalty = _penalty(base, c1, c2, min_freq)
    tagger = Tagger(
        lexicon=None if base_tagger else _lexicon(words, language, tokenizer),
        scheme=base_tagger.model_.scheme if base_tagger else scheme, max_iterations=iterations,
        templates=None if base_tagger else templates, learner=learner, n_folds=links.folds,
        tokenizer=tokenizer_settings, trainer=trainer, **penalty,
    )  # fmt: skip
    _fit(tagger, documents, iterations, dev_documents, base=base_tagger, **fit_options)
    _draw_learning_curve(tagger, figure)
    card = {
        "training": [{"file": Path(path).name, "format": format} for path, format in sources],
        "options": {
            **penalty, "iterations": iterations, "rename_labels": rename_labels, "rename": rename, "base": base,
            "weights": weight, "guideline": guideline and Path(guideline).name, "links": links.card(),
        },
        "training_documents": len(documents),
    }  # fmt: skip
    if base_tagger is not None:
        _print_changes(base_tagger, tagger, dev_documents)
    _save(tagger, output, card, weight_type, dev_documents, [Path(path).name for path, _ in dev_sources])


def _penalty(base: str | None, c1: float, c2: float | None, min_freq: int | None) -> dict[str, Any]:
    """Return the regularisation parameters as keyword arguments of a tagger.

    Their defaults differ with and without a base model.
    """
    from herdner.ner.training.options import regularisation

    values = regularisation(c1, c2, min_freq, has_base=base is not None)
    return {"c1": values.c1, "c2": values.c2, "min_freq": values.min_freq}


def _links(options: LinkOptions, language: str) -> tuple[list[Template], Learner]:
    """Return the templates of the model (chain edges and links), and the settings for learning the links."""
    from herdner.crf.learning import Learner, MCMCLikelihood
    from herdner.crf.templates import linear_chain_template, skip_chain_template

    rules = options.link or ["same-word"]
    if "none" in rules and len(rules) > 1:
        raise UsageError("--link none cannot be combined with other --link options; leave out the other options")
    with usage_errors("--link"):
        links = [skip_chain_template(parse_rule(rule, language)) for rule in rules if rule != "none"]
    objective = MCMCLikelihood() if options.objective == "mcmc" else options.objective
    learner = Learner(objective, l2=options.l2, joint=options.joint)
    return [linear_chain_template(), *links], learner


def parse_rule(text: str, language: str) -> Rule:
    """Parse a link rule.

    Args:
        text: The rule and its options, as in "same-word:nearest=5".
        language: Language code of the tokenizer, as in "nb"; the default language of stems.

    Returns:
        The rule.

    Raises:
        ValueError: The rule or the language is unknown.
    """
    from herdner.crf.link_rules import SameStem, rule_from_text

    rule = rule_from_text(text)
    if not isinstance(rule, SameStem) or "language" in text or language == "en":
        return rule
    from spacy.util import get_lang_class

    try:
        name = get_lang_class(language).__name__.lower()
    except ImportError:
        raise ValueError(
            f"rule same-stem: spaCy has no language {language!r}; use --language with a language of spaCy, or the"
            " rule same-stem:language=NAME"
        ) from None
    return replace(rule, language=name)


def _load_base(context: typer.Context, base: str | None, language: str) -> tuple[Tagger | None, TokenizerSettings]:
    """Return the base model that training adapts, and the tokenizer settings.

    Raise `UsageError` for options that the base model determines.
    """
    from herdner import load
    from herdner.text.tokenize import TokenizerSettings

    if base is None:
        with usage_errors("--language"):
            return None, TokenizerSettings.of_language(language)
    for name in ("scheme", "language", "lexicon", "classes", "gazetteer", "link"):
        if is_set(context, name):
            raise UsageError(
                f"--{name}: cannot be combined with --base, which determines tag scheme, language, lexicon and links;"
                " leave out one of the two options"
            )
    for name in ("trainer", "c1"):
        if is_set(context, name):
            raise UsageError(
                f"--{name}: cannot be combined with --base, because only herdner's own trainer with c1=0 can adapt a"
                " model; leave out one of the two options"
            )
    tagger = load(base)
    return tagger, tagger.model_.tokenizer


def _read_training(
    sources: list[FileAndFormat], read: Callable[[list[FileAndFormat]], list[Document]], base: Tagger | None,
    weight: list[float] | None, guideline: str | None,
) -> tuple[list[Document], dict[str, Any]]:  # fmt: skip
    """Return two values: the training documents, and further arguments of `Tagger.fit` (weights, groups, guideline)."""
    from herdner.ner.training.allowed_tags import mark_unannotated_labels

    if weight and len(weight) != len(sources):
        raise UsageError(
            f"--weight: expected one weight for each of the {len(sources)} --train files, in the same order,"
            f" got {len(weight)}"
        )
    paths = [source.path for source in sources]
    if guideline is not None and guideline not in paths:
        raise UsageError(f"--guideline {guideline!r}: expected one of the --train files, {', '.join(paths)}")
    corpora = [read([source]) for source in sources]
    partial_corpora = mark_unannotated_labels(corpora, set[str]() if base is None else set(base.labels))
    for source, before, after in zip(sources, corpora, partial_corpora, strict=True):
        label_sets = {
            new.partial.annotated_labels
            for new, old in zip(after, before, strict=True)
            if new.partial and new.partial != old.partial
        }
        for labels in label_sets:
            print_note(
                f"{source.path}: annotates only {', '.join(labels or ())}; tokens outside may have any other label"
            )
    weights = None if weight is None else [w for w, corpus in zip(weight, corpora, strict=True) for _ in corpus]
    options: dict[str, Any] = {"document_weights": weights}
    if guideline is not None:
        groups = [path for path, corpus in zip(paths, corpora, strict=True) for _ in corpus]
        options |= {"groups": groups, "guideline": guideline}
    return [document for corpus in partial_corpora for document in corpus], options


def _warn_about_training_texts(training: list[Document], development: list[Document]) -> None:
    """Print a warning if development documents also occur among the training documents, which inflates the scores."""
    seen = set(text_keys(training))
    count = sum(text in seen for text in text_keys(development))
    if count:
        print_note(
            f"--dev: {count} of {len(development)} documents have the text of a training document, so their scores are "
            "too high; use other documents"
        )


def _fit(
    tagger: Tagger, documents: list[Document], iterations: int, development: list[Document], **options: Any
) -> None:
    """Train the tagger on ``documents``.

    The progress bar shows the loss and the F1 on development files.
    """
    with show_progress("{task.completed} of {task.total}", "{task.fields[loss]}") as display:
        tasks: dict[str, Any] = {}

        def update(iteration: int, log: dict[str, Any]) -> None:
            stage = log["stage"]
            if stage not in tasks:
                total = tagger.learner.max_iterations if stage == "links" else iterations
                tasks[stage] = display.add_task(stage, total=total, loss="")
            text = f"loss {log.get('loss', float('nan')):,.0f}"
            if log.get("f1") is not None:
                text += f", dev F1 {log['f1']:.2%}"
            logger.info("%s, iteration %d: %s", stage, iteration, text)
            display.update(tasks[stage], completed=iteration, loss=text)

        tagger.fit(documents, development=development or None, progress=update, **options)


def _draw_learning_curve(tagger: Tagger, path: Path | None) -> None:
    if path is None:
        return
    if tagger.learning_curve_ is None:
        print_note(f"--figure {path}: not drawn, because the documents have no links to learn")
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    tagger.learning_curve_.plot(figure.add_subplot())
    with atomic_write(path) as stream:
        figure.savefig(stream, format=path.suffix[1:])  # pyright: ignore[reportUnknownMemberType]


def _lexicon(options: LexiconOptions, language: str, tokenizer: Tokenizer) -> Lexicon:
    """Build the lexicon of the new model from the lexicon of another model, Brown classes and the user's gazetteers."""
    import herdner
    from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, word_classes

    model = options.lexicon or ("en" if language == "en" else "none")
    lexicon = Lexicon() if model == "none" else herdner.load(model).model_.lexicon
    if options.classes:
        with usage_errors(kind=ImportError):
            lexicon = replace(lexicon, classes=word_classes(brown_classes(language)))
    lists: dict[str, list[list[str]]] = {}
    for path in options.gazetteer or ():
        if path.stem in lists:
            raise UsageError(f"--gazetteer {path}: another gazetteer has the name {path.stem}; rename one of the files")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            lists[path.stem] = [tokenizer.tokens(line) for line in lines if not line.startswith("#")]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.start} is not valid UTF-8; convert the file to UTF-8") from None
    if not lists:
        return lexicon
    own = Gazetteers.of(lists)
    return replace(lexicon, gazetteers=own if lexicon.gazetteers is None else lexicon.gazetteers.union(own))


def _score(tagger: Tagger, development: list[Document]) -> Scores:
    from herdner.evaluation.scores import evaluate

    with show_activity("scoring the development files"):
        return evaluate(development, list(tagger.pipe(document.without_annotation() for document in development)))


def _print_changes(base: Tagger, tagger: Tagger, development: list[Document]) -> None:
    """Print, for each label, the change in F1 on the development files compared with the base model."""
    if not development:
        print_note(
            "add --dev with documents like those of the base model to see the change of each F1 against the base model"
        )
        return
    before, after = ({row.label: row.f1 for row in _score(each, development).per_label} for each in (base, tagger))
    changes = [f"{label} {100 * (f1 - before.get(label, 0.0)):+.1f}" for label, f1 in after.items()]
    print_note(f"change of the F1 against the base: {', '.join(changes)}")


def _save(
    tagger: Tagger, output: Path, card: dict[str, Any], weight_type: str, development: list[Document], files: list[str]
) -> None:
    """Score the trained model, write it together with its model card, and print the scores."""
    scores = None
    if development:
        scores = _score(tagger, development)
        card["scores"] = {"files": files, **scores.to_dict()}
    tagger.model_ = replace(tagger.model_, card=card)
    tagger.save(output, weight_type=weight_type)
    if scores is not None:
        print_table(scores)
    print(f"model written to {output} ({format_size(output.stat().st_size)})", file=sys.stderr)
