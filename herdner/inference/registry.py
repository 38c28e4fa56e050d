"""Backends by name, with their options: the fields of a class or the parameters of a preset function."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from herdner.base.checks import check_text
from herdner.base.messages import suggestion
from herdner.base.options import describe_type, parse_option
from herdner.inference.backend import Backend

# A new backend needs one module and one line here. The module is imported on first use. The object is a class or a
# preset, a function that returns a backend. `herdner.base.options.parse_option` defines the types of options.
BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "annealed-gibbs": "herdner.inference.backends.gibbs:annealed_gibbs",
        "annealed-importance": "herdner.inference.backends.annealed_importance:AnnealedImportance",
        "auto": "herdner.inference.backends.auto:Auto",
        "belief-propagation": "herdner.inference.backends.belief_propagation:BeliefPropagation",
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
        "mini-bucket": "herdner.inference.backends.mini_bucket:MiniBucket",
        "qmc-gibbs": "herdner.inference.backends.gibbs:qmc_gibbs",
        "rdhg": "herdner.inference.backends.gibbs:rdhg",
        "sum-product": "herdner.inference.backends.sum_product:SumProduct",
        "tempered": "herdner.inference.backends.tempered:Tempered",
        "tree-reweighted": "herdner.inference.backends.tree_reweighted:TreeReweighted",
        "viterbi": "herdner.inference.backends.viterbi:Viterbi",
    }
)
"""The name and the location, "module:object", of each backend."""


# Other names of the backends' methods. They are not accepted, but messages about unknown backends suggest the backend.
_NAMES_OF_METHODS = {
    "annealed-gibbs": "simulated-annealing",
    "annealed-importance": "ais",
    "belief-propagation": "bp lbp loopy loopy-bp",
    "exact": "clique-tree elimination jt junction-tree variable-elimination ve",
    "gibbs": "mcmc",
    "icm": "iterated-conditional-modes",
    "max-product": "map max-sum min-sum",
    "mean-field": "mf variational vi",
    "tempered": "parallel-tempering replica-exchange",
    "tree-reweighted": "trbp trw",
    "viterbi": "forward-backward",
}
_METHOD_NAMES = {name: backend for backend, names in _NAMES_OF_METHODS.items() for name in names.split()}


@dataclasses.dataclass(frozen=True, slots=True)
class OptionDescription:
    """Name, type and default of an option of a backend.

    Attributes:
        name: Name of the option.
        type: Description of its type, such as "a whole number" or "one of 'a', 'b'".
        default: Default value.
    """

    name: str
    type: str
    default: object


@dataclasses.dataclass(frozen=True, slots=True)
class BackendDescription:
    """Summary and options of a backend.

    Attributes:
        name: Name of the backend.
        summary: First line of its documentation.
        options: Its options.
    """

    name: str
    summary: str
    options: tuple[OptionDescription, ...]


class UnknownOption(ValueError):
    """Error: an option was passed to a backend that does not have this option.

    Attributes:
        option: Name of the option.
        hint: Suggestion of a similar option of the backend, which the message ends with; "" if there is none.
    """

    def __init__(self, message: str, option: str, hint: str) -> None:
        """Create the error from its message, the name of the option and a suggestion."""
        super().__init__(f"{message}; {hint}" if hint else message)
        self.option, self.hint = option, hint


def make_backend(name: str, **options: object) -> Backend:
    """Build a backend from its name and options.

    Args:
        name: Name of the backend, a key of `BACKENDS`.
        **options: Options of the backend; text such as "400", "true" or "none" is converted.

    Returns:
        The backend.

    Raises:
        ValueError: The name, an option or a value is wrong.
        TypeError: The name is not a string.
        UnknownOption: The backend has no such option; a subclass of `ValueError`.
    """
    check_text(name, "name", "the name of a backend, such as 'gibbs'")
    make, hints = _factory(name), _options(name)
    for key in options:
        if key not in hints:
            available = f"it has {_join_names(hints)}" if hints else "it has none"
            raise UnknownOption(
                f"backend {name} has no option {key!r}; {available}", key, suggestion(key, hints).rstrip()
            )
    try:
        return make(**{key: parse_option(value, hints[key][0], key) for key, value in options.items()})
    except ValueError as error:
        raise ValueError(f"backend {name}: {error}") from None


def resolve_backend(backend: object, options: Mapping[str, object] | None = None) -> Backend:
    """Build a backend from its name and options; return a `Backend` unchanged.

    Args:
        backend: Name of a backend, or a `Backend`.
        options: Options of the named backend. A `Backend` has its own options.

    Raises:
        ValueError: The backend or one of its options is invalid.
    """
    if isinstance(backend, str):
        return make_backend(backend, **(options or {}))
    if isinstance(backend, type) or not isinstance(backend, Backend):
        raise ValueError(
            f"`backend` must be a name that `herdner backends` lists, or a Backend such as Gibbs(), got {backend!r}"
        )
    if options:
        raise ValueError(
            f"options {', '.join(options)} need the name of a backend, got the object {backend!r}; set the options of"
            " this object"
        )
    return backend


def describe_backend(name: str) -> BackendDescription:
    """Return the summary and the options of a backend.

    Args:
        name: Name of the backend, a key of `BACKENDS`.

    Raises:
        ValueError: There is no backend of this name.
    """
    options = tuple(
        OptionDescription(key, describe_type(hint), default) for key, (hint, default) in _options(name).items()
    )
    return BackendDescription(name, (_factory(name).__doc__ or "").strip().splitlines()[0], options)


def _factory(name: str) -> Callable[..., Backend]:
    if name not in BACKENDS:
        words = "-".join(re.findall("[a-z]+", name.lower()))
        hint = suggestion(_METHOD_NAMES.get(words, words), BACKENDS)
        raise ValueError(
            f"there is no backend {name!r}{f'; {hint}' if hint else '. '}Backends: {_join_names(BACKENDS)}"
        )
    module, _, attribute = BACKENDS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


@cache
def _options(name: str) -> dict[str, tuple[object, object]]:
    """Return the name, the type and the default of each option of a backend."""
    make = _factory(name)
    hints = typing.get_type_hints(make)
    if isinstance(make, type):
        fields = [field for field in dataclasses.fields(make) if field.init]
        factories = {f.name: f.default_factory for f in fields if f.default_factory is not dataclasses.MISSING}
        return {f.name: (hints[f.name], factories[f.name]() if f.name in factories else f.default) for f in fields}
    options = {key: (hints[key], entry.default) for key, entry in inspect.signature(make).parameters.items()}
    if "options" in options:  # a preset passes these on to the backend, which has their defaults
        (shared,) = typing.get_args(options.pop("options")[0])
        preset = make()
        options |= {key: (hint, getattr(preset, key)) for key, hint in typing.get_type_hints(shared).items()}
    return options


def _join_names(names: typing.Iterable[str]) -> str:
    return ", ".join(sorted(names))
