"""``herdner explain``: why the names of a text have their labels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.common import command, inference
from herdner.cli.inputs import ColumnOption, FilesArgument, InputOption, PatternOption, Report, expand, read
from herdner.cli.names import FoldCaseOption, HardOption, NamesOption, StrengthOption, known_names
from herdner.cli.options import BackendOption, EncodingOption, ModelOption, SeedOption, SetOption
from herdner.cli.usage import UsageError, check_encoding, wrong_use

if TYPE_CHECKING:
    from herdner import Explanation, Tagger
    from herdner.ner.inference import Inference
    from herdner.text.document import Document, Failure

FEW, MANY = 5, 15  # lines for each mention: of all mentions, of those of one name


@command
def explain(
    files: FilesArgument = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Only mentions that hold these words [default: all names].")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Compare with this label, or the best other one: best [default: no name]."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show all parts, not the largest and the sum of the rest.")
    ] = False,
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    input_: InputOption = None,
    pattern: PatternOption = None,
    column: ColumnOption = "text",
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a document, with all parts.")] = False,
    names: NamesOption = None,
    names_strength: StrengthOption = None,
    names_hard: HardOption = False,
    names_fold_case: FoldCaseOption = False,
    seed: SeedOption = 0,
    encoding: EncodingOption = "utf-8",
) -> None:
    """Say why names have their labels: what features, transitions and links add to the log-odds.

    Each mention is compared with its being no name (or another label), while all else stays as it is tagged. The parts
    add up to the log-odds exactly: +0.69 doubles the odds of the label.
    """
    check_encoding(encoding)
    if name is not None and not name.strip():
        raise UsageError("--name: the name is empty")
    inputs = expand(files or [], input_, pattern)
    import herdner
    from herdner.ner.explain import check_against

    known = known_names(names, names_strength, names_hard, names_fold_case)
    tagger = herdner.load(model)
    options = inference(backend, set_, tagger, names=known)
    with wrong_use("--against"):
        check_against(tagger.classes_, against)
    report = Report()
    found = explained(tagger, read(inputs, encoding, lambda: None, column=column), report, name, against, options, seed)
    if json_:
        for id, mentions in found:
            print(json.dumps({"id": id, "mentions": [each.to_dict() for each in mentions]}))
    else:
        most = None if all_ else MANY if name is not None else FEW
        show(found, most, headed=len(inputs) > 1 or inputs[0].format != "text")
    report.close()


def explained(
    tagger: Tagger,
    documents: Iterable[Document | Failure],
    report: Report,
    name: str | None,
    against: str | None,
    options: Inference,
    seed: int,
) -> Iterator[tuple[str | None, list[Explanation]]]:
    """The id and the mentions of each document; with a name, of those that have it. What fails is reported; so is a
    name that no document has.
    """
    from herdner.ner.explain import NoSuchName
    from herdner.text.document import Failure

    missing: NoSuchName | None = None
    found = read_any = False
    for number, document in enumerate(documents):
        read_any = True
        if isinstance(document, Failure):
            report.fail(document.message)
            continue
        try:
            mentions = tagger.explain(document, options, name=name, against=against, seed=seed, first=number)
        except NoSuchName as error:
            missing = error if missing is None or error.stands_there else missing
        except (ValueError, MemoryError) as error:
            report.fail(Failure(error, number, document).message)
        else:
            found = True
            yield document.id, mentions
    if missing is not None and not found:
        report.fail(missing)
    elif name is not None and not read_any:
        report.fail(f"there is no text in which {name!r} could stand")


def show(found: Iterable[tuple[str | None, list[Explanation]]], most: int | None, headed: bool) -> None:
    """A block of lines for each mention, in colour on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)

    def line(*pieces: tuple[str, str]) -> None:
        console.print(Text.assemble(*((printable(text), style) for text, style in pieces)), soft_wrap=True)

    for id, mentions in found:
        if headed:
            line((f"== {id or 'document'} ==", "dim"))
        if not mentions:
            line(("no names to explain", ""))
        for each in mentions:
            mention, compared = each.mention, "no name" if each.against is None else each.against
            line((mention.text, "bold"), (f" {mention.label}", "bold"), (f" in sentence {each.sentence}", "dim"))
            line((f"  log-odds {each.log_odds:+.2f} against {compared}: {totals(each)}", ""))
            line((f"  {confidences(each)}", ""))
            for part in each.top(most):
                line((f"  {part.value:+8.2f}", "green" if part.value > 0 else "red"), (f"  {part}", ""))
            line()


def totals(each: Explanation) -> str:
    """What features, transitions, links and known names add."""
    features, transitions, links = each.total("feature"), each.total("transition"), each.total("link")
    names = f", names given {each.total('name'):+.2f}" if each.total("name") else ""
    return f"features {features:+.2f}, transitions {transitions:+.2f}, links {links:+.2f}{names}"


def confidences(each: Explanation) -> str:
    """With and without links."""
    sure, alone = each.mention.confidence or 0.0, each.confidence_without_links
    return f"confidence {100 * sure:.1f} %" + ("" if sure == alone else f", without links {100 * alone:.1f} %")


def printable(text: str) -> str:
    """One line that drives no terminal and can be written in UTF-8."""
    from herdner.text.io.write import CONTROLS

    plain = CONTROLS.sub("\ufffd", text).encode("utf-8", "replace").decode()
    return " ".join(plain.splitlines())
