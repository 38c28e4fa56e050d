"""One word for one thing: names of classes, first words of docstrings, and words that the glossary replaces."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from data import REPOSITORY

SOURCES = sorted((REPOSITORY / "herdner").rglob("*.py"))
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "pages").rglob("*.md"))]
# Words that once meant several things or nothing clear, and the word that replaces each.
BANNED = {
    r"doubts?": "warning", r"mend(s|ed|ing)?": "fix", r"judged": "held-out", r"unborn": "lazily initialised",
    r"wrong use": "usage error", r"one behind the other": "concatenated", r"had no say": "held-out", r"skips": "links",
    r"spare": "overwrite_unary", r"file endings?": "file extension", r"told": "a verb that names the actor",
    r"(is|are) sure of": "confidence", r"belief that": "confidence",
}  # fmt: skip
BANNED_FIRST_WORDS = {
    "What", "How", "Whether", "Which", "Where", "Why", "Of", "That", "Those", "As", "By", "With", "From", "In", "To",
}  # fmt: skip


def documented_nodes(path: Path) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def type_names(path: Path) -> Iterator[str]:
    """Yield the classes, enumerations and type aliases of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name):
                yield name


def test_no_two_types_share_a_name() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        for name in type_names(path):
            files[name].add(str(path.relative_to(REPOSITORY)))
    assert not {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}


def test_docstrings_begin_with_a_verb_or_a_noun_phrase() -> None:
    wrong = []
    for path in SOURCES:
        for node in documented_nodes(path):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0] in BANNED_FIRST_WORDS:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 1)}: {' '.join(words[:6])}")
    assert not wrong


@pytest.mark.parametrize("word", BANNED)
def test_banned_words_do_not_come_back(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    lines = []
    for path in SOURCES + PAGES:
        if path.name in ("glossary.md", "changelog.md", "descriptions.py"):  # the last one holds English example words
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                lines.append(f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}")
    assert not lines, f"write {BANNED[word]!r} for {word!r}"


def test_the_glossary_defines_each_term_once() -> None:
    glossary = (REPOSITORY / "docs" / "pages" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+?) \| [^|]+ \| [^|]+ \|$", glossary, re.MULTILINE)
    terms = [term for term in terms if term not in ("term", "---")]
    assert len(terms) > 60
    assert len(terms) == len(set(terms))
