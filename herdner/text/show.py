"""A document for notebooks: its text with the names in colour, mentions of one name joined by links."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape

from herdner.text.entity import Entity, WithEntities

MOST_CHARACTERS = 50_000  # of a longer text only the beginning is shown
COLORS = {"PER": "#aa9cfc", "LOC": "#feca74", "ORG": "#7aecec", "MISC": "#c887fb"}
OTHER = "#dddddd"
_MARK = "color:#111;border-radius:.3em;padding:.1em .3em"
_LABEL = "font-size:.75em;font-weight:bold;margin-left:.35em"


def to_html(document: WithEntities) -> str:
    """The text in HTML, escaped. A name that is mentioned again has an arrow to its next mention, the last one to the
    first; pointing at a name shows its confidence. Of entities that overlap the first is marked.
    """
    entities = [e for e in _apart(document) if e.end <= MOST_CHARACTERS]
    mentions: dict[tuple[str, str], list[int]] = {}
    for i, entity in enumerate(entities):
        mentions.setdefault((entity.text.casefold(), entity.label), []).append(i)
    page = hashlib.blake2s(document.text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    pieces: list[str] = []
    last = 0
    for i, entity in enumerate(entities):
        pieces += [_text(document.text[last : entity.start]), _mark(entity, i, mentions, f"herdner-{page}")]
        last = entity.end
    pieces.append(_text(document.text[last:MOST_CHARACTERS]))
    if (rest := len(document.text) - MOST_CHARACTERS) > 0:
        pieces.append(f"<em>… {rest:,} more characters</em>")
    return f'<div class="herdner" dir="auto" style="line-height:1.9;white-space:pre-wrap">{"".join(pieces)}</div>'


def _apart(document: WithEntities) -> Iterator[Entity]:
    last = 0
    for entity in sorted(document.entities, key=lambda e: (e.start, -e.end)):
        if last <= entity.start < entity.end:
            yield entity
            last = entity.end


def _mark(entity: Entity, i: int, mentions: dict[tuple[str, str], list[int]], page: str) -> str:
    same = mentions[entity.text.casefold(), entity.label]
    sure = "" if entity.confidence is None else f" {100 * entity.confidence:.0f} %"
    place, link = "", ""
    if len(same) > 1:
        at = same.index(i)
        place = f", mention {at + 1} of {len(same)}"
        following = same[(at + 1) % len(same)]
        arrow = "↓" if at + 1 < len(same) else "↑"
        link = f' <a href="#{page}-{following}" style="color:#111" title="next mention">{arrow}</a>'
    color = COLORS.get(entity.label, OTHER)
    return (
        f'<mark id="{page}-{i}" title="{escape(entity.label + sure + place)}" style="background:{color};{_MARK}">'
        f'{_text(entity.text)}<span style="{_LABEL}">{escape(entity.label)}</span>{link}</mark>'
    )


def _text(text: str) -> str:
    """Escaped; control characters, which are no HTML, replaced."""
    return "".join(c if c in "\t\n\r" or c.isprintable() or c.isspace() else "\ufffd" for c in escape(text))
