"""Pseudonymisation of single texts and documents."""

from __future__ import annotations

from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.ner.pseudonyms.realistic import Realistic
from herdner.ner.pseudonyms.replacing import PseudonymisedDocument, Pseudonymiser, PseudonymStyle
from herdner.ner.pseudonyms.styles import KeyedHash, NumberedStyle
from herdner.ner.tagger import Tagger, load
from herdner.text.document import Document

RECALL_BIAS = 2.0
"""Value of `Inference.name_bias` with ``recall=True``."""


def pseudonymise(
    source: str | Document,
    names: PseudonymMap | None = None,
    *,
    model: str | Tagger = "en",
    key: bytes | None = None,
    recall: bool = False,
    identifiers: bool = True,
    seed: int = 0,
) -> PseudonymisedDocument:
    """Replace the names and structured identifiers of a text by pseudonyms.

    >>> import herdner
    >>> result = herdner.pseudonymise("Ada Lovelace met Charles Babbage in London. Lovelace wrote to Babbage.")
    >>> result.text
    'Person 1 met Person 2 in Place 1. Person 1b wrote to Person 2b.'
    >>> result.names.restore("Person 1b and Person 2 became friends.")
    'Lovelace and Charles Babbage became friends.'

    Args:
        source: A text, or a document whose entities are replaced.
        names: Map that the text extends. Use one map for all documents that shall have the same pseudonyms. None
            creates a map with numbered pseudonyms; ``PseudonymMap("realistic")`` has another style.
        model: A shipped model, a model file or a `Tagger`. It finds names, and its lexicon contains the common words.
        key: Secret key of at least 16 bytes, for the style "hash".
        recall: Raise the recall at the cost of precision (`RECALL_BIAS`). It has no effect on a `Document`.
        identifiers: Also replace e-mail addresses, URLs, IBANs, payment cards, IP addresses and phone numbers.
        seed: Seed of the choice of realistic names.

    Returns:
        The document with pseudonyms, the replaced ranges, the words that remain, and the map.

    Raises:
        ModelError: The model does not exist or is invalid.
        MissingExtra: A library is not installed (extra ``pseudonyms``).
        TypeError: ``source`` is neither a text nor a document, or ``names`` is not a map.
        ValueError: The style needs a key, or the key is too short.
    """
    names = PseudonymMap() if names is None else names
    if not isinstance(names, PseudonymMap):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise TypeError(f"`names` must be a PseudonymMap or None, got {type(names).__name__}")
    if not isinstance(source, str | Document):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise TypeError(
            f"`source` must be a text or a Document, got {type(source).__name__}; call pseudonymise once for each text,"
            " with the same `names`"
        )
    tagger = model if isinstance(model, Tagger) else load(model)
    work = make_pseudonymiser(names, tagger, key=key, identifiers=identifiers, seed=seed)
    document = source if isinstance(source, Document) else tagger.tag(source, name_bias=RECALL_BIAS * recall)
    return work(document)


def make_pseudonymiser(
    names: PseudonymMap, tagger: Tagger, *, key: bytes | None = None, identifiers: bool = True, seed: int = 0
) -> Pseudonymiser:
    """Return a `Pseudonymiser` for documents that a tagger has tagged.

    Args:
        names: Map that the documents extend.
        tagger: Tagger whose lexicon contains the common words.
        key: Secret key of at least 16 bytes, for the style "hash".
        identifiers: Also replace structured identifiers.
        seed: Seed of the choice of realistic names.

    Returns:
        The pseudonymiser. Its style is that of the map.

    Raises:
        ValueError: The style needs a key, or the key is too short.
        MissingExtra: A library is not installed.
    """
    common_words = CommonWords.of(tagger.model_.lexicon)
    style: PseudonymStyle
    if names.style == "hash":
        if key is None:
            raise ValueError("the style 'hash' needs a secret key of at least 16 bytes, but `key` is None; pass a key")
        style = KeyedHash(names, key, tagger.labels)
    elif names.style == "realistic":
        style = Realistic(names, tagger.labels, common_words, seed)
    else:
        style = NumberedStyle(names, tagger.labels)
    return Pseudonymiser(names, style, common_words, identifiers)
