"""Calls of all public functions and classes, with arguments that fit their names and with arbitrary ones.

Any Python exception is acceptable. The end of the process is an error.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from fuzz import documents, graphs
from fuzz.files import VALUES, model
from fuzz.graphs import Rng, numbers, pick
from fuzz.headers import limit_memory
from herdner import Document, Tagger
from herdner.crf.templates import skip_chain_template
from herdner.ner.model import TaggerModel

ROOMS = [
    "herdner", "herdner.dobrushin", "herdner.graph", "herdner.graph.scan", "herdner.inference",
    "herdner.inference.gibbs",
    "herdner.studies.convergence", "herdner.studies.denoising", "herdner.studies.fwss", "herdner.studies.herding",
]  # fmt: skip
# Functions that are slow by design, or write files.
LEFT_OUT = {"load", "save_graph", "hmc", "sgld", "LogisticRegression", "NeuralRegression", "block_fwss", "Gazetteers"}


class Odd(str):
    """A string whose comparison does not agree with its contents."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not equal to anything")

    __hash__ = str.__hash__

    def lower(self) -> str:
        return None  # type: ignore[return-value]

    casefold = lower  # type: ignore[assignment]


class Longer(list[Any]):
    """A list whose ``__len__`` is larger than its number of items."""

    def __len__(self) -> int:
        return 10**6


class Changing:
    """A sequence with different items at each access."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def __len__(self) -> int:
        return int(self.rng.integers(9))

    def __getitem__(self, place: object) -> object:
        if isinstance(place, int) and place >= 9:
            raise IndexError(place)
        return pick(self.rng, "Paris", 7, None, 0, 3.5)


def arrays(rng: Rng, *, whole: bool = False) -> Any:
    """Return an array of random shape, order, type and strides, sometimes read-only."""
    shape = tuple(int(n) for n in rng.integers(0, 6, int(pick(rng, 0, 1, 1, 2, 2, 2, 3))))
    if whole or rng.random() < 0.4:
        found = rng.integers(-1 if rng.random() < 0.3 else 0, 6, shape)
        if found.size and rng.random() < 0.2:
            found.flat[0] = pick(rng, -1, 2**31, 2**32 + 1, 2**62, -(2**63))
        found = found.astype(pick(rng, np.int64, np.int64, np.int32, np.uint8, np.uint64, np.float64, object))
    else:
        found = np.asarray(abs(numbers(rng, shape)) if rng.random() < 0.3 else numbers(rng, shape))
    kind = pick(rng, "own", "own", "own", "turned", "backwards", "wide", "fixed", "list", "masked")
    if kind == "turned":
        return found.T
    if kind == "backwards" and found.ndim:
        return found[::-1]
    if kind == "wide":
        return np.broadcast_to(found, (3, *found.shape))
    if kind == "masked":
        return np.ma.masked_array(found)
    found.flags.writeable = kind != "fixed"
    return found.tolist() if kind == "list" else found


def graph(rng: Rng) -> Any:
    """Return a graph of few variables."""
    while True:
        try:
            found = pick(rng, *graphs.GRAPHS)(rng)
        except ValueError:
            continue
        if len(found.domains.sizes) <= 40:
            return found


def words(rng: Rng) -> Any:
    """Return tokens, sometimes of wrong types."""
    found = documents.words(rng)[:50]
    if found and rng.random() < 0.2:
        found[int(rng.integers(len(found)))] = pick(rng, Odd("Paris"), Odd("Ltd."), None, 7, ["x"], b"x", np.str_("x"))
    return pick(rng, list, tuple, list, Longer, np.array)(found) if rng.random() < 0.3 else found


def document(rng: Rng) -> Document:
    """Return a document of tokens in sentences, with or without tags."""
    found = [word for word in documents.words(rng)[:50] if isinstance(word, str) and word and not word.isspace()]
    made = Document.from_tokens([found])
    tagged = [pick(rng, *documents.LABELS) for _ in range(made.n_tokens)]
    return made.with_tags(tagged) if rng.random() < 0.5 else made


def small(rng: Rng) -> int:
    return int(pick(rng, -1, 0, 1, 2, 3, 5, 20))


def real(rng: Rng) -> float:
    return float(pick(rng, 0.0, 0.1, 0.5, 1.0, -1.0, 2.0, 1e-300, 1e300, np.inf, -np.inf, np.nan))


def influence(rng: Rng) -> Any:
    """Return a random influence matrix, or that of a graph."""
    room = import_module("herdner.dobrushin")
    if rng.random() < 0.3:
        return room.Influence(*(arrays(rng, whole=True) for _ in range(2)), arrays(rng), "given")
    if rng.random() < 0.3:
        return room.Influence.of_matrix(abs(arrays(rng)))
    return pick(rng, room.pairwise_bound, room.binary_bound, room.tightest_influence, room.block_influence)(graph(rng))


def focused(rng: Rng) -> Any:
    return import_module("herdner.studies.convergence").focus_variable(graph(rng), variable=small(rng))


def counted(rng: Rng) -> Any:
    """Return increasing offsets, or arbitrary values."""
    return sorted({1 + abs(small(rng)), 7, 30}) if rng.random() < 0.7 else arrays(rng, whole=True)


def sharing(rng: Rng) -> Any:
    import herdner.inference.gibbs as sampling

    return pick(
        rng, None, sampling.blanket_sharing(), sampling.complete_sharing(), sampling.neighbour_sum_sharing(),
        sampling.bin_sharing(int(pick(rng, 1, 3, 1000, 2**30))),
        sampling.random_bin_sharing(int(pick(rng, 1, 2, 7, 2**20))),
    )  # fmt: skip


def plan(rng: Rng) -> Any:
    from herdner import Gibbs

    return Gibbs(n_sweeps=abs(small(rng)) + 1, sharing=sharing(rng), error_bound=pick(rng, None, None, real(rng)))


def target(rng: Rng) -> Any:
    fwss = import_module("herdner.studies.fwss")
    if rng.random() < 0.5:
        return fwss.gaussian_mixture(arrays(rng), arrays(rng), arrays(rng))
    return fwss.density_target(lambda x: -0.5 * np.sum(x**2, axis=-1), lambda x: pick(rng, -x, -x, arrays(rng)), 2)


ARGUMENTS: Mapping[str, Callable[[Rng], Any]] = {
    "graph": graph, "compiled": graph, "tokens": words, "gold": lambda rng: [document(rng)],
    "predicted": lambda rng: [document(rng)], "a": lambda rng: [document(rng)], "b": lambda rng: [document(rng)],
    "influence": influence, "sharing": sharing, "plan": plan, "focus": focused, "lengths": counted, "target": target,
    "sentence_offsets": lambda rng: documents.offsets(rng, int(rng.integers(20))), "seed": small, "rng": small,
    "backend": graphs.backend, "record": graphs.record, "rule": lambda rng: documents.rule(rng, 20),
    "unary": lambda rng: numbers(rng, (5, 3)), "transition": lambda rng: numbers(rng, (3, 3)),
    "observed": lambda rng: numbers(rng, (4, 5)), "scan": lambda rng: arrays(rng, whole=True),
    "order": lambda rng: arrays(rng, whole=True), "scopes": lambda rng: arrays(rng, whole=True),
    "edges": lambda rng: arrays(rng, whole=True), "name": lambda rng: pick(rng, "gibbs", "dhg", "x"),
    "variables": lambda rng: arrays(rng, whole=True), "shape": lambda rng: (small(rng), small(rng)),
    "text": lambda rng: " ".join(str(word) for word in documents.words(rng)[:20]),
    "labels": lambda rng: pick(rng, documents.LABELS, ["O"], [], ["O", "O"], arrays(rng, whole=True)),
    "fields": lambda rng: {}, "theorem": lambda rng: "given",
}  # fmt: skip
COUNTS = ("n_", "max_", "runs", "iterations", "nearest", "min_", "batch_size", "at_once", "mode_steps", "resolution")
FACTORS = ("rate", "epsilon", "bandwidth", "ratio", "eta", "error_bound", "l2", "coupling", "J", "sigma", "accuracy")


def argument(rng: Rng, parameter: str) -> Any:
    """Return a value that fits the name of a parameter, or an arbitrary one."""
    if rng.random() < 0.08:
        return pick(rng, *VALUES, Changing(rng), Odd("x"), 1j, np.array(3), np.array(["x"]), object(), lambda *_: 1)
    if parameter in ARGUMENTS:
        return ARGUMENTS[parameter](rng)
    if parameter.startswith(COUNTS):
        return small(rng)
    if parameter.startswith(FACTORS):
        return real(rng)
    return pick(rng, arrays(rng), arrays(rng), arrays(rng, whole=True), small(rng), real(rng), None, True)


def called(rng: Rng, function: Any, bound: tuple[Any, ...] = ()) -> Any:
    """Call a function with its required parameters and some of the others."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return None
    given = list(bound)
    named = {}
    for each in parameters[len(bound) :]:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.default is not each.empty and rng.random() < 0.6:
            continue
        value = argument(rng, each.name)
        if each.kind is each.KEYWORD_ONLY or named or each.default is not each.empty:
            named[each.name] = value
        else:
            given.append(value)
    found = function(*given, **named)
    return list(islice(found, 50)) if isinstance(found, Iterator) else found


@cache
def public() -> tuple[Any, ...]:
    """Return the public names to call, in a fixed order."""
    found = {}
    for name in ROOMS:
        room = import_module(name)
        for each in sorted(vars(room).get("__all__", ()) or dir(room)):
            made = getattr(room, each)
            if callable(made) and getattr(made, "__module__", "").startswith("herdner") and each not in LEFT_OUT:
                found[f"{made.__module__}.{each}"] = made
    return tuple(found[name] for name in sorted(found))


def calls(rng: Rng) -> None:
    """Call a public function or class, and one or two methods of the result."""
    limit_memory(4 << 30)  # without free memory the stack cannot grow, which ends the process
    try:
        with np.errstate(all="ignore"):
            found = called(rng, pick(rng, *public()))
            for _ in range(2):
                methods = [name for name in sorted(dir(type(found))) if not name.startswith("_")]
                if not type(found).__module__.startswith("herdner") or not methods:
                    return
                method = getattr(found, pick(rng, *methods))
                if callable(method) and method.__name__ != "save":
                    called(rng, method)
    except SystemError:
        raise
    except Exception as error:
        raise ValueError(type(error).__name__) from None


@cache
def tagger() -> Tagger:
    return Tagger.from_model(TaggerModel.load(io.BytesIO(model())))


def tags(rng: Rng) -> None:
    """Call the methods of a tagger with random texts, documents, known names, links and backends."""
    from herdner import Names

    source: Any = document(rng)
    if rng.random() < 0.4:
        source = " ".join(str(word) for word in documents.words(rng)).replace("\0", "")
    names: Any = None
    if rng.random() < 0.3:
        entries = {
            pick(rng, *documents.WORDS): pick(rng, "PER", "PER", "LOC", "") for _ in range(int(rng.integers(1, 5)))
        }
        names = Names.of(entries, strength=real(rng), hard=bool(rng.random() < 0.5))
    many = [source] * int(pick(rng, 1, 1, 3, 9))
    chosen = graphs.backend(rng) if rng.random() < 0.5 else None
    for found in tagger().pipe(many, backend=chosen, names=names, n_jobs=int(pick(rng, 1, 1, 2)), seed=small(rng)):
        for entity in found.entities:
            assert found.text[entity.start : entity.end] == entity.text, entity
            assert entity.confidence is None or 0 <= entity.confidence <= 1 + 1e-9, entity
    for links in tagger().find_links(source).values():
        assert links.shape[1:] == (2,), links.shape
    if found.entities and rng.random() < 0.3:
        entity = found.entities[0]
        tagger().explain(source, offsets=(entity.start, entity.end))


def rows(rng: Rng) -> None:
    """Apply link rules to words that are no plain strings: they must return links within the words, or raise."""
    tokens = words(rng)
    n = len(list(tokens))
    tokens = list(tokens) if rng.random() < 0.5 else tokens
    try:
        found = skip_chain_template(documents.rule(rng, n)).links(tokens, documents.offsets(rng, n))
    except SystemError:
        raise
    except Exception as error:
        raise ValueError(type(error).__name__) from None
    assert not len(found) or (found.min() >= 0 and found.max() < max(n, len(tokens))), found
