"""Checks of scikit-learn's `check_estimator`, on sequences of one item that are made from the rows of its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("sklearn", minversion="1.6", reason="needs the extra train")

from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from herdner import CRF

NO_MINI_BATCHES = "partial_fit needs an online algorithm"
REASONS = {
    "lbfgs": {"check_n_features_in_after_fitting": NO_MINI_BATCHES, "check_fit_score_takes_y": NO_MINI_BATCHES},
    "ap": {"check_sample_weight_equivalence_on_dense_data": "two visits of a sequence are not one of twice the step"},
}


def sequences(rows: NDArray[Any]) -> list[list[dict[str, float]]]:
    """Return a sequence of one item for each row of an array; the columns are attributes."""
    return [[{f"x{k}": float(value) for k, value in enumerate(row)}] for row in rows]


class ArrayCRF(CRF):
    """CRF that converts each row of an array to a sequence; scikit-learn's checks pass arrays of numbers."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        X, y = validate_data(self, X, y, dtype=np.float64)
        return super().fit(sequences(X), [[str(label)] for label in y], sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        X, y = validate_data(self, X, y, dtype=np.float64, reset=not hasattr(self, "n_features_in_"))
        return super().partial_fit(sequences(X), [[str(label)] for label in y], classes, sample_weight)

    def predict(self, X: Any) -> Any:
        self._fitted_weights()
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.array([float(labels[0]) for labels in super().predict(sequences(rows))])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(np.average(self.predict(X) == y, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


@pytest.mark.slow
@parametrize_with_checks(
    [ArrayCRF("lbfgs", max_iterations=200, c2=0.1, epsilon=1e-9, delta=1e-12), ArrayCRF("ap", max_iterations=5)],
    expected_failed_checks=lambda estimator: REASONS[estimator.algorithm],
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
