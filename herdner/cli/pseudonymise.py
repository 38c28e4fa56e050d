"""Command ``herdner pseudonymise``: consistent replacement of names and structured identifiers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from herdner.cli.command import command
from herdner.cli.common import open_output, print_note, show_files
from herdner.cli.groups import TaggingOptions, TextOptions
from herdner.cli.inputs import ONE_TEXT, CommandInput, LanguageMessages, RunStatus, output_folder, output_path
from herdner.cli.usage import UsageError, check_distinct, check_extension, check_output

if TYPE_CHECKING:
    from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
    from herdner.ner.pseudonyms.replacing import PseudonymisedDocument
    from herdner.text.document import Document, Failure

KEY_VARIABLE = "HERDNER_KEY"
MAX_WORDS = 10  # largest number of remaining words in the message on stderr

# fmt: off
MapOption = Annotated[str, typer.Option(
    "--map", metavar="FILE", help="Map of names and pseudonyms (JSON, mode 0600), with which the names can be "
    "restored.")]
# fmt: on


@command
def pseudonymise(
    map_: MapOption,
    texts: TextOptions,
    tagging: TaggingOptions,
    style: Annotated[Literal["numbered", "realistic", "hash"] | None, typer.Option(
        "--style", metavar="numbered|realistic|hash", help="Pseudonyms such as Person 12, invented names, or keyed "
        "hash values [default: numbered, or the style of the map].")] = None,
    key_file: Annotated[str | None, typer.Option(
        "--key-file", metavar="FILE", help=f"Secret key of --style hash, at least 16 bytes [default: the environment "
        f"variable {KEY_VARIABLE}].")] = None,
    recall: Annotated[bool, typer.Option("--recall", help="Find more names, at the cost of precision.")] = False,
    identifiers: Annotated[bool, typer.Option(
        help="Also replace e-mail addresses, URLs, IBANs, payment cards, US social security numbers, IP addresses and "
        "phone numbers; other identifiers, such as numbers of passports, stay.")] = True,
    output: Annotated[str | None, typer.Option(
        "--output", "-o", help="Write this file instead of standard output. With a folder, or a new name without "
        "extension if a FILE is a folder: write each text file to this folder. Files that are already written stay "
        "after an error; of a truncated text, the part that was read is written, except with --errors fail.")] = None,
    format_: Annotated[Literal["text", "jsonl"] | None, typer.Option(
        "--format", "-f", metavar="text|jsonl", help="Format of the output [default: by the extension of --output, "
        "else text for text files, jsonl for tables and other files with several documents].")] = None,
    standoff: Annotated[str | None, typer.Option(
        "--standoff", metavar="FILE", help="Also write this file: JSON lines with the replaced ranges of each "
        "document, without originals.")] = None,
    report: Annotated[str | None, typer.Option(
        "--report", metavar="FILE", help="Also write this file: JSON lines of the common words that remain in a text "
        "although a replaced name contains them.")] = None,
) -> None:  # fmt: skip
    """Replace names and structured identifiers by pseudonyms, consistently within and across documents.

    The map is created, or extended if it exists. Other columns and fields are not written, because they may contain
    names.
    """
    inputs = [
        each._replace(format="text") if each.format == "markdown" else each  # the output keeps the markup
        for each in texts.expand()
    ]
    folder = output_folder(output, texts.files, inputs)
    output_format = _choose_format(format_, output, folder is not None, inputs)
    outputs = {"--map": map_, "--standoff": standoff, "--report": report}
    if folder is None:
        outputs["--output"] = output
    check_distinct(outputs)
    for option, path in outputs.items():
        check_output(path, [*(each.path for each in inputs), *tagging.files(), key_file], option)
    from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
    from herdner.ner.pseudonyms.pseudonymise import RECALL_BIAS, make_pseudonymiser

    tagger, inference = tagging.load(name_bias=RECALL_BIAS * recall)
    status = RunStatus(texts.errors, output if folder is None else None)
    with PseudonymMap.open(map_, style) as mapped, ExitStack() as stack:
        key = _read_key(key_file) if mapped.style == "hash" else None
        work = make_pseudonymiser(mapped, tagger, key=key, identifiers=identifiers, seed=tagging.seed)
        advance = stack.enter_context(show_files("replacing", len(inputs)))
        languages = LanguageMessages(tagger)
        documents = _read(texts, inputs, advance, languages.add_file)
        outcomes = languages.check(tagger.outcomes(documents, inference, seed=tagging.seed))
        results = _record_results(map(work, status.successes(outcomes)), mapped, standoff, report, stack)
        if folder is not None:
            write_folder(((each.document, each.text) for each in results), folder, mapped.checkpoint)
        else:
            with open_output(output) as stream:
                write_all((each.document for each in results), stream, output_format)
                status.exit_without_output()  # before the output replaces an older file
                mapped.checkpoint()  # before the output appears
    status.exit_on_failure()


def _choose_format(format: str | None, output: str | None, is_folder: bool, inputs: list[CommandInput]) -> str:
    if is_folder:
        if format not in (None, "text") or any(each.format != "text" for each in inputs):
            raise UsageError(
                f"--output {output}: an output folder requires text files as inputs, and the format text; name an"
                " output file instead"
            )
        return "text"
    from herdner.corpora.formats import FORMATS, format_of

    records = next((each for each in inputs if each.format not in ONE_TEXT), None)
    if format is None:
        check_extension(output, [*FORMATS["text"].extensions, *FORMATS["jsonl"].extensions])
        own = None if output is None else format_of(output, write=True)
        format = own if own in ("text", "jsonl") else "text" if records is None else "jsonl"
    if format == "text" and records is not None:
        raise UsageError(
            f"{records.path}: a text file as output cannot separate the documents of this input; add --format jsonl,"
            " or name an output file such as out.jsonl"
        )
    return format


def _read(
    texts: TextOptions,
    inputs: Iterable[CommandInput],
    on_file_end: Callable[[], object],
    on_document: Callable[[str], object],
) -> Iterator[Document | Failure]:
    """Yield the documents and failures of all inputs, and an empty document for a text file without words."""
    from herdner.text.document import Document
    from herdner.text.io.source import read_chunks

    for each in inputs:
        is_blank = True
        for item in texts.read([each], on_file_end, on_document):
            is_blank = False
            yield item
        if is_blank and each.format == "text" and not isinstance(each.source, str) and each.source.path is not None:
            on_document(each.path)
            yield Document.from_text("".join(read_chunks(each.source, texts.encoding)), id=each.source.document_id())


def _read_key(path: str | None) -> bytes:
    """Read the secret key from a file, without white space at its end, or from the environment."""
    if path is not None:
        with Path(path).open("rb") as stream:
            return stream.read(1 << 20).rstrip()
    if KEY_VARIABLE not in os.environ:
        raise UsageError(f"--style hash needs a secret key; add --key-file FILE or set {KEY_VARIABLE}")
    return os.environ[KEY_VARIABLE].encode()


def _record_results(
    results: Iterable[PseudonymisedDocument], mapped: PseudonymMap, standoff: str | None, report: str | None,
    stack: ExitStack,
) -> Iterator[PseudonymisedDocument]:  # fmt: skip
    """Yield the results; for each, write the replaced ranges, and the words of replaced names that its text retains."""
    from herdner.base.files import atomic_write

    ranges = None if standoff is None else stack.enter_context(open_output(standoff))
    words = None if report is None else stack.enter_context(atomic_write(report, mode=0o600))
    counts: Counter[str] = Counter()
    n_documents = 0
    for result in results:
        if ranges is not None:
            replacements = [each._asdict() for each in result.replacements]
            record = {"map": mapped.id, **_record(result, replacements=replacements)}
            ranges.write(json.dumps(record, ensure_ascii=False) + "\n")
        if words is not None and result.remaining:
            line = json.dumps(_record(result, words=list(map(asdict, result.remaining))))
            words.write(line.encode() + b"\n")
        counts.update({each.word: each.count for each in result.remaining})
        n_documents += bool(result.remaining)
        yield result
    if counts:
        listed = ", ".join(word for word, _ in counts.most_common(MAX_WORDS))
        advice = "" if report is not None else "; --report FILE lists all"
        print_note(
            f"common words of replaced names remain: {counts.total()}, in documents: {n_documents} ({listed}"
            f"{', ...' if len(counts) > MAX_WORDS else ''}){advice}"
        )


def _record(result: PseudonymisedDocument, **values: Any) -> dict[str, Any]:
    offset = result.document.fields.get("offset")
    return {"id": result.document.id, **({} if offset is None else {"offset": offset}), **values}


def write_all(documents: Iterable[Document], stream: IO[Any], format: str) -> None:
    """Write documents to one stream.

    Args:
        documents: The documents.
        stream: A text stream.
        format: "jsonl", or "text": the texts without change. A line break is added behind a text without one, if
            another document follows. Pieces of one long text are joined.
    """
    from herdner.text.io.write import utf8, write_jsonl

    if format == "jsonl":
        write_jsonl(documents, stream)
        return
    put, last = utf8(stream), ""
    for document in documents:
        if last and not last.endswith("\n") and not document.fields.get("offset"):
            put("\n")
        put(document.text)
        last = document.text


def write_folder(texts: Iterable[tuple[Document, str]], folder: Path, before: Callable[[], object]) -> None:
    """Write each text to a file in a folder; the document id is the path of the file.

    Args:
        texts: Documents of text files, and the text to write for each. Pieces of one long file are joined.
        folder: The folder; it is created if it does not exist.
        before: Function that is called before a file appears.

    Raises:
        ValueError: The id is not a path within the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as current:
        put: Any = None
        for document, text in texts:
            if put is None or not document.fields.get("offset"):
                current.close()
                id = (document.id or "document").rpartition("#")[0] if "offset" in document.fields else document.id
                put = current.enter_context(open_output(output_path(folder, id or "document"))).write
                current.callback(before)
            put(text)
