"""The consistency layer behind a token classifier of Hugging Face, by PyTorch or ONNX Runtime.

    from transformers import pipeline
    from herdner.integrations.transformers import ConsistentClassifier

    classifier = ConsistentClassifier.from_pipeline(pipeline("token-classification", "dslim/bert-base-NER"))
    document = classifier(text)

A text is split into words and sentences by herdner's rules and into pieces by the model's own tokenizer. A word is
scored by the first piece that touches it, as such models are trained (Devlin et al. 2019, section 5.3). A text longer
than the model reads goes through it in windows that overlap; a word takes its scores from the window in which it stands
farthest from a cut. Then `herdner.SkipChainLayer` decodes the whole text, with the mentions of a name linked across it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.ner.layer import SkipChainLayer
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

Encoded = Mapping[str, NDArray[np.int64]]
Score = Callable[[Encoded], NDArray[np.floating[Any]]]
"""Windows of pieces, "input_ids" and the like, each int64[windows, pieces], to logits [windows, pieces, labels]."""

USUAL_LENGTH = 512  # pieces that a model reads, where its tokenizer does not say
NOT_A_NAME = -20.0  # log-potential of every label but O for a word without a piece, such as a lone control character


class PieceTokenizer(Protocol):
    """A fast tokenizer of ``transformers``: a text in, windows of pieces with their places in the text out."""

    @property
    def is_fast(self) -> bool: ...

    @property
    def model_max_length(self) -> int: ...

    def __call__(self, text: str, /, **options: Any) -> Mapping[str, Any]: ...


class ConsistentClassifier:
    """Texts to documents with consistent names, by anybody's token classifier.

    Args:
        tokenizer: The model's own, a fast one.
        score: What runs the model (`by_torch`, `by_onnx`, or your own).
        labels: Of the columns of its logits, as in ``model.config.id2label``.
        layer: A `SkipChainLayer` for these labels, such as one that has learned; None: one that works untrained.
        split: Text to words and sentences.
        max_length: Pieces in a window; None: what the tokenizer says.
        stride: Pieces by which windows overlap.
        batch_size: Windows that go through the model at a time.
    """

    def __init__(
        self,
        tokenizer: PieceTokenizer,
        score: Score,
        labels: Sequence[str],
        *,
        layer: SkipChainLayer | None = None,
        split: Callable[[str], Document] | None = None,
        max_length: int | None = None,
        stride: int = 128,
        batch_size: int = 8,
    ) -> None:
        if not tokenizer.is_fast:
            raise ValueError("the tokenizer must be a fast one, which knows where its pieces stand: use_fast=True")
        said = tokenizer.model_max_length
        length = max_length or (said if said < 1_000_000 else USUAL_LENGTH)
        if not 0 <= stride < length - 2 or batch_size < 1:
            raise ValueError(
                f"stride must be less than {length - 2}, the pieces in a window, and batch_size at least 1"
            )
        self.tokenizer, self.score, self.labels = tokenizer, score, tuple(labels)
        self.layer = SkipChainLayer(self.labels) if layer is None else layer
        if tuple(self.layer.labels) != self.labels:
            raise ValueError(f"the layer has the labels {', '.join(self.layer.labels)}; the model {', '.join(labels)}")
        self.split = Tokenizer() if split is None else split
        self.max_length, self.stride, self.batch_size = length, stride, batch_size

    @classmethod
    def from_pipeline(cls, pipeline: Any, **options: Any) -> ConsistentClassifier:
        """With the model and tokenizer of a token-classification pipeline of ``transformers``."""
        model, tokenizer = pipeline.model, pipeline.tokenizer
        return cls(tokenizer, by_torch(model), labels_of(model.config.id2label), **options)

    def __call__(self, text: str) -> Document:
        """The text with its words, tags and entities, each as sure as the layer is of it."""
        return next(self.pipe([text]))

    def pipe(self, texts: Iterable[str]) -> Iterator[Document]:
        """``__call__`` of each text, in their order."""
        for text in texts:
            document = self.split(text)
            if not document.n_tokens:
                yield document.with_spans(())
                continue
            found = self.layer.apply(self.word_scores(document), document.tokens, document.sentence_offsets)
            yield document.with_spans(found.spans, confidences=found.confidences)

    def word_scores(self, document: Document) -> Floats:
        """float64[words, labels]: the logits of each word's first piece."""
        encoded = self.tokenizer(
            document.text, truncation=True, max_length=self.max_length, stride=self.stride, padding=True,
            return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="np",
        )  # fmt: skip
        offsets = np.asarray(encoded["offset_mapping"], np.int64)
        left = ("offset_mapping", "overflow_to_sample_mapping", "special_tokens_mask")
        inputs = {name: np.asarray(values, np.int64) for name, values in encoded.items() if name not in left}
        window, piece = first_pieces(document, offsets)
        scores = np.full((document.n_tokens, len(self.labels)), NOT_A_NAME if "O" in self.labels else 0.0)
        if "O" in self.labels:
            scores[:, self.labels.index("O")] = 0.0
        for first in range(0, len(offsets), self.batch_size):
            batch = {name: values[first : first + self.batch_size] for name, values in inputs.items()}
            logits = np.asarray(self.score(batch), np.float64)
            if logits.shape[2:] != (len(self.labels),):
                raise ValueError(f"the model gives logits of shape {logits.shape} for {len(self.labels)} labels")
            words = np.flatnonzero((window >= first) & (window < first + len(logits)))
            scores[words] = logits[window[words] - first, piece[words]]
        return scores


def first_pieces(document: Document, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each word of the document the window and the piece that score it, int64[words] each; -1: none touches it.

    ``offsets`` [windows, pieces, 2]: where each piece stands in the text; one of no characters stands for none. Of
    several windows that hold the first piece of a word, it is that in which the piece is farthest from a cut.
    """
    starts, ends = document.token_starts, document.token_ends
    best = [(0, 0, -1, -1)] * len(starts)  # how early the piece begins, its distance from a cut; window, piece
    for w, places in enumerate(offsets):
        real = np.flatnonzero(places[:, 1] > places[:, 0])
        firsts: list[int] = np.asarray(np.searchsorted(ends, places[real, 0], side="right"), np.int64).tolist()
        stops: list[int] = np.asarray(np.searchsorted(starts, places[real, 1], side="left"), np.int64).tolist()
        for k, (p, first, stop) in enumerate(zip(real.tolist(), firsts, stops, strict=True)):
            before = len(document.text) if w == 0 else k
            after = len(document.text) if w == len(offsets) - 1 else len(real) - 1 - k
            rank = (-int(places[p, 0]), min(before, after), w, p)
            for word in range(first, stop):
                if best[word][2] < 0 or rank[:2] > best[word][:2]:
                    best[word] = rank
    chosen = np.array(best, np.int64).reshape(-1, 4)
    return chosen[:, 2], chosen[:, 3]


def labels_of(id2label: Mapping[int, str]) -> list[str]:
    """The labels of a model's configuration in the order of its logits."""
    return [id2label[k] for k in range(len(id2label))]


def by_torch(model: Any) -> Score:
    """A model of ``transformers`` (or Optimum) run by PyTorch, on the device where it is."""
    torch: Any = import_module("torch")

    def score(inputs: Encoded) -> NDArray[np.floating[Any]]:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(values).to(model.device) for name, values in inputs.items()}
            return model(**tensors).logits.float().cpu().numpy()

    return score


def by_onnx(session: Any) -> Score:
    """A session of ONNX Runtime (``onnxruntime.InferenceSession``) whose first output is the logits."""
    wanted: list[str] = [each.name for each in session.get_inputs()]

    def score(inputs: Encoded) -> NDArray[np.floating[Any]]:
        nothing = np.zeros_like(inputs["input_ids"])
        return session.run(None, {name: inputs.get(name, nothing) for name in wanted})[0]

    return score
