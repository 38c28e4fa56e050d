"""``herdner evaluate``: precision, recall and F1 on annotated files, and the speed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli.common import command, inference
from herdner.cli.compare import compared
from herdner.cli.gold import Gold, parse_map, parse_sources, show, timed
from herdner.cli.options import (
    MAX_RESAMPLES,
    BackendOption,
    JsonOption,
    MapOption,
    ModelOption,
    SeedOption,
    SetOption,
    StrictOption,
    UnitOption,
)
from herdner.cli.usage import UsageError, is_given

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.evaluation.tabular import Tabulated
    from herdner.ner.inference import Inference
    from herdner.text.document import Document

CompareOption = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare",
        metavar="A B",
        help="Is B better than A? Each is MODEL, MODEL@BACKEND, MODEL@BACKEND:KEY=VALUE:..., or FILE:FORMAT of "
        "predictions.",
    ),
]
MapLabelsOption = Annotated[
    bool | None,
    typer.Option(
        "--map-labels/--keep-labels",
        help="Map the corpus's classes to PER, LOC and ORG [default: if the model knows no other].",
    ),
]
ResamplesOption = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        min=0,
        max=MAX_RESAMPLES,
        help="Bootstrap samples for the interval; 0: none [default: 1000, with --compare 10000].",
    ),
]


@command
def evaluate(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE:FORMAT", help="Annotated files, as in dev.conll:conll.")],
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    compare: CompareOption = None,
    seed: SeedOption = 0,
    map_labels: MapLabelsOption = None,
    resamples: ResamplesOption = None,
    map_: MapOption = None,
    case: Annotated[
        Literal["lower", "upper"] | None,
        typer.Option(metavar="lower|upper", help="Tag the text in lower case or in capitals, whatever it is in."),
    ] = None,
    consistency: Annotated[
        bool,
        typer.Option("--consistency", help="Also: repeated names and short forms, and how many of them are right."),
    ] = False,
    unit: UnitOption = None,
    strict: StrictOption = False,
    json_: JsonOption = False,
) -> None:
    """Score a model on annotated files: per class and micro precision, recall and F1 (seqeval, strict), and the speed.

    The speed counts tagging alone, from tokens to names, in one process. The model's tokenizer splits running text.

    With --compare, two models, backends or files of predictions meet on the same documents: both F1, the difference
    with its interval, and p-values by approximate randomisation and paired bootstrap.

    With --consistency: names that a document repeats, how many have differing labels and how many are all right; and
    short forms such as "Winam" after "Winam Ferries Ltd."; with the links between mentions and without.
    """
    sources = parse_sources(files)
    gold = Gold(sources, map_labels, parse_map(map_ or ()), case, strict)
    if compare is None:
        if unit is not None:
            raise UsageError("--unit goes with --compare")
        tables: list[Tabulated] = scored(
            gold, model, backend, set_, seed, 1000 if resamples is None else resamples, consistency
        )
    else:
        for name in ("model", "backend", "set_", "consistency"):
            if is_given(context, name):
                raise UsageError(f"--{name.strip('_')}: with --compare, A and B say so: MODEL@BACKEND:KEY=VALUE")
        tables = [compared(gold, compare, seed, 10_000 if resamples is None else resamples, unit)]
    if json_:
        more = {"consistency": tables[1].to_dict()} if len(tables) > 1 else {}
        print(json.dumps({**tables[0].to_dict(), **more}, ensure_ascii=False))
        return
    for i, table in enumerate(tables):
        print(end="\n" if i else "")
        show(table)


def scored(
    source: Gold,
    model: str,
    backend: str | None,
    set_: list[str] | None,
    seed: int,
    resamples: int,
    consistency: bool,
) -> list[Tabulated]:
    """The scores of one model, and how consistent and right it is on repeated names, where that is asked for."""
    import numpy as np

    import herdner
    from herdner.evaluation.scores import evaluate as score
    from herdner.text.tokenize import Tokenizer

    tagger = herdner.load(model)
    options = inference(backend, set_, tagger)
    known = set(tagger.labels)
    gold = source.read(Tokenizer(tagger.model_.tokenizer), known, f"model {model}")
    predicted, speed = timed(tagger, gold, options, seed)
    rng = np.random.default_rng(seed) if resamples else None
    scores = score(gold, predicted, rng=rng, n_resamples=resamples or 1, tokens_per_second=speed, known_labels=known)
    return [scores, *(consistent(tagger, gold, predicted, options, seed) if consistency else ())]


def consistent(
    tagger: Tagger, gold: list[Document], predicted: list[Document], options: Inference, seed: int
) -> list[Tabulated]:
    """Repeated names and short forms of what was predicted and, where that had links, without them."""
    from herdner.evaluation.consistency import measure_consistency

    linked = options.links and bool(tagger.model_.link_tables)
    sides = {"with links" if linked else "without links": predicted}
    if linked:
        sides["without links"] = timed(tagger, gold, replace(options, links=False), seed, "without links")[0]
    result = measure_consistency(gold, sides)
    return [result, result.inconsistent_names]
