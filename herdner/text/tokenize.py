"""Text to tokens with character offsets: spaCy's tokenizer, applied once per distinct word.

spaCy splits every run of characters between white space on its own, so the split of a run is worked out once and
kept; repeated runs cost a dictionary look-up, a tenth of the time of calling spaCy on the whole text. The rules are
those of ``spacy.blank(language)`` with the additions below. Nothing is kept in spaCy's vocabulary (it works inside a
memory zone), and the cache is emptied when it is full, so memory does not grow with the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.text import place
from herdner.text.document import Document
from herdner.text.sentences import ENGLISH, SentenceRules, sentence_offsets

# News writes "U.S.-led", "U.S./Mexico", "(AP)-based", "--Paris", "``Moi", "NAIROBI--" and copies byte-order marks and
# zero-width spaces from web pages. spaCy's English rules leave these glued to the name.
INVISIBLE = "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]"
PREFIXES = ("``", r"-+(?=[^\W\d])", r"[|~]", INVISIBLE)
SUFFIXES = ("``", r"(?<=[\w.])-+", r"[|~]", INVISIBLE)
INFIXES = (r"(?<=[^\W\d]\.)[-/](?=[^\W\d])", r"(?<=[^\W\d])[)\]]-?(?=[^\W\d])|(?<=[)\]])-(?=[^\W\d])", r"\|", INVISIBLE)
# Runs without white space longer than this are cut before spaCy sees them, behind a punctuation mark where one is near:
# its affix rules take time that grows with the square of the length.
LONGEST_RUN = 128
PIECE = re.compile(rf"(?s).{{1,{LONGEST_RUN}}}(?<=\W)|.{{1,{LONGEST_RUN}}}")
SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class TokenizerSettings:
    """What a model file carries, so that an old model reads text as it always did; only names, numbers and words.

    Regular expressions are never taken from a file (a hostile one could run for ever): ``rules`` numbers the set of
    this module, and an unknown number is an error that names the remedy.
    """

    language: str = "en"
    rules: int = 1
    sentences: SentenceRules = ENGLISH

    def __post_init__(self) -> None:
        if self.rules != 1:
            raise ValueError(f"tokenizer rules {self.rules!r}: this herdner knows set 1; install a newer herdner")
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise ValueError(
                f"tokenizer language {self.language!r}: expected a code of two or three letters, as in 'en'"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TokenizerSettings:
        """The inverse of ``to_dict``; ValueError names a key that is not known."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"tokenizer settings: unknown key {sorted(unknown)[0]!r}; install a newer herdner")
        given: dict[str, Any] = dict(values)
        sentences: dict[str, Any] | None = given.pop("sentences", None)
        return cls(**given, sentences=ENGLISH if sentences is None else SentenceRules.from_dict(sentences))


class Tokenizer:
    """Callable: text to ``Document`` (tokens, offsets, sentences; no tags).

    The text is kept as it is. Any text is accepted: NULs, lone surrogates, runs of millions of characters without white
    space (cut as described at ``LONGEST_RUN``). A text without tokens gives a document without sentences.
    Threads may share an instance; it can be pickled and copied (the cache stays behind).
    """

    def __init__(self, settings: TokenizerSettings | None = None, *, cache_characters: int = 2_000_000) -> None:
        self.settings = settings or TokenizerSettings()
        self._cache_characters = cache_characters
        self._splits: dict[str, tuple[str, ...]] = {}
        self._cached_characters = 0
        self._nlp: Any = None
        self._special_cases: frozenset[str] = frozenset()
        self._lock = Lock()  # held while new words are split: spaCy's vocabulary is not for several threads

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.settings, self._cache_characters)

    def documents(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document per text, in order; reads ahead by none."""
        return map(self, texts)

    def __call__(self, text: str, id: str | None = None) -> Document:
        tokens, starts, ends = self._placed(text)
        offsets = sentence_offsets(text, tokens, starts, ends, self.settings.sentences)
        return Document(text, tokens, starts, ends, offsets, id=id)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, without offsets."""
        return self._placed(text)[0]

    def _placed(self, text: str) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        try:
            return place(text, self._splits)
        except KeyError:
            with self._lock:
                if self._cached_characters > self._cache_characters:
                    # Another thread may be reading the old ones.
                    self._splits, self._cached_characters = {}, 0
                return place(text, self._split_runs(text.split()))

    def _split_runs(self, runs: list[str]) -> dict[str, tuple[str, ...]]:
        """The parts of each run."""
        new = list(dict.fromkeys(run for run in runs if run not in self._splits))
        short = [run for run in new if len(run) <= LONGEST_RUN]
        found = dict(zip(short, self._apply_rules(short), strict=True)) if short else {}
        self._splits.update(found)
        self._cached_characters += sum(map(len, short))
        # Long runs are split piece by piece and not kept.
        for run in new:
            if len(run) > LONGEST_RUN:
                pieces = PIECE.findall(run)
                parts = self._split_runs(pieces)
                found[run] = tuple(chain.from_iterable(parts[piece] for piece in pieces))
        splits = self._splits
        return {run: found[run] if run in found else splits[run] for run in runs}

    def _apply_rules(self, runs: list[str]) -> list[tuple[str, ...]]:
        """spaCy's split of each run (no white space inside); the parts of a run, joined, are the run."""
        nlp = self._nlp or self._load()
        # A lone surrogate cannot be encoded as spaCy does; the rules see U+FFFD in its place, the tokens keep it.
        # Every rule but the special cases needs a character that is no Latin letter.
        hard = [run for run in runs if not (run.isascii() and run.isalpha()) or run in self._special_cases]
        with nlp.memory_zone():
            starts = [token.idx for token in nlp.tokenizer(SURROGATES.sub("\ufffd", "\n".join(hard)))]
        splits = dict(zip(hard, _regroup(hard, starts), strict=True))
        return [splits.get(run, (run,)) for run in runs]

    def _load(self) -> Any:
        # Imported here: spaCy takes half a second, and a document that is already split into tokens does not need it.
        spacy: Any = import_module("spacy")  # partly untyped
        try:
            nlp: Any = spacy.blank(self.settings.language)
        except ImportError as error:
            raise ValueError(f"tokenizer language {self.settings.language!r} is not one that spaCy knows") from error
        defaults, rules = nlp.Defaults, nlp.tokenizer
        if not isinstance(rules, spacy.tokenizer.Tokenizer):
            raise ValueError(
                f"tokenizer language {self.settings.language!r}: texts without spaces need a word segmenter"
            )
        rules.prefix_search = spacy.util.compile_prefix_regex([*PREFIXES, *(defaults.prefixes or ())]).search
        rules.suffix_search = spacy.util.compile_suffix_regex([*SUFFIXES, *(defaults.suffixes or ())]).search
        rules.infix_finditer = spacy.util.compile_infix_regex([*INFIXES, *(defaults.infixes or ())]).finditer
        for word in self.settings.sentences.abbreviations:
            rules.add_special_case(word, [{spacy.symbols.ORTH: word}])
        # Only the split is wanted, not the attributes of the words; leaving them out halves the time of a new word.
        nlp.vocab.lex_attr_getters = {}
        self._special_cases = frozenset(rules.rules)
        self._nlp = nlp
        return nlp


def _restore(settings: TokenizerSettings, cache_characters: int) -> Tokenizer:
    return Tokenizer(settings, cache_characters=cache_characters)


def _regroup(runs: list[str], starts: list[int]) -> list[tuple[str, ...]]:
    """The parts of each run, from the token starts in the runs joined by line feeds (each of which is a token too)."""
    splits: list[tuple[str, ...]] = []
    token = begin = 0
    for run in runs:
        end = begin + len(run)
        cuts: list[int] = []
        while token < len(starts) and starts[token] < end:
            cuts.append(starts[token] - begin)
            token += 1
        splits.append((run,) if len(cuts) == 1 else tuple(map(run.__getitem__, map(slice, cuts, [*cuts[1:], None]))))
        token, begin = token + 1, end + 1
    return splits
