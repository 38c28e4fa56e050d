"""Writers: CoNLL columns, JSON lines, HTML (displaCy), terminal text and spaCy's DocBin."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import IO, Any

from herdner.base.extras import check_extra, import_extra
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.columns import DOCSTART
from herdner.text.partial import is_ambiguous
from herdner.text.show import COLORS
from herdner.text.tags import Scheme, Span, convert_tags, tags_from_spans

STYLES = {"PER": "bold cyan", "LOC": "bold green", "ORG": "bold magenta", "MISC": "bold yellow"}

_LINE_SEPARATORS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"})
_NOT_HTML = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
CONTROLS = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # what drives a terminal


def write_conll(documents: Iterable[Document], stream: IO[Any], *, scheme: Scheme = "iob2") -> None:
    """Token TAB tag, a blank line after each sentence, ``-DOCSTART-`` between documents.

    Tags come from the entities where a document has none. Raises ValueError for documents without tokens, and for those
    of which only some classes are annotated.
    """
    put = utf8(stream)
    separator = ""
    for document in documents:
        if _needs_tokens(document):
            continue
        if document.partial is not None and document.partial.annotated_labels is not None:
            raise ValueError(
                f"document {document.id!r}: columns cannot say which classes are annotated; write JSON lines"
            )
        put(separator)
        tags = _tags(document, scheme)
        for token, open_ in document.unannotated_tokens().items():
            tags[token] = open_ if is_ambiguous(open_) else f"{open_}|{open_}"
        for start, end in _pairs(document):
            rows = zip(document.tokens[start:end], tags[start:end], strict=True)
            put("".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n")
        separator = f"{DOCSTART}\tO\n\n"


def write_jsonl(documents: Iterable[Document], stream: IO[Any]) -> None:
    """One ``{"id", "text", "entities": [{"start", "end", "label", "text", "confidence"}]}`` a line, and whatever else a
    document came with (`Document.fields`); a piece of a long text (`read_text`) has its ``"offset"`` in that text.

    The text survives exactly. Confidences are rounded to six decimals, null where unknown. Whatever some reader takes
    for a line break is escaped.
    """
    put = utf8(stream)
    for document in documents:
        entities = entity_records(document)
        record: dict[str, Any] = {"id": own_id(document), "text": document.text, "entities": entities}
        if document.partial is not None:
            if document.partial.annotated_labels is not None:
                record["annotated_labels"] = list(document.partial.annotated_labels)
            if document.partial.unannotated:
                record["unannotated"] = [each._asdict() for each in document.partial.unannotated]
        put(json_line(record | {key: value for key, value in document.fields.items() if key not in record}))


def own_id(document: Document) -> object:
    """The document's id, as the number (or whatever it was) that it came as."""
    given = document.fields.get("id")
    return document.id if given is None or str(given) != document.id else given


def entity_record(entity: Entity) -> dict[str, Any]:
    """Plain data for JSON and Arrow; the confidence rounded to six decimals, None where it is unknown."""
    confidence = None if entity.confidence is None else round(float(entity.confidence), 6)
    return {
        "start": entity.start, "end": entity.end, "label": entity.label, "text": entity.text, "confidence": confidence,
    }  # fmt: skip


def entity_records(document: Document) -> list[dict[str, Any]]:
    """The entities as plain data; those of a text that was taken from a page have ``source_start`` and ``source_end``
    there too.
    """
    records = [entity_record(entity) for entity in document.entities]
    if document.source_map is None:
        return records
    places = [document.source_map.span(entity.start, entity.end) for entity in document.entities]
    return [
        record | {"source_start": start, "source_end": end}
        for record, (start, end) in zip(records, places, strict=True)
    ]


def write_html(documents: Iterable[Document], stream: IO[Any]) -> None:
    """One page of displaCy's entity view, written document by document."""
    displacy = import_extra("spacy.displacy", "HTML pages need spaCy's displaCy")
    put = utf8(stream)
    page: str = displacy.templates.TPL_PAGE.replace("<head>", '<head>\n        <meta charset="utf-8">').lstrip()
    head, _, foot = page.format(content="\0", lang="en", dir="ltr").partition("\0")
    put(head)
    for document in documents:
        # displaCy escapes the text but neither the labels nor the title.
        entities = [
            {"start": e.start, "end": e.end, "label": html.escape(e.label)}
            for e in sorted(document.entities, key=_order)
        ]
        shown = {
            "text": _NOT_HTML.sub("\ufffd", document.text),
            "ents": entities,
            "title": html.escape(document.id or ""),
        }
        block = displacy.render(shown, style="ent", manual=True, page=False, jupyter=False, options={"colors": COLORS})
        put(displacy.templates.TPL_FIGURE.format(content=block))
    put(foot)


def write_text(
    documents: Iterable[Document], stream: IO[Any], *, color: bool | None = None, headed: bool = False
) -> None:
    """The text with its entities: coloured on a terminal, else as in ``[Ada Lovelace PER]``; documents apart, but
    pieces of one long text (`read_text`) joined. ``headed`` puts the id above each.

    ``color`` overrules the look at the stream. On a terminal, control characters of the text are replaced, so that no
    document drives the terminal.
    """
    use_color = stream.isatty() if color is None else color
    show = _terminal(stream) if use_color else _plain(stream)
    ending: str | None = None  # of the document before
    for document in documents:
        continues = bool(document.fields.get("offset"))
        if ending is not None and not continues:
            show([(ending + "\n", None)])
        if headed and not continues:
            id = CONTROLS.sub("\ufffd", " ".join((document.id or "document").splitlines()))
            show([(f"== {id} ==\n", None)])
        show(_segments(document))
        ending = "" if document.text.endswith("\n") else "\n"
    show([(ending or "", None)])


def write_spacy(documents: Iterable[Document], stream: IO[Any]) -> None:
    """A ``.spacy`` file (DocBin) with entities and sentence borders; ``doc.text`` is the document's text.

    White space between tokens that is not one space becomes a white space token, as in spaCy's own tokenizer. DocBin
    writes one compressed block: all documents are held in memory. Raises ValueError for documents without tokens.
    """
    check_extra("spacy", ".spacy files need spaCy")
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    vocab, store = Vocab(), DocBin(attrs=["ENT_IOB", "ENT_TYPE", "SENT_START"])
    for document in documents:
        _needs_tokens(document)
        if document.partial is not None:
            raise ValueError(f"document {document.id!r}: a DocBin cannot say what is left open; write JSON lines")
        store.add(_spacy_doc(vocab, document))
    binary = getattr(stream, "buffer", stream)
    binary.write(store.to_bytes())


def _spacy_doc(vocab: Any, document: Document) -> Any:
    from spacy.tokens import Doc

    words: list[str] = []
    spaces: list[bool] = []
    place: list[int] = []  # of each token among the words
    last = 0
    starts, ends = document.token_starts.tolist(), document.token_ends.tolist()
    for token, start, end in [*zip(document.tokens, starts, ends, strict=True), (None, len(document.text), 0)]:
        gap = document.text[last:start]
        if words and gap.startswith(" "):
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
        if token is not None:
            place.append(len(words))
            words.append(token)
            spaces.append(False)
            last = end
    firsts = {place[start] for start, _ in _pairs(document)} - set(place[:1]) | {0}
    spans = [Span(place[s.start], place[s.end - 1] + 1, s.label) for s in document.spans or []]
    tags = tags_from_spans(spans, len(words), "iob2")
    return Doc(vocab, words=words, spaces=spaces, ents=tags, sent_starts=[i in firsts for i in range(len(words))])


def _segments(document: Document) -> Iterator[tuple[str, str | None]]:
    """The text cut at its entities, each piece with its label."""
    last = 0
    for entity in sorted(document.entities, key=_order):
        yield document.text[last : entity.start], None
        yield document.text[entity.start : entity.end], entity.label
        last = entity.end
    yield document.text[last:], None


def _plain(stream: IO[Any]) -> Callable[[Iterable[tuple[str, str | None]]], None]:
    put = utf8(stream)

    def show(segments: Iterable[tuple[str, str | None]]) -> None:
        put("".join(text if label is None else f"[{text} {label}]" for text, label in segments))

    return show


def _terminal(stream: IO[Any]) -> Callable[[Iterable[tuple[str, str | None]]], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)

    def show(segments: Iterable[tuple[str, str | None]]) -> None:
        line = Text()
        for text, label in segments:
            style = STYLES.get(label, "bold blue") if label else None
            line.append(CONTROLS.sub("\ufffd", text), style)
            if label:
                line.append(f" {label}", "dim")
        console.print(line, soft_wrap=True, end="")

    return show


def _order(entity: Entity) -> tuple[int, int]:
    return entity.start, entity.end


def _pairs(document: Document) -> Iterator[tuple[int, int]]:
    return pairwise(document.sentence_offsets.tolist())


def _tags(document: Document, scheme: Scheme) -> list[str]:
    if document.source_tags is not None:
        return convert_tags(document.source_tags, None, scheme, document.sentence_offsets)
    return tags_from_spans(document.spans or [], document.n_tokens, scheme, document.sentence_offsets)


def _needs_tokens(document: Document) -> bool:
    """Whether there is nothing to write. Raises ValueError where there is text but no token."""
    if not document.n_tokens and document.text.strip():
        raise ValueError(f"document {document.id!r} has no tokens; tokenise it first")
    return not document.n_tokens


def json_line(record: dict[str, Any]) -> str:
    """An object on one line, whatever some reader takes for a line break escaped."""
    line = json.dumps(record, ensure_ascii=False, default=str)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only escape
        line = json.dumps(record, default=str)
    return line.translate(_LINE_SEPARATORS) + "\n"


def utf8(stream: IO[Any]) -> Callable[[str], object]:
    """Writes text to the stream as UTF-8, whatever the locale says."""
    binary = getattr(stream, "buffer", None)
    if binary is None and isinstance(stream, io.TextIOBase):
        return stream.write
    if binary is not None:
        stream.flush()
    target: Any = stream if binary is None else binary
    return lambda text: target.write(text.encode("utf-8", "replace"))
