"""The project's annotated stories agree with corpora/README.md."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

CORPORA = Path(__file__).parents[2] / "corpora"
FILES = ("herdner_news.train.conll", "herdner_news.dev.conll")
CLASSES = ("PER", "LOC", "ORG")

Story = list[list[tuple[str, str]]]


def stories(name: str) -> list[Story]:
    """Read the file without the reader, because this test also fixes the file format."""
    result: list[Story] = []
    for block in (CORPORA / name).read_text(encoding="utf-8").strip().split("\n\n"):
        if block == "-DOCSTART-\tO":
            result.append([])
        else:
            result[-1].append([tuple(line.split("\t")) for line in block.split("\n")])  # type: ignore[misc]
    return result


def mentions(sentence: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for token, tag in sentence:
        if tag.startswith("B-"):
            found.append((tag[2:], token))
        elif tag.startswith("I-"):
            found[-1] = (found[-1][0], f"{found[-1][1]} {token}")
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_token_and_a_valid_iob2_tag(name: str) -> None:
    valid = {"O", *(f"{prefix}-{label}" for prefix in "BI" for label in CLASSES)}
    for story in stories(name):
        for sentence in story:
            previous = "O"
            for fields in sentence:
                assert len(fields) == 2
                token, tag = fields
                assert token
                assert not re.search(r"\s", token)
                assert tag in valid
                assert not tag.startswith("I-") or previous[2:] == tag[2:], f"{token} {tag} after {previous}"
                previous = tag


@pytest.mark.parametrize("name", FILES)
def test_story_lengths_and_repeated_names(name: str) -> None:
    for story in stories(name):
        assert 4 <= len(story) <= 9
        where: dict[str, set[int]] = defaultdict(set)
        for i, sentence in enumerate(story):
            for _, text in mentions(sentence):
                for word in re.findall(r"\w{3,}", text.casefold()):
                    where[word].add(i)
        repeated = [word for word, sentences in where.items() if len(sentences) >= 2]
        assert len(repeated) >= 2, story[0]


def test_the_table_of_the_readme_is_true() -> None:
    readme = (CORPORA / "README.md").read_text(encoding="utf-8")
    for name in FILES:
        found = stories(name)
        sentences = [sentence for story in found for sentence in story]
        counts = Counter(label for sentence in sentences for label, _ in mentions(sentence))
        numbers = [len(found), len(sentences), sum(map(len, sentences)), *(counts[label] for label in CLASSES)]
        assert f"| `{name}` | " + " | ".join(f"{n:,}" for n in numbers) + " |" in readme


def test_the_files_share_no_sentence_with_each_other_or_with_the_article() -> None:
    train, dev = ({" ".join(t for t, _ in s) for story in stories(name) for s in story} for name in FILES)
    article = re.findall(r"\w+", (CORPORA / "article.txt").read_text(encoding="utf-8"))
    assert not train & dev
    runs = {tuple(article[i : i + 6]) for i in range(len(article) - 5)}
    for sentence in train | dev:
        words = re.findall(r"\w+", sentence)
        assert not any(tuple(words[i : i + 6]) in runs for i in range(len(words) - 5)), sentence
