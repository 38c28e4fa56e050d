"""Base class and configuration of herdner's spaCy components."""

# spaCy is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast, get_type_hints
from weakref import WeakSet

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import (
    ensure_path,
    from_bytes,
    from_disk,
    get_minor_version_range,
    minibatch,
    split_requirement,
    to_bytes,
    to_disk,
)
from spacy.vocab import Vocab

from herdner import __version__
from herdner.inference import Backend, make_backend
from herdner.ner.known_names import Names
from herdner.ner.known_names.known import NamesLike

if TYPE_CHECKING:
    from typing_extensions import Self

Component = TypeVar("Component", bound="type[EntityPipe]")
ConfiguredNames = str | list[dict[str, Any] | list[Any]] | dict[str, Any]
# Arguments of `Language.factory` that both components share.
ASSIGNS = ["doc.ents", "token.ent_iob", "token.ent_type"]
SCORE_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
SCORER = {"@scorers": "spacy.ner_scorer.v1"}


# Pipelines that are being loaded: the models of their components follow, in calls of `from_disk` or `from_bytes`.
_loading: WeakSet[Language] = WeakSet()
# Pipelines that are not being loaded, because `add_requirement` has changed their requirements or they are complete.
_complete: WeakSet[Language] = WeakSet()


class ComponentError(ValueError):
    """Error in the configuration or input of a component.

    The message is one line and begins with the component's name.
    """


@contextmanager
def errors_name(component: str) -> Generator[None]:
    """Convert each `ValueError` in the ``with`` block to a `ComponentError` that begins with the component's name.

    Args:
        component: Name of the component.

    Raises:
        ComponentError: The body of the ``with`` statement raises a `ValueError`.
    """
    try:
        yield
    except ComponentError:
        raise
    except ValueError as error:
        raise ComponentError(f"{component}: {error}") from None


class Savable(Protocol):
    """Protocol for a value that can write itself to a path or stream."""

    def save(self, path: Any, /) -> None:
        """Write this object to a path or stream.

        Args:
            path: Path or binary stream.
        """
        ...


class SavedPart(NamedTuple):
    """Part of a component that is saved with it: a function that returns its value, and one that reads it.

    Attributes:
        value: Function that returns the value, or None if there is nothing to save.
        read: Function that reads the value from a file or stream; it raises `ValueError` if the content is invalid.
    """

    value: Callable[[], Savable | None]
    read: Callable[[Path | io.BytesIO], None]


class EntityPipe(Pipe):
    """Base class of spaCy components that predict entities.

    Attributes:
        name: Name of the component in its pipeline.
        cfg: Settings that spaCy's scorers read.
        vocab: Vocabulary of the pipeline.
    """

    name: str
    vocab: Vocab
    cfg: dict[str, Any]

    @abstractmethod
    def _predict(self, docs: Sequence[Doc]) -> list[Any]:
        """Return the predicted entities of each ``Doc``.

        The ``Doc`` objects are not changed.
        """

    @abstractmethod
    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Any]) -> None:
        """Write the predicted entities into each ``Doc``.

        Args:
            docs: The ``Doc`` of each prediction.
            predictions: Result of ``predict``.
        """

    @abstractmethod
    def _saved_parts(self) -> dict[str, SavedPart]:
        """Return the values that are saved with the component, as a dict from file name to value."""

    def __call__(self, doc: Doc) -> Doc:
        """Write predicted entities into one ``Doc``, in place.

        Args:
            doc: The ``Doc``.

        Returns:
            The same ``Doc``.
        """
        for annotated in self.pipe([doc]):
            return annotated
        return doc  # the pipeline's error handler did not raise

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Write predicted entities into each ``Doc`` of a stream, in place, and yield each ``Doc``.

        Args:
            stream: The ``Doc`` objects.
            batch_size: Number of ``Doc`` objects that are predicted together. Results do not depend on it.

        Yields:
            Each ``Doc``. If the processing of a ``Doc`` fails and the pipeline's error handler accepts the error, this
            ``Doc`` is omitted.
        """
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, batch_size):
            try:
                predictions = self.predict(docs)
            except Exception:  # one ``Doc`` is invalid; predict each separately, so that the others are annotated
                predictions = None
            for i, doc in enumerate(docs):
                try:
                    self.set_annotations([doc], self.predict([doc]) if predictions is None else [predictions[i]])
                except Exception as error:
                    handle_error(self.name, self, [doc], error)
                else:
                    yield doc

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """Predict entities without changing the ``Doc`` objects.

        Args:
            docs: The ``Doc`` objects.

        Returns:
            One prediction for each ``Doc``, for `set_annotations`.

        Raises:
            ComponentError: A ``Doc`` or the configuration is invalid.
        """
        with errors_name(self.name):
            return self._predict(list(docs))

    @property
    def spans_key(self) -> str | None:
        """Name of the component's span group in ``doc.spans``; None if the component uses no span group."""
        return self.cfg["spans_key"]

    def _values(self) -> dict[str, Savable]:
        values = {name: part.value() for name, part in self._saved_parts().items()}
        return {name: value for name, value in values.items() if value is not None}

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the saved parts of the component, such as its model; the configuration is not included.

        Args:
            exclude: Names of parts to leave out.

        Returns:
            The bytes for `from_bytes`.
        """

        def content(value: Savable) -> bytes:
            value.save(stream := io.BytesIO())
            return stream.getvalue()

        return to_bytes({name: partial(content, value) for name, value in self._values().items()}, list(exclude))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Restore the saved parts of the component, such as its model, from the bytes that `to_bytes` returns.

        Args:
            data: The bytes.
            exclude: Names of parts to leave out.

        Returns:
            The component itself.

        Raises:
            ComponentError: The bytes are invalid.
        """

        def reader(part: SavedPart) -> Callable[[bytes], None]:
            return lambda content: part.read(io.BytesIO(content))

        with errors_name(self.name):
            from_bytes(data, {name: reader(part) for name, part in self._saved_parts().items()}, list(exclude))
        self._finish_loading()
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the saved parts of the component, such as its model, into a folder.

        Args:
            path: The folder.
            exclude: Names of parts to leave out.
        """
        to_disk(path, {name: value.save for name, value in self._values().items()}, list(exclude))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Restore the saved parts of the component, such as its model, from the folder that `to_disk` writes.

        Args:
            path: The folder.
            exclude: Names of parts to leave out.

        Returns:
            The component itself.

        Raises:
            ComponentError: A file is invalid.
        """
        folder = ensure_path(path)
        readers: dict[str, Callable[[Path], None]] = {
            name: part.read for name, part in self._saved_parts().items() if (folder / name).exists()
        }
        with errors_name(self.name):
            from_disk(path, readers, list(exclude))
        self._finish_loading()
        return self

    def _finish_loading(self) -> None:
        """Record that the pipeline is complete: a component that is added later needs its own files."""
        _complete.update(nlp for nlp in _loading if nlp.vocab is self.vocab)


def factory(name: str, **options: Any) -> Callable[[Component], Component]:
    """Return a decorator that registers a component class as a spaCy factory.

    Args:
        name: Name of the factory, as in ``nlp.add_pipe(name)``.
        options: Further arguments of ``Language.factory``.

    Returns:
        The decorator.
    """

    def decorate(component: Component) -> Component:
        # spaCy validates configurations by these annotations, and older releases do not resolve strings.
        component.__init__.__annotations__ = get_type_hints(component.__init__)
        register = Language.factory(name, assigns=ASSIGNS, default_score_weights=SCORE_WEIGHTS, **options)
        return cast("Component", register(component))

    return decorate


def add_requirement(nlp: Language) -> bool:
    """Add herdner to the pipeline's requirements, which ``spacy package`` writes into the package that it builds.

    ``spacy package`` itself detects only libraries that were built by setuptools.

    Args:
        nlp: The pipeline.

    Returns:
        True if the pipeline is being loaded: its requirements contained herdner before the first call, and no component
        has read its saved parts yet. A saved pipeline contains the models of its components.
    """
    requirements = list(nlp.meta.get("requirements") or [])
    is_present = any(split_requirement(each)[0] == "herdner" for each in requirements)
    if not is_present:
        nlp.meta["requirements"] = [*requirements, f"herdner{get_minor_version_range(__version__)}"]
        _complete.add(nlp)
    elif nlp not in _complete:
        _loading.add(nlp)
    return nlp not in _complete


def configured_backend(backend: str | Mapping[str, Any] | None) -> Backend | None:
    """Return the inference backend that a component's configuration describes.

    Args:
        backend: Its name, or a mapping with the key "name" and its options.

    Returns:
        The backend; None if the configuration has no backend.

    Raises:
        ValueError: The name or an option is unknown, or there is no name.
    """
    if backend is None or isinstance(backend, str):
        return None if backend is None else make_backend(backend)
    options = dict(backend)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(
            'the option "backend" needs a name, as in {"name": "herded-gibbs", "n_sweeps": 400}; got'
            f" {dict(backend)!r:.80}"
        )
    return make_backend(name, **options)


def configured_names(
    names: ConfiguredNames | None, stored_names: Path | io.BytesIO | None = None, *, missing_ok: bool = False
) -> Names | None:
    """Return the known names that a component's configuration describes.

    Args:
        names: A file, a list of spaCy's patterns or of ``[name, label]``, or a mapping with the key "file" or
            "patterns" and options.
        stored_names: File or stream of a saved pipeline from which to read the names. The options are taken from
            ``names``.
        missing_ok: Return None for a file that does not exist; a saved pipeline may contain the names.

    Returns:
        The names; None if the configuration has no names.

    Raises:
        ValueError: The names or options are invalid.
    """
    options = dict(names) if isinstance(names, dict) else {}
    sources = [options.pop(key) for key in ("file", "patterns") if key in options] if options else [names]
    if unknown := sorted(set(options) - {"strength", "hard", "fold_case"}):
        raise ValueError(
            f'the option "names" has no key {unknown[0]!r}; its keys are file, patterns, strength, hard, fold_case'
        )
    if stored_names is not None:
        return Names.read(stored_names, **options)
    if len(sources) != 1:
        raise ValueError(
            'the option "names" needs either the key "file" or the key "patterns", but has'
            f" {'both' if sources else 'neither'}"
        )
    (source,) = sources
    # os.path.exists returns False for strings that cannot be paths, such as a name of 1000 characters.
    if source is None or (missing_ok and isinstance(source, str) and not os.path.exists(source)):  # noqa: PTH110
        return None
    return Names.of(cast("NamesLike", source), **options)
