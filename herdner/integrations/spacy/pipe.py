"""What spaCy expects of a component that writes entities, for what the components of herdner find."""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import ensure_path, from_bytes, from_disk, minibatch, to_bytes, to_disk

from herdner.integrations.spacy.common import named

Self = TypeVar("Self", bound="EntityPipe")
# What both factories say of themselves.
WRITES = ["doc.ents", "token.ent_iob", "token.ent_type"]
SCORES = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}


class Saved(Protocol):
    """What a component has learned or read."""

    def save(self, path: Any, /) -> None: ...


class Part(NamedTuple):
    """Something that is saved, if there is any of it, and what reads it again."""

    saved: Callable[[], Saved | None]
    read: Callable[[Path | io.BytesIO], None]


class EntityPipe(Pipe):
    """A component that predicts entities of each ``Doc`` and writes them; errors that bad input causes name it."""

    part: ClassVar[str]  # name of what is saved
    name: str
    cfg: dict[str, Any]

    @abstractmethod
    def _predicted(self, docs: Sequence[Doc]) -> list[Any]:
        """What is found in each ``Doc``, which stays as it is."""

    @abstractmethod
    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Any]) -> None:
        """Write what ``predict`` has found."""

    @abstractmethod
    def _saved(self) -> Saved | None:
        """What `to_disk` writes, if there is anything."""

    @abstractmethod
    def _load(self, where: Path | io.BytesIO) -> None:
        """Take what `_saved` has written; ValueError where it cannot be read."""

    def _read(self, where: Path | io.BytesIO) -> None:
        with named(self.name):
            self._load(where)

    def __call__(self, doc: Doc) -> Doc:
        """Annotate one ``Doc`` in place."""
        for done in self.pipe([doc]):
            return done
        return doc  # an error handler has dealt with it

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate each ``Doc`` of a stream in place. An error costs the ``Doc`` that it is in, not its batch."""
        handle = self.get_error_handler()
        for docs in minibatch(stream, batch_size):
            try:
                predictions = self.predict(docs)
            except Exception:  # in one of them; below each is tried alone
                predictions = None
            for i, doc in enumerate(docs):
                try:
                    self.set_annotations([doc], self.predict([doc]) if predictions is None else [predictions[i]])
                except Exception as error:
                    handle(self.name, self, [doc], error)
                else:
                    yield doc

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """The entities of each ``Doc``, which stays as it is."""
        with named(self.name):
            return self._predicted(list(docs))

    @property
    def spans_key(self) -> str | None:
        """The group of ``doc.spans`` in the config."""
        return self.cfg["spans_key"]

    def _parts(self) -> dict[str, Part]:
        """What is saved, by name."""
        return {self.part: Part(self._saved, self._read)}

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """What was learned or read, if anything; options are the config's."""

        def written(saved: Saved) -> bytes:
            saved.save(stream := io.BytesIO())
            return stream.getvalue()

        parts = {name: part.saved() for name, part in self._parts().items()}
        writers = {name: partial(written, saved) for name, saved in parts.items() if saved is not None}
        return to_bytes(writers, list(exclude))

    def from_bytes(self: Self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take what `to_bytes` has written."""

        def given(read: Callable[[io.BytesIO], None], content: bytes) -> None:
            read(io.BytesIO(content))

        from_bytes(data, {name: partial(given, part.read) for name, part in self._parts().items()}, list(exclude))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with what was learned or read, if anything."""
        parts = {name: part.saved() for name, part in self._parts().items()}
        to_disk(path, {name: saved.save for name, saved in parts.items() if saved is not None}, list(exclude))

    def from_disk(self: Self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Take what `to_disk` has written."""
        folder = ensure_path(path)
        readers: dict[str, Callable[[Path], None]] = {
            name: part.read for name, part in self._parts().items() if (folder / name).exists()
        }
        from_disk(path, readers, list(exclude))
        return self
