"""Backends by name: their options, and the conversion of values."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import pytest

from herdner.inference import BACKENDS, describe_backend, make_backend, registry
from herdner.inference.gibbs import Annealing, as_annealing, linear_annealing
from herdner.inference.registry import _METHOD_NAMES


def test_every_backend_is_described():
    for name in BACKENDS:
        description = describe_backend(name)
        assert description.summary.endswith(".")
        assert make_backend(name) == make_backend(name, **{o.name: o.default for o in description.options})
    assert [dataclasses.astuple(o) for o in describe_backend("viterbi").options] == [
        ("marginals", "true or false", False)
    ]


def test_options_may_be_text():
    assert make_backend("viterbi", marginals="True") == make_backend("viterbi", marginals=True)
    assert make_backend("exact", n_best="1000").n_best == 1000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("viterby", {}, "there is no backend 'viterby'; did you mean 'viterbi'. Backends: .*exact.*viterbi"),
        (
            "viterbi",
            {"marginal": True},
            "backend viterbi has no option 'marginal'; it has marginals; did you mean 'marginals'.",
        ),
        ("viterbi", {"marginals": "yes"}, "backend viterbi: marginals must be true or false, not 'yes'"),
        ("viterbi", {"marginals": 1}, "marginals must be true or false, not 1"),
        ("exact", {"n_best": "many"}, "n_best must be a whole number, not 'many'"),
        ("exact", {"n_best": 2.5}, "n_best must be a whole number, not 2.5"),
        ("exact", {"n_best": True}, "n_best must be a whole number, not True"),
        ("exact", {"n_best": 0}, "backend exact: n_best must be a whole number of at least 1, not 0"),
    ],
)
def test_wrong_options_are_refused_in_one_line(name, options, message):
    with pytest.raises(ValueError, match=f"{message}$") as caught:
        make_backend(name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "backend"),
    [
        ("bp", "belief-propagation"), ("Belief Propagation", "belief-propagation"), ("loopy", "belief-propagation"),
        ("loopy_bp", "belief-propagation"), ("JT", "exact"), ("junction tree", "exact"), ("mcmc", "gibbs"),
        ("variable elimination", "exact"), ("min-sum", "max-product"),
    ],
)  # fmt: skip
def test_other_names_of_a_method_suggest_its_backend(method, backend):
    with pytest.raises(ValueError, match=f"there is no backend {method!r}; did you mean {backend!r}"):
        make_backend(method)


def test_all_methods_have_a_backend():
    assert set(_METHOD_NAMES.values()) <= set(BACKENDS)
    assert not set(_METHOD_NAMES) & set(BACKENDS)


STEEP = linear_annealing(1, 3)


@dataclasses.dataclass(frozen=True)
class Sampler:
    """A backend with options of every type."""

    n_sweeps: int | None = None
    bound: float = 1.0
    order: Literal["raster", "random"] = "raster"
    note: str = ""
    annealing: Annealing | None = None
    start: Annealing = dataclasses.field(default_factory=lambda: linear_annealing(0, 2))


def cautious(n_sweeps: int = 7, *, bound: float = math.inf, annealing: Annealing = STEEP) -> Sampler:
    """A preset that bounds nothing.

    And more about it.
    """
    if n_sweeps < 0:
        raise ValueError(f"n_sweeps must be at least 0, not {n_sweeps}")
    return Sampler(n_sweeps, bound, annealing=annealing)


@pytest.fixture(autouse=True)
def sampler(monkeypatch):
    entries = {"sampler": f"{__name__}:Sampler", "cautious": f"{__name__}:cautious"}
    monkeypatch.setattr(registry, "BACKENDS", {**BACKENDS, **entries})


def test_options_of_every_type():
    made = make_backend("sampler", n_sweeps="5", bound="2", order="random", note="7", annealing="linear(0, 1)")
    assert made == Sampler(5, 2.0, "random", "7", linear_annealing(0, 1))
    assert make_backend("sampler", n_sweeps="none", bound=3, annealing="none") == Sampler(None, 3.0)
    words = "linear(start, end) or geometric(start, end)"
    described = {option.name: (option.type, option.default) for option in describe_backend("sampler").options}
    assert described == {
        "n_sweeps": ("a whole number or none", None),
        "bound": ("a number", 1.0),
        "order": ("one of 'raster', 'random'", "raster"),
        "note": ("text", ""),
        "annealing": (f"{words} or none", None),
        "start": (words, linear_annealing(0, 2)),
    }


def test_a_preset_is_described_by_its_signature():
    described = describe_backend("cautious")
    assert described.summary == "A preset that bounds nothing."
    assert [dataclasses.astuple(option)[::2] for option in described.options[:2]] == [
        ("n_sweeps", 7),
        ("bound", math.inf),
    ]
    assert described.options[2].default == linear_annealing(1, 3)
    assert make_backend("cautious", n_sweeps="8", bound="inf") == Sampler(8, math.inf, annealing=linear_annealing(1, 3))


def test_a_value_of_the_options_type_passes_unchanged():
    schedule = as_annealing([0.5, 1.0])
    assert make_backend("cautious", annealing=schedule).annealing is schedule


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sampler", {"order": "up"}, "order must be one of 'raster', 'random', not 'up'"),
        ("sampler", {"bound": "nan"}, "bound must be a number, not 'nan'"),
        ("sampler", {"n_sweeps": "inf"}, "n_sweeps must be a whole number or none, not 'inf'"),
        ("sampler", {"n_sweeps": math.inf}, "n_sweeps must be a whole number or none, not inf"),
        ("sampler", {"bound": 10**400}, "bound must be a number, not 10+"),
        ("cautious", {"order": "raster"}, "backend cautious has no option 'order'; it has annealing, bound, n_sweeps"),
        ("cautious", {"n_sweeps": -1}, "backend cautious: n_sweeps must be at least 0, not -1"),
        ("cautious", {"annealing": "fast"}, "backend cautious: annealing must be linear.* or geometric.*, not 'fast'"),
        ("cautious", {"annealing": "geometric(0, 1)"}, "backend cautious: geometric: start must be .*allows 0"),
        ("cautious", {"annealing": 3}, "annealing must be linear.* or geometric.*, not 3"),
    ],
)
def test_wrong_options_of_every_type(name, options, message):
    test_wrong_options_are_refused_in_one_line(name, options, message)
