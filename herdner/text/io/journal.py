"""Journal of a run: a file of finished documents, with which an interrupted run continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from herdner.base.files import lock_file
from herdner.text.document import Document, Failure
from herdner.text.tags import Span
from herdner.text.tokenize import with_tokens

_HEADER_KEY = "herdner_run"
_FAILURE = b'{"failure": '  # first bytes of the line of a failure
_MAX_HEADER = 1 << 16


class Journal:
    """File with the results of an unfinished run: a header, then a JSON line for each document or failure.

    The line of a document holds its entities; `restore` joins them with the document, which is read again. Each line is
    written at once, so that a killed process loses only the documents that it was tagging. An incomplete last line is
    removed when the journal is opened again.

    Attributes:
        path: Path of the file.
        n_documents: Number of documents in the file.
        n_failures: Number of failures in the file.
        is_truncated: Whether, according to a failure, reading stopped within a file.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        """Count the documents and failures in the journal file ``stream``, and remove an incomplete last line.

        Args:
            path: Path of the file.
            stream: The open file, at the end of its header.
        """
        self.path, self._stream, self._start = path, stream, stream.tell()
        self.n_documents, self.n_failures, self.is_truncated = 0, 0, False
        for line in self._lines():
            self._count(line)
        self._stream.truncate()

    @classmethod
    @contextmanager
    def open(cls, path: Path, settings: Mapping[str, object]) -> Generator[Journal]:
        """Create a journal, or open the journal of an interrupted run.

        Args:
            path: Path of the file.
            settings: Settings of the run by name, as JSON values. A run continues only with equal settings.

        Yields:
            The journal. The file stays until `remove`.

        Raises:
            ValueError: The file is no journal, belongs to a run with other settings, or another process uses it.
            OSError: The file cannot be read or written.
        """
        digests = {name: _digest(value) for name, value in settings.items()}
        with path.open("a+b") as appending, path.open("r+b") as stream:
            if not lock_file(appending):
                raise ValueError(f"{path}: another process is using this file; wait until that process ends")
            line = stream.readline(_MAX_HEADER)
            if not line.endswith(b"\n"):  # a new file, or a process was killed before it had written the header
                if line and not line.startswith(f'{{"{_HEADER_KEY}"'.encode()):
                    raise ValueError(f"{path}: the file is not a journal that `herdner tag` has written; move it away")
                stream.seek(0)
                stream.truncate()
                stream.write(json.dumps({_HEADER_KEY: digests}).encode() + b"\n")
                stream.flush()
            else:
                _check_header(path, line, digests)
            yield cls(path, stream)

    def record(self, results: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
        """Write each result to the journal file, and yield the result unchanged.

        Args:
            results: Results of the documents that follow the documents in the file.
        """
        for result in results:
            line = _line(result)
            self._stream.write(line)
            self._stream.flush()
            self._count(line)
            yield result

    def restore(self, items: Iterable[Document | Failure], tokenizer: Callable[[str], Document]) -> Iterator[Document]:
        """Yield the tagged documents of the whole run.

        Args:
            items: Documents and failures of a second reading of the same files.
            tokenizer: Tokenizer that the run used for documents without tokens.

        Raises:
            ValueError: The files have other documents than in the first reading.
        """
        for item, line in zip_longest(items, self._lines()):
            record: dict[str, Any] = {} if line is None else json.loads(line)
            if "failure" in record and item is not None:
                continue
            document = with_tokens(item, tokenizer) if isinstance(item, Document) else None
            if document is None or record.get("size") != _size(document):
                problem = "the input files have changed during the run"
                raise ValueError(f"{self.path}: {problem}; delete this file to start again")
            entities = record["entities"]
            spans = [Span(start, end, label) for start, end, label, _, _ in entities]
            tagged = document.with_decoded(spans, "iob2", [each[3] for each in entities], record["tags"])
            yield tagged.with_name_ids([each[4] for each in entities])

    def remove(self) -> None:
        """Remove the journal file, because the run is finished."""
        self.path.unlink()

    def _count(self, line: bytes) -> None:
        if line.startswith(_FAILURE):
            self.n_failures += 1
            self.is_truncated |= bool(json.loads(line)["is_truncated"])
        else:
            self.n_documents += 1

    def _lines(self) -> Iterator[bytes]:
        """Yield the complete lines after the header; afterwards the stream is at the end of the last complete line."""
        self._stream.seek(self._start)
        end = self._start
        for line in iter(self._stream.readline, b""):
            if not line.endswith(b"\n"):
                break
            end += len(line)
            yield line
        self._stream.seek(end)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _check_header(path: Path, line: bytes, digests: Mapping[str, str]) -> None:
    """Raise `ValueError` unless the first line of a journal contains ``digests``, the digests of the settings."""
    try:
        earlier: Any = json.loads(line)[_HEADER_KEY]
        names = [name for name in {**earlier, **digests} if earlier.get(name) != digests.get(name)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path}: the file is not a journal that `herdner tag` has written; move it away") from None
    if names:
        problem = f"{path}: belongs to an interrupted run with other settings ({', '.join(names)})"
        raise ValueError(f"{problem}; repeat the command of that run, or delete this file to start again")


def _size(document: Document) -> list[int]:
    return [len(document.text), document.n_tokens]


def _line(result: Document | Failure) -> bytes:
    if isinstance(result, Failure):
        record = {"failure": result.message, "is_truncated": result.is_truncated}
    else:
        pairs = zip(result.spans or (), result.entities, strict=True)
        record = {
            "size": _size(result),
            "entities": [(*span, entity.confidence, entity.name_id) for span, entity in pairs],
            "tags": result.source_tags,
        }
    return json.dumps(record).encode() + b"\n"
