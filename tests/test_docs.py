"""The documentation: its pages run and print what they say, and the site builds without a warning.

In a page, blocks of ``python`` run one after the other in one namespace, and blocks of ``sh`` in a shell, in a folder
that is the page's own and holds ``corpora``. A block of ``text`` right after one of them is its output, exactly.
A block with ``title="NAME"`` is written to the file NAME. Other languages, ``py`` and ``console`` among them, are for
reading only.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from commands import Call
from data import ELSEWHERE, REPOSITORY

import herdner
from herdner.cli import app, run
from herdner.ner.model_file import shipped_models

DOCS = REPOSITORY / "docs"
PACKAGE = Path(herdner.__file__).parent
PAGES = DOCS / "pages"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S)
RUNNING = ("python", "sh")
WITH_NAMES = tuple(
    f"herdner.{name}"
    for name in (
        "graph",
        "inference",
        "inference.gibbs",
        "dobrushin",
        "studies.convergence",
        "studies.fwss",
        "studies.denoising",
        "integrations.dask",
        "integrations.spacy",
    )
)


class Block(NamedTuple):
    language: str
    title: str | None
    body: str
    line: int
    output: str | None  # the text that follows


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page; a block of output belongs to the one before it."""
    found = list(FENCE.finditer(page))
    used = False
    for match, after in zip(found, [*found, None][1:], strict=True):
        language, _, rest = match["info"].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        body = textwrap.dedent(match["body"])
        follows = (
            after is not None and after["info"].strip() == "text" and not page[match.end() : after.start()].strip()
        )
        runs = language in RUNNING and title is None
        assert runs or used or match["info"].strip() != "text", f"nothing prints this: {body}"
        used = runs and follows
        output = textwrap.dedent(after["body"]) if used and after else None
        yield Block(language, title[1] if title else None, body, page.count("\n", 0, match.start()) + 1, output)


def pages() -> list[Any]:
    """The pages with something to run, each by its name; those that train, or start processes, are slow."""
    found = [path for path in sorted(PAGES.rglob("*.md")) if re.search(r"^ *```(python|sh)$", path.read_text(), re.M)]
    assert len(found) >= 2
    slow = {"index.md", "labels.md", "spacy.md", "tag.md", "train.md"}
    assert slow <= {path.name for path in found}
    return [
        pytest.param(path, id=str(path.relative_to(PAGES)), marks=pytest.mark.slow if path.name in slow else ())
        for path in found
    ]


def printed_by(command: str, folder: Path, call: Call) -> str:
    """Return the output of a shell block: herdner runs in this process if it comes first, the rest in a shell."""
    first, pipe, rest = command.replace("\\\n", " ").strip().partition(" | ")
    if not first.startswith("herdner ") or re.search(r"[\n;&<>$]", first):
        return shell(command, folder)
    outcome = call(*shlex.split(first)[1:])
    assert outcome.code == 0, outcome.err
    return shell(rest, folder, outcome.out) if pipe else outcome.out


def shell(command: str, folder: Path, piped: str = "") -> str:
    """Return the output of a shell command that finds the installed herdner."""
    program = folder / ".bin" / "herdner"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m herdner "$@"\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(
        ["sh", "-eu", "-c", command], input=piped, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", pages())
def test_page_runs_and_prints_what_it_says(page: Path, call: Call, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    (tmp_path / "corpora").symlink_to(REPOSITORY / "corpora")
    namespace = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.title is not None:
            Path(block.title).write_text(block.body, encoding="utf-8")
        elif block.language == "sh":
            check(block, printed_by(block.body, tmp_path, call), page)
        elif block.language == "python":
            code = compile("\n" * block.line + block.body, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, namespace)
            check(block, printed.getvalue(), page)


def check(block: Block, printed: str, page: Path) -> None:
    if block.output is not None:
        assert plain(printed) == plain(block.output), f"{page.name}, line {block.line}"


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").split("\n")]


def test_pages_lead_with_an_example_and_its_output() -> None:
    references = {"api/index.md", "changelog.md", "glossary.md", "papers.md", "speed.md", "compared.md"}
    not_run = {  # servers, clusters, browsers, installations, and libraries with models that the tests do not download
        "api/distributed.md", "api/integrations.md", "api/serve.md", "browser.md", "distributed.md", "install.md",
        "tutorials/presidio.md", "tutorials/transformers.md",
    }  # fmt: skip
    for path in sorted(PAGES.rglob("*.md")):
        name = path.relative_to(PAGES).as_posix()
        first_section = "## ".join(re.split("^## ", path.read_text(), flags=re.M)[:2])
        outputs = [block.output for block in blocks(first_section)]
        assert any(outputs) or name in references | not_run, name


def test_output_that_nothing_prints_is_found() -> None:
    with pytest.raises(AssertionError, match="nothing prints"):
        list(blocks("```text\n1\n```\n"))
    first, second = blocks("```python\nprint(1)\n```\n\n```text\n1\n```\n")
    assert (first.output, second.output) == ("1\n", None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    for package in ("furo", "myst_parser", "sphinx", "sphinx_copybutton"):
        pytest.importorskip(package, reason="needs the extra test")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", DOCS, "-d", folder / "read"]
    run = subprocess.run([*command, PAGES, folder / "site"], cwd=ELSEWHERE, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.mark.slow
def test_every_public_name_has_its_entry(site: Path) -> None:
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    known = {line.split()[0] for line in lines}
    missing = []
    for module in ("herdner", *WITH_NAMES):
        package = importlib.import_module(module)
        for name in package.__all__:
            # A function that is named like a module beside it has its entry where it is defined.
            value = getattr(package, name)
            places = {f"{module}.{name}", f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"}
            if not places & known and name != "__version__":
                missing.append(f"{module}.{name}")
    assert not missing


TERMS = ("belief propagation", "pairwise marginals", "max-marginals", "partition function")
STEMS = {"propagation": "propag", "pairwise": "pairwis", "marginals": "margin", "partition": "partit"}


def test_terms_of_researchers_are_in_the_glossary() -> None:
    glossary = (PAGES / "glossary.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^\| ([^|]+) \|", glossary, re.M))
    assert set(TERMS) <= defined


@pytest.mark.slow
@pytest.mark.parametrize("term", list(TERMS))
def test_the_search_of_the_site_finds_terms_of_researchers(site: Path, term: str) -> None:
    """A page about inference and the glossary contain all words of the term, in the form that Sphinx indexes."""
    script = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").rstrip(";)"))
    pages = set(range(len(index["docnames"])))
    for word in re.findall(r"\w+", term):
        found = index["terms"].get(STEMS.get(word, word), [])
        pages &= {found} if isinstance(found, int) else set(found)
    names = {index["docnames"][page] for page in pages}
    assert "glossary" in names
    assert names & {"api/inference", "backends", "api/index"}, names


@pytest.mark.slow
def test_every_command_and_every_model_has_its_section(site: Path) -> None:
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    named = {"commands.html": [f"herdner-{name}" for name in [*commands, "corpora-list"]]}
    named["models.html"] = [name.replace("_", "-") for name in shipped_models()]
    assert len(commands) >= 10
    for page, sections in named.items():
        there = set(re.findall(r'<section id="([^"]+)"', (site / page).read_text(encoding="utf-8")))
        assert not set(sections) - there


@pytest.mark.slow
def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    fetched = re.compile(rb'<(?:script|img|iframe)[^>]+src="(?:https?:)?//|<link[^>]+(?:stylesheet|preconnect)[^>]+//')
    found = [path.name for path in site.rglob("*.html") if fetched.search(path.read_bytes())]
    assert not found


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(site: Path, scheme: str, width: int) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, which drives the browser")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
        # One of each kind: prose, tables, long signatures, options of commands, and what a script fills in.
        for name in ("index", "backends", "api/crf", "commands", "search"):
            page.goto((site / f"{name}.html").as_uri())
            found = axe.run(page).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], name
        browser.close()


def test_the_picture_of_the_floors_has_the_floors() -> None:
    layers = re.search(r"^layers = \[\n(.*?)^\]", (REPOSITORY / "pyproject.toml").read_text(), re.M | re.S)
    assert layers
    rows = [re.findall(r"\w+", row) for row in layers[1].splitlines()][1:]  # without __main__
    drawn = re.findall(r">([^<]*)</text>", (PAGES / "images" / "floors.svg").read_text())[::2]
    assert [re.findall(r"\w+", row) for row in drawn] == [
        ["herdner", "command", "line"],
        *rows[1:-1],
        ["_ext", "Cython"],
    ]


@pytest.mark.slow
def test_a_text_goes_the_way_that_the_page_says(tmp_path: Path) -> None:
    """Each function of the table on architecture is entered, in the order of the table."""
    page = (DOCS / "pages" / "architecture.md").read_text(encoding="utf-8")
    stages = re.findall(r"((?:`[\w.]+`(?:, )?)+) in `([\w/]+\.py)`", page)
    way = [(file, name.split(".")[-1]) for names, file in stages for name in re.findall(r"`([\w.]+)`", names)]
    entered: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        place = Path(frame.f_code.co_filename)
        if event == "call" and place.is_relative_to(PACKAGE):
            entered.setdefault((place.relative_to(PACKAGE).as_posix(), frame.f_code.co_name))

    sys.setprofile(note)
    try:
        run(["tag", str(REPOSITORY / "corpora" / "article.txt"), "--output", str(tmp_path / "names.jsonl")])
    finally:
        sys.setprofile(None)
    assert len(way) > 15
    assert [place for place in entered if place in set(way)] == way


def test_files_that_the_map_of_compiled_code_names_are_there() -> None:
    page = (PAGES / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:pyx|h))`", page[page.index("## Compiled code") :]))
    assert len(named) > 15
    assert not [name for name in named if not (REPOSITORY / "cython_ext" / name).exists()]
