"""One word for one thing: names of classes, first words of docstrings, and words that the glossary replaces."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from data import REPOSITORY

from herdner.cli import app
from herdner.inference.registry import BACKENDS

SOURCES = sorted((REPOSITORY / "herdner").rglob("*.py"))
COMPILED = sorted(
    path
    for folder in ("herdner", "cython_ext")
    for path in (REPOSITORY / folder).rglob("*")
    if path.suffix in (".pyx", ".pxd", ".pyi", ".h", ".c")
)
OTHERS = sorted(path for folder in ("tests", "scripts", "docs") for path in (REPOSITORY / folder).rglob("*.py"))
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "pages").rglob("*.md"))]
# Words that once meant several things or nothing clear, and the word that replaces each.
BANNED = {
    r"doubts?": "warning", r"mend(s|ed|ing)?": "fix", r"judged": "held-out", r"unborn": "lazily initialised",
    r"wrong use": "usage error", r"one behind the other": "concatenated", r"had no say": "held-out", r"skips": "links",
    r"spare": "overwrite_unary", r"file endings?": "file extension", r"told": "a verb that names the actor",
    r"(is|are) sure of": "confidence", r"belief that": "confidence",
}  # fmt: skip
# Participles and fillers that name nothing; `left` may stand beside `right`.
FILLERS = {
    "found", "given", "held", "told", "judged", "alone", "sure", "spare", "apart", "known", "lost", "wanted", "tried",
    "headed",
}  # fmt: skip
ENGLISH = ("descriptions.py", "measure_invented.py", "test_hostile_models.py")  # files with English example sentences
Function = ast.FunctionDef | ast.AsyncFunctionDef
BANNED_FIRST_WORDS = {
    "What", "How", "Whether", "Which", "Where", "Why", "Of", "That", "Those", "As", "By", "With", "From", "In", "To",
}  # fmt: skip


def documented_nodes(path: Path) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def type_names(path: Path) -> Iterator[str]:
    """Yield the classes, structs, enumerations and type aliases of a module."""
    if path.suffix in (".pyx", ".pxd"):
        yield from re.findall(
            r"^(?:cdef |cpdef |ctypedef )?(?:class|struct|enum) (_?[A-Z]\w*[a-z]\w*)", path.read_text(), re.MULTILINE
        )
        return
    if path.suffix not in (".py", ".pyi"):
        return
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name):
                yield name


@pytest.mark.slow
def test_no_two_types_share_a_name() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES + COMPILED:
        for name in type_names(path):  # a compiled module has declarations in .pyx, .pxd and .pyi files
            module = path.relative_to(REPOSITORY).with_suffix("").as_posix()
            modules[name].add(module.replace("herdner/_ext/", "cython_ext/"))
    assert len(modules) > 500
    assert not {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1}


@pytest.mark.slow
def test_functions_and_parameters_are_not_named_by_participles() -> None:
    wrong = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.arg] if isinstance(node, ast.arg) else []
            if isinstance(node, Function | ast.ClassDef):
                names = [node.name] if node.name not in ("failed", "compiled") else []
                wrong += [
                    f"{path.relative_to(REPOSITORY)}: {name}" for name in names if re.fullmatch("_*[a-z]+ed", name)
                ]
            wrong += [f"{path.relative_to(REPOSITORY)}: {name}" for name in names if name.strip("_") in FILLERS]
    assert not wrong


@pytest.mark.slow
def test_docstrings_begin_with_a_verb_or_a_noun_phrase() -> None:
    wrong = []
    for path in SOURCES:
        for node in documented_nodes(path):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0] in BANNED_FIRST_WORDS:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 1)}: {' '.join(words[:6])}")
    assert not wrong


def public_functions(path: Path) -> Iterator[tuple[str, Function]]:
    """Yield the public functions and methods of a module except commands, whose docstrings are help texts."""
    help_texts = {command.callback.__doc__ for command in commands(app)}
    bodies = [("", ast.parse(path.read_text(encoding="utf-8")).body)]
    for owner, body in bodies:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bodies.append((f"{node.name}.", node.body))
            elif not isinstance(node, Function) or node.name.startswith("_"):
                continue
            elif ast.get_docstring(node, clean=False) not in help_texts:
                yield owner + node.name, node


def commands(group: Any) -> Iterator[Any]:
    """Yield the commands of the command line, and those of its groups such as ``herdner corpora``."""
    yield from filter(None, [group.registered_callback, *group.registered_commands])
    for each in group.registered_groups:
        yield from commands(each.typer_instance)


def docstring_section(docstring: str, name: str) -> str:
    match = re.search(rf"^{name}:\n((?: +.*\n?|\n)*)", docstring, re.MULTILINE)
    return match[1] if match else ""


def undocumented_parts(name: str, function: Function, module: ModuleType) -> Iterator[str]:
    """Yield the parameters, the result and the exceptions of a function that its docstring does not describe."""
    docstring = ast.get_docstring(function) or ""
    summary = docstring.split("\n\n")[0]
    if re.search(r"[Ss]ee `\w+\.\w+`", summary):  # a method of a protocol, which describes it
        return
    decorators = {ast.unparse(each) for each in function.decorator_list}
    arguments = function.args
    parameters = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    parameters += [each.arg for each in (arguments.vararg, arguments.kwarg) if each]
    described = docstring_section(docstring, "Args")
    for parameter in parameters["." in name and "staticmethod" not in decorators :]:
        if not parameter.startswith("_") and not re.search(rf"^ *[*]{{0,2}}{parameter}:", described, re.MULTILINE):
            yield f"Args: {parameter}"
    annotation = ast.unparse(function.returns) if function.returns else "None"
    is_property = any(re.search(r"property|setter|contextmanager", each) for each in decorators)
    has_shape = "[" in summary or not re.search("NDArray|Floats|Int32s|Int64s", annotation)
    says_result = re.search(r"\b([Rr]eturn|[Yy]ield)\b", summary) and has_shape
    has_section = re.search(r"^(Returns|Yields):", docstring, re.MULTILINE)
    if annotation not in ("None", "NoReturn", "Self") and not (is_property or says_result or has_section):
        yield "Returns"
    errors = set(re.findall(r"^ +(?:\w+\.)*(\w+):", docstring_section(docstring, "Raises"), re.MULTILINE))
    for error in raised_exceptions(function.body, module):
        if not errors & {each.__name__ for each in error.__mro__}:
            yield f"Raises: {error.__name__}"


def raised_exceptions(body: list[ast.stmt], module: ModuleType) -> Iterator[type[BaseException]]:
    """Yield the exception classes of the ``raise`` statements of a function, without those inside ``with`` blocks.

    A context manager may convert exceptions.
    """
    nodes: list[ast.AST] = list(body)
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            error = getattr(builtins, raised, None) or vars(module).get(raised)
            if isinstance(error, type):
                yield error
        elif not isinstance(node, ast.With | ast.Lambda | ast.ClassDef | Function):
            nodes += ast.iter_child_nodes(node)


@pytest.mark.slow
def test_docstrings_describe_parameters_results_and_exceptions() -> None:
    wrong = []
    for path in SOURCES:
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        if any(re.fullmatch(r"_[^_]\w*", part) for part in parts):
            continue
        try:
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        except ImportError:  # an optional dependency is missing
            continue
        for name, function in public_functions(path):
            missing = list(undocumented_parts(name, function, module))
            wrong += [f"{path.relative_to(REPOSITORY)}:{function.lineno}: {name}: {each}" for each in missing]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("word", BANNED)
def test_banned_words_do_not_come_back(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    lines = []
    for path in SOURCES + COMPILED + OTHERS + PAGES:
        if path.name in ("glossary.md", "changelog.md", "test_language.py", *ENGLISH):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                lines.append(f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}")
    assert not lines, f"write {BANNED[word]!r} for {word!r}"


def test_the_glossary_defines_each_term_once() -> None:
    glossary = (REPOSITORY / "docs" / "pages" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+?) \| [^|]+ \| [^|]+ \|$", glossary, re.MULTILINE)
    terms = [term for term in terms if term not in ("term", "---")]
    assert len(terms) > 150
    assert len(terms) == len(set(terms))
    assert not [name for name in BACKENDS if f"`{name}`" not in glossary]
