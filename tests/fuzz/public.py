"""Calls of every public function, class, method and property of the package with hostile versions of valid arguments.

The valid arguments are those of a short session in which the package is used: its calls are recorded. Any Python
exception is acceptable. The end of the process, a hang, and memory out of proportion are errors.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import os
import pickle
import pkgutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import numpy as np
from faults import entry_points
from faults.reentrant import arm

import herdner
from fuzz import calls, session
from fuzz.graphs import Rng, pick
from fuzz.headers import limit_memory
from fuzz.hostile import Writer, arrays_in, fields_of, hostile

LEFT_OUT = {
    "herdner.__main__": "runs a command",
    "herdner._ext": "compiled modules, with calls of their own in tests/faults",
    "herdner.cli": "commands end the process; tests/cli calls them",
    "herdner.base.interrupts": "changes the signal handlers of the process",
    "herdner.corpora.download": "downloads files",
    "herdner.corpora.files.fetch": "downloads files",
    "herdner.integrations.dask": "starts a cluster",
    "herdner.integrations.presidio": "imports a package that tests do without",
    "herdner.integrations.serve": "starts processes; target `requests`",
    "herdner.integrations.spacy": "spaCy's own objects; target `spacy`",
    "herdner.integrations.transformers": "loads large models",
}
SPECIAL = {"__call__", "__eq__", "__getitem__", "__len__"}  # special methods that are called
KEPT = 4  # recorded calls of each callable
LARGEST = 200_000  # bytes of the pickled arguments of a recorded call
MOST_BYTES = 3 << 30
GROWTH = 1 << 30  # resident memory that a call with small arguments may take


def left_out(name: str) -> bool:
    return any(name == each or name.startswith(each + ".") for each in LEFT_OUT)


def is_generated(value: Any) -> bool:
    """Return True for methods that `dataclass` has made."""
    code = code_of(value)
    return code is None or code.co_filename.startswith("<")


def defined(owner: Any, names: dict[str, Any], module: str) -> Iterator[tuple[str, Any]]:
    """Yield the public callables that a module or class defines, by name."""
    for name, value in sorted(names.items()):
        path = f"{getattr(owner, '__module__', module)}.{owner.__qualname__}.{name}" if owner else f"{module}.{name}"
        if (name.startswith("_") and (name not in SPECIAL or is_generated(value))) or left_out(path):
            continue
        if owner is None and isinstance(value, type) and value.__module__ == module:
            yield path, value
            yield from defined(value, dict(vars(value)), module)
        elif owner is None and callable(value) and getattr(value, "__module__", "") == module:
            yield path, value
        elif owner is not None and isinstance(value, property | cached_property):
            yield path, value.fget if isinstance(value, property) else value.func
        elif owner is not None and (isinstance(value, classmethod | staticmethod) or inspect.isfunction(value)):
            yield path, getattr(owner, name)


@cache
def public() -> dict[str, Callable[..., Any]]:
    """Return every public callable of the package by its name."""
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.walk_packages(herdner.__path__, "herdner."):
        if not left_out(module.name) and "._" not in module.name:
            found |= defined(None, vars(import_module(module.name)), module.name)
    return found


def code_of(value: Any) -> CodeType | None:
    """Return the code that a call of a function or class enters."""
    function = inspect.unwrap(getattr(value, "__init__", None) if isinstance(value, type) else value)
    return getattr(getattr(function, "__func__", function), "__code__", None)


Recorded = Callable[[], tuple[list[Any], dict[str, Any]]]


class Recorder:
    """Profile function that keeps copies of the arguments of public callables, and of objects that functions return."""

    def __init__(self) -> None:
        self.names = {code: name for name, value in public().items() if (code := code_of(value))}
        self.calls: dict[str, list[Recorded]] = defaultdict(list)
        self.objects: dict[str, list[Callable[[], Any]]] = defaultdict(list)  # by class

    def __call__(self, frame: FrameType, event: str, value: object) -> None:
        name = self.names.get(frame.f_code) if event in ("call", "return") else None
        if name is None:
            return
        with contextlib.suppress(Exception):
            if event == "return":
                self.keep_object(value)
            elif len(self.calls[name]) < KEPT:
                self.keep_call(name, frame)

    def keep_call(self, name: str, frame: FrameType) -> None:
        values, code = dict(frame.f_locals), frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        _, varargs, varkw = inspect.getargs(code)
        if set(values) - {*names, varargs, varkw, *code.co_freevars}:
            return  # a generator that continues
        for each in values.values():
            self.keep_object(each)
        is_bound = isinstance(public()[name], type) or inspect.ismethod(public()[name])
        arguments = [values[each] for each in names[is_bound : code.co_argcount]]
        options = {each: values[each] for each in names[code.co_argcount :]} | values.get(varkw, {})
        self.calls[name].append(snapshot(([*arguments, *values.get(varargs, ())], options)))

    def keep_object(self, value: object) -> None:
        value = value[0] if isinstance(value, list | tuple) and value else value
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if kind in public() and len(self.objects[kind]) < KEPT and fields_of(value):
            self.objects[kind].append(snapshot(value))


def snapshot(value: Any) -> Recorded:
    """Return a function that gives fresh copies of a value."""
    try:
        data = pickle.dumps(value)
    except Exception:
        kept = copy.deepcopy(value)
        return lambda: copy.deepcopy(kept)
    if len(data) > LARGEST:
        raise ValueError("too large")
    return lambda: pickle.loads(data)


@cache
def session_of() -> Recorder:
    """Return the recorded calls and objects of a session."""
    os.chdir(tempfile.mkdtemp())  # functions write to files named by hostile strings
    recorder = Recorder()
    sys.setprofile(recorder)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            session.use()
    finally:
        sys.setprofile(None)
    return recorder


@cache
def recorded() -> dict[str, list[Recorded]]:
    """Return the recorded calls by name; callables that the session does not reach have none."""
    found = session_of().calls
    return {name: found[name] for name in sorted(found) if found[name]}


@cache
def by_parameter() -> dict[str, list[Callable[[], Any]]]:
    """Return the recorded values of all parameters by the parameter's name."""
    found: dict[str, list[Callable[[], Any]]] = defaultdict(list)
    for name, made in recorded().items():
        arguments, options = made[0]()
        for at in [*range(len(arguments)), *options]:
            found[parameter(name, at)].append(
                lambda made=made[0], at=at: made()[0][at] if isinstance(at, int) else made()[1][at]
            )
    return found


def resident() -> int:
    """Return the largest resident memory of this process so far; 0 on Windows."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def alter(rng: Rng, name: str, arguments: list[Any], options: dict[str, Any]) -> None:
    """Replace up to three arguments by hostile ones."""
    for _ in range(int(pick(rng, 0, 1, 1, 1, 2, 3))):
        at = pick(rng, *range(len(arguments)), *options)
        values: Any = arguments if isinstance(at, int) else options
        values[at] = hostile(rng, values[at], parameter(name, at))


def show(name: str, arguments: list[Any], options: dict[str, Any]) -> None:
    """Print a call, if the variable FUZZ_SHOW is set."""
    if "FUZZ_SHOW" in os.environ:
        print(f"{name}(*{arguments!r:.3000}, **{options!r:.3000})", file=sys.stderr, flush=True)


def call(rng: Rng, function: Callable[..., Any], arguments: list[Any], options: dict[str, Any]) -> None:
    """Call a function, sometimes while another thread writes to the arrays that it reads."""
    arm([arguments, options])
    writer = Writer(rng, [arguments, options]) if rng.random() < 0.2 else contextlib.nullcontext()
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"), writer:
        made = function(*arguments, **options)
        if isinstance(made, Iterator):
            list(islice(made, 50))


def hostile_call(rng: Rng) -> None:
    """Call a public callable with hostile arguments. With the variable FUZZ_SHOW set, print the call first."""
    recorded()
    limit_memory(MOST_BYTES)
    name = pick(rng, *public())
    arguments, options = pick(rng, *recorded()[name])() if name in recorded() else invented(rng, name)
    is_small, before, failure = True, resident(), ""
    try:
        if arguments or options:
            alter(rng, name, arguments, options)
        show(name, arguments, options)
        is_small = all(array.nbytes < 10**7 for array in arrays_in([arguments, options], fixed=True))
        call(rng, public()[name], arguments, options)
    except SystemError:
        raise
    except Exception as error:
        failure = type(error).__name__
    assert not is_small or resident() - before < GROWTH, f"{name} took {(resident() - before) >> 20} MiB"
    if failure:
        raise ValueError(failure)


def parameter(name: str, at: int | str) -> str:
    """Return the name of a parameter."""
    if isinstance(at, str):
        return at
    code = code_of(public()[name]) if name in public() else None
    names = code.co_varnames if code else ()
    at += name in public() and (isinstance(public()[name], type) or inspect.ismethod(public()[name]))
    return names[at] if at < len(names) else ""


def invented(rng: Rng, name: str) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments of a callable without recorded calls: values that other parameters of the same names had."""
    arguments, options = [], {}
    for each in inspect.signature(public()[name]).parameters.values():
        is_optional = each.default is not each.empty
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) or (is_optional and rng.random() < 0.6):
            continue
        owner = session_of().objects.get(name.rpartition(".")[0])
        values = owner if each.name == "self" else by_parameter().get(each.name)
        value = pick(rng, *values)() if values else calls.argument(rng, each.name)
        if each.kind is each.KEYWORD_ONLY or is_optional:
            options[each.name] = value
        else:
            arguments.append(value)
    return arguments, options


@cache
def compiled_calls() -> list[tuple[str, Any, list[Any]]]:
    """Return the recorded calls of the functions and classes of compiled modules."""
    recorded()  # changes the folder
    with contextlib.redirect_stdout(io.StringIO()):
        entry_points.record()
    return [
        (f"{module}.{name}", pkgutil.resolve_name(f"herdner._ext.{module}:{name}"), made)
        for (module, name), made in sorted(entry_points.TABLE.items())
        if name.rpartition(".")[2] not in entry_points.LEFT_OUT and made
    ]


def compiled(rng: Rng) -> None:
    """Call a function, class or method of a compiled module with hostile arguments; see also `faults.entry_points`."""
    name, function, made = pick(rng, *compiled_calls())
    limit_memory(MOST_BYTES)
    arguments, options = entry_points.duplicate(pick(rng, *made))
    arguments = list(arguments)
    try:
        if arguments or options:
            alter(rng, name, arguments, options)
        show(name, arguments, options)
        work = partial(call, rng, function, arguments, options)
        if any(map(entry_points.is_count, [*arguments, *options.values()])):
            entry_points.work_apart(work)
        else:
            work()
    except SystemError:
        raise
    except Exception as error:
        raise ValueError(type(error).__name__) from None
