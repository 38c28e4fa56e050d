"""``herdner evaluate``: precision, recall and F1 on annotated files, and the speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.common import command, inference
from herdner.cli.compare import compared
from herdner.cli.gold import CORE_CLASSES, classes_of, parse_sources, read_gold, show, timed
from herdner.cli.options import MAX_RESAMPLES, BackendOption, JsonOption, ModelOption, SeedOption, SetOption, UnitOption
from herdner.cli.usage import UsageError, unit_of

if TYPE_CHECKING:
    from herdner.corpora.reading import SourceFile
    from herdner.evaluation.scores import Scores


@command
def evaluate(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE:FORMAT", help="Annotated files, as in dev.conll:conll.")],
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            help="Is B better than A? Each is MODEL, MODEL@BACKEND, MODEL@BACKEND:KEY=VALUE:..., or FILE:FORMAT of "
            "predictions.",
        ),
    ] = None,
    seed: SeedOption = 0,
    map_labels: Annotated[
        bool | None,
        typer.Option(
            "--map-labels/--keep-labels",
            help="Map the corpus's classes to PER, LOC and ORG [default: if the model knows no other].",
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            "--resamples",
            min=0,
            max=MAX_RESAMPLES,
            help="Bootstrap samples for the interval; 0: none [default: 1000, with --compare 10000].",
        ),
    ] = None,
    unit: UnitOption = None,
    json_: JsonOption = False,
) -> None:
    """Score a model on annotated files: per class and micro precision, recall and F1 (seqeval, strict), and the speed.

    The speed counts tagging alone, from tokens to names, in one process. The model's tokenizer splits running text.

    With --compare, two models, backends or files of predictions meet on the same documents: both F1, the difference
    with its interval, and p-values by approximate randomisation and paired bootstrap.
    """
    sources = parse_sources(files)
    if compare is None:
        if unit is not None:
            raise UsageError("--unit goes with --compare")
        scores = scored(sources, model, backend, set_, seed, map_labels, 1000 if resamples is None else resamples)
    else:
        for name in ("model", "backend", "set_"):
            if getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT":
                raise UsageError(f"--{name.strip('_')}: with --compare, A and B say so: MODEL@BACKEND:KEY=VALUE")
        scores = compared(sources, compare, seed, map_labels, 10_000 if resamples is None else resamples, unit_of(unit))
    if json_:
        print(scores.to_json())
    else:
        show(scores)


def scored(
    sources: list[SourceFile],
    model: str,
    backend: str | None,
    set_: list[str] | None,
    seed: int,
    map_labels: bool | None,
    resamples: int,
) -> Scores:
    """The scores of one model."""
    import numpy as np

    import herdner
    from herdner.evaluation.scores import evaluate as score
    from herdner.text.tokenize import Tokenizer

    tagger = herdner.load(model)
    options = inference(backend, set_, tagger)
    mapped = map_labels if map_labels is not None else classes_of(tagger.labels) <= CORE_CLASSES
    gold = read_gold(sources, Tokenizer(tagger.model_.tokenizer), mapped)
    predicted, speed = timed(tagger, gold, options, seed)
    rng = np.random.default_rng(seed) if resamples else None
    return score(gold, predicted, rng=rng, n_resamples=resamples or 1, tokens_per_second=speed)
