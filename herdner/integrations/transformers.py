"""Hugging Face token classifiers, in PyTorch or ONNX Runtime, followed by herdner's consistency layer.

    from transformers import pipeline
    from herdner.integrations.transformers import ConsistentClassifier

    classifier = ConsistentClassifier.from_pipeline(pipeline("token-classification", "dslim/bert-base-NER"))
    document = classifier(text)

herdner's rules split a text into words and sentences; the model's tokenizer splits it into word pieces. A word has the
score of the first word piece that overlaps it, because such models are trained in this way (Devlin et al. 2019, section
5.3). A text longer than the model's input is divided into overlapping windows. A word in several windows takes its
score from the window whose ends are farthest from it. Finally `herdner.SkipChainLayer` decodes the whole text and links
the mentions of each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.ner.identity import with_names
from herdner.ner.layer import SkipChainLayer
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

ModelInputs = Mapping[str, NDArray[np.int64]]
"""Windows of pieces: "input_ids" and other inputs of the model, each int64[windows, pieces]."""
ModelFunction = Callable[[ModelInputs], NDArray[np.floating[Any]]]
"""Function from the inputs to logits float[windows, pieces, tags]."""

DEFAULT_LENGTH = 512  # number of pieces in a window if the tokenizer does not specify it
NO_PIECE_SCORE = -20.0  # score of all tags but O for a word without a piece, such as a single control character


class ConsistentClassifier:
    """Classifier that tags texts by a transformer model and then makes the tags consistent by a skip-chain layer.

    Args:
        tokenizer: The model's tokenizer: a fast tokenizer of ``transformers``, which returns offsets of word pieces.
        model: Function that runs the model, such as `torch_function` or `onnx_function` returns.
        tags: Tags of the columns of the logits, which ``model.config.id2label`` calls labels.
        layer: A `SkipChainLayer` with these tags; None: an untrained one.
        split: Function that splits a text into words and sentences; None: `Tokenizer`.
        max_length: Number of word pieces in a window; None: the limit of the tokenizer.
        stride: Number of word pieces by which windows overlap.
        batch_size: Number of windows that the model processes at a time.

    Raises:
        ValueError: The tokenizer is not fast, a number is out of its range, or the layer has other tags.
    """

    def __init__(
        self,
        tokenizer: Any,
        model: ModelFunction,
        tags: Sequence[str],
        *,
        layer: SkipChainLayer | None = None,
        split: Callable[[str], Document] | None = None,
        max_length: int | None = None,
        stride: int = 128,
        batch_size: int = 8,
    ) -> None:
        """Check that the tokenizer, model and layer fit together."""
        if not tokenizer.is_fast:
            raise ValueError(
                f"the tokenizer must be a fast tokenizer, which returns the offsets of word pieces, got"
                f" {type(tokenizer).__name__}; load it with use_fast=True"
            )
        model_length: int = tokenizer.model_max_length  # a very large number if it is not specified
        length = max_length or (model_length if model_length < 1_000_000 else DEFAULT_LENGTH)
        if not 0 <= stride < length - 2:
            raise ValueError(
                f"`stride` must be at least 0 and less than {length - 2}, the number of word pieces in a window, got"
                f" {stride}"
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1, got {batch_size}")
        self.tokenizer, self.model, self.tags = tokenizer, model, tuple(tags)
        self.layer = SkipChainLayer(self.tags) if layer is None else layer
        if tuple(self.layer.tags) != self.tags:
            raise ValueError(
                f"the skip-chain layer has the tags {', '.join(self.layer.tags)}, but the model has"
                f" {', '.join(tags)}; train the layer on scores of this model"
            )
        self.split = Tokenizer() if split is None else split
        self.max_length, self.stride, self.batch_size = length, stride, batch_size

    @classmethod
    def from_pipeline(cls, pipeline: Any, **options: Any) -> ConsistentClassifier:
        """Build a classifier from the model and tokenizer of a transformers pipeline.

        Args:
            pipeline: A token-classification pipeline of ``transformers``.
            options: Keyword arguments of the constructor.

        Returns:
            The classifier.

        Raises:
            ValueError: An argument is invalid.
        """
        model, tokenizer = pipeline.model, pipeline.tokenizer
        return cls(tokenizer, torch_function(model), tags_from_config(model.config.id2label), **options)

    def __call__(self, text: str) -> Document:
        """Tag one text, and return the annotated document.

        Args:
            text: The text, of any length.

        Returns:
            A document with words, tags, and entities with the confidences of the layer and with name ids.
        """
        return next(self.pipe([text]))

    def pipe(self, texts: Iterable[str]) -> Iterator[Document]:
        """Tag several texts lazily, and yield the annotated documents.

        Args:
            texts: The texts.

        Yields:
            The document of each text.
        """
        for text in texts:
            document = self.split(text)
            if not document.n_tokens:
                yield document.with_spans(())
                continue
            result = self.layer.apply(self.word_scores(document), document.tokens, document.sentence_offsets)
            yield with_names(document.with_spans(result.spans, confidences=result.confidences))

    def word_scores(self, document: Document) -> Floats:
        """Return the logits of the first word piece of each word of a document.

        Args:
            document: A document with tokens.

        Returns:
            float64[words, tags].

        Raises:
            ValueError: The model returns logits of another shape.
        """
        encoded = self.tokenizer(
            document.text, truncation=True, max_length=self.max_length, stride=self.stride, padding=True,
            return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="np",
        )  # fmt: skip
        offsets = np.asarray(encoded["offset_mapping"], np.int64)
        not_inputs = ("offset_mapping", "overflow_to_sample_mapping", "special_tokens_mask")
        inputs = {name: np.asarray(values, np.int64) for name, values in encoded.items() if name not in not_inputs}
        window, piece = first_pieces(document, offsets)
        scores = np.full((document.n_tokens, len(self.tags)), NO_PIECE_SCORE if "O" in self.tags else 0.0)
        if "O" in self.tags:
            scores[:, self.tags.index("O")] = 0.0
        for first in range(0, len(offsets), self.batch_size):
            batch = {name: values[first : first + self.batch_size] for name, values in inputs.items()}
            logits = np.asarray(self.model(batch), np.float64)
            if logits.shape[2:] != (len(self.tags),):
                raise ValueError(
                    f"the model must return logits for {len(self.tags)} tags, got logits of shape {logits.shape}"
                )
            words = np.flatnonzero((window >= first) & (window < first + len(logits)))
            scores[words] = logits[window[words] - first, piece[words]]
        return scores


def first_pieces(document: Document, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each word, the index of its first word piece, and the index of the window that contains the piece.

    The logits of this word piece are the scores of the word. If several windows contain the piece, the window is chosen
    whose ends are farthest from the piece; ends at the beginning and end of the text are ignored.

    Args:
        document: A document with tokens.
        offsets: int64[windows, pieces, 2], begin and end of each piece in the text. A piece without characters is
            ignored.

    Returns:
        int64[words], the window, and int64[words], the piece; -1 if no piece overlaps the word.
    """
    starts, ends = document.token_starts, document.token_ends
    # For each word: negative start of the piece, distance of the piece from the window's ends, window, piece.
    best = [(0, 0, -1, -1)] * len(starts)
    for w, pieces in enumerate(offsets):
        nonempty = np.flatnonzero(pieces[:, 1] > pieces[:, 0])
        firsts: list[int] = np.asarray(np.searchsorted(ends, pieces[nonempty, 0], side="right"), np.int64).tolist()
        stops: list[int] = np.asarray(np.searchsorted(starts, pieces[nonempty, 1], side="left"), np.int64).tolist()
        for k, (p, first, stop) in enumerate(zip(nonempty.tolist(), firsts, stops, strict=True)):
            before = len(document.text) if w == 0 else k
            after = len(document.text) if w == len(offsets) - 1 else len(nonempty) - 1 - k
            rank = (-int(pieces[p, 0]), min(before, after), w, p)
            for word in range(first, stop):
                if best[word][2] < 0 or rank[:2] > best[word][:2]:
                    best[word] = rank
    table = np.array(best, np.int64).reshape(-1, 4)
    return table[:, 2], table[:, 3]


def tags_from_config(id2label: Mapping[int, str]) -> list[str]:
    """Return the tags in the configuration of a model, in the order of its logits.

    Args:
        id2label: The tag of each index.

    Returns:
        The K tags.
    """
    return [id2label[k] for k in range(len(id2label))]


def torch_function(model: Any) -> ModelFunction:
    """Return a function that computes logits with a PyTorch model.

    Args:
        model: A model of ``transformers`` or Optimum. It stays on its device.

    Returns:
        The function.
    """
    torch: Any = import_module("torch")

    def run(inputs: ModelInputs) -> NDArray[np.floating[Any]]:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(values).to(model.device) for name, values in inputs.items()}
            return model(**tensors).logits.float().cpu().numpy()

    return run


def onnx_function(session: Any) -> ModelFunction:
    """Return a function that computes logits with an ONNX Runtime session.

    Args:
        session: An ``onnxruntime.InferenceSession`` whose first output is the logits. Inputs of the session that the
            tokenizer does not provide are set to 0.

    Returns:
        The function.
    """
    names: list[str] = [each.name for each in session.get_inputs()]

    def run(inputs: ModelInputs) -> NDArray[np.floating[Any]]:
        zeros = np.zeros_like(inputs["input_ids"])
        return session.run(None, {name: inputs.get(name, zeros) for name in names})[0]

    return run
