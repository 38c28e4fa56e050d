"""The docstrings of herdner as Markdown, an extension of Griffe for mkdocstrings.

They are prose for `help()`. What Markdown would run together or misread gets its forms here: lists of parameters,
aligned columns, tables between lines of "=", and examples at a prompt; and a name between single backticks becomes a
link to it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import griffe

NAMES = r"[A-Za-z_]\w*(?:(?:, | and )[A-Za-z_]\w*)*"
COLUMN = re.compile(rf"({NAMES}) {{2,}}(\S.*)", re.S)
CODE = re.compile(r"(``.+?``|`[^`]+`)", re.S)
# Roots of names outside herdner that docstrings speak of; their documentation is not among these pages.
OTHERS = ("dataclasses", "jax", "numpy", "scipy", "spacy")


class Docstrings(griffe.Extension):
    """Rewrites every docstring of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for item in objects(pkg):
            if item.docstring is not None:
                item.docstring.value = markdown(item.docstring.value, item)
        for member in pkg.members.values():
            if isinstance(member, griffe.Alias) and not member.runtime:
                member.resolve_target()  # a public name of __init__.pyi: its entry is found under this name too


def objects(item: griffe.Object) -> Iterator[griffe.Object]:
    """``item`` and everything that is defined in it."""
    yield item
    for member in list(item.members.values()):
        if isinstance(member, griffe.Object):
            yield from objects(member)


def markdown(text: str, item: griffe.Object) -> str:
    """The docstring ``text`` of ``item``, paragraph by paragraph."""
    return "\n\n".join(_paragraph(part, item) for part in re.split(r"\n\s*\n", text.strip("\n")))


def _paragraph(text: str, item: griffe.Object, listed: bool = False) -> str:
    lines = text.split("\n")
    if lines[0].startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if len(lines) > 1 and re.fullmatch(r"-{3,}", lines[1]):
        rest = "\n".join(lines[2:])
        return f"**{_prose(lines[0], item)}**" + (f"\n\n{_paragraph(rest, item, listed=True)}" if rest else "")
    if lines[0].startswith("==="):
        return _table(lines, item)
    entries = _columns(lines) or _entries(text, item, listed)
    if entries:
        return "\n".join(f"- **`{names}`**: {_prose(words, item)}" for names, words in entries)
    return _prose(text, item)


def _columns(lines: list[str]) -> list[tuple[str, str]]:
    """Names and what they mean, where the lines are two columns."""
    rows: list[str] = []
    for line in lines:
        if line.startswith(" ") and rows:
            rows[-1] += f" {line.strip()}"
        else:
            rows.append(line)
    found = [COLUMN.fullmatch(row) for row in rows]
    return [(match[1], match[2]) for match in found if match] if all(found) else []


def _entries(text: str, item: griffe.Object, listed: bool) -> list[tuple[str, str]]:
    """Names and what they mean, where the paragraph goes "name: text. other: text"."""
    flat = " ".join(text.split())
    known = set(item.members) | {parameter.name for parameter in getattr(item, "parameters", ())}
    starts = [
        match
        for match in re.finditer(rf"(?:^|(?<=[.;:)] ))`{{0,2}}({NAMES})`{{0,2}}: ", flat)
        if listed or known.issuperset(re.split(r", | and ", match[1]))
    ]
    if not starts or starts[0].start():
        return []
    ends = [match.start() for match in starts[1:]] + [len(flat)]
    return [(match[1], flat[match.end() : end].rstrip("; ")) for match, end in zip(starts, ends, strict=True)]


def _table(lines: list[str], item: griffe.Object) -> str:
    """A table whose columns begin where the runs of "=" do."""
    edges = [match.start() for match in re.finditer("=+", lines[0])]
    rows = [_cells(line, edges) for line in lines if not line.startswith("===")]
    cells = [" | ".join(_prose(cell, item) for cell in row) for row in rows]
    return "\n".join(f"| {row} |" for row in [cells[0], "|".join("---" for _ in edges), *cells[1:]])


def _cells(line: str, edges: list[int]) -> list[str]:
    """The line cut at the edges, or before the words that reach across them."""
    cuts = [len(line[:edge]) - len(re.split(r"\s", line[:edge])[-1]) for edge in edges]
    return [line[a:b].strip() for a, b in zip(cuts, [*cuts[1:], None], strict=True)]


def _prose(text: str, item: griffe.Object) -> str:
    """Running text: nothing but code is marked up, and single backticks hold links."""
    parts = CODE.split(text)
    for i, part in enumerate(parts):
        if not i % 2:
            bullet = re.compile(r"(^|\n)\* ")
            parts[i] = re.sub(r"([*_\[\]<])", r"\\\1", bullet.sub(r"\1- ", part))
        elif not part.startswith("``"):
            parts[i] = _link(part[1:-1], item)
    return "".join(parts)


def _link(name: str, item: griffe.Object) -> str:
    code = f"<code>{html.escape(' '.join(name.split()))}</code>"
    path = resolve(name, item)
    return f'<autoref optional identifier="{path}">{code}</autoref>' if path else code


def resolve(name: str, item: griffe.Object) -> str | None:
    """The path that ``name``, as written in the docstring of ``item``, stands for; None where it is no name of herdner.

    It is looked for in the scope of the docstring; else it is what has that name alone in all of herdner.
    """
    dotted = re.match(r"[A-Za-z_][\w.]*", name)
    if dotted is None or dotted[0].split(".")[0] in OTHERS:
        return None
    head, _, tail = dotted[0].partition(".")
    root = item
    while root.parent is not None:
        root = root.parent
    if head == root.name:
        return dotted[0]
    for scope in _scopes(item):
        if head in scope.members:
            member = scope.members[head]
            path = member.target_path if isinstance(member, griffe.Alias) else member.path
            return f"{path}.{tail}" if tail else path
    homes = [path for path in _homes(root).get(head, ()) if path != item.path]
    return ".".join([homes[0], tail]).rstrip(".") if len(homes) == 1 else None


@lru_cache(maxsize=1)
def _homes(root: griffe.Object) -> dict[str, list[str]]:
    """Where classes and functions of each name are defined, those inside others left out."""
    found: dict[str, list[str]] = {}
    for each in objects(root):
        if (each.is_class or each.is_function) and each.parent is not None and each.parent.is_module:
            found.setdefault(each.name, []).append(each.path)
    return found


def _scopes(item: griffe.Object) -> Iterator[griffe.Object]:
    scope: Any = item
    while scope is not None:
        yield scope
        if isinstance(scope, griffe.Class):
            yield from scope.mro()
        scope = scope.parent


def unknown_names(package: griffe.Module) -> Iterator[tuple[str, str]]:
    """Paths of docstrings, and what they name between single backticks that is neither in herdner nor of others."""
    for item in objects(package):
        if re.search(r"\._(?!_)", item.path):
            continue
        for part in CODE.findall(item.docstring.value) if item.docstring else ():
            name = part.strip("`")
            if part.startswith("``") or name.split(".")[0] in OTHERS or not re.match(r"[\w.]+(\(|$)", name):
                continue
            path = resolve(name, item)
            try:
                known = path == package.path or (path and package[path.removeprefix(f"{package.path}.")])
            except (KeyError, griffe.AliasResolutionError):
                known = None
            if not known:
                yield item.path, name
