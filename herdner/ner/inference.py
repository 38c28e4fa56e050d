"""Options of tagging that do not depend on the model, collected in one object."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, get_args

from herdner.base.messages import suggestion
from herdner.inference import Backend
from herdner.inference.registry import UnknownOption, resolve_backend
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
        links: Link the mentions of one name. False omits all links and tags with the linear chain only.
        names: Known names. Each name adds to the score of its label, or fixes the label.
        min_confidence: Lowest confidence of names that are kept. None keeps all names.
        min_confidence_of: "name" removes a name with all its mentions if the mean confidence of the mentions is below
            ``min_confidence``; "mention" removes each mention whose own confidence is below it.
        name_bias: Number that is added to the log-odds that a token is part of a name. With positive values, the tagger
            finds more names, and a smaller share of them is correct. Confidences are computed after this addition.
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
        """Build the inference options from the name and the options of a backend, and from known names.

        Known names may have any form that `Names.of` accepts.

        Args:
            backend: Name of a backend (`herdner.BACKENDS`), a `Backend`, or None for the default.
            links: Link the mentions of one name.
            names: Known names, or None.
            min_confidence: Lowest confidence of a name that is kept, between 0 and 1, or None.
            name_bias: Number that is added to the log-odds that a token is part of a name.
            min_confidence_of: "name" keeps or removes a name with all its mentions; "mention" decides for each mention.
            options: Options of the named backend, or of sum-product if ``backend`` is None.

        Returns:
            The inference options.

        Raises:
            ValueError: The backend, one of its options, a known name, the bias or the confidence is invalid.
        """
        if not isfinite(name_bias):
            raise ValueError(f"`name_bias` must be a finite number, got {name_bias}")
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise ValueError(f"`min_confidence` must be between 0 and 1, or None, got {min_confidence!r}")
        if min_confidence_of not in get_args(ConfidenceOf):
            raise ValueError(f"`min_confidence_of` must be 'name' or 'mention', got {min_confidence_of!r}")
        if backend is not None or options:
            try:
                backend = resolve_backend(DEFAULT_BACKEND if backend is None else backend, options)
            except UnknownOption as error:
                if error.option in _PIPE_OPTIONS:
                    raise ValueError(f"{error.option!r} is an option of `pipe`, not of a single text") from None
                if hint := suggestion(error.option, [*_OPTIONS, *_PIPE_OPTIONS]):
                    raise ValueError(f"tagging has no option {error.option!r}; {hint[:-1]}") from None
                if backend is None and not error.hint:
                    raise ValueError(
                        f"tagging has no option {error.option!r}; it has {', '.join([*_OPTIONS, *_PIPE_OPTIONS])}, and"
                        " the options of the backend"
                    ) from None
                raise
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


_OPTIONS = [field.name for field in fields(Inference) if field.name != "collection"]
_PIPE_OPTIONS = ["n_jobs", "batch_size"]
