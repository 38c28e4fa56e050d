"""HTML view of a document for notebooks: names in colour, with hyperlinks between mentions of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

from herdner.text.entity import Entity, Name, names_of, with_numbered_names

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
    entities, names = entities_and_names([e for e in document.entities if e.end <= MAX_CHARACTERS])
    page = hashlib.blake2s(document.text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    pieces: list[str] = []
    last = 0
    for i, entity in enumerate(entities):
        pieces += [escape_html(document.text[last : entity.start]), _mark(entity, i, names, f"herdner-{page}")]
        last = entity.end
    pieces.append(escape_html(document.text[last:MAX_CHARACTERS]))
    if (rest := len(document.text) - MAX_CHARACTERS) > 0:
        pieces.append(f"<em>… {rest:,} more characters</em>")
    return f'<div class="herdner" dir="auto" style="line-height:1.9;white-space:pre-wrap">{"".join(pieces)}</div>'


def entities_and_names(entities: Iterable[Entity]) -> tuple[list[Entity], dict[int | None, Name]]:
    """Return the entities that do not overlap an earlier one, in the order of the text, and their names by `name_id`.

    If several entities begin at the same character, the longest is kept. Entities without `name_id` have the same name
    if their texts and labels are equal, ignoring case. The names are numbered anew, in the order of the text.

    Args:
        entities: Entities of a document.

    Returns:
        The entities, each with a `name_id`, and the names. Their mentions are indices of the returned entities.
    """
    shown: list[Entity] = []
    for entity in sorted(entities, key=lambda e: (e.start, -e.end)):
        if (shown[-1].end if shown else 0) <= entity.start < entity.end:
            shown.append(entity)
    keys = [(e.text.casefold(), e.label) if e.name_id is None else e.name_id for e in shown]
    shown = with_numbered_names(shown, keys)
    return shown, {name.id: name for name in names_of(shown)}


def _mark(entity: Entity, i: int, names: Mapping[int | None, Name], page: str) -> str:
    same = names[entity.name_id].mentions
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
