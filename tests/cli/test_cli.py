"""The command line: results, exit codes, one line for every error, and files that stay complete."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from commands import Call, Outcome, exit_code, one_line
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE, wait_until

import herdner
from herdner import Document
from herdner.crf.link_rules import rule_to_dict
from herdner.inference import make_backend
from herdner.ner.lexicon import Gazetteers
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap

slow = partial(pytest.param, marks=pytest.mark.slow)
NEWS = REPOSITORY / "corpora" / "herdner_news.train.conll"
DEV = REPOSITORY / "corpora" / "herdner_news.dev.conll"


@pytest.fixture(scope="module")
def model(news_model: Path) -> str:
    return str(news_model)


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# --- tagging


def test_tags_the_article(call: Call, model: str) -> None:
    path = REPOSITORY / "corpora" / "article.txt"
    outcome = call("tag", path, "--model", model, "--format", "jsonl")
    assert outcome.code == 0
    (record,) = records(outcome.out)
    text = path.read_text(encoding="utf-8")
    assert record["text"] == text
    assert len(record["entities"]) > 10
    for entity in record["entities"]:
        assert text[entity["start"] : entity["end"]] == entity["text"]
        assert 0 < entity["confidence"] <= 1
        assert entity["label"] in ("PER", "LOC", "ORG")


def test_the_default_format_marks_names_in_the_text(call: Call, model: str) -> None:
    outcome = call("tag", "-", "-m", model, stdin=b"He lives in Nairobi, Kenya.\n")
    assert outcome.code == 0
    assert outcome.out == "He lives in [Nairobi LOC], [Kenya LOC].\n"
    assert outcome.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("format", ["spacy", *(slow(format) for format in ("text", "jsonl", "conll", "html"))])
def test_every_format_goes_to_a_file_as_to_a_pipe(call: Call, model: str, tmp_path: Path, format: str) -> None:
    output = tmp_path / "out"
    text = "Kenya’s president flew to Nairobi.\n\nHe left.".encode()
    assert call("tag", "-m", model, "-f", format, "-o", output, stdin=text) == Outcome(0, "", "")
    command = [sys.executable, "-m", "herdner", "tag", "-m", model, "-f", format]
    piped = subprocess.run(command, input=text, capture_output=True, check=True, cwd=tmp_path)
    assert output.read_bytes() == piped.stdout != b""
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_input_formats_are_known_by_extension_or_named(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "one", "text": "In Kenya."}\n{"text": "In Uganda."}\n')
    (tmp_path / "b.conll").write_text("In\nKenya\n.\n")
    (tmp_path / "c.weird").write_text("In Kenya.")
    outcome = call("tag", tmp_path / "a.jsonl", tmp_path / "b.conll", tmp_path / "c.weird", "-m", model, "-f", "jsonl")
    assert outcome.code == 0
    assert [record["text"] for record in records(outcome.out)] == ["In Kenya.", "In Uganda.", "In Kenya .", "In Kenya."]
    assert records(outcome.out)[0]["id"] == "one"
    (tmp_path / "d.weird").write_text("In\nKenya\n.\n")
    named = call("tag", tmp_path / "d.weird", "-m", model, "-f", "jsonl", "-i", "conll")
    assert records(named.out)[0]["text"] == "In Kenya ."


def test_a_folder_stands_for_its_files(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("b.txt", "In Kenya."), ("sub/a.txt", "In Uganda."), ("ignored.png", "x")):
        (tmp_path / name).write_text(text)
    outcome = call("tag", tmp_path, "-m", model, "-f", "jsonl")
    assert [record["id"] for record in records(outcome.out)] == ["b.txt", "sub/a.txt"]
    assert "1 file is ignored (1 .png)" in one_line(outcome, 0)
    assert one_line(call("tag", tmp_path / "sub", "-i", "jsonl", "-m", model), 1).count("no file named")
    (tmp_path / "empty").mkdir()
    outcome = call("tag", tmp_path / "empty", tmp_path / "b.txt", "-m", model, "-f", "jsonl")
    assert "empty: no file in this folder has a known extension" in one_line(outcome, 1)
    assert [record["text"] for record in records(outcome.out)] == ["In Kenya."]


def test_jobs_start_no_process(call: Call, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process would load the model, and sending it documents costs more CPU time than tagging them."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    (tmp_path / "a.jsonl").write_text('{"text": "Ada went to Kenya."}\n' * 300)
    assert call("tag", tmp_path / "a.jsonl", "-m", model, "--jobs", 2).code == 0


def test_threads_give_the_results_of_one(call: Call, model: str, tmp_path: Path) -> None:
    article = (REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8")
    (tmp_path / "many.jsonl").write_text("".join(json.dumps({"text": f"{i}. {article}"}) + "\n" for i in range(150)))
    alone = call("tag", tmp_path / "many.jsonl", "-m", model, "-f", "jsonl")
    shared = call("tag", tmp_path / "many.jsonl", "-m", model, "-f", "jsonl", "--jobs", 2)
    assert alone.code == shared.code == 0
    assert alone.out == shared.out
    assert len(records(alone.out)) == 150


@pytest.mark.slow
def test_threads_sample_like_one(call: Call, model: str, tmp_path: Path) -> None:
    article = (REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8")
    (tmp_path / "many.jsonl").write_text("".join(json.dumps({"text": f"{i}. {article}"}) + "\n" for i in range(150)))
    sampling = ["-b", "rdhg", "--set", "n_sweeps=5", "--set", "record=nothing"]
    arguments = ["tag", tmp_path / "many.jsonl", "-m", model, "-f", "jsonl", *sampling]
    alone, shared, other = (
        call(*arguments, *more) for more in (["--seed", 3], ["--seed", 3, "--jobs", 2], ["--seed", 4])
    )
    assert alone.code == shared.code == other.code == 0
    assert alone.out == shared.out
    assert alone.out != other.out


@pytest.mark.parametrize(("n", "more"), [(3_000, " " + "x" * 400), slow(60_000, "")], ids=["wide", "long"])
def test_long_texts_come_in_pieces_that_cover_them(call: Call, model: str, tmp_path: Path, n: int, more: str) -> None:
    text = "".join(f"Item {i} is in Kenya.{more}\n\n" for i in range(n))
    (tmp_path / "long.txt").write_text(text)
    outcome = call("tag", tmp_path / "long.txt", "-m", model, "-f", "jsonl")
    pieces = records(outcome.out)
    assert len(pieces) == 2
    assert "".join(piece["text"] for piece in pieces) == text
    assert [piece["id"] for piece in pieces] == ["long.txt#1", "long.txt#2"]
    assert [piece["offset"] for piece in pieces] == [0, len(pieces[0]["text"])]
    plain = call("tag", tmp_path / "long.txt", "-m", model).out
    assert plain.replace("[Kenya LOC]", "Kenya") == text.rstrip("\n") + "\n\n"
    assert sum(len(piece["entities"]) for piece in pieces) >= n


# --- bad input: other files are still tagged


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.txt", b"Ada in K\xf6ln.", "latin.txt:1: byte 0xf6"),
        ("broken.jsonl", b"{oops\n", "broken.jsonl:1: not JSON"),
        ("list.jsonl", b"[1]\n", "list.jsonl:1:"),
        ("columns.conll", b"Ada\tO\nin\tO\tx\n", "columns.conll:2: 3 columns"),
        ("gzip.txt", b"\x1f\x8b\x08\x00broken", "gzip.txt"),
        ("missing.txt", None, "missing.txt: no such file"),
    ],
)
def test_a_bad_file_is_one_line_and_the_others_are_tagged(
    call: Call, model: str, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "good.txt").write_text("In Kenya.")
    outcome = call("tag", tmp_path / name, tmp_path / "good.txt", "-m", model)
    assert message in one_line(outcome, 1)
    assert outcome.out == "== good.txt ==\nIn [Kenya LOC].\n"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("empty.txt", b"", None),
        ("blank.txt", b" \n\n\t", None),
        ("nul.txt", b"\0In\0 Kenya\0.", "\0In\0 Kenya\0."),
        ("bom.txt", b"\xef\xbb\xbfIn Kenya.", "In Kenya."),
        ("crlf.txt", b"In Kenya.\r\n\r\nIn Uganda.\r\n", "In Kenya.\r\n\r\nIn Uganda.\r\n"),
        ("line.txt", b"Kenya " * 20_000, None),
        slow("lines.txt", b"Kenya " * 850_000, None, id="line of six pieces"),
        ("run.txt", b"a" * 900_000, "a" * 900_000),
        ("emoji.txt", "Go \U0001f600Kenya\u200b!".encode(), "Go \U0001f600Kenya\u200b!"),
        ("lone.jsonl", b'{"text": "In \\ud800 Kenya."}\n', "In \ufffd Kenya."),
        ("escaped.jsonl", b'{"text": "In \\u0000\\u2028 Kenya."}\n', "In \0\u2028 Kenya."),
    ],
)
def test_odd_texts_are_tagged(
    call: Call, model: str, tmp_path: Path, name: str, content: bytes, text: str | None
) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = call("tag", tmp_path / name, "-m", model, "-f", "jsonl")
    assert outcome.code == 0
    found = records(outcome.out)
    if text is not None:
        assert [record["text"] for record in found] == [text]
    for record in found:
        for entity in record["entities"]:
            assert record["text"][entity["start"] : entity["end"]] == entity["text"]


def test_an_older_output_survives_a_failure(call: Call, model: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_text("older")
    one_line(call("tag", tmp_path / "missing.txt", "-m", model, "-o", output), 1)
    assert output.read_text() == "older"
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.txt", b"In Kenya.\n\n" + b"\n" * 1_100_000 + b"\xff"),
        ("columns.conll", b"-DOCSTART- O\n\nKenya O\n\n-DOCSTART- O\n\nin Kenya x O\n"),
    ],
)
def test_a_truncated_input_leaves_no_output(call: Call, model: str, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.txt").write_text("In Kenya.")
    output = tmp_path / "out"
    arguments = ["tag", tmp_path / name, tmp_path / "good.txt", "-m", model, "-o", output]
    one_line(call(*arguments), 1)
    assert not output.exists()
    output.write_text("older")
    one_line(call(*arguments), 1)
    assert output.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_document_that_fails_is_left_out_of_the_output(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "In Kenya."}\n{"text": \xff}\n{"text": "In Uganda."}\n')
    output = tmp_path / "out.jsonl"
    assert "a.jsonl:2: " in one_line(call("tag", tmp_path / "a.jsonl", "-m", model, "-o", output, "-f", "jsonl"), 1)
    assert [record["text"] for record in records(output.read_text())] == ["In Kenya.", "In Uganda."]


# --- known names


def test_known_names(call: Call, model: str, tmp_path: Path) -> None:
    path, text = tmp_path / "names.tsv", tmp_path / "a.txt"
    path.write_text("Ostrava Kibo\tORG\nKENYA\tPER\n")
    text.write_text("Then Ostrava Kibo went to Kenya.")
    given = ["tag", text, "-m", model, "--names", path, "--names-hard"]
    assert call(*given).out == "Then [Ostrava Kibo ORG] went to [Kenya LOC].\n"
    assert call(*given, "--names-fold-case").out == "Then [Ostrava Kibo ORG] went to [Kenya PER].\n"


@pytest.mark.slow
def test_known_names_are_found_in_all_threads(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("Kenya\tPER\thard\n")
    (tmp_path / "in.jsonl").write_text('{"text": "Ada went to Kenya."}\n' * 3000)
    given = ["tag", tmp_path / "in.jsonl", "-m", model, "--names", tmp_path / "names.tsv"]
    assert call(*given, "--jobs", 2).out == call(*given).out
    assert "[Kenya PER]" in call(*given).out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "names.tsv: the file contains no names; expected a name, a tab and a label"),
        ("Kibo\tORG\n\nWinam\tBANK\n", "names.tsv:3: the model has no label 'BANK'; it has LOC, ORG, PER"),
        ("Kibo\tORG\nWinam\n", "names.tsv:2: no tab in 'Winam'"),
    ],
)
def test_a_bad_list_of_names_is_one_line_and_nothing_is_written(
    call: Call, model: str, tmp_path: Path, content: str, message: str
) -> None:
    path, output = tmp_path / "names.tsv", tmp_path / "out"
    path.write_text(content)
    article = REPOSITORY / "corpora" / "article.txt"
    assert message in one_line(call("tag", article, "-m", model, "--names", path, "-o", output), 1)
    assert list(tmp_path.iterdir()) == [path]


# --- usage errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tag", "--fromat", "x"], "--format"),
        (["tga"], "tag"),
        (["tag", "x.txt", "--format", "xml"], "jsonl"),
        (["tag", "x.txt", "--input", "pdf"], "conll2003"),
        (["tag", "x.txt", "--jobs", "0"], "--jobs"),
        (["tag", "x.txt", "--seed", "x"], "--seed"),
        (["tag", "x.txt", "--encoding", "klingon"], "klingon"),
        (["tag", "-", "-"], "only once"),
        (["evaluate", "-:conll"], "write - --input FORMAT"),
        (["tag", "x.txt", "--output", "nowhere/out"], "no folder"),
        (["tag", "x.txt", "--output", "new/"], "new/: is a folder"),
        (["tag", "x.txt", "--output", "."], "is a folder"),
        (["tag", "x.txt", "--names-hard"], "--names-hard requires a list of names; add --names FILE"),
        (["tag", "x.txt", "--names", "n", "--names-hard", "--names-strength", "2"], "leave out one of the two options"),
        (["evaluate"], "FILE:FORMAT"),
        (["explain", "x.txt", "--name"], "'--name' requires an argument (see herdner explain --help)"),
        (["evaluate", "x.png"], "FILE:FORMAT"),
        (["evaluate", "x:conll", "--case", "title"], "'title' is not one of 'lower', 'upper'"),
        (["evaluate", "x:conll", "--rename", "PER"], "expected OLD=NEW"),
        (
            ["evaluate", "x:conll", "--consistency", "--compare", "en", "en"],
            "--consistency: cannot be combined with --compare",
        ),
        (["evaluate", "x:conll", "--case", "lower", "--compare", "en", "y:conll"], "y:conll is a file of predictions"),
        (["train", "--train", "x:conll"], "--output"),
        (["train", "--train", "x:conll", "--output", "m", "--scheme", "bio"], "iob2"),
        (["train", "--train", "x:colln", "--output", "m"], "did you mean conll"),
        (["corpora", "convert", "x:conll", "--format", "pdf"], "jsonl"),
        (["corpora", "lsit"], "list"),
    ],
)
def test_usage_errors_are_one_line_that_names_the_remedy(call: Call, arguments: list[str], message: str) -> None:
    assert message in one_line(call(*arguments), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "n_sweeps"], "KEY=VALUE"),
        (["--set", "colour=red"], "colour"),
        (["--backend", "viterbo"], "viterbi"),
        (["--backend", ""], "there is no backend ''"),
        (["--backend", "gibbs", "--set", "sharing=blanket"], "(see herdner backends gibbs)"),
    ],
)
def test_backend_options_are_checked(call: Call, model: str, options: list[str], message: str) -> None:
    assert message in one_line(call("tag", "-", "-m", model, *options), 2)


def test_files_that_are_no_models(call: Call, tmp_path: Path) -> None:
    (tmp_path / "no.model").write_text("no model")
    assert "not a herdner model" in one_line(call("tag", "-", "-m", tmp_path / "no.model"), 1)
    one_line(call("tag", "-", "-m", tmp_path / "missing.model"), 1)


# --- other commands


def test_version_and_help(call: Call) -> None:
    assert call("--version") == Outcome(0, f"herdner {herdner.__version__}\n", "")
    for command in ("tag", "train", "evaluate", "backends", "corpora"):
        assert command in call("--help").out
        assert call(command, "--help").code == 0


def test_evaluate_agrees_with_the_library(call: Call, model: str) -> None:
    outcome = call("evaluate", f"{DEV}:conll", "-m", model, "--json")
    assert outcome.code == 0
    scores = json.loads(outcome.out)
    assert {row["label"] for row in scores["per_label"]} == {"PER", "LOC", "ORG"}
    assert scores["micro"]["f1"] > 0.6
    assert scores["interval"]["low"] < scores["micro"]["f1"] < scores["interval"]["high"]
    assert scores["tokens_per_second"] is None  # the file is too small to measure the speed
    table = call("evaluate", f"{DEV}:conll", "-m", model, "--resamples", "0").out
    assert f"{scores['micro']['f1']:.2%}" in table


def test_evaluate_in_another_case_and_consistency(call: Call, model: str) -> None:
    asked = ["evaluate", f"{DEV}:conll", "-m", model, "--resamples", "0"]
    plain, lower, upper = (
        json.loads(call(*asked, "--json", *more).out) for more in ([], ["--case", "lower"], ["--case", "upper"])
    )
    assert lower["micro"]["support"] == upper["micro"]["support"] == plain["micro"]["support"]
    assert max(lower["micro"]["f1"], upper["micro"]["f1"]) < plain["micro"]["f1"]
    values = json.loads(call(*asked, "--json", "--consistency").out)
    assert {**values, "consistency": 0, "tokens_per_second": 0} == {**plain, "consistency": 0, "tokens_per_second": 0}
    assert list(values["consistency"]["repeated_names"]) == ["gold", "with links", "without links"]
    assert set(values["consistency"]["short_forms"]["with links"]) == {"ORG", "PER"}
    table = call(*asked, "--consistency").out
    assert "| without links | " in table
    assert "several labels, with links" in table
    chain = call(*asked, "--consistency", "--set", "links=false").out
    assert "| without links | " in chain
    assert "| with links | " not in chain


def test_labels_that_the_model_does_not_know(call: Call, model: str, tmp_path: Path) -> None:
    path = tmp_path / "gold.conll"
    path.write_text("Nairobi\tB-location\nin\tO\nKenya\tB-location\n.\tO\n\nAda\tB-person\nsang\tO\n.\tO\n")
    asked = ["evaluate", f"{path}:conll", "-m", model, "--resamples", "0"]
    message = one_line(call(*asked), 2)
    assert "has none of the labels location, person" in message
    assert "its labels are LOC, ORG, PER; read it as" in message
    assert "gold.conll:wnut17" in message
    assert one_line(call(*asked[:2], "--compare", model, f"{model}@icm"), 2).count("has none of the labels") == 1
    scores = json.loads(call(*asked, "--rename", "location=LOC", "--json").out)
    assert scores["unknown_labels"] == {"person": 1}
    assert scores["micro"]["support"] == 3 > scores["micro_known"]["support"] == 2
    table = call(*asked, "--rename", "location=LOC")
    assert "| person | - | - | - | 1 |" in table.out
    assert "a label that the model does not know: 1 person" in table.out
    assert "has no label person; to score it as a label of the model, add --rename person=PER\n" in table.err
    dropped = json.loads(call(*asked, "--rename", "location=LOC", "--rename", "person=", "--json").out)
    assert (dropped["unknown_labels"], dropped["micro"]["support"]) == ({}, 2)
    path.write_text(path.read_text().replace("location", "PLACE").replace("person", "PERSON"))
    assert "rename them, as in --rename PERSON=PER --rename PLACE=LOC (" in one_line(call(*asked), 2)


def test_evaluate_needs_annotation(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("In Kenya.")
    (tmp_path / "empty.conll").write_text("")
    assert "no annotation" in one_line(call("evaluate", tmp_path / "plain.txt", "-m", model), 1)
    assert "no document" in one_line(call("evaluate", tmp_path / "empty.conll", "-m", model), 1)


def test_training_leaves_an_older_model_when_it_fails(call: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.conll").write_text("Ada\tB-PER\nin\tO\tx\n")
    (tmp_path / "m").write_text("older")
    message = one_line(call("train", "--train", tmp_path / "bad.conll", "--output", tmp_path / "m"), 1)
    assert "bad.conll:2" in message
    assert (tmp_path / "m").read_text() == "older"


def test_stems_are_those_of_the_language_that_is_trained(call: Call, tmp_path: Path) -> None:
    from herdner.cli.train import parse_rule

    stems = {("same-stem", "en"): "english", ("same-stem:nearest=2", "nb"): "norwegian"}
    stems |= {("same-stem:language=danish", "nb"): "danish", ("same-stem", "es"): "spanish"}
    for (rule, language), expected in stems.items():
        assert rule_to_dict(parse_rule(rule, language))["language"] == expected
    asked = ("train", "--train", f"{DEV}:conll", "--output", tmp_path / "m", "--link", "same-stem", "--language")
    assert "rule same-stem: language must be one of" in one_line(call(*asked, "ko"), 2)
    assert "spaCy has no language 'qq'; use --language" in one_line(call(*asked, "qq"), 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("language", "problem"), [("zh", "has no word segmenter"), ("qq", "does not know this")])
def test_a_language_without_rules_is_refused_before_training(
    call: Call, tmp_path: Path, language: str, problem: str
) -> None:
    arguments = ("train", "--train", f"{DEV}:conll", "--output", tmp_path / "m", "--language", language)
    assert problem in one_line(call(*arguments), 2)


def test_training_on_tokens_does_not_need_spacy(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    (tmp_path / "texts.jsonl").write_text('{"text": "Ada left.", "entities": [{"start": 0, "end": 3, "label": "PER"}]}')
    arguments = ("train", "--output", tmp_path / "m", "--iterations", 2, "--language", "xx", "--train")
    assert "tokens of the language 'xx' need spaCy" in one_line(call(*arguments, tmp_path / "texts.jsonl"), 1)
    assert call(*arguments, f"{DEV}:conll").code == 0
    assert herdner.load(tmp_path / "m").model_.tokenizer.language == "xx"


@pytest.mark.slow
def test_training_writes_a_card_and_uses_gazetteers(call: Call, tmp_path: Path) -> None:
    (tmp_path / "cities.txt").write_text("# Kenya\nKisumu\nNew York\n")
    path = tmp_path / "m"
    outcome = call(
        "train", "--train", f"{DEV}:conll", "--dev", f"{DEV}:conll", "--output", path, "--iterations", 5,
        "--gazetteer", tmp_path / "cities.txt", "--scheme", "iob2",
    )  # fmt: skip
    assert outcome.code == 0
    tagger = herdner.load(path)
    assert tagger.card["training"] == [{"file": DEV.name, "format": "conll"}]
    assert f"{tagger.card['scores']['micro']['f1']:.2%}" in outcome.out
    assert not any(tag.startswith("S-") for tag in tagger.classes_)
    gazetteers = tagger.model_.lexicon.gazetteers
    both = Gazetteers.of({"cities": [["Kisumu"], ["New", "York"]]})
    number = gazetteers.names.index("cities")
    own = gazetteers.phrases.keys[(gazetteers.phrases.values >> number) & 1 == 1]
    assert own.tolist() == both.phrases.keys[both.phrases.values & 1 == 1].tolist()


def test_backends_are_listed_a_line_each_and_one_with_its_options(call: Call) -> None:
    described = json.loads(call("backends", "--json").out)
    assert set(described) == set(herdner.BACKENDS)
    assert all(entry["description"] for entry in described.values())
    lines = call("backends").out.splitlines()
    assert [line.partition(": ")[0] for line in lines[: len(described)]] == sorted(described)
    assert not any("--set" in line for line in lines)
    one, *options = call("backends", "dhg").out.splitlines()
    assert one.startswith("dhg: ")
    assert "    --set n_bins=16  (a whole number)" in options
    assert len(options) == len(described["dhg"]["options"])
    assert list(json.loads(call("backends", "rdhg", "--json").out)) == ["rdhg"]
    assert "did you mean 'dhg'" in one_line(call("backends", "dgh"), 2)


@pytest.mark.parametrize("name", herdner.BACKENDS)
def test_defaults_are_shown_as_they_are_set(call: Call, name: str) -> None:
    options = [shlex.split(line)[1] for line in call("backends", name).out.splitlines()[1:]]
    assert make_backend(name, **dict(option.split("=", 1) for option in options)) == make_backend(name)


def test_corpora(call: Call, tmp_path: Path) -> None:
    assert "wnut17" in call("corpora", "list").out
    assert "CC-BY" in call("corpora", "info", "wnut17").out
    assert "wnut17" in one_line(call("corpora", "info", "wnut18"), 1)
    output = tmp_path / "dev.jsonl"
    assert "20 documents" in call("corpora", "convert", f"{DEV}:conll", "--format", "jsonl", "--output", output).err
    assert len(records(output.read_text(encoding="utf-8"))) == 20
    piped = call("corpora", "convert", f"{DEV}:conll", "--format", "jsonl")
    assert piped.out == output.read_text(encoding="utf-8")


# --- the process


def herdner_process(*arguments: object, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "herdner", *map(str, arguments)]
    if os.name != "nt":  # background jobs of a shell ignore SIGINT
        options["preexec_fn"] = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ELSEWHERE, **options)


@pytest.mark.parametrize("n", [20_000, slow(300_000)])  # one piece, larger than a pipe's buffer, and three
def test_a_closed_pipe_is_quiet(model: str, tmp_path: Path, n: int) -> None:
    (tmp_path / "long.txt").write_text("In Kenya. " * n)
    process = herdner_process("tag", tmp_path / "long.txt", "-m", model)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(PATIENCE) == 0


def test_a_closed_pipe_ends_restoring_quietly(call: Call, model: str, tmp_path: Path) -> None:
    text, map_ = tmp_path / "a.txt", tmp_path / "map.json"
    text.write_text("In Kenya. " * 20_000)
    call("pseudonymise", text, "-m", model, "--map", map_, "-o", tmp_path / "b.txt")
    process = herdner_process("restore", tmp_path / "b.txt", "--map", map_)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(100)
    process.stdout.close()
    assert (process.stderr.read(), process.wait(PATIENCE)) == (b"", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "{}", "-f", "jsonl"], ["tag", "{}", "-f", "conll"], ["explain", "{}"], ["explain", "{}", "--json"],
        ["names", "{}"], ["backends"], ["corpora", "list"], ["tag", "--help"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_command_minds_that_nobody_reads_its_output(model: str, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "a.txt").write_text("In Kenya. " * 30)
    arguments = [argument.format(tmp_path / "a.txt") for argument in arguments]
    options = ["-m", model] if str(tmp_path / "a.txt") in arguments else []
    process = herdner_process(*arguments, *options)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_message_begins_on_a_line_of_its_own_on_a_terminal(tmp_path: Path) -> None:
    import pty

    (tmp_path / "map.json").write_text(json.dumps(PseudonymMap().to_dict()))
    (tmp_path / "a.txt").write_text("Person 7 left")  # without a line break at the end
    reader, terminal = pty.openpty()
    arguments = ["restore", "--map", tmp_path / "map.json", tmp_path / "a.txt"]
    command = [sys.executable, "-m", "herdner", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=ELSEWHERE)
    assert process.wait(PATIENCE) == 1
    os.close(terminal)
    lines = os.read(reader, 4096).decode().splitlines()
    os.close(reader)
    assert lines[0] == "Person 7 left"
    assert lines[1].startswith(f"herdner: {tmp_path / 'a.txt'}: Person 7: not in the map")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
@pytest.mark.parametrize(
    ("command", "titles"),
    [
        ("explain a.txt", ("explaining",)),
        ("restore --map m a.txt", ("restoring",)),
        ("evaluate a.conll", ("reading a.conll", "tagging", "scoring")),
        ("evaluate a.conll --predictions a.conll", ("reading a.conll", "scoring")),
        ("evaluate a.conll --compare en a.conll:conll", ("reading a.conll", "tagging A", "comparing")),
        (
            "train --train a.conll --dev a.conll --iterations 2 --link none --lexicon none --output model",
            ("reading a.conll", "scoring"),
        ),
    ],
)
def test_work_on_files_has_a_progress_bar(command: str, titles: tuple[str, ...], tmp_path: Path) -> None:
    import pty

    (tmp_path / "m").write_text(json.dumps(PseudonymMap().to_dict()))
    (tmp_path / "a.txt").write_text("Ada Lovelace left.")
    (tmp_path / "a.conll").write_text("Ada B-PER\nLovelace I-PER\nleft O\n\nAda B-PER\nstayed O\n")
    reader, terminal = pty.openpty()
    run = subprocess.run(
        [sys.executable, "-m", "herdner", *command.split()], stdout=subprocess.DEVNULL, stderr=terminal,
        cwd=tmp_path, env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"}, timeout=PATIENCE,
    )  # fmt: skip
    os.close(terminal)
    shown = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert (run.returncode, [title for title in titles if f"{title} " not in shown]) == (0, []), shown


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
# Less than a piece, so that the command waits for input; or enough to work on, within the buffers of pipe and queue.
@pytest.mark.parametrize(("jobs", "n"), [(1, 10_000), (2, 10_000), slow(1, 108_000), slow(2, 400_000)])
@pytest.mark.parametrize(("number", "code", "said"), [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"")])
def test_interrupted_work_leaves_the_older_output(
    model: str, tmp_path: Path, jobs: int, n: int, number: int, code: int, said: bytes
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    output = folder / "out.jsonl"
    output.write_text("older")
    process = herdner_process("tag", "-", "-m", model, "-f", "jsonl", "-o", output, "-j", jobs, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"In Kenya. " * n)  # the input stays open
    process.stdin.flush()
    wait_until(lambda: len(list(folder.iterdir())) == 2 or process.poll() is not None)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert said in errors
    assert errors.count(b"\n") <= 1
    assert output.read_text() == "older"
    assert list(folder.iterdir()) == [output]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moments", [[0.075], slow([k / 6 for k in range(6)])], ids=["one", "many"])
def test_interrupted_as_its_threads_start_it_says_so_in_one_line(
    model: str, tmp_path: Path, moments: list[float], number: int
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    texts = [tmp_path / f"{name}.txt" for name in "abc"]
    for text in texts:
        text.write_text("In Kenya. " * 60_000)  # several batches
    for moment in moments:
        process = herdner_process(
            "tag", *texts, "-m", model, "-o", folder / "out.txt", "-j", 2, start_new_session=True
        )  # in a terminal, Ctrl-C reaches all processes of the group
        wait_until(lambda process=process: list(folder.iterdir()) or process.poll() is not None)
        time.sleep(moment)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
        expected = (130, b"herdner: interrupted\n") if number == signal.SIGINT else (143, b"")
        assert (exit_code(process.returncode), errors) == expected, moment
        assert not list(folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("group", [[], ["corpora"]])
def test_a_group_without_a_command_shows_its_help(group: list[str]) -> None:
    process = herdner_process(*group)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (2, b"")
    assert errors.count(b"\n") > 5
    assert b"herdner: " not in errors


def test_help_imports_no_heavy_module() -> None:
    heavy = "numpy spacy rich sklearn seqeval herdner.ner.tagger"
    program = f"""
import sys
from herdner.cli import run
run(["--help"])
print([name for name in {heavy.split()!r} if name in sys.modules], file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ELSEWHERE)
    assert result.stderr.strip() == "[]"


@pytest.mark.slow
def test_a_model_is_adapted_to_a_file_with_a_new_label(call: Call, tmp_path: Path) -> None:
    lines = DEV.read_text(encoding="utf-8").splitlines()[:400]
    words = (line.split("\t")[0] for line in lines)
    (tmp_path / "m.conll").write_text("\n".join(f"{w}\tB-VERB" if w == "said" else w and f"{w}\tO" for w in words))
    out = tmp_path / "m.model"
    outcome = call("train", "--base", "en", "--train", tmp_path / "m.conll", "--weight", 2, "--output", out)
    assert outcome.code == 0
    assert "annotates only VERB; tokens outside may have any other label" in outcome.err
    assert "add --dev with documents like those of the base model to see the change of each F1" in outcome.err
    tagger = herdner.load(out)
    assert tagger.card["options"]["base"] == "en"
    assert [e.label for e in tagger.tag("Ada Lovelace said so in London.").entities] == ["PER", "VERB", "LOC"]


def test_training_from_a_base_reports_what_it_gained_and_lost(
    news_tagger: herdner.Tagger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from herdner.cli.train import _print_changes

    gold = list(herdner.read_documents(DEV, "conll"))[:5]
    half = herdner.Tagger.from_model(news_tagger.model_)
    monkeypatch.setattr(half, "pipe", lambda documents: (d.with_spans([]) for d in documents))
    _print_changes(half, news_tagger, gold)
    scores = {row.label: row.f1 for row in herdner.evaluate(gold, list(news_tagger.pipe(gold))).per_label}
    assert min(scores.values()) > 0
    expected = ", ".join(f"{label} {100 * f1:+.1f}" for label, f1 in scores.items())
    assert f"change of the F1 against the base: {expected}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_the_guideline_of_one_of_two_files_is_followed(call: Call, tmp_path: Path) -> None:
    for name, tag in (("posts", "B-PER"), ("news", "O")):
        handles = "".join(f"in\tO\n{w}\t{tag}\nslept\tO\n\n" for w in ("@ada", "@bo", "@cy", "@di"))
        (tmp_path / f"{name}.conll").write_text(handles + "in\tO\nParis\tB-PER\n")
    files = [tmp_path / "posts.conll", tmp_path / "news.conll"]
    asked = ["train", *(word for file in files for word in ("--train", f"{file}:conll"))]
    for file, found in zip(files, (["@eva"], list[str]()), strict=True):
        outcome = call(*asked, "--link", "none", "--c2", 0.01, "--guideline", file, "--output", tmp_path / "m")
        assert outcome.code == 0, outcome.err
        tagger = herdner.load(tmp_path / "m")
        assert tagger.card["options"]["guideline"] == file.name
        document = Document.from_tokens([["in", "@eva", "slept"]])
        assert [e.text for e in tagger.tag(document).entities] == found


@pytest.mark.slow
def test_similar_labels_are_reported_and_renamed(call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = DEV.read_text(encoding="utf-8").splitlines()[:400]
    lines = [
        line.replace("PER", "Person").replace("ORG", "Firm|LOC" if i % 9 else "ORG") for i, line in enumerate(lines)
    ]
    lines = [line.replace("B-Firm", "Firm").replace("I-Firm", "Firm") for line in lines]
    (tmp_path / "m.conll").write_text("\n".join(lines))
    asked = "train", "--base", "en", "--iterations", 2, "--train", tmp_path / "m.conll", "--output", tmp_path / "m"
    assert call(*asked, "--rename", "Firm=ORG").code == 0
    assert "similar to labels of the base: Person to PER" in caplog.text
    assert "--rename Person=PER on the command line" in caplog.text
    caplog.clear()
    assert {tag[2:] for tag in herdner.load(tmp_path / "m").classes_} == {"", "PER", "LOC", "ORG", "Person"}
    assert call(*asked, "--rename", "Person=PER", "--rename", "Firm=ORG").code == 0
    assert "similar" not in caplog.text
    assert {tag[2:] for tag in herdner.load(tmp_path / "m").classes_} == {"", "PER", "LOC", "ORG"}
    assert "expected OLD=NEW" in one_line(call(*asked, "--rename", "Person"), 2)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--base", "en", "--scheme", "iob2"], "--scheme: cannot be combined with --base"),
        (["--base", "en", "--language", "nl"], "--language: cannot be combined with --base"),
        (["--base", "en", "--lexicon", "none"], "--lexicon: cannot be combined with --base"),
        (["--base", "nosuch"], "there is no model 'nosuch'"),
        (
            ["--weight", "1", "--weight", "2"],
            "--weight: expected one weight for each of the 1 --train files, in the same order, got 2",
        ),
        (["--guideline", "nosuch"], "--guideline 'nosuch': expected one of the --train files"),
    ],
)
def test_options_that_exclude_a_base_are_refused(call: Call, tmp_path: Path, options: list[str], part: str) -> None:
    outcome = call("train", "--train", f"{DEV}:conll", "--output", tmp_path / "m", *options)
    assert part in one_line(outcome, outcome.code)
    assert outcome.code
    assert not list(tmp_path.iterdir())


def test_a_corpus_without_an_annotated_token_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "open.conll").write_text("Ada\t?\nByron\t?\n")
    outcome = call("train", "--train", f"{tmp_path / 'open.conll'}:conll", "--output", tmp_path / "m")
    assert "no token of the training documents is annotated" in one_line(outcome, 1)
    assert not (tmp_path / "m").exists()


def test_evaluate_names(call: Call, tmp_path: Path) -> None:
    entities = [(0, 10, 0), (15, 21, 1), (23, 29, 0)]
    record = {
        "text": "Ana Rivera met Bo Lim. Rivera left.",
        "entities": [{"start": start, "end": end, "label": "PER", "name_id": id} for start, end, id in entities],
    }
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")
    asked = ["evaluate", f"{tmp_path / 'x.jsonl'}:jsonl", "--names"]
    values = json.loads(call(*asked, "--json").out)
    assert [(each["mentions"], each["names"], each["mean_f1"]) for each in values["names"]] == [
        ("gold", 2, 1.0),
        ("predicted", 2, 1.0),
    ]
    assert "mean of MUC, B-cubed and CEAF-e" in call(*asked).out
