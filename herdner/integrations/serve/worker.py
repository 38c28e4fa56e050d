"""Worker processes, which load a model once and then answer requests in JSON."""

from __future__ import annotations

import base64
import io
import json
import signal
import traceback
import warnings
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
from herdner.ner.language import LanguageWarning
from herdner.ner.tagger import Tagger, load
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FileId
from herdner.text.tokenize import Tokenizer

ModelSource = str | Tagger
"""Name or path of a model, or a tagger."""

# First byte of an answer. The rest is JSON, a message for the client, or a traceback for the log.
DONE, REFUSED, FAULT = b"d", b"r", b"f"


def run_worker(connection: Connection, source: ModelSource, names: Names | None = None) -> None:
    """Run a worker process: load the model, send its description, and answer requests until the connection is closed.

    Args:
        connection: Pipe for requests and answers.
        source: The model.
        names: Known names.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server's process, which ends the workers
    warnings.simplefilter("ignore", LanguageWarning)  # responses contain them
    try:
        if isinstance(source, Tagger):
            handler = RequestHandler(source, "tagger", names)
        else:
            handler = RequestHandler(load(source), Path(source).name, names)
    except (ValueError, OSError) as error:
        connection.send_bytes(REFUSED + str(error).encode())
        return
    with suppress(EOFError, OSError):  # the other end is closed
        connection.send_bytes(DONE + json.dumps(handler.about()).encode())
        while True:
            connection.send_bytes(handler.answer(connection.recv_bytes()))


class RequestHandler:
    """Handler that answers the requests of the service with one tagger.

    Args:
        tagger: The tagger.
        name: Name of the model.
        names: Known names.
    """

    def __init__(self, tagger: Tagger, name: str, names: Names | None = None) -> None:
        """Prepare the tagger: compile the model and tag a short text."""
        self.tagger, self.name, self.names = tagger, name, names
        self.tokenizer = Tokenizer(tagger.model_.tokenizer)
        self.state_of = {tag: state for state, tag in enumerate(tagger.classes_)}
        self.crf = tagger.model_.crf()
        tagger.tag("Ada lives in Kenya. Ada sings.", names=names)  # triggers all lazy initialisation

    def about(self) -> dict[str, Any]:
        """Return a description of the model (name, labels and link rules) for ``GET /api/about``."""
        rules = [each.template.name for each in self.crf.link_tables]
        return {"model": self.name, "labels": list(self.tagger.labels), "rules": rules}

    def answer(self, request: bytes) -> bytes:
        """Answer a request of the service.

        Args:
            request: JSON of a `TagRequest`, `ExplainRequest` or `FileRequest`.

        Returns:
            `DONE` and the JSON of the response, `REFUSED` and a message, or `FAULT` and a traceback.
        """
        try:
            response = self._respond(json.loads(request))
            return DONE + json.dumps(response, allow_nan=False, ensure_ascii=False).encode()
        except MemoryError:
            return REFUSED + b"not enough memory for this text with these options; send a shorter text"
        except ValueError as error:
            return REFUSED + str(error).encode()
        except Exception:
            return FAULT + traceback.format_exc().encode(errors="backslashreplace")

    def _respond(self, request: dict[str, Any]) -> dict[str, Any]:
        if "format" in request:
            return self.write_file(**request)
        if "texts" in request:
            texts = request.pop("texts")
            return {"documents": [self.tag(text, **request) for text in texts]}
        return self.tag(**request) if "backends" in request else self.explain(**request)

    def write_file(self, text: str, entities: Sequence[Mapping[str, Any]], format: str) -> dict[str, Any]:
        """Return a dict with the bytes, in base 64, of a file that contains a text and its entities.

        Args:
            text: The text.
            entities: Mappings with the keys "start", "end", "label" and optionally "confidence" and "name_id".
            format: Format of the file.

        Raises:
            ValueError: The format is unknown, or entities overlap or exceed the text.
        """
        if format not in WRITABLE:
            raise ValueError(f"format must be one of {', '.join(WRITABLE)}, got {format!r}")
        ordered = sorted(entities, key=lambda each: each["start"])
        for before, each in pairwise([{"end": 0}, *ordered]):
            if not before["end"] <= each["start"] < each["end"] <= len(text):
                place = f"{each['start']}..{each['end']}"
                raise ValueError(
                    f"the entity at {place} is empty, overlaps another entity, or is not inside the text, which has"
                    f" {len(text)} characters"
                )
        values = [
            Entity(e["start"], e["end"], e["label"], text[e["start"] : e["end"]], e.get("confidence"), e.get("name_id"))
            for e in ordered
        ]
        stream = io.BytesIO()
        computed_parts = frozenset({"tokens", "confidence", "names"})
        document = self.tokenizer(text).with_entities(values)
        write_documents([replace(document, id=FileId("text"), computed_parts=computed_parts)], stream, format)
        return {"base64": base64.b64encode(stream.getvalue()).decode()}

    def tag(self, text: str, backends: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """Tag a text with each backend, and return a `TagResponse` as a dict.

        Args:
            text: The text.
            backends: JSON of each `BackendChoice`.
            seed: Seed of the random numbers.
        """
        source: str | Document = text
        results: list[dict[str, Any]] = []
        for choice in backends:
            inference = self._inference(choice)
            start = perf_counter()
            # The tokens of the last result are reused, except with known names, which may change the tokens.
            source = self.tagger.tag(source if self.names is None else text, inference, seed=seed)
            seconds = perf_counter() - start
            results.append(
                {
                    "backend": choice.get("backend"), "options": choice["options"], "linked": inference.links,
                    "seconds": seconds, "entities": [asdict(entity) for entity in source.entities],
                    "links": self.links(source) if inference.links else [],
                }
            )  # fmt: skip
        assert isinstance(source, Document)
        check = self.tagger.language_check
        other = check(source)
        return {
            "model": self.name, "n_characters": len(text), "n_tokens": source.n_tokens,
            "n_sentences": source.n_sentences, "results": results,
            "warnings": [check.message(other)] if other else [],
        }  # fmt: skip

    def explain(
        self, text: str, start: int, end: int, backend: Mapping[str, Any], seed: int, against: str | None = None
    ) -> dict[str, Any]:
        """Explain the label of the entity at ``text[start:end]``, and return an `ExplainResponse` as a dict.

        Args:
            text: The text.
            start: Offset of the entity's first character.
            end: Offset behind its last character.
            backend: JSON of a `BackendChoice`.
            seed: Seed of the random numbers.
            against: Label to compare with.

        Raises:
            ValueError: There is no such entity, or it cannot be compared with this label.
        """
        inference = self._inference(backend)
        explanations = self.tagger.explain(text, inference, offsets=(start, end), against=against, seed=seed)
        if not explanations:
            raise ValueError(
                f"{text[start:end]!r} already has the label {against}, or the model lacks the tags to give it the label"
                f" {against}; set `against` to another label"
            )
        return explanations[0].to_dict()

    def _inference(self, choice: Mapping[str, Any]) -> Inference:
        return self.tagger.inference(
            backend=choice.get("backend"), links=choice.get("links"), names=self.names, **choice["options"]
        )

    def links(self, document: Document) -> list[dict[str, Any]]:
        """Return a `TaggedLink`, as a dict, for each link of a tagged document.

        Args:
            document: The document.
        """
        links: list[dict[str, Any]] = []
        starts, ends = document.token_starts, document.token_ends
        states = np.array([self.state_of[tag] for tag in document.tags or ()], np.int64)
        pairs_of_rules = self.crf.links(document.tokens, document.sentence_offsets)
        for table, pairs in zip(self.crf.link_tables, pairs_of_rules, strict=True):
            values = table.table[states[pairs[:, 0]], states[pairs[:, 1]]]
            spans = np.stack([starts[pairs], ends[pairs]], axis=2).tolist()
            links += [
                {
                    "rule": table.template.name, "log_potential": round(value, 4),
                    "earlier": {"start": a, "end": b}, "later": {"start": c, "end": d},
                }
                for ((a, b), (c, d)), value in zip(spans, values.tolist(), strict=True)
            ]  # fmt: skip
        return links
