"""Calls of every function and class of `herdner._ext` with hostile arguments.

``python -m faults.entry_points MODULE...`` records the calls of a typical session, and then repeats each call of these
modules with altered arguments. Any Python exception is acceptable. A signal ends the process, which is an error.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import pkgutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from mmap import mmap
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, TemporaryFile
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import herdner._ext
from faults.reentrant import Liar, Meddler, arm

CALLS = 6  # recorded calls of each entry point
LONGEST = 12  # most calls that make a `Fresh` object
MOST_FIELDS = 12  # altered fields of an object, or items of a dictionary
LARGEST = 20_000  # array elements of a recorded call; larger calls are not recorded
MOST_WORK = 0.5  # processor time of a call with a large number
RACE_SECONDS = 0.1  # time of a race with another process
LOG = 3  # file descriptor, of a child process, to which it writes each call
SECONDS = 60  # processor time that one entry point may take
LEFT_OUT = {"advance_parallel"}  # waits until all threads of a run call it
NUMBERS = [-1, 0, 1, 2, 5, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31), -(2**62), 2**63 - 1]
TABLE: dict[tuple[str, str], list[tuple[tuple[Any, ...], dict[str, Any]]]] = defaultdict(list)
HISTORIES: dict[int, tuple[Any, ...]] = {}  # steps of `Fresh`, by the identity of an object in OBJECTS
OBJECTS: dict[type, list[Any]] = defaultdict(list)  # arguments and results of the session, by compiled class

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "new": lambda value: type(value).__new__(type(value)),
}


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


def members(module: ModuleType) -> list[str]:
    """Return the methods and properties of the classes that a compiled module defines."""
    kinds = [getattr(module, name) for name in entry_points(module)]
    return [
        f"{kind.__name__}.{name}"
        for kind in kinds
        if isinstance(kind, type)
        for name in (*methods_of(kind), *properties_of(kind))
        if name not in LEFT_OUT
    ]


def is_called(module: ModuleType, name: str) -> bool:
    """Return whether an entry point is a function or method; the objects of many classes are made by other classes."""
    owner, _, attribute = name.partition(".")
    value = getattr(module, owner)
    return attribute in methods_of(value) if attribute else not isinstance(value, type)


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
    if not isinstance(value, SimpleNamespace) and (
        is_compiled(value) or not type(value).__module__.startswith("herdner")
    ):
        return []
    names = dict.fromkeys([*getattr(value, "__slots__", ()), *getattr(value, "__dict__", ())])
    names |= dict.fromkeys(getattr(type(value), "__dataclass_fields__", ()))
    return [(name, getattr(value, name)) for name in names if not name.startswith("__") and hasattr(value, name)]


def is_compiled(value: Any) -> bool:
    """Return whether a value is an object of a compiled class."""
    return type(value).__module__.startswith("herdner._ext")


def recorder(module: str, name: str, function: Any) -> Any:
    """Return a function that records its calls; a method's first argument is recorded as a `Fresh` object."""

    def call(*arguments: Any, **options: Any) -> Any:
        history = HISTORIES.get(id(arguments[0])) if "." in name else () if isinstance(function, type) else None
        kept = None
        if size_of((arguments, options)) < LARGEST:
            kept = duplicate((arguments, options))
            calls = TABLE[module, name]
            if len(calls) < CALLS:
                calls.append(kept if not history else ((Fresh(history), *kept[0][1:]), kept[1]))
        made = function(*arguments, **options)
        if history is not None:
            step = kept and len(history) < LONGEST and (function, kept[0][len(history) > 0 :], kept[1])
            keep_object(made, (*history, (*step, True)) if step else None)
            if history and step:
                HISTORIES[id(arguments[0])] = (*history, (*step, False))
            elif history:
                del HISTORIES[id(arguments[0])]
        for value in (*arguments, made):
            keep_object(value, None)
        return made

    return call


def keep_object(value: Any, history: tuple[Any, ...] | None) -> None:
    """Keep the first objects of each compiled class with their histories."""
    kept = OBJECTS[type(value)] if is_compiled(value) else None
    if kept is not None and len(kept) < CALLS and not any(value is each for each in kept):
        kept.append(value)
        if history:
            HISTORIES[id(value)] = history


def duplicate(value: Any, copy_array: Callable[[np.ndarray], np.ndarray] = np.ndarray.copy) -> Any:
    """Return a copy of arguments whose arrays can be written to; compiled objects are not copied."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.strides == (0,) and value.size:
            return np.broadcast_to(value[:1].copy(), value.shape)
        return copy_array(value)
    if type(value) in (list, tuple):
        return type(value)(duplicate(item, copy_array) for item in value)
    if type(value) is dict:
        return {key: duplicate(item, copy_array) for key, item in value.items()}
    if type(value) is Fresh:
        return value(copy_array)
    if fields_of(value):
        return with_fields(value, {name: duplicate(item, copy_array) for name, item in fields_of(value)})
    return value


def with_fields(value: Any, fields: dict[str, Any]) -> Any:
    """Return an object of the same class with other fields, which nothing checks."""
    if isinstance(value, SimpleNamespace):
        return SimpleNamespace(**fields)
    try:
        made = object.__new__(type(value))
        for name, item in fields.items():
            object.__setattr__(made, name, item)
    except (TypeError, AttributeError):  # a tuple, an enumeration or a class with other constructors
        return value
    return made


class Constructor:
    """Compiled class whose constructor calls are recorded."""

    def __init__(self, module: str, name: str, kind: type) -> None:
        self.make, self.kind = recorder(module, name, kind), kind

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.make(*arguments, **options)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)


@dataclass(frozen=True)
class Fresh:
    """Compiled object that each use in a call makes anew: a recorded constructor call, and the calls that followed."""

    steps: tuple[tuple[Any, tuple[Any, ...], dict[str, Any], bool], ...]  # True: the result replaces the object

    def __call__(self, copy_array: Callable[[np.ndarray], np.ndarray] = np.ndarray.copy) -> Any:
        made = None
        with suppress(Exception):
            for function, arguments, options, replaces in self.steps:
                own = () if made is None else (made,)
                result = function(*own, *duplicate(arguments, copy_array), **duplicate(options, copy_array))
                made = result if replaces else made
        return made


def methods_of(kind: type) -> dict[str, Any]:
    """Return the methods of a compiled class; constructors and special methods are not included."""
    return {name: value for name, value in vars(kind).items() if callable(value) and not name.startswith("__")}


def properties_of(kind: type) -> dict[str, Any]:
    """Return the properties and attributes of a compiled class."""
    return {
        name: value for name, value in vars(kind).items() if hasattr(value, "__set__") and not name.startswith("__")
    }


def special_methods_of(kind: type) -> dict[str, Any]:
    """Return the special methods that a compiled class defines, such as ``__len__`` and ``__setstate__``."""
    return {
        name: value
        for name, value in vars(kind).items()
        if callable(value) and name.startswith("__") and name not in ("__new__", "__init__")
    }


def set_method(kind: type, name: str, value: Any) -> None:
    """Replace a method of a compiled class, which Python code cannot change otherwise."""
    (namespace,) = gc.get_referents(kind.__dict__)
    namespace[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def session() -> None:
    """Use the package as users do, on small data, in a temporary folder."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))  # as pytest does
    from fuzz import session as parts

    import herdner
    from faults import typical

    folder = Path.cwd()
    with TemporaryDirectory() as temporary:
        os.chdir(temporary)  # some parts write files
        try:
            parts.elimination()  # its objects are larger than those of other parts
            typical.use(herdner)
            for part in ("topics", "estimators", "attributes", "sampling", "studies", "names"):
                getattr(parts, part)()
        finally:
            os.chdir(folder)


def record() -> None:
    """Record the calls of a typical session in `TABLE`."""
    originals: list[tuple[ModuleType, str, Any]] = []
    methods: list[tuple[type, str, Any]] = []
    compiled = [(name, import_module(f"herdner._ext.{name}")) for name in modules()]  # they import each other
    for name, module in compiled:
        for entry in entry_points(module):
            value = getattr(module, entry)
            originals.append((module, entry, value))
            if isinstance(value, type):
                for method, function in methods_of(value).items():
                    methods.append((value, method, function))
                    set_method(value, method, recorder(name, f"{entry}.{method}", function))
            setattr(module, entry, (Constructor if isinstance(value, type) else recorder)(name, entry, value))
    session()
    for module, entry, value in originals:
        setattr(module, entry, value)
    for kind, method, function in methods:
        set_method(kind, method, function)


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
    yield "a subclass with a wrong length", array.view(Liar)
    yield "a memory map", memory_map(array)
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


def memory_map(array: np.ndarray) -> np.ndarray:
    """Return the same values in a file that the operating system maps."""
    if array.dtype == object or not array.size:
        return array
    with NamedTemporaryFile() as file:
        mapped = np.memmap(file, array.dtype, "w+", shape=array.shape or (1,))
    mapped[...] = array
    return mapped.reshape(array.shape)


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
        for name, field in fields_of(value)[:MOST_FIELDS]:
            for text, item in alterations(field, depth + 1):
                yield f".{name} {text}", altered(value, name, item)
    elif is_compiled(value) or type(value) is Fresh:
        yield from compiled_alterations(value)
    else:
        for text, copier in COPIES.items():
            yield text, copied(copier, value)


def compiled_alterations(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a compiled object, objects that were not initialised, and objects of other classes."""
    value = value() if type(value) is Fresh else value
    for text, copier in COPIES.items():
        yield text, copied(copier, value)
    kind = type(value)
    with suppress(TypeError):  # the class is final
        subclass = type(kind.__name__, (kind,), {"__len__": lambda _: 10**7})
        yield "new object of a subclass", copied(lambda _: subclass.__new__(subclass), value)
    for other, objects in list(OBJECTS.items()):
        if objects and other is not kind:
            yield f"a {other.__name__}", objects[0]
    for other in OBJECTS[kind]:
        yield "another object", other


def altered(value: Any, name: str, item: Any) -> Any:
    """Return a copy of an object, or of a dictionary, with one other attribute."""
    if isinstance(value, dict):
        return {**value, name: item}
    return with_fields(value, dict(fields_of(value)) | {name: item})


def copied(copier: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy, or None if the object refuses to be copied."""
    try:
        return copier(value)
    except Exception:
        return None


def attempt(
    text: str, function: Callable[..., Any], arguments: Any, options: dict[str, Any], *, copies: bool = True
) -> Any:
    """Call a function with copies of its arguments; a Python exception is acceptable."""
    os.pwrite(LOG, f"{text:<300.300}\n".encode(), 0)
    if copies:
        arguments, options = duplicate(list(arguments)), duplicate(options)
    arm([arguments, options])
    try:
        return function(*arguments, **options)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def is_count(value: Any) -> bool:
    """Return True for an integer that, as a valid number of steps, would mean much work."""
    return type(value) is int and value >= 2**31 - 1


def work_apart(work: Callable[[], object]) -> None:
    """Call ``work`` in a process of its own, which may end by its time limit; Python exceptions are acceptable."""
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_PROF, MOST_WORK)
        try:
            work()
        except SystemError:
            os.abort()
        except BaseException:
            os._exit(0)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status and os.WTERMSIG(status) != signal.SIGPROF:
        os.kill(os.getpid(), os.WTERMSIG(status))


def attack(module: str, name: str) -> int:
    """Call one entry point with all alterations of its recorded calls. Return the number of calls."""
    found = import_module(f"herdner._ext.{module}")
    owner, _, attribute = name.partition(".")
    function: Any = getattr(found, owner)
    if attribute and attribute in properties_of(function):
        return attack_property(f"{module}.{name}", function, attribute)
    if attribute:
        function = vars(function)[attribute]
    count = 0
    for arguments, options in calls_of(module, name):
        attempt(f"{module}.{name} as recorded", function, arguments, options)
        for k, value in enumerate(arguments):
            for text, item in alterations(value):
                count += 1
                changed = [*arguments[:k], item, *arguments[k + 1 :]]
                if is_count(item):
                    work_apart(partial(attempt, f"{module}.{name}({k}: {text})", function, changed, options))
                    continue
                made = attempt(f"{module}.{name}({k}: {text})", function, changed, options)
                use(f"{module}.{name}({k}: {text})", made)
        for key, value in options.items():
            for text, item in alterations(value):
                count += 1
                attempt(f"{module}.{name}({key}: {text})", function, arguments, options | {key: item})
    for arguments, options in calls_of(module, name)[:2]:
        for kinds in ("f", "iu"):
            count += race(f"{module}.{name}", function, arguments, options, kinds)
    if isinstance(function, type):
        count += attack_class(module, name, function)
    return count


class SharedArrays:
    """Arrays in memory that a child process changes without the GIL, while calls read them.

    Args:
        kinds: Kinds of the data types of these arrays; other arrays are copied.
    """

    def __init__(self, kinds: str) -> None:
        self.kinds, self.arrays, self.place = kinds, [], 0
        self.has_begun = mmap(-1, 1)

    def copy(self, array: np.ndarray) -> np.ndarray:
        """Return the next shared array with the values of ``array``; make it if it does not exist."""
        if array.dtype.kind not in self.kinds or not array.size:
            return array.copy()
        if self.place == len(self.arrays):
            self.arrays.append(np.frombuffer(mmap(-1, array.nbytes), array.dtype))
        shared, self.place = self.arrays[self.place], self.place + 1
        if shared.size != array.size or shared.dtype != array.dtype:
            return array.copy()
        shared[...] = array.ravel()
        return shared.reshape(array.shape)

    def change(self) -> None:
        """Write hostile and valid values in turn, until the parent process ends."""
        parent, valid = os.getppid(), [array.copy() for array in self.arrays]
        while os.getppid() == parent:
            for shared, original in zip(self.arrays, valid, strict=True):
                numbers = (np.nan, np.inf, -np.inf, 1e308, -1.0) if shared.dtype.kind == "f" else NUMBERS
                limits = None if shared.dtype.kind == "f" else np.iinfo(shared.dtype)
                for number in numbers:
                    if limits is None or limits.min <= number <= limits.max:
                        shared[:] = number
                        np.copyto(shared, original)
            self.has_begun[0] = 1


def race(text: str, function: Callable[..., Any], arguments: Any, options: dict[str, Any], kinds: str) -> int:
    """Repeat a call while another process changes the arrays that it reads. Return the number of calls."""
    memory, count = SharedArrays(kinds), 0
    duplicate((arguments, options), memory.copy)
    if not memory.arrays:
        return 0
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_PROF, 0)
        with np.errstate(all="ignore"):
            memory.change()
        os._exit(0)
    while not memory.has_begun[0]:
        time.sleep(0.001)
    end = time.monotonic() + RACE_SECONDS
    while time.monotonic() < end:
        memory.place = 0
        own, named = duplicate((list(arguments), options), memory.copy)
        attempt(f"{text} while arrays of kind {kinds} change", function, own, named, copies=False)
        count += 1
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return count


def calls_of(module: str, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return recorded calls of an entry point; methods are called on an object of the session as well."""
    calls = list(TABLE[module, name])
    owner, _, method = name.partition(".")
    if method:
        arguments, options = calls[0] if calls else ((None,), {})
        kept = OBJECTS[getattr(import_module(f"herdner._ext.{module}"), owner)][:1]
        calls = calls[:3] + [((each, *arguments[1:]), options) for each in kept]
    return calls or [((), {})]


def attack_property(text: str, kind: type, name: str) -> int:
    """Read, set and delete a property of objects of a class, and use the objects afterwards."""
    count, accessor = 0, vars(kind)[name]
    for made in [*OBJECTS[kind][:2], copied(COPIES["new"], next(iter(OBJECTS[kind]), None))]:
        value = attempt(f"{text} read", accessor.__get__, [made], {})
        for change, item in alterations(value):
            count += 1
            attempt(f"{text} = {change}", accessor.__set__, [made, item], {})
        attempt(f"{text} deleted", accessor.__delete__, [made], {})
        use(f"{text} deleted", made)
    return count


def use(text: str, made: Any, kind: type | None = None) -> None:
    """Call the methods of an object, of its class or of another ``kind``, that a hostile constructor has made."""
    kind = kind or type(made)
    if not kind.__module__.startswith("herdner._ext"):
        return
    module, name = kind.__module__.split(".")[-1], kind.__name__
    for property_name, accessor in properties_of(kind).items():
        attempt(f"{text}.{property_name}", accessor.__get__, [made], {})
    for method, value in methods_of(kind).items():
        for arguments, options in TABLE[module, f"{name}.{method}"][:2] or [((), {})]:
            if method not in LEFT_OUT:
                attempt(f"{text}.{method}", value, [made, *arguments[1:]], options)


def attack_class(module: str, name: str, kind: type) -> int:
    """Make objects without the constructor, call it twice, copy, pickle and subclass, and call special methods."""
    count = 0
    for arguments, options in TABLE[module, name][:2] or [((), {})]:
        made = attempt(f"{module}.{name} again", kind, arguments, options)
        made = next(iter(OBJECTS[kind]), None) if made is None else made
        for text, other in (
            ("itself", made),
            ("__new__", attempt(f"{module}.{name}.__new__", lambda: kind.__new__(kind), (), {})),
            ("__new__ with arguments", attempt(f"{module}.{name}.__new__", kind.__new__, (kind, *arguments), options)),
            *((text, copied(copier, made)) for text, copier in COPIES.items()),
        ):
            count += 1
            use(f"{module}.{name} {text}", other)
            for method, value in special_methods_of(kind).items():
                for items in (
                    (),
                    (None,),
                    (0,),
                    (-1,),
                    (2**62,),
                    (object(),),
                    ((),),
                    (np.zeros(1),),
                    (0, 0),
                    (2**62, None),
                ):
                    attempt(f"{module}.{name} {text}.{method}{items}", value, [other, *items], {})
            use(f"{module}.{name} {text} after special methods", other)
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
            os.dup2(log.fileno(), LOG)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(20 * SECONDS)
            sys.unraisablehook = lambda _: None
            try:
                attack(module, name)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
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
        called = {name for name in (*points, *members(found)) if is_called(found, name)}
        for name in (*points, *members(found)):
            n_calls = len(TABLE[module, name])
            if not n_calls and name in called:
                failures += 1
                print(f"{module}.{name}: the session does not call it", flush=True)
            status, last = run_child(module, name)
            if status:
                failures += 1
                print(f"{module}.{name}: wait status {status}, {n_calls} recorded: {last}", flush=True)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
