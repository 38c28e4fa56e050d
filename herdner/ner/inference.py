"""Options of tagging that do not belong to a model, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, get_args

from herdner.inference import Backend
from herdner.inference.registry import resolve_backend
from herdner.ner.known_names import CollectionNames, Names
from herdner.ner.known_names.known import NamesLike

ConfidenceOf = Literal["name", "mention"]
DEFAULT_BACKEND = "sum-product"  # for documents with links; without links, Viterbi is exact and faster


@dataclass(frozen=True)
class Inference:
    """Inference options of a tagger: the backend, links, known names and the minimum confidence.

    The tagger, the command line, the service, the spaCy component and Dask share these options.

    Attributes:
        backend: Inference backend. None is sum-product for documents with links and Viterbi for documents without.
        links: Link the mentions of one name. False tags with the linear chain only.
        names: Known names, which add to the scores of their labels or fix them.
        min_confidence: Names with a lower confidence are removed with all their mentions. None removes none.
        min_confidence_of: "name" compares the mean confidence of a name's mentions with ``min_confidence``; "mention"
            compares each mention and removes only mentions.
        name_bias: Log-odds of each token to be part of a name that are added to those of the model. Positive values
            find more names, of which fewer are right. Confidences include them.
        collection: Names of the collection to which all tagged documents belong (`Tagger.gather`), or None.
    """

    backend: Backend | None = None
    links: bool = True
    names: Names | None = None
    min_confidence: float | None = None
    name_bias: float = 0.0
    min_confidence_of: ConfidenceOf = "name"
    collection: CollectionNames | None = None

    @classmethod
    def of(
        cls,
        backend: str | Backend | None = None,
        *,
        links: bool = True,
        names: NamesLike | None = None,
        min_confidence: float | None = None,
        name_bias: float = 0.0,
        min_confidence_of: ConfidenceOf = "name",
        **options: Any,
    ) -> Inference:
        """Build the inference options from the name and the options of a backend, and from known names in any form.

        `Names.of` lists the forms of known names.

        Args:
            backend: Name of a backend (`herdner.BACKENDS`), a `Backend`, or None for the default.
            links: Link the mentions of one name.
            names: Known names, or None.
            min_confidence: Lowest confidence of a name that is kept, between 0 and 1, or None.
            name_bias: Log-odds of each token to be part of a name that are added to those of the model.
            min_confidence_of: "name" keeps or removes a name with all its mentions, "mention" each mention by itself.
            options: Options of the named backend, or of sum-product if ``backend`` is None.

        Raises:
            ValueError: The backend, one of its options, a known name or the bias is invalid.
        """
        if not isfinite(name_bias):
            raise ValueError(f"`name_bias` must be a finite number, got {name_bias}")
        if min_confidence_of not in get_args(ConfidenceOf):
            raise ValueError(f"`min_confidence_of` must be 'name' or 'mention', got {min_confidence_of!r}")
        if backend is not None or options:
            backend = resolve_backend(DEFAULT_BACKEND if backend is None else backend, options)
        return cls(
            backend, links, None if names is None else Names.of(names), min_confidence, name_bias, min_confidence_of
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from the defaults as a dict of JSON values.

        Known names and the names of a collection are represented by their checksums.
        """
        values = {
            "backend": None if self.backend is None else repr(self.backend), "links": None if self.links else False,
            "names": None if self.names is None else self.names.checksum(), "min_confidence": self.min_confidence,
            "name_bias": self.name_bias or None,
            "min_confidence_of": None if self.min_confidence_of == "name" else self.min_confidence_of,
            "collection": None if self.collection is None else self.collection.checksum(),
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}
