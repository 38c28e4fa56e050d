"""What spaCy expects of a component that writes entities, for what the components of herdner find."""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import ensure_path, from_bytes, from_disk, minibatch, to_bytes, to_disk

from herdner.spacy_component.common import named

Self = TypeVar("Self", bound="EntityPipe")
# What both factories say of themselves.
WRITES = ["doc.ents", "token.ent_iob", "token.ent_type"]
SCORES = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}


class Saved(Protocol):
    """What a component has learned or read."""

    def save(self, path: Any, /) -> None: ...


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
        """Write what `predict` has found."""

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

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """What was learned or read, if anything; options are the config's."""
        saved, stream = self._saved(), io.BytesIO()
        if saved is not None:
            saved.save(stream)
        return to_bytes({} if saved is None else {self.part: stream.getvalue}, list(exclude))

    def from_bytes(self: Self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take what `to_bytes` has written."""
        from_bytes(data, {self.part: lambda content: self._read(io.BytesIO(content))}, list(exclude))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with what was learned or read, if anything."""
        saved = self._saved()
        to_disk(path, {} if saved is None else {self.part: saved.save}, list(exclude))

    def from_disk(self: Self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Take what `to_disk` has written."""
        readers: dict[str, Callable[[Path], None]] = {self.part: self._read}
        from_disk(path, readers if (ensure_path(path) / self.part).exists() else {}, list(exclude))
        return self
