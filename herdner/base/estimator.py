"""scikit-learn's conventions for estimators, without importing scikit-learn."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from herdner.base.representation import short_value

E = TypeVar("E", bound="Estimator")


class Estimator:
    """Base class of estimators with the parameter interface of scikit-learn.

    The parameters are the arguments of the constructor, stored under their names; attributes that ``fit`` sets end in
    an underscore. Parameters of a nested estimator or dataclass are named ``parameter__nested``.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return a dict from the name of each parameter of the estimator to its value.

        Args:
            deep: Include the parameters of nested estimators and dataclasses.

        Returns:
            The parameters by name.
        """
        params = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        if deep:
            for name, value in list(params.items()):
                params |= {f"{name}__{key}": nested for key, nested in _params_of(value).items()}
        return params

    def set_params(self: E, **params: Any) -> E:
        """Set parameters of the estimator by name.

        Args:
            **params: New values by name; ``parameter__nested`` sets one parameter of a nested value.

        Returns:
            The estimator itself.

        Raises:
            ValueError: A parameter does not exist.
        """
        for name, value in params.items():
            parameter, _, nested = name.partition("__")
            if name not in self.get_params():
                available = ", ".join(self.get_params(deep=False))
                raise ValueError(f"unknown parameter {name!r}; {type(self).__name__} has the parameters {available}")
            if nested:
                owner, change = getattr(self, parameter), {nested: value}
                value = owner.set_params(**change) if hasattr(owner, "set_params") else replace(owner, **change)
            setattr(self, parameter, value)
        return self

    def __repr__(self) -> str:
        """Return the constructor call with the parameters that differ from their defaults, and shorten long values."""
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        values = self.get_params(deep=False)
        changed = [f"{k}={short_value(v)}" for k, v in values.items() if repr(v) != repr(defaults[k])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Return the tags with which an estimator describes itself to scikit-learn."""
        from sklearn.utils import Tags, TargetTags  # pyright: ignore[reportMissingTypeStubs]

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _params_of(value: object) -> dict[str, Any]:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return value.get_params()  # pyright: ignore
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return {}
