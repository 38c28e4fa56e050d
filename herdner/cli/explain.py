"""Command ``herdner explain``: contributions of features, transitions and links to the labels of names."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.command import command
from herdner.cli.common import make_console, show_files
from herdner.cli.groups import TaggingOptions, TextOptions
from herdner.cli.inputs import RunStatus, have_headings
from herdner.cli.usage import UsageError, usage_errors

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.explain import Explanation
    from herdner.ner.inference import Inference
    from herdner.text.document import Document, Failure

FEW_PARTS, MANY_PARTS = 5, 15  # number of contributions to print for each mention: without --name, with --name


@command
def explain(
    texts: TextOptions,
    tagging: TaggingOptions,
    name: Annotated[str | None, typer.Option(
        "--name", help="Explain only mentions that contain these words [default: all].")] = None,
    against: Annotated[str | None, typer.Option(
        metavar="LABEL", help="Label to compare with, or best for the best other label [default: no name, "
        "the tag O].")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Print all contributions, not only the largest.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object for each document.")] = False,
) -> None:  # fmt: skip
    """Explain the label of each name: print the terms (features, neural network, transitions, links) of its log-odds.

    The label of each mention is compared with the outcome "no name" (or another label), while all other tags stay the
    same. The contributions add up to the log-odds exactly. A contribution of +0.69 doubles the odds of the label.
    """
    if name is not None and not name.strip():
        raise UsageError("--name: the name is empty; give at least one word")
    inputs = texts.expand()
    from herdner.ner.explain import check_against

    tagger, inference = tagging.load()
    with usage_errors("--against"):
        check_against(tagger.classes_, against)
    status = RunStatus(texts.errors)
    with show_files("explaining", len(inputs), visible=not sys.stdout.isatty()) as advance:
        documents = texts.read(inputs, advance)
        explained = _explain_documents(tagger, documents, status, name, against, inference, tagging.seed)
        if json_:
            for id, mentions in explained:
                print(json.dumps({"id": id, "mentions": [each.to_dict() for each in mentions]}))
        else:
            n_parts = None if all_ else MANY_PARTS if name is not None else FEW_PARTS
            _print_explanations(explained, n_parts, has_headings=have_headings(inputs))
    status.exit_on_failure()


def _explain_documents(
    tagger: Tagger, documents: Iterable[Document | Failure], status: RunStatus, name: str | None, against: str | None,
    inference: Inference, seed: int,
) -> Iterator[tuple[str | None, list[Explanation]]]:  # fmt: skip
    """Yield the id of each document and the explanations of its entities.

    With ``name``, only documents that contain this name are yielded.

    Failures are reported. A name that no document contains is a failure.
    """
    from herdner.ner.explain import NoSuchName
    from herdner.text.document import Failure

    missing: NoSuchName | None = None
    has_mentions, i = False, None
    for i, document in enumerate(documents):
        if isinstance(document, Failure):
            status.add_failure(document)
            continue
        try:
            mentions = tagger.explain(document, inference, name=name, against=against, seed=seed, first=i)
        except NoSuchName as error:
            missing = error if missing is None or error.is_in_text else missing
        except (ValueError, MemoryError) as error:
            status.add_failure(Failure(error, i, document))
        else:
            has_mentions = True
            yield document.id, mentions
    if missing is not None and not has_mentions:
        status.fail(missing)
    elif name is not None and i is None:
        status.fail(f"--name {name!r}: the input has no text")


def _print_explanations(
    explanations: Iterable[tuple[str | None, list[Explanation]]], n_parts: int | None, has_headings: bool
) -> None:
    """Print a block of lines for each explained mention, in colour on a terminal."""
    from rich.text import Text

    console = make_console()

    def line(*pieces: tuple[str, str]) -> None:
        console.print(Text.assemble(*((to_printable(text), style) for text, style in pieces)), soft_wrap=True)

    for id, mentions in explanations:
        if has_headings:
            line((f"== {id or 'document'} ==", "dim"))
        if not mentions:
            line(("no names to explain", ""))
        for each in mentions:
            mention, other = each.mention, "no name" if each.against is None else each.against
            line((mention.text, "bold"), (f" {mention.label}", "bold"), (f" in sentence {each.sentence}", "dim"))
            line((f"  log-odds {each.log_odds:+.2f} against {other}: {_totals(each)}", ""))
            line((f"  {_confidence(each)}", ""))
            for step in each.steps:
                line((f"    {step.name:<12}{step.log_odds:+8.2f}  {100 * step.probability:5.1f} %", "dim"))
            for part in each.top(n_parts):
                line((f"  {part.value:+8.2f}", "green" if part.value > 0 else "red"), (f"  {part}", ""))
            line()


def _totals(each: Explanation) -> str:
    """Return the total contributions of features, neural network, transitions, links and known names as text."""
    features, transitions, links = each.total("feature"), each.total("transition"), each.total("link")
    network = f"network {each.total('network'):+.2f}, " if each.total("network") else ""
    names = f", known names {each.total('name'):+.2f}" if each.total("name") else ""
    return f"features {features:+.2f}, {network}transitions {transitions:+.2f}, links {links:+.2f}{names}"


def _confidence(each: Explanation) -> str:
    """Return the confidence of an entity and its log-odds, the sum of the log-odds of three steps, as text."""
    total = sum(step.log_odds for step in each.steps)
    return f"confidence {100 * (each.mention.confidence or 0.0):.1f} %, log-odds {total:+.2f} in three steps:"


def to_printable(text: str) -> str:
    """Replace all characters that a terminal cannot print safely: control characters, line breaks and lone surrogates.

    Args:
        text: Any text.

    Returns:
        One line that can be printed.
    """
    from herdner.text.io.write import CONTROLS

    return " ".join(CONTROLS.sub("\ufffd", text).splitlines())
