"""Command ``herdner restore``: replacement of pseudonyms by the original names."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import open_output, print_note, show_files
from herdner.cli.inputs import CommandInput, RunStatus, expand_inputs, output_folder, output_path
from herdner.cli.pseudonymise import MapOption
from herdner.cli.usage import check_encoding, check_output, usage_errors

if TYPE_CHECKING:
    from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
    from herdner.ner.pseudonyms.restoring import Restorer

MAX_UNKNOWN = 5  # largest number of unknown pseudonyms in a message


@command
def restore(
    map_: MapOption,
    files: opt.FilesArgument = None,
    input_: opt.InputOption = None,
    output: Annotated[str | None, typer.Option(
        "--output", "-o", help="Write this file instead of standard output. With a folder, or a new name without "
        "extension if a FILE is a folder: write each file to this folder.")] = None,
    standoff: Annotated[str | None, typer.Option(
        "--standoff", metavar="FILE", help="File that `herdner pseudonymise --standoff` wrote, to check that the texts "
        "were made with this map.")] = None,
    pattern: opt.PatternOption = None,
    encoding: opt.EncodingOption = "utf-8",
) -> None:  # fmt: skip
    """Replace pseudonyms by the original names. The texts may have been edited.

    Files are read and written in chunks. In JSON lines (.jsonl or --input jsonl), the strings are restored. Pseudonyms
    that are not in the map remain, and the exit code is then 1.
    """
    check_encoding(encoding)
    inputs = expand_inputs(files or [], input_, pattern)
    folder = output_folder(output, files, inputs)
    if folder is None:
        check_output(output, [*(each.path for each in inputs), map_, standoff])
    from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap

    mapped = PseudonymMap.load(map_)
    if standoff is not None:
        _check_map(standoff, mapped, map_)
    status = RunStatus()
    visible = output not in (None, "-") or not sys.stdout.isatty()
    with show_files("restoring", len(inputs), visible=visible) as advance:
        _restore_files(inputs, mapped, encoding, output, folder, status, advance)
    status.exit_on_failure()


def _restore_files(
    inputs: Sequence[CommandInput], mapped: PseudonymMap, encoding: str, output: str | None, folder: Path | None,
    status: RunStatus, advance: Callable[[], object],
) -> None:  # fmt: skip
    """Restore the input files, and call ``advance`` after each file."""
    if folder is not None:
        for each in inputs:
            with usage_errors():
                path = output_path(folder, each.source if isinstance(each.source, str) else each.source.id)
            with open_output(path) as stream:
                _restore_file(each, mapped, encoding, stream, status)
            advance()
    else:
        with open_output(output) as stream:
            for each in inputs:
                _restore_file(each, mapped, encoding, stream, status)
                advance()
            status.exit_without_output()  # exits before the output replaces an older file


def _check_map(path: str, mapped: PseudonymMap, map_path: str) -> None:
    with Path(path).open(encoding="utf-8") as stream:
        line = stream.readline(200)
    match = re.match(r'\{"map": "(\w+)"', line)
    if match is None:
        raise ValueError(f"{path}: unknown content; expected a file that `herdner pseudonymise --standoff` has written")
    if match[1] != mapped.id:
        raise ValueError(
            f"{path}: the file was written with the pseudonym map {match[1]}, but {map_path} is the pseudonym map"
            f" {mapped.id}; set --map to the file of the map {match[1]}"
        )


def _restore_file(each: CommandInput, mapped: PseudonymMap, encoding: str, stream: Any, status: RunStatus) -> None:
    """Restore one file, and report pseudonyms that the map does not contain."""
    from herdner.text.io.write import utf8

    put, restorer = utf8(stream), mapped.restorer()
    name, failures = each.path, status.failures
    try:
        for piece in _restored_pieces(each, restorer, encoding, status):
            put(piece)  # an OSError, such as a closed pipe, ends the command
    except ValueError as error:  # a surrogate in the text or in the map
        status.fail(f"{name}: {error}")
    if status.failures > failures:
        return
    status.documents += 1
    if restorer.unknown:
        listed = ", ".join(word for word, _ in restorer.unknown.most_common(MAX_UNKNOWN))
        more = ", ..." if len(restorer.unknown) > MAX_UNKNOWN else ""
        status.fail(f"{name}: {listed}{more}: not in the map, so not replaced; check that --map fits this text")
    elif not restorer.n_restored:
        print_note(f"{name}: the file contains no pseudonym of the map; nothing is changed")


def _restored_pieces(each: CommandInput, restorer: Restorer, encoding: str, status: RunStatus) -> Iterator[str]:
    """Yield the restored text of one file in pieces. A file that cannot be read is a failure of the run."""
    from herdner.text.io.source import FormatError, read_chunks, read_lines, sources

    try:
        for source in sources(each.source, ()) if isinstance(each.source, str) else [each.source]:
            if each.format == "jsonl":
                for number, line in read_lines(source, encoding):
                    yield _restore_line(line, restorer, f"{each.path}, line {number}")
            else:
                yield from restorer.stream(read_chunks(source, encoding))
    except (FormatError, OSError) as error:
        status.fail(error)


def _restore_line(line: str, restorer: Restorer, place: str) -> str:
    from herdner.text.io.source import FormatError
    from herdner.text.io.write import json_line

    if not line or line.isspace():
        return ""
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise FormatError(
            f"{place}: the line is not JSON; if this is a text file, give it another file extension, such as .txt"
        ) from None
    return json_line(_restore_value(record, restorer))


def _restore_value(value: Any, restorer: Restorer) -> Any:
    """Restore the strings of a JSON value; in a record with a text, shift the entity offsets accordingly."""
    if isinstance(value, str):
        return restorer(value)
    if isinstance(value, list):
        return [_restore_value(each, restorer) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    record = cast(dict[str, Any], value)
    result = {key: _restore_value(each, restorer) for key, each in record.items()}
    text, entities = record.get("text"), result.get("entities")
    if isinstance(text, str) and isinstance(entities, list):
        moves = list(_moves(text, restorer))
        result["entities"] = [_move_entity(entity, moves) for entity in cast(list[Any], entities)]
    return result


def _move_entity(entity: Any, moves: list[tuple[int, int]]) -> Any:
    if not isinstance(entity, dict):
        return entity
    values = cast(dict[str, Any], entity)
    offsets = {key: values[key] for key in ("start", "end") if isinstance(values.get(key), int)}
    return values | {key: _move_offset(offset, moves) for key, offset in offsets.items()}


def _moves(text: str, restorer: Restorer) -> Iterator[tuple[int, int]]:
    """Yield, for each pseudonym, its end offset and the total change in text length up to this offset."""
    growth = 0
    for start, end, original in restorer.find(text):
        growth += len(original) - (end - start)
        yield end, growth


def _move_offset(offset: int, moves: list[tuple[int, int]]) -> int:
    index = bisect_right(moves, (offset, float("inf")))
    return offset + (moves[index - 1][1] if index else 0)
