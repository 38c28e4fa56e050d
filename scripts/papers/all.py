"""Comparison of every table and figure of the five papers with herdner's results, written as a page.

    python scripts/papers/all.py [--quick] [--data FOLDER] [--only TEXT] [--page FILE] [--out FOLDER]

The script runs the commands of papers.toml one after another and writes the page from their results. The page names the
scripts that could not run because data or an extra are missing. --quick uses the small sizes of all scripts, which
takes about ten minutes on two idle cores; the papers' sizes take a night. --no-run writes the page from existing JSON
files. Tables and figures without a JSON file keep their results of the existing page.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from papers_items import HEAD, PAPERS, PICTURES, Item, load

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PAGE = REPOSITORY / "docs" / "pages" / "papers.md"
COMMANDS, ITEMS = load()
DATA = Path(os.environ.get("HERDNER_DATA", "."))
VERDICTS = ("agrees", "departs", "not decided", "not in the paper", "not done")
Found = Mapping[str, Any]
Kept = Mapping[tuple[str, str, str], tuple[str, str]]


def places(data: Path) -> dict[str, str]:
    """Return the path for each name in braces that the commands of papers.toml contain."""
    shapes = data / "vision" / "mpeg7_shapes"
    picture = next((path for path in sorted(shapes.glob("*")) if path.is_file()), shapes / "none.png")
    text = REPOSITORY / "corpora" / "article.txt"
    folders = {"shapes": shapes, "msrc": data / "vision" / "msrc_v1", "ieer": data / "ner" / "ieer"}
    return {name: str(path) for name, path in {**folders, "picture": picture, "text": text}.items()}


def run(command: str, data: Path, out: Path, quick: bool) -> str:
    """Run one script; return an empty text, or the reason in one line if the script failed."""
    words = [word.format(**places(data)) for word in shlex.split(command)]
    call = [sys.executable, str(HERE / words[0]), *words[1:], "--out", str(out), *(["--quick"] if quick else [])]
    environment = {**os.environ, "HERDNER_DATA": str(data), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    done = subprocess.run(call, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    print(f"{command}: {'ended' if done.returncode else 'done'} after {time.perf_counter() - began:.0f} s", flush=True)
    if not done.returncode:
        return ""
    last = [line.strip(" │|") for line in done.stderr.splitlines() if line.strip(" │╭╮╰╯─|-")]
    return last[-1][:160] if last else f"status {done.returncode}"


def results(out: Path) -> dict[str, Found]:
    """Return the contents of the JSON files of a folder, by the name of the experiment."""
    found = {}
    for path in sorted(out.glob("*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(held, dict) and "experiment" in held and "results" in held:
            found[held["experiment"]] = held
    return found


def row(item: Item, found: Mapping[str, Found], failures: Mapping[str, str], kept: Kept) -> list[str]:
    """Return the table cells of an item: name, command, the paper's result, herdner's result, condition and verdict."""
    condition, why = item.condition or "-", f": {item.why}" if item.why else ""
    if item.command is None or item.reading is None:
        verdict = f"not done{why}" if item.verdict is None else item.verdict
        return [item.name, "-", item.paper, "-", condition, verdict]
    name, held = f"`{COMMANDS[item.command]}`", found.get(item.experiment)
    if held is None and item.command not in failures and (item.of, item.name, condition) in kept:
        here, verdict = kept[item.of, item.name, condition]
        return [item.name, name, item.paper, here, condition, f"{verdict}{why}"]
    if held is None:
        reason = failures.get(item.command, "no results")
        return [item.name, name, item.paper, "-", condition, f"did not run: {reason}"]
    try:
        got, holds = item.reading(held["results"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        why = f"{type(error).__name__} {error}"
        raise SystemExit(f"{item.experiment}.json does not hold what {item.name} needs: {why}") from None
    here = f"{got}{' (quick)' if held['quick'] else ''}"
    return [item.name, name, item.paper, here, condition, f"{item.judge(holds)}{why}"]


def kept_results(text: str) -> Kept:
    """Return herdner's results and the computed verdicts of an earlier page, by paper, name and condition."""
    kept, papers, paper = {}, {title: key for key, title in PAPERS.items()}, ""
    for line in text.splitlines():
        paper = papers.get(line.removeprefix("## "), paper)
        cells = [cell.replace("\0", "|") for cell in line.replace("\\|", "\0").strip("| ").split(" | ")]
        verdict = cells[-1].split(":")[0]
        if len(cells) == 6 and cells[3] != "-" and verdict.split(",")[0] in VERDICTS[:-1]:
            kept[paper, cells[0], cells[4]] = cells[3], verdict
    return kept


def page(found: Mapping[str, Found], failures: Mapping[str, str], before: str = "") -> str:
    """Return the page as Markdown; items that were not run keep their results of the page ``before``."""
    kept, parts, verdicts = kept_results(before), [], []
    for paper, title in PAPERS.items():
        rows = [row(item, found, failures, kept) for item in ITEMS if item.of == paper]
        verdicts += [cells[-1].split(":")[0] for cells in rows]
        cells = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in one) + " |" for one in rows)
        head = (
            "| item | command | result of the paper | result of herdner | condition for agreement | verdict |\n"
            "|---|---|---|---|---|---|"
        )
        parts.append(f"## {title}\n\n{pictures(paper)}{head}\n{cells}\n")
    return "\n".join([HEAD.format(counts=counts(verdicts)), *parts])


def pictures(paper: str) -> str:
    """Return MyST Markdown of the plot of a paper in two colour schemes, with its caption; "" if there is no plot."""
    if paper not in PICTURES:
        return ""
    name, text = PICTURES[paper]
    block = "```{{image}} images/{name}-{scheme}.svg\n:class: only-{scheme}\n:alt: {text}\n```\n\n"
    return "".join(block.format(name=name, scheme=scheme, text=text) for scheme in ("light", "dark")) + f"{text}.\n\n"


def counts(verdicts: Sequence[str]) -> str:
    """Return a sentence with the number of rows of each verdict."""
    of = {name: sum(verdict.split(",")[0] == name for verdict in verdicts) for name in VERDICTS}
    others = len(verdicts) - sum(of.values())
    return (
        f"Of {len(verdicts)} items, {of['agrees']} agree with the paper, {of['departs']} depart from it,"
        f" {of['not decided']} are not decided, {of['not in the paper']} are not in the paper, {of['not done']} are not"
        f" done, and the other {others} have no measurement of their own."
    )


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Use the small sizes of all scripts.")] = False,
    data: Annotated[Path, typer.Option(help="Folder of the data, with vision/ and uci/.")] = DATA,
    only: Annotated[str, typer.Option(help="Run only commands that contain this text.")] = "",
    no_run: Annotated[bool, typer.Option("--no-run", help="Write the page without running scripts.")] = False,
    file: Annotated[Path, typer.Option("--page", help="File of the page.")] = PAGE,
    out: Annotated[Path, typer.Option(help="Folder of the scripts' JSON files and figures.")] = Path("out"),
) -> None:
    """Run the scripts of all tables and figures of the papers and write the page that compares them."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = [] if no_run else [key for key, command in COMMANDS.items() if only in command]
    failures = {key: run(COMMANDS[key], data, out, quick) for key in chosen}
    failures = {key: reason for key, reason in failures.items() if reason}
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    text = page(results(out), failures, before)
    file.write_text(text, encoding="utf-8")
    print(f"{file}: {next(line for line in text.splitlines() if line.startswith('Of '))}")


if __name__ == "__main__":
    typer.run(main)
