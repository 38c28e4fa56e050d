"""A small neural network over a window of words, whose scores are added to the log-potentials of tags.

The features of a chain know a word only by word classes and by weights learned from annotated text. The network also
reads the vector of a word, compressed by product quantisation (Jégou, Douze and Schmid 2011), and combines the words of
its window in hidden units. Its scores are the logarithms of the probabilities of tags, times a scale, except for a
constant of each token that does not change any probability. The model is thus a product of experts (Hinton 2002).

All numbers are integers, so scores are equal on all machines. Each attribute and code of a word selects a row of a
table: an attribute with hash h selects the row ``h * 0x9E3779B97F4A7C15 >> (64 - bits)``, modulo 2^64. An attribute of
the token's position with value v selects the row ``v & (2^bits - 1)``.

    vector(w)  = limit(sum of the rows, -127, 127)
    product    = limit((hidden[i] @ vector(w at offset i) + 2^(shift - 1)) >> shift, -127, 127)
    unit       = max(bias + sum of the products over the window + sum of the rows of the position, 0)
    score      = scale * (outputs @ unit + output_bias)

scripts/models/train_network.py trains a network. The loops are in cython_ext/network.pyx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import POSITION_ATTRIBUTES, TYPE_ATTRIBUTES
from herdner._ext.network import CompiledNetwork
from herdner.base.arrays import Int32s

_GAZETTEER = "gazetteer:"
CODE_ROWS = 256  # rows of the table of a code
LARGEST_SCALE = 1.0  # times the largest 32-bit score, far below the limit of log-potentials
ARRAYS = {  # type and number of axes of each array in a model file
    "network_tables": ("|i1", 2), "network_codes": ("|u1", 2), "network_place_rows": ("|i1", 2),
    "network_hidden": ("|i1", 3),
    "network_bias": ("<i2", 1), "network_outputs": ("|i1", 2), "network_output_bias": ("<i4", 1),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Network:
    """Parameters of a network with R table rows, D dimensions, a window of W words, U hidden units and K tags.

    Attributes:
        tags: The K tags.
        attributes: Names of the attributes of words, and the log2 of the number of rows of each table.
        tables: int8[R, D], the tables of all attributes, then the tables of all codes (256 rows each).
        codes: uint8[n, G], codes of the vectors of the words that have vector classes, in the order of the lexicon.
        places: Names of the attributes of positions, and the log2 of the number of rows of each table.
        place_rows: int8[P, U], the tables of all attributes of positions.
        hidden: int8[W, U, D], a matrix for each word of the window, the leftmost word first.
        bias: int16[U].
        outputs: int8[K, U].
        output_bias: int32[K].
        shift: Number of bits by which products are shifted to the right.
        scale: Factor of the scores.

    Raises:
        ValueError: The arrays contradict each other, or a number is out of range.
    """

    tags: tuple[str, ...]
    attributes: tuple[tuple[str, int], ...]
    tables: NDArray[np.int8]
    codes: NDArray[np.uint8]
    places: tuple[tuple[str, int], ...]
    place_rows: NDArray[np.int8]
    hidden: NDArray[np.int8]
    bias: NDArray[np.int16]
    outputs: NDArray[np.int8]
    output_bias: Int32s
    shift: int
    scale: float

    def __post_init__(self) -> None:
        """Raise `ValueError` if the arrays contradict each other or a number is out of range."""
        if len(set(self.tags)) != len(self.tags) or len(self.tags) != len(self.output_bias):
            raise ValueError(
                "the tags of a network must be distinct, and each tag must have one output, got"
                f" {len(self.tags)} tags ({len(set(self.tags))} distinct) and {len(self.output_bias)} outputs"
            )
        if not 0 <= self.scale <= LARGEST_SCALE:
            raise ValueError(f"the scale of a network must be from 0 to {LARGEST_SCALE:g}, got {self.scale}")
        self.compile(self.tags, [name.removeprefix(_GAZETTEER) for name, _ in self.places])

    def __repr__(self) -> str:
        """Return a summary of the network without its arrays."""
        return f"Network({self.hidden.shape[1]} units, {len(self.codes)} words)"

    def compile(self, tags: Sequence[str], gazetteers: Sequence[str] = ()) -> CompiledNetwork:
        """Compile the network for a model, so that it computes a score for each tag of the model.

        A tag that the network does not know gets the largest score of all tags at each token. So the network never
        prefers another tag to a new one, and the features decide.

        Args:
            tags: Tags of the model.
            gazetteers: Names of the gazetteers of the model.

        Returns:
            The compiled network.

        Raises:
            ValueError: The arrays contradict each other, or a number is out of range.
        """
        positions = (*POSITION_ATTRIBUTES, *(_GAZETTEER + name for name in gazetteers))
        index = {tag: k for k, tag in enumerate(self.tags)}
        return CompiledNetwork(
            _pairs(self.attributes, TYPE_ATTRIBUTES), self.tables, self.codes, _pairs(self.places, positions),
            self.place_rows, self.hidden, self.bias, self.outputs, self.output_bias, self.shift, self.scale,
            np.array([index.get(tag, -1) for tag in tags], np.int32),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the part of the network that the header of a model file stores, as a dict of JSON values."""
        return {
            "tags": list(self.tags), "attributes": [list(each) for each in self.attributes],
            "places": [list(each) for each in self.places], "shift": self.shift, "scale": self.scale,
        }  # fmt: skip

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the network by name, to be stored in a model file.

        Returns:
            The arrays by name.
        """
        return {name: getattr(self, name.removeprefix("network_")) for name in ARRAYS}

    @staticmethod
    def of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_words: int) -> Network:
        """Build a network from the contents of a model file.

        Args:
            header: Values of `to_dict`.
            arrays: Arrays of the file, with checked types.
            n_words: Number of words with vector classes in the lexicon.

        Returns:
            The network.

        Raises:
            KeyError: An array or a value is missing.
            ValueError: The values contradict each other.
        """
        own = {name.removeprefix("network_"): arrays[name] for name in ARRAYS}
        if own["codes"].shape[1] and len(own["codes"]) != n_words:
            raise ValueError(f"the network has vectors of {len(own['codes'])} words, but the lexicon has {n_words}")
        tags, shift, scale = header["tags"], header["shift"], header["scale"]
        attributes = [(name, bits) for name, bits in header["attributes"]]
        places = [(name, bits) for name, bits in header["places"]]
        is_typed = all(isinstance(name, str) and type(bits) is int for name, bits in [*attributes, *places])
        if not is_typed or not all(isinstance(tag, str) for tag in tags):
            raise ValueError(
                "each attribute of the network must be a pair of a string and an integer, and each tag a string, got"
                f" {[*attributes, *places]!r:.80} and {tags!r:.80}"
            )
        if type(shift) is not int or not isinstance(scale, int | float) or isinstance(scale, bool):
            raise ValueError(f"the shift and scale of the network must be numbers, got {shift!r:.80}, {scale!r:.80}")
        return Network(
            tuple(tags), tuple(attributes), places=tuple(places), shift=shift, scale=float(scale), **own
        )  # fmt: skip


def _pairs(items: Sequence[tuple[str, int]], names: Sequence[str]) -> Int32s:
    """Convert pairs (name, number of bits) to an array of rows (index of the name in ``names``, number of bits)."""
    unknown = [name for name, _ in items if name not in names]
    if unknown:
        raise ValueError(f"the network reads the attribute {unknown[0]!r}, which the model does not have")
    return np.reshape(np.array([(names.index(name), bits) for name, bits in items], np.int32), (-1, 2))
