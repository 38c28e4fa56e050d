"""Annotated files of a command: reading, tagging without their annotation, and printing of scores."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from herdner.base.progress import show_progress
from herdner.cli.common import make_console, print_note, show_activity
from herdner.cli.usage import UsageError, check_format, usage_errors

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import FileAndFormat
    from herdner.evaluation.tabular import Tabular
    from herdner.ner.inference import Inference
    from herdner.text.case import Case
    from herdner.text.document import Document
    from herdner.text.io.parse_warnings import ParseWarnings
    from herdner.text.labels import LabelNames
    from herdner.text.tokenize import Tokenizer

CORE_LABELS = {"PER", "LOC", "ORG"}
MIN_TIMED_TOKENS = 10_000
"""Smallest number of tokens for which a speed is reported. With fewer, slow first calls would dominate."""


@dataclass(frozen=True)
class GoldFiles:
    """Annotated files and the options with which to read them.

    Attributes:
        sources: Files and their formats.
        core_labels: Whether to rename the labels of known corpora to `CORE_LABELS`; None: only in `read_known`, if the
            models know no other labels.
        renames: New name of each label, applied after ``core_labels``.
        case: Case to which the text is converted; None: no conversion.
        strict: Whether to refuse dubious input, such as an entity that ends within a token, or an unannotated document.
        options: Further options of the readers, such as ``encoding`` and ``column``; each reader gets those it has.
    """

    sources: Sequence[FileAndFormat]
    core_labels: bool | None = None
    renames: LabelNames | None = None
    case: Case | None = None
    strict: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def read_known(self, tokenizer: Tokenizer, known_labels: Collection[str], model: str) -> list[Document]:
        """Read the gold documents from the files, and check that the models know their labels.

        Args:
            tokenizer: Tokenizer of running text.
            known_labels: Labels that the models know.
            model: Name of the models, for error messages.

        Returns:
            Annotated documents.

        Raises:
            UsageError: No label of the files is known, or a file repeats the texts of another file.
            ValueError: The files have no entity.
        """
        from herdner.text.case import change_case

        core_labels = self.core_labels if self.core_labels is not None else set(known_labels) <= CORE_LABELS
        files = replace(self, core_labels=core_labels).read_files(tokenizer)
        check_repeated_texts(self.sources, files, self.strict)
        documents = [document for file in files for document in file]
        if not any(document.spans for document in documents):
            advice = "; check the options that rename or leave out labels" if self.renames or core_labels else ""
            raise ValueError(
                f"{', '.join(source.path for source in self.sources)}: the gold documents have no entity, so there is"
                f" nothing to score; use annotated files{advice}"
            )
        check_known_labels(documents, known_labels, model, self.sources)
        return documents if self.case is None else [change_case(document, self.case) for document in documents]

    def read_unchecked(self, source: FileAndFormat, **options: Any) -> Iterator[Document]:
        """Return an iterator over all documents of a file, such as predictions, which need not be annotated.

        The file need not be one of ``sources``. Labels are not renamed if ``core_labels`` is None; ``renames`` and
        ``case`` are not applied.

        Args:
            source: File and format.
            **options: Further options of the reader.

        Returns:
            Iterator over the documents.

        Raises:
            ValueError: The file cannot be read, or dubious input is refused.
        """
        from herdner.corpora.reading import read

        options |= options_of(source, self.options)
        return read(source, core_labels=bool(self.core_labels), strict=self.strict, **options)

    def read_files(self, tokenizer: Tokenizer, sources: Sequence[FileAndFormat] | None = None) -> list[list[Document]]:
        """Read the annotated documents of each file.

        Documents without tokens or annotation are left out. If ``core_labels`` is None, it counts as False.

        Args:
            tokenizer: Tokenizer of running text.
            sources: Files to read; None reads ``self.sources``.

        Returns:
            Annotated documents of each file.

        Raises:
            ValueError: There is no annotated document, or dubious input is refused.
        """
        from herdner.text.io.parse_warnings import ParseWarnings
        from herdner.text.labels import rename_labels

        files: list[list[Document]] = []
        sources = self.sources if sources is None else sources
        for source in sources:
            annotated: list[Document] = []
            unannotated: list[Document] = []
            with ParseWarnings(source.path, self.strict) as warnings, show_activity(f"reading {source.path}"):
                for document in self.read_unchecked(source, tokenizer=tokenizer):
                    if document.n_tokens and document.is_annotated:
                        _warn_about_boundaries(document, warnings)
                        annotated.append(rename_labels(document, self.renames))
                    elif document.n_tokens:
                        unannotated.append(document)
            if unannotated and (self.strict or not annotated):
                advice = _annotation_advice(unannotated[0])
                raise ValueError(f"{source.path}: document {unannotated[0].id!r} has no annotation; {advice}")
            if unannotated:
                n, total = len(unannotated), len(unannotated) + len(annotated)
                print_note(f"{source.path}: {n} of {total} documents are not annotated and are left out"
                              f" (first: {unannotated[0].id})")  # fmt: skip
            files.append(annotated)
        if sources and not any(files):
            paths = ", ".join(source.path for source in sources)
            raise ValueError(f"{paths}: no document in the input; use another file")
        return files

    def read(self, tokenizer: Tokenizer, sources: Sequence[FileAndFormat] | None = None) -> list[Document]:
        """Read the annotated documents of all files into one list, as `read_files` does.

        Args:
            tokenizer: Tokenizer of running text.
            sources: Files to read; None reads ``self.sources``.

        Returns:
            Annotated documents.

        Raises:
            ValueError: There is no annotated document, or dubious input is refused.
        """
        return [document for file in self.read_files(tokenizer, sources) for document in file]


def tag_timed(
    tagger: Tagger, gold: list[Document], inference: Inference | None, seed: int, title: str = "tagging"
) -> tuple[list[Document], float | None]:
    """Tag gold documents without their annotation, and measure the speed of tagging.

    Args:
        tagger: The tagger.
        gold: Annotated documents.
        inference: Options of tagging; None: the defaults of the tagger.
        seed: Random seed.
        title: Title of the progress display.

    Returns:
        Tagged documents, and tokens per second; None if there are fewer than `MIN_TIMED_TOKENS` tokens.
    """
    plain = [document.without_annotation() for document in gold]
    next(tagger.pipe(plain[:1], inference, seed=seed))  # leaves out the time for loading on first use
    predicted: list[Document] = []
    with show_progress("{task.completed:,} of {task.total:,} documents") as display:
        task = display.add_task(title, total=len(plain))
        begin = time.perf_counter()
        for document in tagger.pipe(plain, inference, seed=seed):
            predicted.append(document)
            display.advance(task)
        seconds = time.perf_counter() - begin
    n_tokens = sum(document.n_tokens for document in gold)
    return predicted, n_tokens / max(seconds, 1e-9) if n_tokens >= MIN_TIMED_TOKENS else None


def check_known_labels(
    gold: Sequence[Document], known_labels: Collection[str], model: str, sources: Sequence[FileAndFormat]
) -> None:
    """Raise a usage error if no gold label is known; print a note about unknown labels that resemble known ones.

    Args:
        gold: Annotated documents.
        known_labels: Labels that the model knows. If there are none, as in predictions without entities, nothing is
            checked.
        model: Name of the model, for the error message.
        sources: Files of the documents.

    Raises:
        UsageError: The documents have entities, and the model knows none of their labels.
    """
    from herdner.text.labels import similar_labels

    labels = {span.label for document in gold for span in document.spans or ()}
    unknown = sorted(labels.difference(known_labels))
    if not unknown or not known_labels:
        return
    files = ", ".join(source.path for source in sources)
    if len(unknown) == len(labels):
        raise UsageError(
            f"{files}: {model} has none of the labels {', '.join(unknown[:8])}; its labels are"
            f" {', '.join(sorted(known_labels))}; {_label_advice(unknown, known_labels, sources)}"
        )
    if renames := similar_labels(unknown, known_labels):
        noun = "it as a label" if len(renames) == 1 else "them as labels"
        options = _renaming_options(renames)
        print_note(f"{files}: {model} has no label {', '.join(renames)}; to score {noun} of the model, add {options}")


def _label_advice(labels: Sequence[str], known_labels: Collection[str], sources: Sequence[FileAndFormat]) -> str:
    """Return advice on gold labels that are unknown to the models: use another file format, or rename the labels.

    It names the format of a corpus with these labels, or the options that rename labels.
    """
    from herdner.corpora.registry import load_registry
    from herdner.text.labels import similar_labels

    formats = {source.format for source in sources}
    corpora = [each for each in load_registry().values() if each.label_names and each.format not in formats]
    fitting = [each.format for each in corpora if set(labels) <= set(each.labels)]
    if fitting:
        return f"read it as {sources[0].path}:{fitting[0]}"
    example = similar_labels(labels, known_labels) or {labels[0]: min(known_labels)}
    return f"rename them, as in {_renaming_options(example)}"


def _renaming_options(renames: Mapping[str, str]) -> str:
    return " ".join(f"--rename {old}={new}" for old, new in renames.items())


def parse_sources(files: Iterable[str], format: str | None = None) -> list[FileAndFormat]:
    """Parse arguments of the form FILE:FORMAT or FILE.

    Args:
        files: The arguments.
        format: Value of ``--input``, the format of arguments without format; None: the file extensions determine it.

    Returns:
        Paths and formats.

    Raises:
        UsageError: An argument has another form, or a format is unknown.
    """
    from herdner.corpora.reading import parse_source

    check_format(format)
    with usage_errors():
        return [parse_source(file, format) for file in files]


def parse_renames(pairs: Sequence[str] | None) -> LabelNames | None:
    """Parse the OLD=NEW values of ``--rename`` into a mapping from old to new labels.

    Args:
        pairs: OLD=NEW arguments.

    Returns:
        New name of each label; None if there are no arguments.

    Raises:
        UsageError: An argument does not have the form OLD=NEW.
    """
    renames: dict[str, str | None] = {}
    for pair in pairs or ():
        old, equals, new = pair.partition("=")
        if not equals or not old:
            raise UsageError(f"--rename {pair!r}: expected OLD=NEW, as in PERSON=PER, or OLD= to drop a label")
        renames[old] = " ".join(new.split()) or None
    return renames or None


def options_of(source: FileAndFormat, options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the options that the reader of a file's format supports.

    Args:
        source: File and format.
        options: Options of readers by name, such as ``encoding`` and ``column``.

    Returns:
        The supported options, by name.
    """
    from herdner.corpora.formats import FORMATS

    return {name: value for name, value in options.items() if name in FORMATS[source.format].read_options}


def text_keys(documents: Iterable[Document]) -> list[str]:
    """Return the text of each document without white space, to compare texts that were read from different formats.

    Args:
        documents: The documents.
    """
    return ["".join(document.text.split()) for document in documents]


def check_repeated_texts(
    sources: Sequence[FileAndFormat], files: Sequence[Sequence[Document]], strict: bool = False
) -> None:
    """Raise a usage error if at least half of a file's texts occur in earlier files; warn about fewer repeated texts.

    Args:
        sources: Files and their formats.
        files: Documents of each file.
        strict: Whether to refuse any repeated text.

    Raises:
        UsageError: At least half of the texts of a file are in the files before it. The file then probably contains
            predictions for these files.
        FormatError: A text occurs more than once in strict mode.
    """
    from herdner.text.io.parse_warnings import ParseWarnings

    seen: set[str] = set()
    for i, (source, texts) in enumerate(zip(sources, map(text_keys, files), strict=True)):
        n_shared = sum(text in seen for text in texts)
        if 2 * n_shared >= max(1, len(texts)):
            raise UsageError(
                f"{source.path}: {n_shared} of {len(texts)} documents also occur in the gold files before this file; "
                "if this file contains predictions, use: herdner evaluate "
                f"{' '.join(':'.join(each) for each in sources[:i])} --predictions "
                f"{':'.join(source)}"
            )
        n_distinct = len(set(texts) - seen)
        seen.update(texts)
        if n_distinct < len(texts):
            with ParseWarnings(source.path, strict) as warnings:
                message = "the text of a document repeats the text of an earlier document; each is scored"
                warnings.add(message, times=len(texts) - n_distinct)


# Keys that contain an annotation in other formats than JSON lines of herdner, and advice for files with such keys.
_ANNOTATION_KEYS = {
    "label": "read it as FILE:doccano",
    "labels": "read it as FILE:doccano",
    "spans": "read it as FILE:prodigy",
    "ner_tags": "write the tokens and the names of their tags as columns (FILE:conll)",
    "tags": "write the tokens and the names of their tags as columns (FILE:conll)",
}


def _annotation_advice(document: Document) -> str:
    """Return advice about a document without annotation, which may have the annotation keys of another format."""
    lists = [key for key, value in document.fields.items() if isinstance(value, list | tuple)]
    key = next((key for key in _ANNOTATION_KEYS if key in lists), None)
    return "use an annotated file" if key is None else f"if its key {key!r} is one, {_ANNOTATION_KEYS[key]}"


def _warn_about_boundaries(document: Document, warnings: ParseWarnings) -> None:
    """Warn about entities that begin or end within a token."""
    from herdner.text.document import project

    projection = project(document.entities, document)
    if projection.n_widened:
        warnings.add("an entity that begins or ends within a token is widened to the token", times=projection.n_widened)
    if projection.n_dropped:
        warnings.add(
            "an entity is left out, because it has no token, or only tokens of earlier entities",
            times=projection.n_dropped,
        )


def print_table(table: Tabular) -> None:
    """Print a table, in columns on a terminal and as Markdown otherwise.

    Args:
        table: The table.
    """
    if not sys.stdout.isatty():
        print(table.to_markdown())
        return
    make_console().print(table.to_table())
