"""Groups of options that several commands share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from herdner.cli import options as opt
from herdner.cli.common import parse_inference, parse_names
from herdner.cli.inputs import CommandInput, expand_inputs
from herdner.cli.usage import UsageError, check_encoding

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.inference import Inference
    from herdner.text.document import Document, Failure

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableOptions:
    """Options that say how to read CSV, TSV and Parquet files."""

    column: opt.ColumnOption = "text"
    id_column: opt.IdColumnOption = None
    delimiter: opt.DelimiterOption = None

    def read_options(self) -> dict[str, Any]:
        """Check the options, and return them as keyword arguments of the readers; options without a value are omitted.

        Raises:
            UsageError: The delimiter cannot separate columns.
        """
        delimiter = self.delimiter
        if delimiter is not None:
            delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
            if len(delimiter) != 1 or delimiter in '"\r\n ' or delimiter.isalnum():
                raise UsageError(f"--delimiter {delimiter!r}: expected one character such as ; or the word tab")
        options = {"column": self.column, "id_column": self.id_column, "delimiter": delimiter}
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class TextOptions(TableOptions):
    """Options that name the input files of a command and say how to read them."""

    files: opt.FilesArgument = None
    input_: opt.InputOption = None
    pattern: opt.PatternOption = None
    encoding: opt.EncodingOption = "utf-8"
    errors: opt.ErrorsOption = None

    def expand(self) -> list[CommandInput]:
        """Return the input files that the options name, each with its format.

        Raises:
            UsageError: The encoding, the format or the delimiter is unknown, or there is no file.
        """
        check_encoding(self.encoding)
        self.read_options()  # checked before the inputs are listed
        return expand_inputs(self.files or [], self.input_, self.pattern, self.errors)

    def read(
        self,
        inputs: Sequence[CommandInput],
        on_file_end: Callable[[], object],
        on_document: Callable[[str], object] = lambda _: None,
        *,
        skip: int = 0,
        **options: Any,
    ) -> Iterator[Document | Failure]:
        """Read the documents of all input files, one file after the other.

        Args:
            inputs: Result of `expand`.
            on_file_end: Function to call after each input.
            on_document: Function to call with the path of the input before each document or failure.
            skip: Number of documents and failures at the beginning to leave out.
            **options: Further options of the readers.

        Yields:
            Documents, and a failure for each document or file that cannot be read.
        """
        from herdner.corpora.formats import read_items
        from herdner.text.document import Failure
        from herdner.text.io.source import FormatError

        for each in inputs:
            source, format = each
            items: Iterable[Document | Failure]
            if format is None:
                items = [Failure(FormatError(f"{source}: no file in this folder has a known extension; add --pattern"))]
            else:
                logger.info("reading %s as %s", source if isinstance(source, str) else source.name, format)
                items = read_items(source, format, self.encoding, **self.read_options(), **options)
            for item in items:
                if skip:
                    skip -= 1
                    continue
                on_document(each.path)
                yield item
            on_file_end()


@dataclass(frozen=True)
class TaggingOptions:
    """Options that select a model, the inference and the known names."""

    model: opt.ModelOption = "en"
    backend: opt.BackendOption = None
    set_: opt.SetOption = None
    names: opt.NamesOption = None
    names_strength: opt.StrengthOption = None
    names_hard: opt.HardOption = False
    names_fold_case: opt.FoldCaseOption = False
    seed: opt.SeedOption = 0

    def files(self) -> list[str | None]:
        """Return the paths of the files that the options name: the model and the known names."""
        return [self.model, self.names]

    def load(self, **settings: Any) -> tuple[Tagger, Inference]:
        """Load the model that the options name, and return the tagger with its inference options.

        Args:
            **settings: Further arguments of `herdner.cli.common.parse_inference`.

        Raises:
            UsageError: An option is not valid.
            ValueError: The model or the list of names is not valid.
        """
        import herdner

        known_names = parse_names(self.names, self.names_strength, self.names_hard, self.names_fold_case)
        start = time.perf_counter()
        tagger = herdner.load(self.model)
        logger.info("model %s is loaded in %.1f s", self.model, time.perf_counter() - start)
        return tagger, parse_inference(self.backend, self.set_, tagger, names=known_names, **settings)
