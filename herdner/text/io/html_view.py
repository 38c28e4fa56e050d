"""Writer of HTML pages: the names of documents in colour, with confidences, links and a list of names."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import IO, Any, NamedTuple

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.write import utf8
from herdner.text.show import escape_html, name_key, without_overlaps

MAX_MENTIONS = 50  # mentions of a name to which the list of names has hyperlinks
# Colours of common labels; all other labels share the remaining colours. `herdner serve` uses the same colours.
_COLORS = {"PER": 0, "PERSON": 0, "LOC": 1, "GPE": 1, "LOCATION": 1, "ORG": 2, "ORGANIZATION": 2, "MISC": 3}
_N_COLORS = 8
_TITLE = "Names"


class _ShownName(NamedTuple):
    """Name that a page shows, with its mentions.

    Attributes:
        text: Fullest form.
        label: Entity type.
        confidence: Mean confidence of the mentions; None if unknown.
        mentions: Indices of the mentions among the shown entities.
    """

    text: str
    label: str
    confidence: float | None
    mentions: list[int]


def write_html(documents: Iterable[Document], stream: IO[Any]) -> None:
    """Write an HTML page with the text of each document, its entities in colour, and a table of its names.

    A click on a mention opens a tip with its confidence, and with buttons that lead to the previous and the next
    mention of its name. The page needs neither a network nor other files. Without JavaScript, the page has no tips and
    no curves between mentions, and a click leads to the next mention. If entities overlap, only the first is shown.

    Args:
        documents: The documents.
        stream: A text or binary stream.
    """
    put = utf8(stream)
    put(page_start(_TITLE, _script()))
    put(f'<main>\n<h1 class="unseen">{_TITLE}</h1>\n')
    for number, document in enumerate(documents):
        put("".join(_article(document, number)))
    put(f'</main>\n<div id="tip" role="status" hidden></div>\n<script type="module">{_script()}</script>\n{PAGE_END}')


def page_start(title: str, script: str = "") -> str:
    """Return the start of a self-contained HTML page, up to the start tag of its body.

    A content security policy forbids everything but the styles of the page and one script.

    Args:
        title: Title of the page.
        script: The only script that the page may run; "" forbids all.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    policy += f"; script-src 'sha256-{digest}'" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_asset('names.css')}{_asset('view.css')}</style>\n</head>\n<body>\n"
    )


PAGE_END = "</body>\n</html>\n"
"""End of a page that begins with `page_start`."""


def chip(label: str, count: int | None = None) -> str:
    """Return HTML that shows a label in its colour.

    Args:
        label: Entity type.
        count: Number to show behind the label; None: no number.
    """
    number = "" if count is None else f" {count}"
    return f'<span class="chip {_color(label)}">{escape_html(label)}{number}</span>'


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files("herdner.text.io") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    return f"\n{_asset('curve.js')}{_asset('view.js')}"


def _color(label: str) -> str:
    """Return the CSS class of a label's colour, which is the same in all documents and pages."""
    n_common = max(_COLORS.values()) + 1
    index = n_common + zlib.crc32(label.encode("utf-8", "replace")) % (_N_COLORS - n_common)
    return f"c{_COLORS.get(label, index)}"


def _article(document: Document, number: int) -> Iterator[str]:
    """Yield the HTML of one document. The ids of HTML elements begin with ``d`` and the number of the document."""
    entities = list(without_overlaps(document))
    names = _shown_names(document, entities)
    counts = sorted(Counter(entity.label for entity in entities).items())
    yield f'<article class="card" aria-labelledby="d{number}">\n<header><h2 id="d{number}" dir="auto">'
    yield f"{escape_html(document.id or 'document')}</h2>"
    yield f'<div class="counts">{"".join(chip(label, n) for label, n in counts)}</div></header>\n'
    yield '<div class="text"><div class="words" dir="auto" lang="">'
    last = 0
    places = {
        index: (key, position, name) for key, name in enumerate(names) for position, index in enumerate(name.mentions)
    }
    for index, entity in enumerate(entities):
        yield escape_html(document.text[last : entity.start])
        yield _mention(entity, index, *places[index], f"d{number}-")
        last = entity.end
    yield f"{escape_html(document.text[last:])}</div></div>\n"
    if names:
        yield from _name_table(names, f"d{number}-")
    yield "</article>\n"


def _shown_names(document: Document, entities: list[Entity]) -> list[_ShownName]:
    """Return the names of the shown entities, in the order of their first mentions."""
    mentions: dict[object, list[int]] = {}
    for index, entity in enumerate(entities):
        mentions.setdefault(name_key(entity), []).append(index)
    by_id = {name.id: name for name in document.names}
    result: list[_ShownName] = []
    for indices in mentions.values():
        first = entities[indices[0]]
        name = None if first.name_id is None else by_id[first.name_id]
        if name is None:
            confidences = [each for each in (entities[index].confidence for index in indices) if each is not None]
            mean = sum(confidences) / len(indices) if len(confidences) == len(indices) else None
            result.append(_ShownName(" ".join(first.text.split()), first.label, mean, indices))
        else:
            result.append(_ShownName(name.text, name.label, name.confidence, indices))
    return result


def _mention(entity: Entity, index: int, key: int, position: int, name: _ShownName, prefix: str) -> str:
    """Return the HTML of a mention, with a hyperlink to the next mention of its name; the last links to the first.

    The mention has the number ``index`` in the document, and ``position`` among the mentions of the name ``key``.
    """
    following = name.mentions[(position + 1) % len(name.mentions)]
    title = escape_html(entity.label)
    confidence = ""
    if entity.confidence is not None:
        shown = _percent(entity.confidence)
        title += f", {shown}"
        confidence = f' data-confidence="{shown}" style="--confidence:{min(max(entity.confidence, 0.0), 1.0):.3f}"'
    if len(name.mentions) > 1:
        title += f", mention {position + 1} of {len(name.mentions)}"
    return (
        f'<a class="entity {_color(entity.label)}" id="{prefix}{index}" href="#{prefix}{following}" data-name="{key}"'
        f' data-label="{escape_html(entity.label)}"{confidence} title="{title}">{escape_html(entity.text)}</a>'
    )


def _name_table(names: list[_ShownName], prefix: str) -> Iterator[str]:
    yield f"<details open><summary>Names: {len(names)}</summary>\n<div class='scroll' tabindex='0'><table>\n<thead><tr>"
    yield '<th scope="col">name</th><th scope="col">label</th><th scope="col">confidence</th>'
    yield '<th scope="col">mentions</th></tr></thead>\n<tbody>\n'
    for name in names:
        confidence = "" if name.confidence is None else _percent(name.confidence)
        where = " ".join(
            f'<a href="#{prefix}{index}">{count}</a>' for count, index in enumerate(name.mentions[:MAX_MENTIONS], 1)
        )
        if (n_more := len(name.mentions) - MAX_MENTIONS) > 0:
            where += f" and {n_more} more"
        yield (
            f'<tr><td dir="auto">{escape_html(name.text)}</td><td>{chip(name.label)}</td>'
            f'<td class="n">{confidence}</td><td class="where">{where}</td></tr>\n'
        )
    yield "</tbody>\n</table></div></details>\n"


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.1f} %"
