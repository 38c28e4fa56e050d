"""The registry of corpora, parsing of FILE:FORMAT, reading and conversion."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from data import REPOSITORY, shared_data

from herdner.corpora import files, reading
from herdner.corpora import registry as corpora
from herdner.corpora.formats import FORMATS
from herdner.corpora.registry import Corpus, CorpusError, CorpusFile
from herdner.text.document import Document
from herdner.text.io.source import FormatError

FOLDERS = {
    "ieer": "ner/ieer",
    "conll2003": "ner/conll2003",
    "conll2002": "ner/conll2002",
    "worldwide": "ner/worldwide",
    "wnut17": "ner/wnut17",
    "btc": "ner/btc",
    "uner_ewt": "ner/uner_ewt",
    "wikigold": "ner/wikigold",
    "sec": "ner/sec",
    "gum": "ner",
    "litbank": "ner",
    "tweebank": "ner/tweebank",
    "norne": "ner/norne",
    "uner_da": "ner/uner",
    "uner_sv": "ner/uner",
    "uner_pt": "ner/uner",
    "swedish_ner": "ner/swedish",
    "mobie": "ner/mobie",
    "ler": "ner/ler",
    "masc": "raw",
    "state_union": "raw",
    "inaugural": "raw",
    "mpeg7_shapes": "vision",
    "msrc_v1": "vision/msrc_v1",
    "uci_regression": "uci",
}


def test_by_hand_says_what_to_do_and_where_and_then_accepts_the_files(tmp_path: Path) -> None:
    body = b"Ada\tB-PER\n"
    file = CorpusFile("toy.conll", len(body), hashlib.sha256(body).hexdigest(), split="train")
    texts = ("Toy", "here", "CC0-1.0", "train", "ner", "en", "conll", "none", "by hand")
    toy = Corpus("toy", *texts, files=(file,), instructions="Write to the\nauthors.")  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match=r"Write to the authors\. Put the files into .*missing") as caught:
        files.fetch("toy", tmp_path, registry={"toy": toy})
    assert "\n" not in str(caught.value)
    (tmp_path / "toy.conll").write_bytes(body[:-1] + b"?")
    with pytest.raises(CorpusError, match=f"expected {file.sha256}"):
        files.fetch("toy", tmp_path, registry={"toy": toy})
    (tmp_path / "toy.conll").write_bytes(body)
    assert files.fetch("toy", tmp_path, registry={"toy": toy}) == tmp_path


def test_the_checksum_of_a_folder_is_that_of_sha256sum(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.txt", "a.txt", "Z"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    command = "LC_ALL=C; export LC_ALL; find . -type f | sed 's:^./::' | sort | xargs sha256sum | sha256sum"
    if sys.platform != "linux":
        pytest.skip("needs sha256sum")
    printed = subprocess.run(command, shell=True, cwd=tmp_path / "tree", capture_output=True, text=True, check=True)
    assert files.checksum(tmp_path / "tree") == (18, printed.stdout.split()[0])


# --- the registry


def test_every_entry_of_the_registry_is_complete() -> None:
    registry = corpora.load_registry()
    assert set(registry) == {"herdner_news", "herdner_stories", *FOLDERS}
    for corpus in registry.values():
        assert set(corpus.label_names.values()) <= {"PER", "LOC", "ORG"}
        if corpus.task == "ner":
            assert set(corpus.label_names.values()) == {"PER", "LOC", "ORG"}
            assert {file.split for file in corpus.files} <= {"train", "dev"}
        assert corpus.files
        assert corpus.all_label_names["*"] is None


def test_the_checksums_of_our_own_corpus() -> None:
    for own in ("herdner_news", "herdner_stories"):
        assert list(files.verify(corpora.info(own), REPOSITORY / "corpora")) == []


@pytest.mark.parametrize("name", FOLDERS)
def test_the_checksums_of_the_shared_corpora(name: str) -> None:
    assert list(files.verify(corpora.info(name), shared_data(FOLDERS[name]))) == []


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(CorpusError, match="unknown corpus 'CoNLL-2003'; did you mean conll2003"):
        corpora.info("CoNLL-2003")
    with pytest.raises(CorpusError, match="expected one of a, b"):
        corpora.info("zzzzzz", MappingProxyType(dict.fromkeys("ab", corpora.info("btc"))))


ENTRY = """version = 1
[corpus.toy]
title = "Toy"
source = "here"
licence = "CC0-1.0"
use = "train"
task = "ner"
language = "en"
format = "conll"
labels = ["PER"]
label_names = { PER = "PER" }
citation = "none"
fetch = "download"
files = [
  { name = "toy.conll", size = 1, sha256 = "SUM", url = "https://example.org/toy.conll" },
]
""".replace("SUM", "0" * 64)


def test_a_registry_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "registry.toml"
    path.write_text(ENTRY)
    assert corpora.load_registry(path)["toy"] == corpora.info("toy", path)
    assert corpora.info("toy", path).files[0].url == "https://example.org/toy.conll"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("version = 1", "version = 2", "the registry has version 2, but this version of herdner reads version 1"),
        ("version = 1", "version = ", "not a registry"),
        ("version = 1", "version = " + "[" * 50_000, "not a registry of corpora: its lists are nested too deeply"),
        ('licence = "CC0-1.0"', "", "corpus toy: the field licence is missing"),
        ('licence = "CC0-1.0"', "licence = 3", "licence must be of type str, found int"),
        ('use = "train"', 'use = "sell"', "use is 'sell', expected one of train, measure only"),
        ('language = "en"', 'language = "en"\nlanguages = 2', "unknown field languages"),
        ("corpus.toy", 'corpus."../toy"', "the name must consist of lower-case letters"),
        ("toy.conll", "../toy.conll", "not a safe file name"),
        ("toy.conll", "/toy.conll", "not a safe file name"),
        ("toy.conll", r"C:\\toy.conll", "not a safe file name"),
        ("size = 1", "size = -1", "size -1 is not between"),
        ("size = 1", "size = true", "size must be of type int"),
        ("0" * 64, "0" * 63, "sha256 must be 64"),
        ("https://example.org/toy.conll", "file:///etc/passwd", "not an http or https address"),
        (', url = "https://example.org/toy.conll"', "", "the file 'toy.conll' has no url"),
        ('fetch = "download"', 'fetch = "by hand"', "there are no instructions"),
        ('labels = ["PER"]', 'labels = ["LOC"]', "`label_names` contains 'PER', which is missing from `labels`"),
        ("files = [", "files = [ 3, ", "expected a table, found int"),
    ],
)
def test_errors_of_an_invalid_registry(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "registry.toml"
    path.write_text(ENTRY.replace(old, new, 1))
    with pytest.raises(CorpusError) as caught:
        corpora.load_registry(path)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_missing_registry(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="cannot read the registry: No such file"):
        corpora.load_registry(tmp_path / "registry.toml")


# --- reading and converting


@pytest.mark.parametrize(
    ("argument", "path", "format"),
    [
        ("eng.train:conll2003", "eng.train", "conll2003"),
        ("news.jsonl", "news.jsonl", "jsonl"),
        ("news.TXT", "news.TXT", "text"),
        ("news.conll.gz", "news.conll.gz", "conll"),
        ("en_ewt-ud-dev.iob2", "en_ewt-ud-dev.iob2", "uner"),
        ("en_ewt-ud-dev.iob2:conll", "en_ewt-ud-dev.iob2", "conll"),
        (r"C:\news\today.conll", r"C:\news\today.conll", "conll"),
        (r"C:\news\today:btc", r"C:\news\today", "btc"),
        ("2026-11-21T10:30:00.jsonl", "2026-11-21T10:30:00.jsonl", "jsonl"),
        ("a:b:text", "a:b", "text"),
        ("folder/of:colons/x:ieer", "folder/of:colons/x", "ieer"),
        ("-:jsonl", "-", "jsonl"),
    ],
)
def test_parse_source(argument: str, path: str, format: str) -> None:
    assert reading.parse_source(argument) == (path, format)


def test_parse_source_prefers_a_file_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt:conll").touch()
    with pytest.raises(ValueError, match="the file extension belongs to no format"):
        reading.parse_source("notes.txt:conll")
    Path("notes.txt").touch()
    assert reading.parse_source("notes.txt:conll") == ("notes.txt", "conll")
    assert reading.parse_source("notes.txt:conll:text") == ("notes.txt:conll", "text")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("eng.train:conl2003", "unknown format 'conl2003' (did you mean conll2003?); expected FILE:FORMAT with one of"),
        ("eng.train", "the file extension belongs to no format"),
        ("", "'' contains no file name"),
        (":conll", "':conll' contains no file name"),
        ("-", "the file extension belongs to no format"),
        ("/", "'/': a folder needs a format, as in FOLDER:brat"),
        ("export.json", "several formats have the file extension .json; add the format, as in FILE:label-studio"),
    ],
)
def test_parse_source_names_the_formats(argument: str, expected: str) -> None:
    with pytest.raises(ValueError, match="expected FILE:FORMAT") as caught:
        reading.parse_source(argument)
    assert expected in str(caught.value)
    assert "conll2003" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_annotated_corpus_has_a_reader() -> None:
    for corpus in corpora.load_registry().values():
        if corpus.task in ("ner", "text"):
            described, _, script = corpus.format.partition(", read by ")
            if script:  # a format that only the training of `en` needs
                assert (REPOSITORY / script).is_file(), corpus.name
            else:
                assert FORMATS[described].read is not None, corpus.name


def test_label_names_belong_to_corpora_not_to_general_formats() -> None:
    worldwide = reading.corpus_label_names("worldwide")
    assert worldwide is not None
    assert worldwide["Facility"] == "LOC"
    assert worldwide["*"] is None
    assert reading.corpus_label_names("norne") == {
        "PER": "PER", "ORG": "ORG", "LOC": "LOC", "GPE_LOC": "LOC", "GPE_ORG": "LOC", "*": None
    }  # fmt: skip
    for general in ("conll", "jsonl", "text"):
        assert reading.corpus_label_names(general) is None


def test_corpora_of_one_format_must_have_the_same_labels() -> None:
    registry = dict(corpora.load_registry())
    assert registry["sec"].format == registry["conll2003"].format
    assert reading.corpus_label_names("conll2003", registry) == registry["sec"].all_label_names
    registry["sec"] = replace(registry["sec"], label_names={"PER": "PER"})
    assert reading.corpus_label_names("conll2003", registry) is None


def test_our_own_corpus_reads_as_the_registry_says() -> None:
    corpus = corpora.info("herdner_news")
    counts = {}
    for file in corpus.files:
        documents = list(reading.read(f"{REPOSITORY / 'corpora' / file.name}:{corpus.format}"))
        counts[file.split] = len(documents)
        assert {entity.label for document in documents for entity in document.entities} == set(corpus.labels)
    assert counts == {"train": 40, "dev": 20}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, folder in FOLDERS.items() if folder.startswith("ner/")])
def test_the_labels_of_the_registry_occur_in_the_shared_files(name: str) -> None:
    corpus = corpora.info(name)
    for file in corpus.files:
        if file.split == "train":  # the development files say the same, sooner
            continue
        path = shared_data(FOLDERS[name]) / file.name
        source = reading.FileAndFormat(str(path), corpus.format)
        options = {"labels": {}, "kinds": ("enamex", "numex", "timex")} if name == "ieer" else {}
        found = {e.label for d in reading.read(source, encoding=corpus.encoding, **options) for e in d.entities}
        assert found <= set(corpus.labels)
        if file.size > 100_000:  # a small file need not have them all
            assert found >= set(corpus.label_names)
        assert {e.label for d in reading.read(source, core_labels=True) for e in d.entities} == {"PER", "LOC", "ORG"}


def test_convert(tmp_path: Path) -> None:
    ours = REPOSITORY / "corpora" / "herdner_news.dev.conll"
    assert reading.convert(str(ours), "jsonl", tmp_path / "dev.jsonl") == 20
    first = json.loads((tmp_path / "dev.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert {"id", "text", "entities"} <= set(first)
    assert first["entities"][0]["text"] == "CHILE"

    def tokenizer(text: str) -> Document:
        return Document.from_tokens(line.split() for line in text.split("\n"))

    again = f"{tmp_path / 'dev.jsonl'}:jsonl"
    assert reading.convert(again, "conll", tmp_path / "dev.conll", tokenizer=tokenizer) == 20
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["dev.conll", "dev.jsonl"]
    back = list(reading.read(str(tmp_path / "dev.conll")))
    for document, again in zip(reading.read(str(ours)), back, strict=True):
        assert list(document.tokens) == list(again.tokens)
        assert list(document.tags or []) == list(again.tags or [])


def test_convert_renames_the_labels_of_a_registered_corpus(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text("Ada\tB-person\nlikes\tO\nBauhaus\tB-group\nand\tO\nEmacs\tB-product\n\n")
    assert reading.convert(f"{tmp_path / 'dev'}:wnut17", "conll", tmp_path / "out", core_labels=True) == 1
    assert (tmp_path / "out").read_text() == "Ada\tB-PER\nlikes\tO\nBauhaus\tB-ORG\nand\tO\nEmacs\tO\n\n"


def test_convert_to_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert reading.convert(str(REPOSITORY / "corpora" / "article.txt"), "jsonl", "-") == 1
    assert json.loads(capfdbinary.readouterr().out)["text"].startswith("LAKE FERRY")


def test_a_failed_conversion_leaves_the_output_alone(tmp_path: Path) -> None:
    (tmp_path / "bad.conll").write_text("Ada\tB-PER\nmet\tO\tO\n")
    (tmp_path / "out.jsonl").write_text("older")
    with pytest.raises(FormatError, match=r"bad\.conll:2"):
        reading.convert(str(tmp_path / "bad.conll"), "jsonl", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "older"
    with pytest.raises(ValueError, match="the format 'xml'"):
        reading.convert(str(tmp_path / "bad.conll"), "xml", tmp_path / "out.xml")
    assert {path.name for path in tmp_path.iterdir()} == {"bad.conll", "out.jsonl"}
