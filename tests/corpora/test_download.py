"""Downloads from a local server."""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from patience import PATIENCE

from herdner.base import files as base_files
from herdner.corpora import download, files
from herdner.corpora.registry import Corpus, CorpusError, CorpusFile

BODY = b"Ada\tB-PER\n" * 20_000  # several blocks
SHA256 = hashlib.sha256(BODY).hexdigest()


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
            self.server.over.wait(PATIENCE)  # type: ignore[attr-defined]
        elif kind == "no-reason":
            self.send_response(404, "")
            self.end_headers()
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
    server.asked, server.over = [], threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.over.set()  # type: ignore[attr-defined]
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
    """Return the message of a download that must fail without leaving a file."""
    registry, timeout = one_file(address(server, kind), **changes), 0.5 if kind == "silent" else PATIENCE
    with pytest.raises(CorpusError) as caught:
        files.fetch("toy", folder, registry=registry, timeout=timeout)
    assert "\n" not in str(caught.value)
    assert not [path for path in folder.rglob("*") if path.is_file()]
    return str(caught.value)


def test_a_good_download_arrives_whole_and_reports_progress(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    registry = one_file(address(server, "good"))
    folder = files.fetch("toy", tmp_path / "new" / "toy", registry=registry, progress=lambda *a: seen.append(a))
    assert folder == tmp_path / "new" / "toy"
    assert [path.name for path in folder.iterdir()] == ["toy.conll"]
    assert (folder / "toy.conll").read_bytes() == BODY
    assert seen[-1] == ("toy.conll", len(BODY), len(BODY))
    assert len(seen) > 1
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_a_right_file_is_not_fetched_again_and_a_wrong_one_is(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    registry = one_file(address(server, "good"))
    files.fetch("toy", tmp_path, registry=registry)
    files.fetch("toy", tmp_path, registry=registry)
    assert server.asked == ["good"]  # type: ignore[attr-defined]
    (tmp_path / "toy.conll").write_bytes(BODY[:-1] + b"?")
    files.fetch("toy", tmp_path, registry=registry)
    assert server.asked == ["good", "good"]  # type: ignore[attr-defined]
    assert (tmp_path / "toy.conll").read_bytes() == BODY


def test_the_default_folder_is_the_users_cache(
    server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    folder = files.fetch("toy", registry=one_file(address(server, "good")))
    assert folder == tmp_path / "herdner" / "corpora" / "toy"
    assert (folder / "toy.conll").is_file()


def test_a_wrong_checksum_names_both_sums_and_keeps_nothing(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    message = fails("corrupt", server, tmp_path)
    assert SHA256 in message
    assert hashlib.sha256(BODY[:-1] + b"?").hexdigest() in message
    assert "the download was deleted" in message


def test_a_failed_download_leaves_the_old_file_alone(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "toy.conll").write_text("an older version")
    with pytest.raises(CorpusError):
        files.fetch("toy", tmp_path, registry=one_file(address(server, "corrupt")))
    assert [path.name for path in tmp_path.iterdir()] == ["toy.conll"]
    assert (tmp_path / "toy.conll").read_text() == "an older version"


def test_a_truncated_body(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    message = fails("truncated", server, tmp_path)
    assert "bytes and was deleted; try again" in message


def test_a_body_of_another_size(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    assert f"announces {len(BODY) + 1} bytes, expected {len(BODY)}" in fails("longer", server, tmp_path)


def test_an_endless_body_is_cut_off(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    assert f"longer than the expected {len(BODY)} bytes; the download was deleted" in fails("endless", server, tmp_path)


def test_redirects_are_followed_but_not_for_ever_nor_off_the_web(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    files.fetch("toy", tmp_path / "moved", registry=one_file(address(server, "moved")))
    assert (tmp_path / "moved" / "toy.conll").read_bytes() == BODY
    server.asked.clear()  # type: ignore[attr-defined]
    assert "answered 302" in fails("loop", server, tmp_path / "loop")
    assert len(server.asked) == download.MAX_REDIRECTS + 1  # type: ignore[attr-defined]
    assert "not allowed" in fails("to-file", server, tmp_path / "file")
    assert "the redirect was refused, because 'ftp://127.0.0.1/x' is not an http" in fails(
        "to-ftp", server, tmp_path / "ftp"
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("missing", "answered 404 Not Found;"),
        ("no-reason", "answered 404;"),
        ("silent", "0.5 seconds"),
        ("nonsense", "the connection broke"),
    ],
)
def test_other_server_errors(server: ThreadingHTTPServer, tmp_path: Path, kind: str, expected: str) -> None:
    assert expected in fails(kind, server, tmp_path)


def test_no_network(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    assert "no connection" in fails("good", server, tmp_path)


def test_a_full_disk(server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(base_files.os, "fsync", full)
    message = fails("good", server, tmp_path)
    assert f"cannot write {tmp_path / 'toy.conll'}: No space left on device" in message


def test_a_redirect_may_not_leave_https() -> None:
    download.check_url("https://example.org/b", after="https://example.org/a")
    with pytest.raises(ValueError, match=r"redirects to .* which does not use https"):
        download.check_url("http://example.org/b", after="https://example.org/a")
    with pytest.raises(ValueError, match="not an http or https address"):
        download.check_url("file:///etc/hostname")
