"""Tests of ``herdner report``: numbers, output formats, and one line for every kind of bad input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

from herdner.cli import run as herdner_run
from herdner.corpora.formats import write_documents
from herdner.evaluation import report as reports
from herdner.evaluation.compare import compare
from herdner.evaluation.scores import evaluate
from herdner.text.document import Document

WORDS = [[["Ada", "Reyes", "met", "Kenya", "<b>&", "."], ["Reyes", "left", "|", "Oslo"]], [["Oslo", "rained"]]]
GOLD = [[["B-PER", "I-PER", "O", "B-LOC", "B-ORG", "O"], ["B-PER", "O", "O", "B-LOC"]], [["B-LOC", "O"]]]
BEFORE = [[["B-PER", "I-PER", "O", "B-ORG", "O", "O"], ["B-LOC", "O", "B-ORG", "B-LOC"]], [["O", "O"]]]
AFTER = [[["B-PER", "I-PER", "O", "B-LOC", "B-ORG", "O"], ["B-PER", "O", "O", "B-ORG"]], [["B-LOC", "O"]]]


def documents(tags) -> list[Document]:
    return [Document.from_tokens(w, t, id=f"d{i}") for i, (w, t) in enumerate(zip(WORDS, tags, strict=True))]


def write(path: Path, found: list[Document], format: str) -> str:
    stream = io.BytesIO()
    write_documents(found, stream, format)
    path.write_bytes(stream.getvalue())
    return f"{path}:{format}"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Write gold documents and two predictions, each in another format; "after" has confidences."""
    after = [d.with_decoded(d.spans or [], confidences=[0.9] * len(d.entities)) for d in documents(AFTER)]
    return {
        "gold": write(tmp_path / "gold.conll", documents(GOLD), "conll"),
        "before": write(tmp_path / "before.spacy", documents(BEFORE), "spacy"),
        "after": write(tmp_path / "after.jsonl", after, "jsonl"),
    }


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = herdner_run(["report", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_json_agrees_with_the_library(files, run):
    code, out, err = run(files["gold"], "--before", files["before"], "--after", files["after"], "--format", "json")
    assert (code, err) == (0, "")
    values = json.loads(out)
    gold, before, after = map(documents, (GOLD, BEFORE, AFTER))
    for system, found in zip(values["systems"], (before, after), strict=True):
        scores = evaluate(gold, found).to_dict()
        assert all(system["scores"][key] == scores[key] for key in ("micro", "macro", "n_tokens"))
    change = values["changes"][0]
    expected = compare(gold, before, after, rng=np.random.default_rng(0), names=("before", "after"))
    assert change["comparison"] == json.loads(expected.to_json())
    assert (change["n_fixed"], change["n_new"]) == (5, 1)
    assert values["systems"][0]["consistency"]["n_repeated"] == 0
    assert set(values["systems"][0]["short_forms"]) == {"ORG", "PER"}
    assert values["gold"]["n_entities"] == 6
    assert values["systems"][0]["confusion"]["kinds"] == {
        "correct": 2, "label": 2, "boundaries": 0, "label and boundaries": 0, "missed": 2, "spurious": 1
    }  # fmt: skip
    calibration = values["systems"][1]["calibration"]
    assert calibration["n_entities"] == 6
    assert calibration["measures"]["overconfidence"] == pytest.approx(0.9 - 5 / 6)
    assert values["systems"][0]["calibration"] is None
    assert {e["kind"] for e in values["systems"][0]["errors"]} == {"label", "missed", "spurious"}


def test_html_is_one_page_with_figures_and_everything_escaped(files, run, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra evaluate")
    target = tmp_path / "report.html"
    name = "<script>alert(1)</script>"
    code, out, err = run(
        files["gold"], "--predictions", files["before"], "--predictions", files["after"], "--name", name, "--name", "b",
        "-o", target,
    )  # fmt: skip
    assert (code, out, err) == (0, "", "")
    page = target.read_text(encoding="utf-8")
    assert page.count("<svg") == page.count("</svg>") == 4
    assert "<script" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&<" not in page
    for outside in ("http-equiv", "src=", "@import", "url(http"):
        assert page.count(outside) == (1 if outside == "http-equiv" else 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["after.jsonl", "before.spacy", "gold.conll", "report.html"]


def test_markdown_is_escaped(files, run):
    code, out, _ = run(files["gold"], "--predictions", files["after"])
    assert code == 0
    assert "| micro | 6 | 83.33 | 83.33 | 83.33 |" in out
    assert "label: Oslo LOC -\\> Oslo ORG" in out
    assert "<b>" not in out
    header = next(line for line in out.splitlines() if line.startswith("| gold \\"))
    assert header == "| gold \\\\ predicted | LOC | ORG | PER | missed |"


def test_missing_packages_are_one_line(files, run, monkeypatch):
    for name in ("nervaluate", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run(files["gold"], "--predictions", files["after"], "--format", "html")
    assert code == 0
    assert err.splitlines() == [
        "herdner: figures need Matplotlib: pip install '.[evaluate]' in the clone of herdner",
        "herdner: partial matches need nervaluate: pip install '.[evaluate]' in the clone of herdner",
    ]
    assert "figures need Matplotlib: pip install &#39;.[evaluate]&#39;" in out
    assert "<svg" not in out
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, out, err = run(files["gold"], "--predictions", files["after"], "--format", "html")
    assert (code, out) == (2, "")
    assert err.startswith("herdner: HTML reports need Jinja2: pip install '.[evaluate]'")
    assert run(files["gold"], "--predictions", files["after"], "--format", "md")[0] == 0


def test_labels_that_differ(files, run, tmp_path):
    other = [[[t.replace("PER", "PERSON").replace("ORG", "DATE") for t in s] for s in d] for d in AFTER]
    theirs = write(tmp_path / "other.conll", documents(other), "conll")
    code, out, err = run(files["gold"], "--predictions", theirs, "--format", "json")
    assert code == 0
    assert err.count("\n") == 1
    assert "the gold documents (LOC, ORG, PER) have no DATE, PERSON; add" in err
    assert "--rename PERSON=PER or --gold-labels" in err
    assert json.loads(out)["warnings"]
    code, out, err = run(
        files["gold"], "--predictions", theirs, "--format", "json", "--rename", "PERSON=PER", "--gold-labels"
    )
    assert code == 0
    assert err.endswith("no entity has the gold label ORG; add --rename ORG= to leave out a label\n")
    assert err.count("\n") == 1
    assert json.loads(out)["systems"][0]["scores"]["micro"]["recall"] == pytest.approx(4 / 6)
    code, out, err = run(
        files["gold"],
        "--predictions",
        theirs,
        "--format",
        "json",
        "--rename",
        "PER=",
        "--rename",
        "PERSON=",
        "--rename",
        "LOC=",
    )
    assert code == 0
    assert [row["label"] for row in json.loads(out)["systems"][0]["scores"]["per_label"]] == ["DATE", "ORG"]
    assert "(ORG) have no DATE; add --gold-labels" in err


@pytest.mark.filterwarnings("error::UserWarning")
def test_warnings_about_gold_without_entities_and_a_single_sentence(run, tmp_path):
    empty = write(tmp_path / "gold.conll", [Document.from_tokens([["Rain", "."]], [["O", "O"]])], "conll")
    code, out, err = run(
        empty,
        "--predictions",
        empty,
        "--predictions",
        empty,
        "--format",
        "html",
        "--name",
        "a name " * 20,
        "--name",
        "b",
    )
    assert code == 0
    assert "the gold documents have no entity" in err
    assert "no entity is predicted" in err
    assert "a comparison needs at least two sentences" in err
    assert "</html>" in out


BAD = {
    "no prediction": ([], 2, "the file of predictions is missing; add --predictions FILE:FORMAT"),
    "two gold files": (
        ["{0}/after.jsonl"],
        2,
        "expected one file of gold documents, got 2; put --predictions before each file of",
    ),
    "two syntaxes": (
        ["--predictions", "{0}/after.jsonl", "--before", "{0}/after.jsonl", "--after", "{0}/after.jsonl"],
        2,
        "--predictions cannot be combined with --before and --after",
    ),
    "missing file": (["--predictions", "{0}/nowhere.conll"], 1, "nowhere.conll: no such file"),
    "unknown format": (["--predictions", "{0}/after.jsonl:jsonll"], 2, "unknown format 'jsonll' (did you mean jsonl?)"),
    "empty file": (["--predictions", "{0}/empty.conll"], 1, "empty.conll: the file has no document"),
    "no DocBin": (["--predictions", "{0}/gold.conll:spacy"], 1, "gold.conll: not a DocBin"),
    "half a DocBin": (["--predictions", "{0}/half.spacy"], 1, "half.spacy: the DocBin ends too early"),
    "fewer documents": (["--predictions", "{0}/few.jsonl"], 1, "expected 2 documents, as in the gold file, got 1"),
    "another text": (["--predictions", "{0}/other.jsonl"], 1, "document 'd1' must have the text of gold document"),
    "not annotated": (["--predictions", "{0}/plain.jsonl"], 1, "document 'd1' has no annotation"),
    "no probability": (
        ["--predictions", "{0}/wild.jsonl"],
        1,
        "the confidence of 'Oslo' must be between 0 and 1, got 97",
    ),
    "only before": (["--before", "{0}/after.jsonl"], 2, "only one of --before and --after is given"),
    "names": (
        ["--predictions", "{0}/after.jsonl", "--name", "a", "--name", "b"],
        2,
        "--name: expected one name for each file of predictions (1), got 2",
    ),
    "map": (["--predictions", "{0}/after.jsonl", "--rename", "PER"], 2, "--rename 'PER': expected OLD=NEW"),
    "format": (["--predictions", "{0}/after.jsonl", "--format", "pdf"], 2, "'pdf' is not one of 'md', 'html', 'json'"),
    "unit": (["--predictions", "{0}/after.jsonl", "--unit", "word"], 2, "'word' is not one of 'document', 'sentence'"),
    "ending": (
        ["--predictions", "{0}/after.jsonl", "-o", "{0}/r.pdf"],
        2,
        "expected the file extension .md, .html or .json; or add --format",
    ),
    "folder": (["--predictions", "{0}/after.jsonl", "--output", "{0}/none/r.md"], 2, "there is no folder"),
    "option": (["--predictions", "{0}/after.jsonl", "--nonsense"], 2, "no such option"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case, files, run, tmp_path):
    first, second = (json.dumps({"id": f"d{i}", "text": d.text, "entities": []}) for i, d in enumerate(documents(GOLD)))
    (tmp_path / "empty.conll").write_text("")
    (tmp_path / "half.spacy").write_bytes((tmp_path / "before.spacy").read_bytes()[:-20])
    (tmp_path / "few.jsonl").write_text(first)
    (tmp_path / "other.jsonl").write_text(f"{first}\n{second.replace('rained', 'snowed')}\n")
    (tmp_path / "plain.jsonl").write_text(f"{first}\n" + json.dumps({"id": "d1", "text": "Oslo rained"}))
    wild = {"id": "d1", "text": "Oslo rained", "entities": [{"start": 0, "end": 4, "label": "LOC", "confidence": 97}]}
    (tmp_path / "wild.jsonl").write_text(f"{first}\n{json.dumps(wild)}")
    given, expected, says = BAD[case]
    code, out, err = run(files["gold"], *(a.format(tmp_path) for a in given))
    assert (code, out) == (expected, "")
    assert err.startswith("herdner: ")
    assert err.count("\n") == 1
    assert says in err


def test_an_interrupt_leaves_nothing_behind(files, run, tmp_path, monkeypatch):
    def interrupted(report):
        raise KeyboardInterrupt

    monkeypatch.setitem(reports.WRITERS, "md", interrupted)
    target = tmp_path / "report.md"
    target.write_text("old")
    assert run(files["gold"], "--predictions", files["after"], "-o", target) == (130, "", "herdner: interrupted\n")
    assert target.read_text() == "old"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_the_script_runs_from_anywhere(files):
    command = [sys.executable, str(REPOSITORY / "scripts" / "evaluate_ner.py"), files["gold"]]
    command += ["--predictions", files["after"]]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Evaluation of names\n")
