"""Conversion between the learned table entries of a model and one vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from herdner.base.arrays import Floats
from herdner.crf.model import SkipChainModel
from herdner.crf.objectives import Examples, Objective


class Parameters:
    """Conversion between the learned table entries of a model and a vector of d parameters.

    The vector holds the allowed transitions, if these are learned, and the tables of links, row by row.

    Args:
        model: Model whose tables are learned.
        joint: Learn the allowed transitions together with the tables of links.
        adapted: Centre the prior of the tables of links on ``model`` instead of on 0.

    Attributes:
        start: float64[d], entries of ``model``.
        origin: float64[d], mean of the prior: the transitions of ``model`` and 0 for tables of links, or ``start``.
    """

    def __init__(self, model: SkipChainModel, joint: bool, adapted: bool = False) -> None:
        """Store the model, and select the table entries that are learned."""
        self.model = model
        self.is_free = np.isfinite(model.transition) if joint else np.zeros(model.transition.shape, bool)
        tables = [each.table for each in model.link_tables]
        self.start = self.vector(model.transition, tables)
        self.origin = self.start if adapted else self.vector(model.transition, list(map(np.zeros_like, tables)))

    def __len__(self) -> int:
        """Return the number of learned parameters."""
        return len(self.origin)

    def vector(self, transition: Floats, tables: Sequence[Floats]) -> Floats:
        """Return the learned entries of tables, or of gradients with respect to the tables, as one vector.

        Args:
            transition: float64[K, K].
            tables: One float64[K, K] for each link table.

        Returns:
            float64[d].
        """
        return np.concatenate([transition[self.is_free], *(table.ravel() for table in tables)])

    def to_model(self, vector: Floats) -> SkipChainModel:
        """Return a copy of the model whose learned table entries come from ``vector``.

        Args:
            vector: float64[d].
        """
        model, first = self.model, int(self.is_free.sum())
        transition = model.transition.copy()
        transition[self.is_free] = vector[:first]
        tables = vector[first:].copy().reshape(-1, *transition.shape)
        linked = tuple(replace(each, table=table) for each, table in zip(model.link_tables, tables, strict=True))
        return replace(model, transition=transition, link_tables=linked)

    def loss(self, vector: Floats, objective: Objective, examples: Examples, l2: float) -> tuple[float, Floats]:
        """Return the penalised training loss for a parameter vector, and the gradient of the loss.

        Args:
            vector: float64[d], entries at which the loss is evaluated.
            objective: Objective without penalty.
            examples: Documents with gold tags.
            l2: Weight of the squared distance from `origin`.

        Returns:
            The loss, and its derivatives, float64[d].
        """
        gradient = objective(self.to_model(vector), examples)
        shift = vector - self.origin
        penalised = gradient.value + l2 * float(shift @ shift)
        return penalised, self.vector(gradient.transition, gradient.tables) + 2 * l2 * shift
