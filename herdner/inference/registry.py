"""The backends by name, and their options, read off their fields or, for a preset, off its parameters."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from herdner.base.options import describe_type, parse_option
from herdner.inference.backend import Backend

# A backend is one module and one line here, imported when it is first asked for: a class, or a preset, a function that
# returns a backend. An option may be of any type that `herdner.base.options.parse_option` takes.
BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "annealed-gibbs": "herdner.inference.backends.gibbs:annealed_gibbs",
        "blocked-gibbs": "herdner.inference.backends.blocked_gibbs:BlockedGibbs",
        "bounded-error": "herdner.inference.backends.gibbs:bounded_error_gibbs",
        "circular-dhg": "herdner.inference.backends.gibbs:circular_dhg",
        "dhg": "herdner.inference.backends.gibbs:dhg",
        "dogs": "herdner.inference.backends.dogs:DoGS",
        "exact": "herdner.inference.backends.exact:Exact",
        "gibbs": "herdner.inference.backends.gibbs:plain_gibbs",
        "herded-gibbs": "herdner.inference.backends.gibbs:herded_gibbs",
        "icm": "herdner.inference.backends.icm:ICM",
        "max-product": "herdner.inference.backends.max_product:MaxProduct",
        "mean-field": "herdner.inference.backends.mean_field:MeanField",
        "qmc-gibbs": "herdner.inference.backends.gibbs:qmc_gibbs",
        "rdhg": "herdner.inference.backends.gibbs:rdhg",
        "sum-product": "herdner.inference.backends.sum_product:SumProduct",
        "viterbi": "herdner.inference.backends.viterbi:Viterbi",
    }
)
"""The backends: names, and where each is found, "module:object"."""


@dataclasses.dataclass(frozen=True, slots=True)
class OptionDescription:
    """An option of a backend: its name, its type in words ("a whole number", "one of 'a', 'b'") and its default."""

    name: str
    type: str
    default: object


@dataclasses.dataclass(frozen=True, slots=True)
class BackendDescription:
    """A backend in one line, and its options."""

    name: str
    summary: str
    options: tuple[OptionDescription, ...]


def make_backend(name: str, **options: object) -> Backend:
    """The backend of this name with these options.

    Text is accepted for any option ("400", "true", "none"), as a command line has nothing else.

    Raises:
        ValueError: The name, an option or a value is wrong.
    """
    make, known = _maker(name), _options(name)
    for key in options:
        if key not in known:
            listed = f"it has {_listed(known)}" if known else "it has none"
            raise ValueError(f"backend {name} has no option {key!r}; {listed}")
    try:
        return make(**{key: parse_option(value, known[key][0], key) for key, value in options.items()})
    except ValueError as error:
        raise ValueError(f"backend {name}: {error}") from None


def describe_backend(name: str) -> BackendDescription:
    """What ``herdner backends`` shows of a backend."""
    options = tuple(
        OptionDescription(key, describe_type(hint), default) for key, (hint, default) in _options(name).items()
    )
    return BackendDescription(name, (_maker(name).__doc__ or "").strip().splitlines()[0], options)


def _maker(name: str) -> Callable[..., Backend]:
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there is {_listed(BACKENDS)}")
    module, _, attribute = BACKENDS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


@cache
def _options(name: str) -> dict[str, tuple[object, object]]:
    """The type and the default of each option."""
    make = _maker(name)
    hints = typing.get_type_hints(make)
    if isinstance(make, type):
        fields = [field for field in dataclasses.fields(make) if field.init]
        factories = {f.name: f.default_factory for f in fields if f.default_factory is not dataclasses.MISSING}
        return {f.name: (hints[f.name], factories[f.name]() if f.name in factories else f.default) for f in fields}
    known = {key: (hints[key], entry.default) for key, entry in inspect.signature(make).parameters.items()}
    if "options" in known:  # handed on to the backend, whose defaults they have
        (shared,) = typing.get_args(known.pop("options")[0])
        plain = make()
        known |= {key: (hint, getattr(plain, key)) for key, hint in typing.get_type_hints(shared).items()}
    return known


def _listed(names: typing.Iterable[str]) -> str:
    return ", ".join(sorted(names))
