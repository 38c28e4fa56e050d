"""scikit-learn's conventions for estimators, without an import of scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """Parameters are the constructor's arguments, kept under their names; what ``fit`` learns ends in an underscore."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self: Self, **params: Any) -> Self:
        """Change constructor arguments; ValueError for one that does not exist."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(
                    f"unknown parameter {name!r}; {type(self).__name__} has {', '.join(self.get_params())}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags  # pyright: ignore[reportMissingTypeStubs]

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))
