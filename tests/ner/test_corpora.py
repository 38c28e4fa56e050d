"""The registry of corpora: its entries, its errors, and downloads from a server on this machine."""

from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import pytest
from data import REPOSITORY, shared_data

from herdner.ner import corpora, download, files
from herdner.ner.corpora import Corpus, CorpusError, CorpusFile
from herdner.ner.io import FORMATS

BODY = b"Ada\tB-PER\n" * 20_000  # several blocks
SHA256 = hashlib.sha256(BODY).hexdigest()

FOLDERS = {
    "ieer": "ner/ieer",
    "conll2003": "ner/conll2003",
    "conll2002": "ner/conll2002",
    "worldwide": "ner/worldwide",
    "wnut17": "ner/wnut17",
    "btc": "ner/btc",
    "uner_ewt": "ner/uner_ewt",
    "masc": "raw",
    "state_union": "raw",
    "inaugural": "raw",
    "mpeg7_shapes": "vision",
    "msrc_v1": "vision/msrc_v1",
    "uci_regression": "uci",
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind = self.path.strip("/")
        self.server.asked.append(kind)  # type: ignore[attr-defined]
        if kind in ("good", "truncated", "longer", "corrupt"):
            self.answer(kind)
        elif kind == "endless":
            self.send_response(200)
            self.end_headers()  # without a length: the client has to count
            try:
                while True:
                    self.wfile.write(BODY)
            except OSError:
                pass
        elif kind == "moved":
            self.redirect("/good")
        elif kind.startswith("loop"):
            self.redirect(f"/loop{len(self.server.asked)}")  # type: ignore[attr-defined]
        elif kind.startswith("to-"):
            self.redirect({"to-file": "file:///etc/hostname", "to-ftp": "ftp://127.0.0.1/x"}[kind])
        elif kind == "silent":
            time.sleep(1.5)
        elif kind == "nonsense":
            self.wfile.write(b"this is not http\r\n\r\n")
        else:
            self.send_error(404)

    def answer(self, kind: str) -> None:
        body = {"longer": BODY + b"x", "corrupt": BODY[:-1] + b"?"}.get(kind, BODY)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:70_000] if kind == "truncated" else body)

    def redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def one_file(url: str, **changes: object) -> dict[str, Corpus]:
    file = replace(CorpusFile("toy.conll", len(BODY), SHA256, url, "train"), **changes)  # type: ignore[arg-type]
    toy = Corpus("toy", "Toy", "here", "CC0-1.0", "train", "ner", "en", "conll", "none", "download", (file,))
    return {"toy": toy}


def address(server: ThreadingHTTPServer, kind: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{kind}"


def fails(kind: str, server: ThreadingHTTPServer, folder: Path, **changes: object) -> str:
    """The message of a download that must fail, and must leave nothing behind."""
    with pytest.raises(CorpusError) as caught:
        corpora.fetch("toy", folder, registry=one_file(address(server, kind), **changes), timeout=0.5)
    assert "\n" not in str(caught.value)
    assert not [path for path in folder.rglob("*") if path.is_file()]
    return str(caught.value)


def test_a_good_download_arrives_whole_and_reports_progress(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    registry = one_file(address(server, "good"))
    folder = corpora.fetch("toy", tmp_path / "new" / "toy", registry=registry, progress=lambda *a: seen.append(a))
    assert folder == tmp_path / "new" / "toy"
    assert [path.name for path in folder.iterdir()] == ["toy.conll"]
    assert (folder / "toy.conll").read_bytes() == BODY
    assert seen[-1] == ("toy.conll", len(BODY), len(BODY))
    assert len(seen) > 1
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_a_right_file_is_not_fetched_again_and_a_wrong_one_is(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    registry = one_file(address(server, "good"))
    corpora.fetch("toy", tmp_path, registry=registry)
    corpora.fetch("toy", tmp_path, registry=registry)
    assert server.asked == ["good"]  # type: ignore[attr-defined]
    (tmp_path / "toy.conll").write_bytes(BODY[:-1] + b"?")
    corpora.fetch("toy", tmp_path, registry=registry)
    assert server.asked == ["good", "good"]  # type: ignore[attr-defined]
    assert (tmp_path / "toy.conll").read_bytes() == BODY


def test_the_default_folder_is_the_users_cache(
    server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    folder = corpora.fetch("toy", registry=one_file(address(server, "good")))
    assert folder == tmp_path / "herdner" / "corpora" / "toy"
    assert (folder / "toy.conll").is_file()


def test_a_wrong_checksum_names_both_sums_and_keeps_nothing(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    message = fails("corrupt", server, tmp_path)
    assert SHA256 in message
    assert hashlib.sha256(BODY[:-1] + b"?").hexdigest() in message
    assert "nothing was kept" in message


def test_a_failed_download_leaves_the_old_file_alone(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "toy.conll").write_text("an older version")
    with pytest.raises(CorpusError):
        corpora.fetch("toy", tmp_path, registry=one_file(address(server, "corrupt")))
    assert [path.name for path in tmp_path.iterdir()] == ["toy.conll"]
    assert (tmp_path / "toy.conll").read_text() == "an older version"


def test_a_truncated_body(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    message = fails("truncated", server, tmp_path)
    assert "nothing was kept, try again" in message


def test_a_body_of_another_size(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    assert f"has {len(BODY) + 1} bytes, expected {len(BODY)}" in fails("longer", server, tmp_path)


def test_an_endless_body_is_cut_off(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    assert f"longer than the expected {len(BODY)} bytes" in fails("endless", server, tmp_path)


def test_redirects_are_followed_but_not_for_ever_nor_off_the_web(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    corpora.fetch("toy", tmp_path / "moved", registry=one_file(address(server, "moved")))
    assert (tmp_path / "moved" / "toy.conll").read_bytes() == BODY
    server.asked.clear()  # type: ignore[attr-defined]
    assert "answered 302" in fails("loop", server, tmp_path / "loop")
    assert len(server.asked) == download.MAX_REDIRECTS + 1  # type: ignore[attr-defined]
    assert "not allowed" in fails("to-file", server, tmp_path / "file")
    assert "refused a redirect: 'ftp://127.0.0.1/x' is no http" in fails("to-ftp", server, tmp_path / "ftp")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("missing", "the server answered 404"), ("silent", "0.5 seconds"), ("nonsense", "the connection broke")],
)
def test_what_else_a_server_may_do(server: ThreadingHTTPServer, tmp_path: Path, kind: str, expected: str) -> None:
    assert expected in fails(kind, server, tmp_path)


def test_no_network(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    assert "no connection" in fails("good", server, tmp_path)


def test_a_full_disk(server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    message = fails("good", server, tmp_path)
    assert f"cannot write {tmp_path / 'toy.conll'}: No space left on device" in message


def test_a_redirect_may_not_leave_https() -> None:
    download.check_url("https://example.org/b", after="https://example.org/a")
    with pytest.raises(ValueError, match="not https any more"):
        download.check_url("http://example.org/b", after="https://example.org/a")
    with pytest.raises(ValueError, match="no http or https address"):
        download.check_url("file:///etc/hostname")


def test_by_hand_says_what_to_do_and_where_and_then_accepts_the_files(tmp_path: Path) -> None:
    (toy,) = one_file("http://127.0.0.1/").values()
    toy = replace(toy, fetch="by hand", instructions="Write to the\nauthors.", files=(replace(toy.files[0], url=None),))
    with pytest.raises(CorpusError, match=r"Write to the authors\. Put the files into .*missing") as caught:
        corpora.fetch("toy", tmp_path, registry={"toy": toy})
    assert "\n" not in str(caught.value)
    (tmp_path / "toy.conll").write_bytes(BODY[:-1] + b"?")
    with pytest.raises(CorpusError, match=f"expected {SHA256}"):
        corpora.fetch("toy", tmp_path, registry={"toy": toy})
    (tmp_path / "toy.conll").write_bytes(BODY)
    assert corpora.fetch("toy", tmp_path, registry={"toy": toy}) == tmp_path


def test_the_checksum_of_a_folder_is_that_of_sha256sum(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.txt", "a.txt", "Z"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    command = "LC_ALL=C; export LC_ALL; find . -type f | sed 's:^./::' | sort | xargs sha256sum | sha256sum"
    if sys.platform != "linux":
        pytest.skip("needs sha256sum")
    printed = subprocess.run(command, shell=True, cwd=tmp_path / "tree", capture_output=True, text=True, check=True)
    assert corpora.checksum(tmp_path / "tree") == (18, printed.stdout.split()[0])


# --- the registry


def test_every_entry_of_the_registry_is_complete() -> None:
    registry = corpora.load_registry()
    assert set(registry) == {"herdner_news", *FOLDERS}
    for corpus in registry.values():
        assert set(corpus.labels.values()) <= {"PER", "LOC", "ORG"}
        if corpus.task == "ner":
            assert set(corpus.labels.values()) == {"PER", "LOC", "ORG"}
            assert {file.split for file in corpus.files} <= {"train", "dev"}
        assert corpus.files
        assert corpus.label_map["*"] is None


def test_the_checksums_of_our_own_corpus() -> None:
    assert list(corpora.verify(corpora.info("herdner_news"), REPOSITORY / "corpora")) == []


@pytest.mark.parametrize("name", FOLDERS)
def test_the_checksums_of_the_shared_corpora(name: str) -> None:
    assert list(corpora.verify(corpora.info(name), shared_data(FOLDERS[name]))) == []


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(CorpusError, match="unknown corpus 'CoNLL-2003'; did you mean conll2003"):
        corpora.info("CoNLL-2003")
    with pytest.raises(CorpusError, match="known are a, b"):
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
classes = ["PER"]
labels = { PER = "PER" }
citation = "none"
fetch = "download"
files = [
  { name = "toy.conll", size = 1, sha256 = "SUM", url = "https://example.org/toy.conll" },
]
""".replace("SUM", "0" * 64)


def test_a_registry_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "registry.toml"
    path.write_text(ENTRY)
    assert corpora.load_registry(path)["toy"] == corpora.info("toy", path)
    assert corpora.info("toy", path).files[0].url == "https://example.org/toy.conll"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("version = 1", "version = 2", "registry version 2; herdner reads version 1"),
        ("version = 1", "version = ", "not a registry"),
        ('licence = "CC0-1.0"', "", "corpus toy: licence is missing"),
        ('licence = "CC0-1.0"', "licence = 3", "licence must be of type str, found int"),
        ('use = "train"', 'use = "sell"', "use is 'sell', expected one of train, measure only"),
        ('language = "en"', 'language = "en"\nlanguages = 2', "unknown field languages"),
        ("corpus.toy", 'corpus."../toy"', "the name must be lower-case letters"),
        ("toy.conll", "../toy.conll", "no safe file name"),
        ("toy.conll", "/toy.conll", "no safe file name"),
        ("toy.conll", r"C:\\toy.conll", "no safe file name"),
        ("size = 1", "size = -1", "size -1 is not between"),
        ("size = 1", "size = true", "size must be of type int"),
        ("0" * 64, "0" * 63, "sha256 must be 64"),
        ("https://example.org/toy.conll", "file:///etc/passwd", "no http or https address"),
        (', url = "https://example.org/toy.conll"', "", "a file has no url"),
        ('fetch = "download"', 'fetch = "by hand"', "there are no instructions"),
        ('classes = ["PER"]', 'classes = ["LOC"]', "labels names a class that is not among classes"),
        ("files = [", "files = [ 3, ", "expected a table, found int"),
    ],
)
def test_a_broken_registry_says_what_is_wrong(tmp_path: Path, old: str, new: str, expected: str) -> None:
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
    assert corpora.parse_source(argument) == (path, format)


def test_parse_source_prefers_a_file_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt:conll").touch()
    with pytest.raises(ValueError, match="the extension does not tell the format"):
        corpora.parse_source("notes.txt:conll")
    Path("notes.txt").touch()
    assert corpora.parse_source("notes.txt:conll") == ("notes.txt", "conll")
    assert corpora.parse_source("notes.txt:conll:text") == ("notes.txt:conll", "text")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("eng.train:conl2003", "unknown format 'conl2003' (did you mean conll2003?); expected FILE:FORMAT with one of"),
        ("eng.train", "the extension does not tell the format"),
        ("", "'' names no file"),
        (":conll", "':conll' names no file"),
        ("-", "the extension does not tell the format"),
    ],
)
def test_parse_source_names_the_formats(argument: str, expected: str) -> None:
    with pytest.raises(ValueError, match="expected FILE:FORMAT") as caught:
        corpora.parse_source(argument)
    assert expected in str(caught.value)
    assert "conll2003" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_annotated_corpus_has_a_reader() -> None:
    for corpus in corpora.load_registry().values():
        if corpus.task in ("ner", "text"):
            assert FORMATS[corpus.format].read is not None, corpus.name


def test_label_maps_belong_to_corpora_and_not_to_general_formats() -> None:
    worldwide = corpora.label_map("worldwide")
    assert worldwide is not None
    assert worldwide["Facility"] == "LOC"
    assert worldwide["*"] is None
    for general in ("conll", "jsonl", "text"):
        assert corpora.label_map(general) is None


def test_our_own_corpus_reads_as_the_registry_says() -> None:
    corpus = corpora.info("herdner_news")
    counts = {}
    for file in corpus.files:
        documents = list(corpora.read(f"{REPOSITORY / 'corpora' / file.name}:{corpus.format}"))
        counts[file.split] = len(documents)
        assert {entity.label for document in documents for entity in document.entities} == set(corpus.classes)
    assert counts == {"train": 40, "dev": 20}


@pytest.mark.parametrize("name", [name for name, folder in FOLDERS.items() if folder.startswith("ner/")])
def test_the_classes_of_the_registry_are_those_of_the_shared_files(name: str) -> None:
    corpus = corpora.info(name)
    for file in corpus.files:
        path = shared_data(FOLDERS[name]) / file.name
        source = corpora.SourceFile(str(path), corpus.format)
        options = {"labels": {}, "kinds": ("enamex", "numex", "timex")} if name == "ieer" else {}
        found = {e.label for d in corpora.read(source, encoding=corpus.encoding, **options) for e in d.entities}
        assert found <= set(corpus.classes)
        if file.size > 100_000:  # a small file need not have them all
            assert found >= set(corpus.labels)
        assert {e.label for d in corpora.read(source, map_labels=True) for e in d.entities} == {"PER", "LOC", "ORG"}
