"""What a worker process does: it loads a model once, and answers requests in JSON until nobody asks any more."""

from __future__ import annotations

import base64
import io
import json
import signal
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from herdner.corpora.formats import WRITABLE, write_documents
from herdner.ner.inference import Inference
from herdner.ner.known_names import Names
from herdner.ner.tagger import Tagger, load
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tokenize import Tokenizer

Source = str | Tagger
"""A model's name or path, or a tagger."""

# The first byte of an answer; the rest is JSON or, for a fault, a traceback for the log.
DONE, REFUSED, FAULT = b"d", b"r", b"f"


def work(connection: Connection, source: Source, names: Names | None = None) -> None:
    """Says what the model is, then answers requests until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that listens
    try:
        given = isinstance(source, Tagger)
        # A model is called by its name, or by that of its file without the folders.
        desk = Desk(source, "tagger", names) if given else Desk(load(source), Path(source).name, names)
    except (ValueError, OSError) as error:
        connection.send_bytes(REFUSED + str(error).encode())
        return
    with suppress(EOFError, OSError):  # the other end is closed
        connection.send_bytes(DONE + json.dumps(desk.about()).encode())
        while True:
            connection.send_bytes(desk.answer(connection.recv_bytes()))


class Desk:
    """A tagger with the names that its user knows, and the links of its documents with what they say."""

    def __init__(self, tagger: Tagger, name: str, names: Names | None = None) -> None:
        self.tagger, self.name, self.names = tagger, name, names
        self.tokenizer = Tokenizer(tagger.model_.tokenizer)
        self.number = {label: k for k, label in enumerate(tagger.classes_)}
        self.crf = tagger.model_.crf()
        tagger.tag("Ada lives in Kenya. Ada sings.", names=names)  # compiles and imports what the first request needs

    def about(self) -> dict[str, Any]:
        """What `GET /api/about` says of the model."""
        rules = [each.template.name for each in self.crf.link_tables]
        return {"model": self.name, "labels": list(self.tagger.labels), "rules": rules}

    def answer(self, request: bytes) -> bytes:
        """JSON of a `TagRequest` in, JSON of a `Tagged` out, or of an `ExplainRequest` and an `Explained`: behind one
        byte that says what came of it.
        """
        try:
            asked = json.loads(request)
            found = self._found(asked)
            return DONE + json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
        except MemoryError:
            return REFUSED + b"not enough memory for this text with these options; send less of it"
        except ValueError as error:  # a backend that does not fit the document, or an option that does not fit it
            return REFUSED + str(error).encode()
        except Exception:
            return FAULT + traceback.format_exc().encode(errors="backslashreplace")

    def _found(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "format" in asked:
            return self.written(**asked)
        if "texts" in asked:
            texts = asked.pop("texts")
            return {"documents": [self.tagged(text, **asked) for text in texts]}
        return self.tagged(**asked) if "backends" in asked else self.explained(**asked)

    def written(self, text: str, entities: Sequence[Mapping[str, Any]], format: str) -> dict[str, Any]:
        """A file of the text with its names, in base 64."""
        if format not in WRITABLE:
            raise ValueError(f"format {format!r}: expected one of {', '.join(WRITABLE)}")
        ordered = sorted(entities, key=lambda each: each["start"])
        for before, each in pairwise([{"end": 0}, *ordered]):
            if not before["end"] <= each["start"] < each["end"] <= len(text):
                place = f"{each['start']}..{each['end']}"
                raise ValueError(f"the name at {place} overlaps another, or is not in the text")
        found = [
            Entity(e["start"], e["end"], e["label"], text[e["start"] : e["end"]], e.get("confidence")) for e in ordered
        ]
        document = replace(self.tokenizer(text), id="text").with_entities(found)
        stream = io.BytesIO()
        write_documents([document], stream, format)
        return {"base64": base64.b64encode(stream.getvalue()).decode()}

    def inference(self, choice: Mapping[str, Any]) -> Inference:
        """Return the options of tagging of a request, with the known names of the service."""
        backend, links = choice.get("backend"), choice.get("links")
        return self.tagger.inference(backend=backend, links=links, names=self.names, **choice["options"])

    def tagged(self, text: str, backends: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """The text by each of the backends."""
        source: str | Document = text
        results: list[dict[str, Any]] = []
        for choice in backends:
            inference = self.inference(choice)
            began = perf_counter()
            # With names the text anew: they are looked for as the tokenizer cuts them.
            source = source if self.names is None else text
            source = self.tagger.tag(source, inference, seed=seed)
            seconds = perf_counter() - began
            results.append(
                {
                    "backend": choice.get("backend"), "options": choice["options"], "linked": inference.links,
                    "seconds": seconds,
                    "entities": [asdict(entity) for entity in source.entities],
                    "links": self.links(source) if inference.links else [],
                }
            )  # fmt: skip
        assert isinstance(source, Document)
        return {
            "model": self.name, "n_characters": len(text), "n_tokens": source.n_tokens,
            "n_sentences": source.n_sentences, "results": results,
        }  # fmt: skip

    def explained(
        self, text: str, start: int, end: int, backend: Mapping[str, Any], seed: int, against: str | None = None
    ) -> dict[str, Any]:
        """Why the name at these characters has its label."""
        (found,) = self.tagger.explain(
            text, self.inference(backend), offsets=(start, end), against=against, seed=seed
        ) or [None]
        if found is None:
            raise ValueError(f"{text[start:end]!r} is {against} itself, or cannot be; compare it with another label")
        return found.to_dict()

    def links(self, document: Document) -> list[dict[str, Any]]:
        """The links of a tagged document as spans of its text, each with what it adds for the tags."""
        found: list[dict[str, Any]] = []
        starts, ends = document.token_starts, document.token_ends
        links = self.crf.links(document.tokens, document.sentence_offsets)
        states = np.array([self.number[tag] for tag in document.tags or ()], np.int64)
        for each, pairs in zip(self.crf.link_tables, links, strict=True):
            values = each.table[states[pairs[:, 0]], states[pairs[:, 1]]]
            spans = np.stack([starts[pairs], ends[pairs]], axis=2).tolist()
            found += [
                {
                    "rule": each.template.name,
                    "log_potential": round(value, 4),
                    "earlier": {"start": a, "end": b},
                    "later": {"start": c, "end": d},
                }
                for ((a, b), (c, d)), value in zip(spans, values.tolist(), strict=True)
            ]
        return found
