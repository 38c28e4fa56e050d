"""Random neural networks, and their scores computed by plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import POSITION_ATTRIBUTES, TYPE_ATTRIBUTES
from herdner._ext.hashing import hash_strings
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.network import CODE_ROWS, Network

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
BOUNDARY = "word", "lower", "digits", "shape", "brief_shape"  # attributes of the places outside a sentence


def random_network(
    tags: Sequence[str], n_words: int, seed: int = 0, *, units: int = 16, dimensions: int = 8, window: int = 5,
    n_codes: int = 2, shift: int = 6, scale: float = 2.0**-12, largest: int = 128,
    places: tuple[tuple[str, int], ...] = (("casing", 4), ("run", 5), ("bias", 1)),
) -> Network:  # fmt: skip
    """Return a network with random weights, which reads shapes, suffixes and vector classes."""
    rng = np.random.default_rng(seed)
    attributes = ("brief_shape", 4), ("suffix2", 6), ("vector2048", 5), ("lower", 7)

    def int8s(*shape: int) -> NDArray[np.int8]:
        return rng.integers(-largest, largest, shape).astype(np.int8)

    return Network(
        tuple(tags), attributes, int8s(sum(1 << bits for _, bits in attributes) + CODE_ROWS * n_codes, dimensions),
        rng.integers(0, 256, (n_words, n_codes), np.uint8), places, int8s(sum(1 << bits for _, bits in places), units),
        int8s(window, units, dimensions),
        rng.integers(-300, 300, units).astype(np.int16), int8s(len(tags), units),
        rng.integers(-300, 300, len(tags)).astype(np.int32), shift, scale,
    )  # fmt: skip


def numpy_scores(
    network: Network, lexicon: Lexicon, tokens: Sequence[str], offsets: NDArray[np.int64], tags: Sequence[str]
) -> NDArray[np.float64]:
    """Return the scores of all tokens by the definition in `herdner.ner.network`, with one step for each token."""
    lists = () if lexicon.gazetteers is None else lexicon.gazetteers.names
    extractor = make_extractor(FeaturePlan(("word[0]",), gazetteers=lists), lexicon)
    attributes = extractor.origins(tokens, offsets, np.empty(0, np.int64))[3]
    known = {} if lexicon.vectors is None else {key: row for row, key in enumerate(lexicon.vectors.keys.tolist())}
    rows = [known.get(int(key) & 0xFFFFFFFF) for key in hash_strings([token.lower() for token in tokens])]
    products = [
        products_of(network, dict(zip(TYPE_ATTRIBUTES, values, strict=False)), row)
        for values, row in zip(attributes.tolist(), rows, strict=True)
    ]
    before, after = (products_of(network, dict.fromkeys(BOUNDARY, value), None) for value in (1, 2))
    names = [*POSITION_ATTRIBUTES, *(f"gazetteer:{name}" for name in lists)]
    positions = [dict(zip(names, values, strict=True)) for values in attributes[:, len(TYPE_ATTRIBUTES) :].tolist()]
    half, scores = len(network.hidden) // 2, np.zeros((len(tokens), len(tags)))
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for i in range(begin, end):
            units = network.bias.astype(np.int64)
            for w, place in enumerate(range(i - half, i + half + 1)):
                units = units + (before if place < begin else after if place >= end else products[place])[w]
            start = 0
            for name, bits in network.places:
                if value := positions[i][name]:
                    units = units + network.place_rows[start + value % (1 << bits)]
                start += 1 << bits
            outputs = network.outputs.astype(np.int64) @ np.maximum(units, 0) + network.output_bias
            index = {tag: k for k, tag in enumerate(network.tags)}
            scores[i] = [network.scale * int(outputs[index[tag]] if tag in index else outputs.max()) for tag in tags]
    return scores


def products_of(network: Network, attributes: dict[str, int], row: int | None) -> NDArray[np.int64]:
    """Return the products of a word for each place of the window and each unit."""
    vector, start = np.zeros(network.tables.shape[1], np.int64), 0
    for name, bits in network.attributes:
        if value := attributes.get(name, 0):
            hashed = (value * int(MULTIPLIER)) % 2**64 >> (64 - bits)
            vector += network.tables[start + hashed]
        start += 1 << bits
    for code in network.codes[row].tolist() if row is not None and row < len(network.codes) else ():
        vector += network.tables[start + code]
        start += CODE_ROWS
    vector = vector.clip(-127, 127)
    half = (1 << network.shift) >> 1
    return ((network.hidden.astype(np.int64) @ vector + half) >> network.shift).clip(-127, 127)
