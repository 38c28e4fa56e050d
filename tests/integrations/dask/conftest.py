"""A cluster of two processes for all tests of this folder, texts to tag, and what one process makes of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from commands import Call
from data import REPOSITORY

pytest.importorskip("distributed", reason="needs the extra dask")

from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Forty texts of a few thousand characters."""
    lines = (REPOSITORY / "corpora" / "herdner_news.train.conll").read_text(encoding="utf-8").splitlines()
    words = [line.split("\t")[0] for line in lines]
    sentences = [" ".join(group) for filled, group in groupby(words, bool) if filled]
    return [f"{i}. " + "\n".join(sentences[20 * i : 20 * i + 20]) for i in range(40)]


@pytest.fixture
def inputs(tmp_path: Path, texts: list[str]) -> Path:
    """JSON lines with blank ones, small and long texts, gzip, a text with a byte order mark."""
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    lines = [json.dumps({"text": text}) + "\n\n" * (i % 3) for i, text in enumerate(texts)]
    (folder / "records.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "sub" / "named.jsonl").write_text(json.dumps({"id": "one", "text": texts[0]}), encoding="utf-8")
    for i, text in enumerate(texts[:10]):
        (folder / f"{i}.txt").write_text(text, encoding="utf-8")
    (folder / "blank.txt").write_text(" \n")
    (folder / "mark.txt").write_bytes(b"\xef\xbb\xbf" + "Ada Lovelace met Zoë in Kenya.".encode())
    (folder / "packed.txt.gz").write_bytes(gzip.compress("\n\n".join(texts).encode()))
    return folder


@pytest.fixture
def alone(call: Call) -> Callable[..., bytes]:
    """Return the output of `herdner tag` in one process."""

    def tag(*arguments: object) -> bytes:
        return call("tag", *arguments, "-f", "jsonl").out.encode()

    return tag


def joined(output: Path) -> bytes:
    """The concatenated parts of a folder."""
    return b"".join(path.read_bytes() for path in sorted(output.glob("part-*.jsonl")))


@pytest.fixture(name="joined")
def joined_fixture() -> Callable[[Path], bytes]:
    return joined
