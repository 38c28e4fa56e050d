"""Command ``herdner evaluate``: precision, recall and F1 of a model or of predictions, and the speed of the model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import parse_inference, print_note, show_activity
from herdner.cli.compare import compare_sides
from herdner.cli.gold import GoldFiles, parse_renames, parse_sources, print_table, tag_timed
from herdner.cli.groups import TableOptions
from herdner.cli.usage import UsageError, is_set

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import FileAndFormat
    from herdner.evaluation.tabular import Tabular
    from herdner.text.document import Document


@command
def evaluate(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE:FORMAT", help="Annotated files, as in dev.conll:conll.")],
    tables: TableOptions,
    input_: opt.InputOption = None,
    model: opt.ModelOption = "en",
    backend: opt.BackendOption = None,
    set_: opt.SetOption = None,
    predictions: Annotated[str | None, typer.Option(
        "--predictions", metavar="FILE:FORMAT", help="Score the predictions of this file instead of a model.")] = None,
    compare: Annotated[tuple[str, str] | None, typer.Option(
        "--compare", metavar="A B", help="Test whether B is better than A. A and B are MODEL, MODEL@BACKEND, "
        "MODEL@BACKEND:KEY=VALUE:..., or FILE:FORMAT of predictions.")] = None,
    seed: opt.SeedOption = 0,
    rename_labels: Annotated[bool | None, typer.Option(
        "--rename-labels/--keep-labels", help="Rename the labels of known corpora to PER, LOC and ORG; drop others "
        "[default: rename if the model knows no other labels].")] = None,
    resamples: Annotated[int | None, typer.Option(
        "--resamples", min=0, max=opt.MAX_RESAMPLES, help="Bootstrap samples; 0 computes no interval [default: 1000; "
        "10000 with --compare].")] = None,
    rename: opt.RenameOption = None,
    case: Annotated[Literal["lower", "upper"] | None, typer.Option(
        metavar="lower|upper", help="Convert the text to lower or upper case before tagging.")] = None,
    consistency: Annotated[bool, typer.Option(
        "--consistency", help="Also evaluate repeated names and short forms of names.")] = False,
    names: Annotated[bool, typer.Option(
        "--names", help="Also evaluate which mentions belong to one name, if the files contain name ids.")] = False,
    unit: opt.UnitOption = None,
    strict: opt.StrictOption = False,
    json_: opt.JsonOption = False,
) -> None:  # fmt: skip
    """Score a model on annotated files: print precision, recall and F1 (for each label and in total) and the speed.

    An entity is correct if a gold entity has the same boundaries and label. The speed is measured in one process, from
    tokens to entities, if there are at least 10,000 tokens. Running text is split by the model's tokenizer. The macro
    average is the mean over the labels that occur in the annotated files.

    With --predictions, the entities of another file with the same texts are scored. Documents are matched by id if the
    ids are unique and every gold document has a prediction, else by their order; predictions for other documents are
    left out. Predicted entities are aligned with the gold tokens.

    With --compare, two models, backends or files of predictions are scored on the same documents. The output has both
    F1, their difference with its interval, and p-values by approximate randomisation and paired bootstrap.

    With --names, the groups of mentions of one name are scored by MUC, B-cubed, CEAF-e and LEA: first for the mentions
    of the files, then for the mentions that the model finds. The files must contain name ids, such as the key "name_id"
    in JSON lines.

    With --consistency, a second table counts repeated names (how many have several labels, how many are correct at all
    mentions) and short forms of names, such as "Winam" after "Winam Ferries Ltd.". It compares tagging with and without
    links.
    """
    gold_files = GoldFiles(
        parse_sources(files, input_), rename_labels, parse_renames(rename), case, strict, tables.read_options()
    )
    for option, value in (("predictions", predictions), ("compare", compare)):
        if value is not None:
            _check_no_model_options(context, option)
    if unit is not None and compare is None:
        raise UsageError("--unit requires --compare; add --compare or leave out --unit")
    n_resamples = resamples if resamples is not None else 1000 if compare is None else 10_000
    if compare is not None:
        results = [compare_sides(gold_files, compare, input_, seed, n_resamples, unit)]
    elif predictions is not None:
        (source,) = parse_sources([predictions], input_)
        results = _score_predictions(gold_files, source, seed, n_resamples, consistency, names)
    else:
        results = _score_model(gold_files, model, backend, set_, seed, n_resamples, consistency, names)
    if json_:
        from herdner.evaluation.coreference import NameScores

        more: dict[str, object] = {"consistency": results[1].to_dict()} if consistency else {}
        more |= {"names": [table.to_dict() for table in results if isinstance(table, NameScores)]} if names else {}
        print(json.dumps({**results[0].to_dict(), **more}, ensure_ascii=False))
        return
    for i, table in enumerate(results):
        print(end="\n" if i else "")
        print_table(table)


_NOT_WITH = {
    "predictions": ("model", "backend", "set_", "compare", "case"),
    "compare": ("model", "backend", "set_", "consistency", "names"),
}


def _check_no_model_options(context: typer.Context, option: str) -> None:
    """Raise a usage error if an option is set that cannot be combined with --predictions or --compare."""
    advice = ", which scores a file; leave out one of them" if option == "predictions" else "; leave out one of them"
    for name in _NOT_WITH[option]:
        if is_set(context, name):
            described = option == "compare" and name in ("model", "backend", "set_")
            remedy = "; write MODEL@BACKEND:KEY=VALUE" if described else advice
            raise UsageError(f"--{name.strip('_')}: cannot be combined with --{option}{remedy}")


def _score_predictions(
    gold_files: GoldFiles, source: FileAndFormat, seed: int, resamples: int, consistency: bool, names: bool
) -> list[Tabular]:
    """Return the scores of predictions in a file (see `_score`)."""
    from herdner.evaluation.align import align_documents
    from herdner.text.labels import rename_labels
    from herdner.text.tokenize import Tokenizer

    with show_activity(f"reading {source.path}"):
        documents = [rename_labels(each, gold_files.renames) for each in gold_files.read_unchecked(source)]
    labels = {entity.label for document in documents for entity in document.entities}
    gold = gold_files.read_known(Tokenizer(), labels, source.path)
    aligned = align_documents(gold, documents, name=source.path)
    for line in aligned.warnings():
        print_note(f"{source.path}: {line}")
    return _score(gold, {source.path: aligned.documents}, seed, resamples, consistency, names)


def _score_model(
    gold_files: GoldFiles, model: str, backend: str | None, set_: list[str] | None, seed: int, resamples: int,
    consistency: bool, names: bool,
) -> list[Tabular]:  # fmt: skip
    """Return the scores of a model (see `_score`). For a model with links, add the consistency without links."""
    import herdner
    from herdner.text.tokenize import Tokenizer

    tagger = herdner.load(model)
    inference = parse_inference(backend, set_, tagger)
    gold = gold_files.read_known(Tokenizer(tagger.model_.tokenizer), tagger.labels, f"model {model}")
    predicted, speed = tag_timed(tagger, gold, inference, seed)
    has_links = inference.links and bool(tagger.model_.link_tables)
    predictions = {"with links" if has_links else "without links": predicted}
    if consistency and has_links:
        unlinked = replace(inference, links=False)
        predictions["without links"] = tag_timed(tagger, gold, unlinked, seed, "without links")[0]
    return _score(gold, predictions, seed, resamples, consistency, names, tagger, speed)


def _score(
    gold: list[Document], predictions: dict[str, list[Document]], seed: int, resamples: int, consistency: bool,
    names: bool, tagger: Tagger | None = None, speed: float | None = None,
) -> list[Tabular]:  # fmt: skip
    """Return the entity scores of the first predictions and, on request, the scores of consistency and of names.

    The consistency is that of all predictions. With a tagger, names are evaluated also with the gold mentions.
    """
    import numpy as np

    from herdner.evaluation.consistency import measure_consistency
    from herdner.evaluation.coreference import evaluate_names
    from herdner.evaluation.scores import evaluate as score
    from herdner.ner.identity import with_names

    predicted = next(iter(predictions.values()))
    with show_activity("scoring"):
        scores = score(
            gold, predicted, rng=np.random.default_rng(seed) if resamples else None, n_resamples=resamples or 1,
            tokens_per_second=speed, known_labels=None if tagger is None else tagger.labels,
        )  # fmt: skip
        tables: list[Tabular] = [scores]
        if consistency:
            result = measure_consistency(gold, predictions)
            tables += [result, result.inconsistent_names]
        if names and tagger is not None:
            tables.append(evaluate_names(gold, map(with_names, gold), "gold"))
        if names:
            tables.append(evaluate_names(gold, predicted, "predicted"))
    return tables
