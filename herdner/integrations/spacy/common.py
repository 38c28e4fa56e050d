"""What herdner's components share: ``Doc`` to `Document`, entities into a ``Doc``, errors that name a component.

A ``Doc`` may hold white space tokens, a `Document` never does; `document_of` says where each of its tokens stands.
"""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, SENT_START, SPACY  # type: ignore[attr-defined]
from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.util import get_minor_version_range, split_requirement

from herdner import __version__
from herdner.inference import Backend, make_backend
from herdner.ner.known_names import Names
from herdner.ner.known_names.known import NamesLike
from herdner.text.document import Document
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.tags import Span

F = TypeVar("F", bound=Callable[..., object])

BEGIN = 3  # ENT_IOB of an entity's first token; without ENT_TYPE the token is blocked: no entity may hold it
EXTENSION = "confidence"
ConfiguredNames = str | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Existing = Literal["keep", "overwrite", "replace"]


class ComponentError(ValueError):
    """What went wrong in a component of a pipeline, and how to mend it, in one line that begins with its name."""


@contextmanager
def named(name: str) -> Generator[None]:
    """Errors of what the user gave (ValueError) become `ComponentError`, with the component's name in the pipeline."""
    try:
        yield
    except ComponentError:
        raise
    except ValueError as error:
        raise ComponentError(f"{name}: {error}") from None


class Aligned(NamedTuple):
    """A `Document` of n tokens, and int64[n], ascending: which token of the ``Doc`` each of them is."""

    document: Document
    places: NDArray[np.int64]

    def in_doc(self, spans: Sequence[Span]) -> list[Span]:
        """Spans of the document's tokens as spans of the ``Doc``'s; white space inside belongs to them."""
        places = self.places
        return [Span(int(places[start]), int(places[end - 1]) + 1, label) for start, end, label in spans]

    def in_document(self, start: int, end: int) -> tuple[int, int]:
        """The document's tokens among the tokens ``start:end`` of the ``Doc``; an empty range where there are none."""
        first, last = np.searchsorted(self.places, (start, end)).tolist()
        return first, last


def require_herdner(nlp: Language) -> None:
    """Herdner among the requirements of the pipeline, for ``spacy package``: by itself that finds only what was built
    by setuptools.
    """
    given = list(nlp.meta.get("requirements") or [])
    if not any(split_requirement(each)[0] == "herdner" for each in given):
        nlp.meta["requirements"] = [*given, f"herdner{get_minor_version_range(__version__)}"]


def document_of(doc: Doc, rules: SentenceRules = ENGLISH, sentence_starts: NDArray[np.bool_] | None = None) -> Aligned:
    """The ``Doc``'s text, tokens without white space, and sentences.

    Sentences are the ``Doc``'s, or those of ``sentence_starts`` (bool[len(doc)]) where it is given. Where no component
    has set any, they are found by herdner's own ``rules``.
    """
    orth, spacy, begins = doc.to_array([ORTH, SPACY, SENT_START]).T
    # A text has far fewer words than tokens: each word is looked up once.
    distinct, which = np.unique(orth, return_inverse=True)
    words = [doc.vocab.strings[key] for key in distinct.tolist()]
    lengths = np.fromiter(map(len, words), np.int64, len(words))[which]
    spaces = spacy.astype(np.int64)
    written = np.array([*words, *(word + " " for word in words)], dtype=object)
    text = "".join(written[which + len(words) * spaces])
    places = np.flatnonzero(~np.fromiter(map(str.isspace, words), np.bool_, len(words))[which])
    tokens = written[which[places]].tolist()
    ends = np.cumsum(lengths + spaces)[places] - spaces[places]
    starts = ends - lengths[places]
    if sentence_starts is None:
        sentence_starts = _sentence_starts(doc, begins)
    if sentence_starts is None:
        offsets = rules.loop.offsets(text, tokens, starts, ends)
    else:
        sentence = np.cumsum(sentence_starts)[places]
        offsets = np.append(np.flatnonzero(np.diff(sentence, prepend=-1)), len(places))
    return Aligned(Document(text, tokens, starts, ends, offsets), places)


def _sentence_starts(doc: Doc, begins: NDArray[np.uint64]) -> NDArray[np.bool_] | None:
    """Which tokens begin a sentence, as ``doc.sents`` has it; None where nobody has said so."""
    if "sents" in doc.user_hooks:
        found = np.zeros(len(doc), np.bool_)
        found[[sentence.start for sentence in doc.sents]] = True
        return found
    return begins == 1 if len(doc) and doc.has_annotation("SENT_START") else None


def configured_backend(backend: str | Mapping[str, Any] | None) -> Backend | None:
    """The backend of a config; ValueError says what is wrong."""
    if backend is None or isinstance(backend, str):
        return None if backend is None else make_backend(backend)
    options = dict(backend)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ValueError('a backend needs its name, as in {"name": "herded-gibbs", "n_sweeps": 400}')
    return make_backend(name, **options)


def configured_names(
    names: ConfiguredNames | None, saved: Path | io.BytesIO | None = None, *, missing_ok: bool = False
) -> Names | None:
    """The names of a config, or what a pipeline has ``saved`` of them, with the config's options; ValueError says what
    is wrong. With ``missing_ok`` a file that is not here, but may be in a saved pipeline, is None.
    """
    options = dict(names) if isinstance(names, Mapping) else {}
    given = [options.pop(key) for key in ("file", "patterns") if key in options] if options else [names]
    if unknown := sorted(set(options) - {"strength", "hard", "fold_case"}):
        raise ValueError(f"names have no option {unknown[0]!r}; they have file, patterns, strength, hard and fold_case")
    if saved is not None:
        return Names.read(saved, **options)
    if len(given) != 1:
        raise ValueError('names need a "file" or "patterns", one of them')
    (source,) = given
    # os.path.exists says False of what can be no path, such as a name of 1000 characters.
    if source is None or (missing_ok and isinstance(source, str) and not os.path.exists(source)):  # noqa: PTH110
        return None
    return Names.of(cast("NamesLike", source), **options)


def register_extension() -> bool:
    """``span._.confidence``, whether it can be set: another one of this name may be computed from something else."""
    if not DocSpan.has_extension(EXTENSION):
        DocSpan.set_extension(EXTENSION, default=None)
    _, method, getter, setter = DocSpan.get_extension(EXTENSION)
    return setter is not None or (getter is None and method is None)


def set_entities(
    doc: Doc,
    spans: Sequence[Span],
    confidences: Sequence[float] | None = None,
    *,
    spans_key: str | None = None,
    annotate_ents: bool = True,
    existing: Existing = "keep",
) -> None:
    """Write entities, spans of the ``Doc``'s tokens in the order of the text, disjoint, and their confidences.

    With ``annotate_ents`` they go into ``doc.ents``, where ``ent._.confidence`` says how sure they are. ``existing``
    entities are kept, as spaCy's own ``ner`` and ``entity_ruler`` do, and new ones that overlap them, or tokens that
    are blocked, are left out; or those that overlap a new one are overwritten; or all of them are replaced.
    With a ``spans_key`` all new ones become ``doc.spans[spans_key]``, confidences in its ``attrs["scores"]``, as
    ``spancat`` has it; another group under this key is replaced.
    """
    found = [DocSpan(doc, span.start, span.end, label=span.label) for span in spans]
    if spans_key is not None:
        attrs = {} if confidences is None else {"scores": np.array(confidences, np.float64)}
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=found, attrs=attrs)
    if not annotate_ents:
        return
    old = [] if existing == "replace" else list(doc.ents)
    blocked = blocked_tokens(doc) if existing == "keep" else []
    chosen = list(range(len(found)))
    if existing == "overwrite":
        taken = _mask(len(doc), found)
        old = [entity for entity in old if not taken[entity.start : entity.end].any()]
    elif old or blocked:
        taken = _mask(len(doc), [*old, *blocked])
        chosen = [i for i, span in enumerate(found) if not taken[span.start : span.end].any()]
    doc.set_ents([*old, *(found[i] for i in chosen)], blocked=blocked)
    if confidences is not None and register_extension():
        for i in chosen:
            found[i]._.set(EXTENSION, float(confidences[i]))


def blocked_tokens(doc: Doc) -> list[DocSpan]:
    """The tokens that are marked never to be part of an entity."""
    iob, kind = doc.to_array([ENT_IOB, ENT_TYPE]).T
    return [doc[place : place + 1] for place in np.flatnonzero((iob == BEGIN) & (kind == 0)).tolist()]


def _mask(n: int, spans: Sequence[DocSpan]) -> NDArray[np.bool_]:
    """bool[n]: the tokens of these spans."""
    mask = np.zeros(n, np.bool_)
    for span in spans:
        mask[span.start : span.end] = True
    return mask


def annotated(function: F) -> F:
    """The factory with its annotations as types: older releases of spaCy check configurations by pydantic 1, which
    takes them as they stand, and here they are strings.
    """
    function.__annotations__ = get_type_hints(function)
    return function
