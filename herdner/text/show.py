"""HTML view of a document for notebooks: names in colour, with hyperlinks between mentions of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from herdner.text.entity import Entity

if TYPE_CHECKING:
    from herdner.text.document import Document

MAX_CHARACTERS = 50_000  # the rest of a longer text is not shown
COLORS = {"PER": "#aa9cfc", "LOC": "#feca74", "ORG": "#7aecec", "MISC": "#c887fb"}
OTHER = "#dddddd"
_MARK = "color:#111;border-radius:.3em;padding:.1em .3em"
_LABEL = "font-size:.75em;font-weight:bold;margin-left:.35em"


def to_html(document: Document) -> str:
    """Return the text of a document as HTML in which its entities are highlighted.

    A name with several mentions has an arrow to the next mention; the last mention has an arrow to the first. The
    tooltip of a name shows its confidence. If entities overlap, only the first is marked.

    Args:
        document: A document with entities.

    Returns:
        Escaped HTML.
    """
    entities = [e for e in without_overlaps(document) if e.end <= MAX_CHARACTERS]
    mentions: dict[object, list[int]] = {}
    for i, entity in enumerate(entities):
        mentions.setdefault(name_key(entity), []).append(i)
    page = hashlib.blake2s(document.text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    pieces: list[str] = []
    last = 0
    for i, entity in enumerate(entities):
        pieces += [escape_html(document.text[last : entity.start]), _mark(entity, i, mentions, f"herdner-{page}")]
        last = entity.end
    pieces.append(escape_html(document.text[last:MAX_CHARACTERS]))
    if (rest := len(document.text) - MAX_CHARACTERS) > 0:
        pieces.append(f"<em>… {rest:,} more characters</em>")
    return f'<div class="herdner" dir="auto" style="line-height:1.9;white-space:pre-wrap">{"".join(pieces)}</div>'


def without_overlaps(document: Document) -> Iterator[Entity]:
    """Return an iterator over the entities of a document that do not overlap an earlier entity.

    The entities are in the order of the text. If several entities begin at the same character, the longest is kept.

    Args:
        document: Document with entities.
    """
    last = 0
    for entity in sorted(document.entities, key=lambda e: (e.start, -e.end)):
        if last <= entity.start < entity.end:
            yield entity
            last = entity.end


def name_key(entity: Entity) -> object:
    """Return a key that is equal for mentions of the same name.

    Entities without `name_id` have the same name if their texts and labels are equal, ignoring case.

    Args:
        entity: The entity.
    """
    return (entity.text.casefold(), entity.label) if entity.name_id is None else entity.name_id


def _mark(entity: Entity, i: int, mentions: dict[object, list[int]], page: str) -> str:
    same = mentions[name_key(entity)]
    confidence = "" if entity.confidence is None else f" {100 * entity.confidence:.0f} %"
    position, link = "", ""
    if len(same) > 1:
        index = same.index(i)
        position = f", mention {index + 1} of {len(same)}"
        following = same[(index + 1) % len(same)]
        arrow = "↓" if index + 1 < len(same) else "↑"
        link = f' <a href="#{page}-{following}" style="color:#111" title="next mention">{arrow}</a>'
    color, title = COLORS.get(entity.label, OTHER), escape(entity.label + confidence + position)
    return (
        f'<mark id="{page}-{i}" title="{title}" style="background:{color};{_MARK}">'
        f'{escape_html(entity.text)}<span style="{_LABEL}">{escape(entity.label)}</span>{link}</mark>'
    )


def escape_html(text: str) -> str:
    """Escape a text for HTML, and replace control characters, which HTML does not allow.

    Args:
        text: The text.

    Returns:
        The escaped text, of which each control character is U+FFFD.
    """
    return "".join(c if c in "\t\n\r" or c.isprintable() or c.isspace() else "\ufffd" for c in escape(text))
