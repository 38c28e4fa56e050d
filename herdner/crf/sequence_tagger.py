"""Tagger that labels one sequence at a time, with the methods of python-crfsuite's ``Tagger``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from herdner.base.arrays import Floats
from herdner.base.extras import import_extra
from herdner.crf.attribute_weights import AttributeWeights
from herdner.inference.linear_chain import decode, smooth


@dataclass(frozen=True)
class WeightInfo:
    """Dictionaries with the weights of a chain, in the form of ``pycrfsuite.Tagger.info()``.

    Attributes:
        header: Number of attributes, labels and features.
        labels: Index of each label, as a string.
        attributes: Index of each attribute, as a string.
        transitions: Weight of each (label, next label) that is not 0.
        state_features: Weight of each (attribute, label) that is not 0.
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]


def weight_info(weights: AttributeWeights) -> WeightInfo:
    """Return the weights of a chain as the dictionaries of a `WeightInfo`.

    Args:
        weights: Weights of the chain.
    """
    labels, names = weights.labels, weights.attribute_names
    transitions = {
        (labels[i], labels[j]): float(weights.transition[i, j]) for i, j in np.argwhere(weights.transition).tolist()
    }
    columns = weights.attributes, weights.state_labels, weights.state_weights
    entries = zip(*(column.tolist() for column in columns), strict=True)
    state_features: dict[tuple[str, str], float] = {(names[a], labels[k]): weight for a, k, weight in entries}
    header = {
        "num_features": str(len(transitions) + len(state_features)),
        "num_labels": str(len(labels)),
        "num_attrs": str(len(names)),
    }
    of_labels, of_attributes = ({text: str(k) for k, text in enumerate(texts)} for texts in (labels, names))
    return WeightInfo(header, of_labels, of_attributes, transitions, state_features)


class SequenceTagger:
    """Tagger that labels one sequence at a time, with the methods of ``pycrfsuite.Tagger``.

    Args:
        weights: Weights of a linear chain.
    """

    def __init__(self, weights: AttributeWeights) -> None:
        """Store ``weights``, the weights of a linear chain."""
        self.weights = weights
        self._unary: Floats | None = None

    def labels(self) -> list[str]:
        """Return the labels of the chain."""
        return list(self.weights.labels)

    def set(self, xseq: Sequence[Any]) -> None:
        """Store a sequence for `tag`, `probability` and `marginal`.

        Args:
            xseq: Items of the sequence.
        """
        self._unary = self.weights.score(xseq)

    def tag(self, xseq: Sequence[Any] | None = None) -> list[str]:
        """Return the most probable labels of a sequence.

        Args:
            xseq: Items of the sequence; None is the stored sequence.

        Raises:
            ValueError: No sequence is stored.
        """
        if xseq is not None:
            self.set(xseq)
        unary = self._stored_unary()
        states, _ = decode(unary, self.weights.transition[None], np.array([0, len(unary)]), None)
        return [self.weights.labels[k] for k in states.tolist()]

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of a labelling of the stored sequence.

        Args:
            yseq: Label of each item.

        Raises:
            ValueError: No sequence is stored, or a label is unknown, or the lengths differ.
        """
        unary = self._stored_unary()
        if len(yseq) != len(unary):
            raise ValueError(f"`yseq` must have a label for each item, got {len(yseq)} labels for {len(unary)} items")
        states = np.array([self._number(label) for label in yseq], np.int64)
        score = unary[np.arange(len(unary)), states].sum()
        score += self.weights.transition[states[:-1], states[1:]].sum()
        return float(np.exp(score - self._smooth(unary).log_z[0]))

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label for one item of the stored sequence.

        Args:
            y: The label.
            pos: Index of the item.

        Raises:
            ValueError: No sequence is stored, the label is unknown, or the sequence has no item ``pos``.
        """
        unary = self._stored_unary()
        if not 0 <= pos < len(unary):
            raise ValueError(f"`pos` must be an item index from 0 to {len(unary) - 1}, got {pos}")
        nodes = self._smooth(unary).nodes
        assert nodes is not None
        return float(nodes[pos, self._number(y)])

    def info(self) -> WeightInfo:
        """Return the weights as dictionaries."""
        return weight_info(self.weights)

    def close(self) -> None:
        """Discard the stored sequence."""
        self._unary = None

    def _stored_unary(self) -> Floats:
        if self._unary is None:
            raise ValueError("no sequence is stored; call `set` first")
        return self._unary

    def _smooth(self, unary: Floats):  # the type of `smooth`
        return smooth(unary, self.weights.transition[None], np.array([0, len(unary)]), None)

    def _number(self, label: str) -> int:
        try:
            return self.weights.labels.index(label)
        except ValueError:
            raise ValueError(f"unknown label {label!r}; the labels are {', '.join(self.weights.labels)}") from None


@dataclass(frozen=True)
class WeightTable:
    """Table of the largest weights of each label, and of the largest transition weights.

    ``str(table)`` is text, notebooks show HTML, and `to_frame` returns a data frame.

    Attributes:
        rows: Kind ("state" or "transition"), label, attribute or next label, and weight of each line.
    """

    rows: tuple[tuple[str, str, str, float], ...]

    @staticmethod
    def of(weights: AttributeWeights, top: int) -> WeightTable:
        """Build a table of the ``top`` largest weights of each label, and of the ``top`` largest transition weights.

        Args:
            weights: Weights of the chain.
            top: Number of attributes to select for each label, and of transitions, by largest absolute weight.

        Returns:
            The table, one row for each weight.
        """
        rows: list[tuple[str, str, str, float]] = []
        for k, label in enumerate(weights.labels):
            own = np.flatnonzero(weights.state_labels == k)
            own = own[np.argsort(-np.abs(weights.state_weights[own]), kind="stable")[:top]]
            own = own[np.argsort(-weights.state_weights[own], kind="stable")]
            rows += [
                ("state", label, weights.attribute_names[int(weights.attributes[e])], float(weights.state_weights[e]))
                for e in own
            ]
        pairs = weight_info(weights).transitions
        chosen = sorted(pairs.items(), key=lambda each: -abs(each[1]))[:top]
        rows += [("transition", *pair, weight) for pair, weight in sorted(chosen, key=lambda each: -each[1])]
        return WeightTable(tuple(rows))

    def __str__(self) -> str:
        """Return the table of weights as text, one weight in each line."""
        return "\n".join(
            f"{weight:+.2f}  {first} {'->' if kind == 'transition' else ' '} {second}"
            for kind, first, second, weight in self.rows
        )

    def _repr_html_(self) -> str:
        """Return the table of weights as HTML for notebooks."""
        lines = "".join(
            f"<tr><td>{kind}</td><td>{escape(first)}</td><td>{escape(second)}</td><td>{weight:+.4f}</td></tr>"
            for kind, first, second, weight in self.rows
        )
        return (
            f"<table><tr><th>kind</th><th>label</th><th>attribute or next label</th><th>weight</th></tr>{lines}</table>"
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the weights as a data frame with the columns ``kind``, ``label``, ``attribute`` and ``weight``.

        Args:
            backend: Library of the data frame, such as "pandas", "polars" or "pyarrow".

        Raises:
            ImportError: narwhals (extra ``files``) or the backend is not installed.
        """
        nw = import_extra("narwhals", "data frames need narwhals")
        columns = zip(*self.rows, strict=True) if self.rows else ((), (), (), ())
        names = ("kind", "label", "attribute", "weight")
        return nw.from_dict(dict(zip(names, map(list, columns), strict=True)), backend=backend).to_native()
