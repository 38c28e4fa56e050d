"""Calls of every function and class of `herdner._ext` with hostile arguments.

``python -m faults.entry_points MODULE...`` records the calls of a typical session, and then repeats each call of these
modules with altered arguments. Any Python exception is acceptable. A signal ends the process, which is an error.
"""

from __future__ import annotations

import copy
import os
import pickle
import pkgutil
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import herdner._ext
from faults.reentrant import Meddler, arm

CALLS = 6  # recorded calls of each entry point
LARGEST = 20_000  # array elements of a recorded call; larger calls are not recorded
SECONDS = 60  # processor time that one entry point may take
LEFT_OUT = {"advance_parallel"}  # waits until all threads of a run call it
NUMBERS = [-1, 0, 1, 2, 5, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31), -(2**62), 2**63 - 1]
TABLE: dict[tuple[str, str], list[tuple[tuple[Any, ...], dict[str, Any]]]] = defaultdict(list)

Alteration = Callable[[], Any]


class Lying(list[Any]):
    """List whose length is a lie."""

    def __len__(self) -> int:
        return 10**7


def modules() -> list[str]:
    """Return the names of all compiled modules with public names."""
    return sorted(module.name for module in pkgutil.iter_modules(herdner._ext.__path__) if module.name != "_shared")


def entry_points(module: ModuleType) -> list[str]:
    """Return the public functions and classes that a compiled module defines."""
    return [
        name
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module.__name__
    ]


def size_of(value: Any, depth: int = 0) -> int:
    """Return a rough number of elements of a value."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, str):
        return len(value) // 8
    if isinstance(value, list | tuple) and depth < 3:
        return sum(size_of(item, depth + 1) for item in value)
    if depth < 4:
        return sum(size_of(item, depth + 1) for _, item in fields_of(value))
    return 1


def fields_of(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of a Python object of this package, or the items of a dictionary of arrays."""
    if isinstance(value, dict):
        return [(str(key), item) for key, item in value.items()]
    if not type(value).__module__.startswith(("herdner", "types")) or type(value).__module__.startswith("herdner._ext"):
        return []
    names = dict.fromkeys([*getattr(value, "__slots__", ()), *getattr(value, "__dict__", ())])
    names |= dict.fromkeys(getattr(type(value), "__dataclass_fields__", ()))
    return [(name, getattr(value, name)) for name in names if not name.startswith("__") and hasattr(value, name)]


def recorder(module: str, name: str, function: Any) -> Any:
    """Return a function that records its calls."""

    def call(*arguments: Any, **options: Any) -> Any:
        calls = TABLE[module, name]
        if len(calls) < CALLS and size_of((arguments, options)) < LARGEST:
            calls.append(duplicate((arguments, options)))
        return function(*arguments, **options)

    return call


def duplicate(value: Any) -> Any:
    """Return a copy of arguments whose arrays can be written to; compiled objects are not copied."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.strides == (0,) and value.size:
            return np.broadcast_to(value[:1].copy(), value.shape)
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(duplicate(item) for item in value)
    if type(value) is dict:
        return {key: duplicate(item) for key, item in value.items()}
    if fields_of(value) and type(value).__module__.startswith("herdner"):
        return SimpleNamespace(**{name: duplicate(item) for name, item in fields_of(value)})
    return value


DIRECT = {
    "CompiledConditionals",
    "InfluenceMatrix",
    "WordTable",
    "FeatureWeights",
    "CompiledNetwork",
    "TrainingData",
    "Memory",
    "MentionForm",
    "NameWeights",
}


class Constructor:
    """Call of a final class that is recorded."""

    def __init__(self, module: str, name: str, kind: type) -> None:
        self.make, self.kind = recorder(module, name, kind), kind

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.make(*arguments, **options)


def record_methods(module: str, name: str, kind: type) -> Any:
    """Return a class whose constructor is recorded; where the class is not final, its methods are recorded as well."""
    methods = [method for method, value in vars(kind).items() if callable(value) and not method.startswith("_")]
    try:
        recorded: Any = type(kind.__name__, (kind,), {})
    except TypeError:  # the class is final
        if name in DIRECT:
            return Constructor(module, name, kind)
        return kind
    for method in methods:
        setattr(recorded, method, recorder(module, f"{name}.{method}", getattr(kind, method)))
    make = recorder(module, name, lambda *arguments, **options: None)

    def new(cls: type, *arguments: Any, **options: Any) -> Any:
        make(*arguments, **options)
        return kind.__new__(cls) if kind.__new__ is object.__new__ else kind.__new__(cls, *arguments, **options)

    recorded.__new__ = new
    return recorded


def session() -> None:
    """Use the package as users do, on small data."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))  # as pytest does
    import herdner
    from faults import typical

    typical.use(herdner)


def record() -> None:
    """Record the calls of a typical session in `TABLE`."""
    originals: list[tuple[ModuleType, str, Any]] = []
    compiled = [(name, import_module(f"herdner._ext.{name}")) for name in modules()]  # they import each other
    for name, module in compiled:
        for entry in entry_points(module):
            value = getattr(module, entry)
            originals.append((module, entry, value))
            wrap = record_methods if isinstance(value, type) else recorder
            setattr(module, entry, wrap(name, entry, value))
    session()
    for module, entry, value in originals:
        setattr(module, entry, value)


def array_alterations(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield hostile versions of an array."""
    yield "byte order", array.astype(array.dtype.newbyteorder())
    with np.errstate(invalid="ignore"):
        converted = array.astype(np.int16 if array.dtype != np.int16 else np.float64)
    yield "another type", converted
    yield "objects", array.astype(object)
    yield "no elements", array.ravel()[:0].reshape((0,) * array.ndim) if array.ndim else array
    yield "no rows", array[:0] if array.ndim else array
    yield "read-only", read_only(array)
    yield "a list", array.tolist()
    if array.ndim:
        yield "strides", np.repeat(array, 2, axis=-1)[..., ::2]
        yield "reversed", array[::-1]
        yield "one less", array[:-1].copy()
        yield "one more", np.concatenate([array, array[-1:]])
        yield "half", array[: len(array) // 2].copy()
        yield "repeated", np.concatenate([array] * 3)
        yield "one row", array[:1].copy()
    if array.ndim > 1:
        yield "fewer columns", array[..., :-1].copy()
        yield "more columns", np.concatenate([array, array[..., -1:]], axis=-1)
    if array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(array.dtype)
        for number in (*NUMBERS, array.size, int(array.max()) + 1):
            for place in (0, array.size // 2, array.size - 1):
                if limits.min <= number <= limits.max:
                    altered = array.copy()
                    altered.flat[place] = number
                    yield f"{number} at {place}", altered
            if limits.min <= number <= limits.max:
                yield f"all {number}", np.full_like(array, number)
    if array.dtype.kind == "f" and array.size:
        for number in (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30):
            altered = array.copy()
            altered.flat[array.size // 2] = number
            yield str(number), altered
            yield f"all {number}", np.full_like(array, number)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written to."""
    copied = array.copy()
    copied.flags.writeable = False
    return copied


def alterations(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield hostile versions of an argument, each with its description."""
    yield "None", None
    yield "object", object()
    yield "empties lists", Meddler(value)
    yield "extends lists", Meddler(value, grows=True)
    if isinstance(value, np.ndarray):
        yield from array_alterations(value)
    elif isinstance(value, bool | int | np.integer):
        for number in NUMBERS:
            yield str(number), number
    elif isinstance(value, float):
        for real in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308):
            yield str(real), real
    elif isinstance(value, str):
        for text in ("", "x", value[:-1], value * 3, "\ud800", "\U0001f600" * 3):
            yield repr(text)[:20], text
    elif isinstance(value, list | tuple):
        value = list(value) if isinstance(value, list) else tuple(value)
        yield "empty", type(value)()
        yield "longer", type(value)([*value, *value[-1:]])
        yield "shorter", type(value)(value[:-1])
        yield "lying", Lying(value)
        for k in {0, len(value) - 1} if value and depth < 3 else ():
            for text, item in alterations(value[k], depth + 1):
                yield f"[{k}] {text}", type(value)([*value[:k], item, *value[k + 1 :]])
    elif fields_of(value) and depth < 4:
        for name, field in fields_of(value):
            for text, item in alterations(field, depth + 1):
                yield f".{name} {text}", altered(value, name, item)
    else:
        for text, item in (("copy", copied(copy.copy, value)), ("deep copy", copied(copy.deepcopy, value)),
                           ("pickle", copied(lambda v: pickle.loads(pickle.dumps(v)), value)),
                           ("new", copied(lambda v: type(v).__new__(type(v)), value))):  # fmt: skip
            yield text, item


def altered(value: Any, name: str, item: Any) -> Any:
    """Return a copy of an object, or of a dictionary, with one other attribute."""
    if isinstance(value, dict):
        return {**value, name: item}
    return SimpleNamespace(**(dict(fields_of(value)) | {name: item}))


def copied(copier: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy, or None if the object refuses to be copied."""
    try:
        return copier(value)
    except Exception:
        return None


def attempt(text: str, function: Callable[..., Any], arguments: Any, options: dict[str, Any]) -> Any:
    """Call a function; a Python exception is acceptable."""
    os.pwrite(3, f"{text:<300.300}\n".encode(), 0)
    arguments, options = duplicate(list(arguments)), duplicate(options)
    arm([arguments, options])
    try:
        return function(*arguments, **options)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def attack(module: str, name: str) -> int:
    """Call one entry point with all alterations of its recorded calls. Return the number of calls."""
    function: Any = import_module(f"herdner._ext.{module}")
    for part in name.split("."):
        function = getattr(function, part)
    count = 0
    for arguments, options in TABLE[module, name] or [((), {})]:
        attempt(f"{module}.{name} as recorded", function, arguments, options)
        for k, value in enumerate(arguments):
            for text, item in alterations(value):
                count += 1
                changed = [*arguments[:k], item, *arguments[k + 1 :]]
                made = attempt(f"{module}.{name}({k}: {text})", function, changed, options)
                use(f"{module}.{name}({k}: {text})", made)
        for key, value in options.items():
            for text, item in alterations(value):
                count += 1
                attempt(f"{module}.{name}({key}: {text})", function, arguments, options | {key: item})
    if isinstance(function, type):
        count += attack_class(module, name, function)
    return count


def use(text: str, made: Any, kind: type | None = None) -> None:
    """Call the methods of an object, of its class or of another ``kind``, that a hostile constructor has made."""
    kind = kind or type(made)
    if not kind.__module__.startswith("herdner._ext"):
        return
    module, name = kind.__module__.split(".")[-1], kind.__name__
    for method, value in vars(kind).items():
        if not callable(value) or method.startswith("_") or method in LEFT_OUT:
            continue
        for arguments, options in TABLE[module, f"{name}.{method}"][:2] or [((), {})]:
            bound = [made, *arguments[1:]]
            attempt(f"{text}.{method}", value, bound, options)


def attack_class(module: str, name: str, kind: type) -> int:
    """Make objects without the constructor, call it twice, copy, pickle and subclass."""
    count = 0
    for arguments, options in TABLE[module, name][:2] or [((), {})]:
        made = attempt(f"{module}.{name} again", kind, arguments, options)
        for text, other in (
            ("__new__", attempt(f"{module}.{name}.__new__", lambda: kind.__new__(kind), (), {})),
            ("__new__ with arguments", attempt(f"{module}.{name}.__new__", kind.__new__, (kind, *arguments), options)),
            ("copy", copied(copy.copy, made)),
            ("pickle", copied(lambda value: pickle.loads(pickle.dumps(value)), made)),
        ):
            count += 1
            use(f"{module}.{name} {text}", other)
        with suppress(TypeError):  # the class is final
            attempt(f"{module}.{name} with other methods", subclass_with_calls(kind), arguments, options)
        if made is not None:
            for k, value in enumerate(arguments):
                for text, item in alterations(value):
                    count += 1
                    changed = [*arguments[:k], item, *arguments[k + 1 :]]
                    attempt(f"{module}.{name} second __init__({k}: {text})", made.__init__, changed, options)
            use(f"{module}.{name} after a second __init__", made)
    return count


def subclass_with_calls(kind: type) -> type:
    """Return a subclass each of whose methods first calls all methods of the class.

    If the constructor of the class calls a method of the subclass, the object is incomplete.
    """
    names = [name for name, value in vars(kind).items() if callable(value) and not name.startswith("__")]
    depth = [0]

    def method(name: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            depth[0] += 1
            if depth[0] == 1:
                use(f"{kind.__module__}.{kind.__name__}.{name} of a subclass", self, kind)
            depth[0] -= 1
            return getattr(kind, name)(self, *arguments, **options)

        return call

    return type(kind.__name__, (kind,), {name: method(name) for name in names})


def run_child(module: str, name: str) -> tuple[int, str]:
    """Attack one entry point in a child process. Return its wait status and the last call."""
    with TemporaryFile() as log:
        pid = os.fork()
        if pid == 0:
            os.dup2(log.fileno(), 3)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(20 * SECONDS)
            sys.unraisablehook = lambda _: None
            attack(module, name)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        log.seek(0)
        last = log.read(300).decode(errors="replace").strip()
    return status, last


def main(names: list[str]) -> int:
    """Attack the modules, and print a line for each entry point that ends its process. Return the exit status."""
    record()
    failures = 0
    for module in names or modules():
        found = import_module(f"herdner._ext.{module}")
        points = entry_points(found)
        methods = [
            key[1] for key in TABLE if key[0] == module and "." in key[1] and key[1].split(".")[1] not in LEFT_OUT
        ]
        for name in (*points, *methods):
            n_calls = len(TABLE[module, name])
            status, last = run_child(module, name)
            if status:
                failures += 1
                print(f"{module}.{name}: signal {os.WTERMSIG(status)}, {n_calls} recorded: {last}", flush=True)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
