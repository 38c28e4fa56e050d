"""``herdner train``: a model from annotated files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from herdner.base.files import atomic_write
from herdner.cli.common import command, complain, progress
from herdner.cli.gold import bare, parse_map, parse_sources, read_gold, show
from herdner.cli.options import MapLabelsOption, MapOption, StrictOption
from herdner.cli.usage import UsageError, check_figure, check_not_input, check_writable, is_given, wrong_use

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import SourceFile
    from herdner.crf.learning import Learner
    from herdner.crf.link_rules import Rule
    from herdner.crf.templates import Template
    from herdner.ner.lexicon import Lexicon
    from herdner.text.document import Document
    from herdner.text.tokenize import Tokenizer, TokenizerSettings


LexiconOption = Annotated[
    str | None,
    typer.Option(
        "--lexicon",
        metavar="MODEL",
        help="Take the word classes and gazetteers of this model, or none [default: en for English, else none].",
    ),
]
ClassesOption = Annotated[
    bool, typer.Option("--classes", help="Use the Brown word classes of spacy-lookups-data (extra: train) instead.")
]
GazetteerOption = Annotated[
    list[Path] | None,
    typer.Option("--gazetteer", help="File with one name a line, # before a comment; may be repeated."),
]
TrainOption = Annotated[
    list[str], typer.Option("--train", metavar="FILE:FORMAT", help="Annotated file to learn from; may be repeated.")
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="MODEL",
        help="Adapt this model: its features, tag scheme, words and links stay, and what is learned is drawn to its "
        "weights; there may be new classes.",
    ),
]
WeightOption = Annotated[
    list[float] | None,
    typer.Option("--weight", min=0, help="How much the documents of a --train count: one for each, in their order."),
]
GuidelineOption = Annotated[
    str | None,
    typer.Option(
        "--guideline",
        metavar="FILE",
        help="The --train files annotate by different rules: follow those of this one, and learn from all.",
    ),
]
DevOption = Annotated[
    list[str] | None,
    typer.Option("--dev", metavar="FILE:FORMAT", help="Annotated file to score on; may be repeated."),
]
LinkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--link",
        metavar="RULE",
        help="Which mentions are linked: same-word, same-stem, acronym, last-name, company, with options as in "
        "same-word:nearest=5; may be repeated; none: a chain alone [default: same-word].",
    ),
]
ObjectiveOption = Annotated[
    Literal["pseudo-likelihood", "token-pseudo-likelihood", "piecewise", "mcmc"],
    typer.Option("--objective", help="What the links are learned by."),
]
L2Option = Annotated[float, typer.Option("--l2", min=0, help="Weight of the squared L2 norm of the links' tables.")]
JointOption = Annotated[bool, typer.Option("--joint", help="Learn the chain's transitions together with the links.")]
FoldsOption = Annotated[
    int, typer.Option("--folds", min=1, help="Chains trained on parts, from which the links are learned.")
]
CurveOption = Annotated[
    Path | None, typer.Option("--figure", help="Figure of how the links were learned (extra: evaluate).")
]


C2Option = Annotated[
    float | None,
    typer.Option(
        "--c2",
        min=0,
        help="Weight of the squared L2 norm; weights of a base are held ten times as strongly [default: 0.3].",
    ),
]
MinFreqOption = Annotated[
    int | None, typer.Option("--min-freq", min=1, help="Rarer features are left out [default: 2, with --base 1].")
]
TrainerOption = Annotated[
    Literal["herdner", "crfsuite"],
    typer.Option("--trainer", help="Both have the same objective; L1 is always left to CRFsuite."),
]
SchemeOption = Annotated[
    Literal["iobes", "iob2", "iob1", "bilou"], typer.Option("--scheme", help="Tag scheme inside the model.")
]
WeightsOption = Annotated[
    Literal["float64", "float32", "float16"], typer.Option("--weights", help="How they are stored.")
]
LanguageOption = Annotated[str, typer.Option("--language", help="Language of the tokenizer and the word classes.")]


@command
def train(
    context: typer.Context,
    train: TrainOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    base: BaseOption = None,
    weight: WeightOption = None,
    guideline: GuidelineOption = None,
    dev: DevOption = None,
    map_labels: MapLabelsOption = False,
    map_: MapOption = None,
    c1: Annotated[float, typer.Option("--c1", min=0, help="Weight of the L1 norm.")] = 0.0,
    c2: C2Option = None,
    min_freq: MinFreqOption = None,
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="L-BFGS iterations, at most.")] = 80,
    trainer: TrainerOption = "herdner",
    scheme: SchemeOption = "iobes",
    link: LinkOption = None,
    objective: ObjectiveOption = "pseudo-likelihood",
    l2: L2Option = 2.0,
    joint: JointOption = False,
    folds: FoldsOption = 4,
    curve: CurveOption = None,
    weights: WeightsOption = "float32",
    language: LanguageOption = "en",
    lexicon: LexiconOption = None,
    classes: ClassesOption = False,
    gazetteer: GazetteerOption = None,
    strict: StrictOption = False,
) -> None:
    """Train a model on annotated files, and score it on others.

    First the chain, then the links between mentions of one name, learned from chains that have not seen the documents
    they look at. With --dev the links are those of the iteration that scores best there.

    A class that one file marks and another never does is taken as not looked for there: its tokens may belong to it.
    In columns the tag ? is any, PER|ORG any in a name of these classes; JSON lines list "annotated_labels".
    """
    from herdner import Tagger, Tokenizer
    from herdner.crf.crfsuite_files import check_crfsuite

    if trainer != "herdner" or c1:
        check_crfsuite()
    check_writable(output)
    check_figure(curve, "--figure")
    templates, learner = links(link, objective, l2, joint, language)
    sources, dev_sources = parse_sources(train), parse_sources(dev or [])
    check_not_input(output, [source.path for source in [*sources, *dev_sources]])
    adapted, rules = base_of(context, base, language)
    tokenizer = Tokenizer(rules)
    read = partial(read_gold, tokenizer=tokenizer, map_labels=map_labels, labels=parse_map(map_ or ()), strict=strict)
    documents, counts = read_apart(sources, read, adapted, weight, guideline)
    dev_documents = read(dev_sources)  # now: a bad file must not cost a training run
    options = penalty(base, c1, c2, min_freq)
    tagger = Tagger(
        lexicon=word_knowledge(lexicon, language, classes, gazetteer or [], tokenizer) if adapted is None else None,
        scheme=scheme if adapted is None else adapted.model_.scheme, max_iterations=iterations,
        templates=templates if adapted is None else None, learner=learner, n_folds=folds,
        tokenizer=rules, trainer=trainer, **cast("dict[str, Any]", options),
    )  # fmt: skip
    fit(tagger, documents, iterations, dev_documents, base=adapted, **counts)
    draw(tagger, curve)
    linked = {"rules": link or ["same-word"], "objective": objective, "l2": l2, "joint": joint, "folds": folds}
    options |= {"iterations": iterations, "map_labels": map_labels, "map": map_, "base": base, "weights": weight}
    options |= {"guideline": guideline and Path(guideline).name}
    card = {
        "training": [{"file": Path(path).name, "format": format} for path, format in sources],
        "options": {**options, "links": linked}, "training_documents": len(documents),
    }  # fmt: skip
    finish(tagger, output, card, weights, dev_documents, [Path(path).name for path, _ in dev_sources])


def penalty(base: str | None, c1: float, c2: float | None, min_freq: int | None) -> dict[str, object]:
    """What keeps weights small, as parameters of a tagger; the defaults are others with a base."""
    from herdner.ner.training.adapting import ADAPTING
    from herdner.ner.training.chains import Penalty

    usual = Penalty() if base is None else ADAPTING
    return {"c1": c1, "c2": usual.c2 if c2 is None else c2, "min_freq": min_freq or usual.min_freq}


def links(
    rules: list[str] | None, objective: str, l2: float, joint: bool, language: str
) -> tuple[list[Template], Learner]:
    """What is linked, and how the links are learned."""
    from herdner.crf.learning import Learner, MCMCLikelihood
    from herdner.crf.templates import linear_chain_template, skip_chain_template

    rules = rules or ["same-word"]
    if "none" in rules and len(rules) > 1:
        raise UsageError("--link none goes with no other --link")
    with wrong_use("--link"):
        linked = [skip_chain_template(rule_of(rule, language)) for rule in rules if rule != "none"]
    learner = Learner(MCMCLikelihood() if objective == "mcmc" else objective, l2=l2, joint=joint)
    return [linear_chain_template(), *linked], learner


def rule_of(text: str, language: str) -> Rule:
    """The rule that is written; stems are those of the language (as in "nb") where it does not say which."""
    from herdner.crf.link_rules import SameStem, rule_from_text

    rule = rule_from_text(text)
    if not isinstance(rule, SameStem) or "language" in text or language == "en":
        return rule
    from spacy.util import get_lang_class

    try:
        stems = get_lang_class(language).__name__.lower()
    except ImportError:
        raise ValueError(f"rule same-stem: --language {language!r} is not one that spaCy knows") from None
    return replace(rule, language=stems)


def base_of(context: typer.Context, base: str | None, language: str) -> tuple[Tagger | None, TokenizerSettings]:
    """The model that is adapted, and how text is split. Options for what it takes over from its base are wrong use."""
    from herdner import load
    from herdner.text.sentences import ENGLISH, SentenceRules
    from herdner.text.tokenize import TokenizerSettings

    if base is None:
        return None, TokenizerSettings(language, sentences=ENGLISH if language == "en" else SentenceRules())
    for name in ("scheme", "language", "lexicon", "classes", "gazetteer", "link", "trainer", "c1"):
        if is_given(context, name):
            raise UsageError(
                f"--{name}: not with --base, whose tag scheme, language, words and links are kept, and which only"
                " herdner's own trainer adapts"
            )
    adapted = load(base)
    return adapted, adapted.model_.tokenizer


def read_apart(
    sources: list[SourceFile],
    read: Callable[[list[SourceFile]], list[Document]],
    base: Tagger | None,
    weight: list[float] | None,
    guideline: str | None,
) -> tuple[list[Document], dict[str, Any]]:
    """All documents, those of corpora that never mark some class open to it; and by how much each counts, and whose
    guideline is followed, as `Tagger.fit` takes them.
    """
    from herdner.ner.training.supervision import annotated_apart

    if weight and len(weight) != len(sources):
        raise UsageError(f"--weight: {len(weight)} for {len(sources)} of --train; give one for each, in their order")
    if guideline is not None and guideline not in (paths := [source.path for source in sources]):
        raise UsageError(f"--guideline: {guideline!r} is not one of --train; these are {', '.join(paths)}")
    corpora = [read([source]) for source in sources]
    apart = annotated_apart(corpora, set[str]() if base is None else set(base.labels))
    for source, before, after in zip(sources, corpora, apart, strict=True):
        opened = {
            d.partial.annotated_labels
            for d, old in zip(after, before, strict=True)
            if d.partial and d.partial != old.partial
        }
        for classes in opened:
            complain(
                f"{source.path}: marks {', '.join(classes or ())} alone; tokens outside may belong to any other class"
            )
    counts = None if weight is None else [w for w, own in zip(weight, corpora, strict=True) for _ in own]
    groups = [source.path for source, own in zip(sources, corpora, strict=True) for _ in own]
    guided = {} if guideline is None else {"groups": groups, "guideline": guideline}
    return [document for corpus in apart for document in corpus], {"document_weights": counts, **guided}


def fit(
    tagger: Tagger, documents: list[Document], iterations: int, development: list[Document], **options: Any
) -> None:
    """Train, with the loss beside the progress bar."""
    with progress("{task.completed} of {task.total}", "{task.fields[loss]}") as display:
        tasks: dict[str, Any] = {}

        def report(number: int, log: dict[str, Any]) -> None:
            stage = log["stage"]
            if stage not in tasks:
                total = tagger.learner.max_iterations if stage == "links" and tagger.learner else iterations
                tasks[stage] = display.add_task(stage, total=total, loss="")
            told = f"loss {log.get('loss', float('nan')):,.0f}"
            if log.get("f1") is not None:
                told += f", dev F1 {log['f1']:.2%}"
            display.update(tasks[stage], completed=number, loss=told)

        tagger.fit(documents, development=development or None, progress=report, **options)


def draw(tagger: Tagger, curve: Path | None) -> None:
    """The figure of the learning curve."""
    if curve is None:
        return
    if tagger.learning_curve_ is None:
        complain(f"--figure {curve}: nothing was linked in these documents, so there is no curve")
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    tagger.learning_curve_.plot(figure.add_subplot())
    with atomic_write(curve) as stream:
        figure.savefig(stream, format=curve.suffix[1:])  # pyright: ignore[reportUnknownMemberType]


def word_knowledge(
    model: str | None, language: str, classes: bool, gazetteers: list[Path], tokenizer: Tokenizer
) -> Lexicon:
    """Word classes and gazetteers: those of a model, with what is given by hand in place of them or beside them."""
    import herdner
    from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, word_classes

    model = model or ("en" if language == "en" else "none")
    base = Lexicon() if model == "none" else herdner.load(model).model_.lexicon
    try:
        words = word_classes(brown_classes(language)) if classes else base.classes
    except ImportError as error:
        raise UsageError(str(error)) from None
    lists: dict[str, list[list[str]]] = {}
    for path in gazetteers:
        if path.stem in lists:
            raise UsageError(f"--gazetteer {path}: a second list named {path.stem}; rename one of the files")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            lists[path.stem] = [tokenizer.tokens(line) for line in lines if not line.startswith("#")]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 (byte {error.start}); convert it first") from None
    if not lists:
        return replace(base, classes=words)
    given = Gazetteers.of(lists)
    joined = given if base.gazetteers is None else base.gazetteers.joined(given)
    return replace(base, classes=words, gazetteers=joined)


def finish(
    tagger: Tagger, output: Path, card: dict[str, Any], weights: str, dev_documents: list[Document], files: list[str]
) -> None:
    """Score, write the model with its training card, and say so."""
    from herdner.evaluation.scores import evaluate

    scores = evaluate(dev_documents, list(tagger.pipe(map(bare, dev_documents)))) if dev_documents else None
    if scores is not None:
        card["scores"] = {"files": files, **scores.to_dict()}
    tagger.model_ = replace(tagger.model_, card=card)
    tagger.save(output, weight_type=weights)
    if scores is not None:
        show(scores)
    print(f"model written to {output} ({output.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
