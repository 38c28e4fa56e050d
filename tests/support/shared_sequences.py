"""Passages that herdner's own texts share with evaluation corpora."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from herdner.corpora.formats import read_documents
from herdner.text.tokenize import Tokenizer

LENGTH = 7  # words
_SLOT = re.compile(r"\{[^}]*\}")  # of a template


def words(tokens: Iterable[str]) -> list[str]:
    """Return the words of a text in lower case, of letters only, so that they are equal in all tokenizations.

    A word includes the letters around full stops and "n't" ("us", "dont"). It ends at a hyphen, a digit and "'s".
    """
    text = " ".join(tokens).lower().replace("’", "'").replace(" n't", "n't").replace("n't", "nt")
    return re.findall(r"[^\W\d_]+", text.replace(".", ""))


def sequences(text: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all sequences of `LENGTH` words."""
    for start in range(len(text) - LENGTH + 1):
        yield tuple(text[start : start + LENGTH])


def own_texts(folder: Path) -> list[list[str]]:
    """Return the words of each of herdner's own texts; a template is divided at its slots."""
    texts = [words(d.tokens) for path in sorted(folder.glob("*.conll")) for d in read_documents(path, "conll")]
    templates = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("herdner_templates*.txt")))
    pieces = _SLOT.split("{}".join(templates).replace("---", "{}"))
    others = [(folder / "article.txt").read_text(encoding="utf-8"), *pieces]
    return [*texts, *(words(Tokenizer().tokens(text)) for text in others)]


def corpus_texts(path: Path, format: str) -> Iterator[list[str]]:
    """Yield the words of each file of a corpus.

    Formats are "columns" (tokens in the first column), "conllu" (in the second), "text" and "ieer".
    """
    if format == "ieer":
        yield from (words(document.tokens) for document in read_documents(path, format, tokenizer=Tokenizer()))
        return
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        text = file.read_text(encoding="utf-8")
        if format == "text":
            yield words(text.split())
        else:
            rows = (line.split(None, 2) for line in text.splitlines())
            column = 1 if format == "conllu" else 0
            yield words(row[column] for row in rows if len(row) > column and row[0] not in ("#", "-DOCSTART-"))


def shared_passages(own: Sequence[list[str]], others: Iterable[list[str]]) -> list[str]:
    """Return the longest passages of our texts whose sequences all occur in other texts, sorted."""
    known = {sequence for text in own for sequence in sequences(text)}
    shared = known.intersection(sequence for text in others for sequence in sequences(text))
    passages: set[str] = set()
    for text in own:
        is_shared = [sequence in shared for sequence in sequences(text)]
        start = 0
        for flag, group in groupby(is_shared):
            n = len(list(group))
            if flag:
                passages.add(" ".join(text[start : start + n + LENGTH - 1]))
            start += n
    return sorted(passages)
