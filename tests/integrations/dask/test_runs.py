"""Runs on two processes: the bytes of one process, whoever is killed or stopped."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from commands import Call
from data import REPOSITORY
from distributed import Client

import herdner
from herdner.integrations.dask import run, tag_files
from herdner.integrations.dask.manifest import InputSlice
from herdner.integrations.dask.slices import join_slices
from herdner.integrations.dask.worker import model_bytes
from herdner.ner.known_names import CollectionNames
from herdner.ner.language import LanguageWarning
from herdner.text.io.plain import PIECE_CHARACTERS

Alone = Callable[..., bytes]
Joined = Callable[[Path], bytes]
SMALL = 6_000  # bytes of a part


def test_the_names_of_a_collection_that_is_too_large_to_count_exactly_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = herdner.load("en")
    names = CollectionNames(tagger.labels)
    names.add(tagger.tag("Ada Lovelace met Charles Babbage in London."))
    names._to_sketch()
    assert len(names) == 0
    monkeypatch.setattr(run, "_results", lambda *_: (each for each in [(0, names)]))
    job: Any = SimpleNamespace(name="job", model=model_bytes("en"))
    manifest: Any = SimpleNamespace(inputs=[], parts=[])
    gathered = run._gather(cast("Client", None), job, manifest)
    assert (gathered.n_documents, gathered.is_exact) == (1, False)


def test_the_parts_are_what_one_process_writes(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    output = tmp_path / "out"
    manifest = tag_files(inputs, output, client=client, part_bytes=SMALL)
    assert manifest.complete
    assert len(manifest.parts) > 8
    assert joined(output) == alone(inputs)
    saved = json.loads((output / "manifest.json").read_text())
    assert saved["complete"]
    assert saved["documents"] == joined(output).count(b"\n") == sum(p["output"]["documents"] for p in saved["parts"])
    for part in saved["parts"]:
        data = (output / part["output"]["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part["output"]["bytes"], part["output"]["sha256"])
    assert {path.name for path in output.iterdir()} == {*manifest.names, "manifest.json"}


def test_each_file_in_another_language_is_reported_once(
    call: Call, client: Client, tmp_path: Path, texts: list[str]
) -> None:
    german = json.loads((REPOSITORY / "tests" / "ner" / "texts_in_languages.json").read_text("utf-8"))["de"]
    folder, record = tmp_path / "in", json.dumps({"text": german}) + "\n"
    folder.mkdir()
    (folder / "a.txt").write_text(german, encoding="utf-8")
    (folder / "b.jsonl").write_text(json.dumps({"text": texts[0]}) + "\n" + 3 * record, encoding="utf-8")
    (folder / "c.txt").write_text(texts[1], encoding="utf-8")
    with pytest.warns(LanguageWarning, match="German") as caught:
        manifest = tag_files(folder, tmp_path / "out", client=client, part_bytes=100)
    assert manifest.languages == {str(folder / name): "de" for name in ("a.txt", "b.jsonl")}
    assert [str(each.message).split(":")[0] for each in caught] == list(manifest.languages)
    assert {each.filename for each in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LanguageWarning)
        done = call("tag", folder, "--cluster", client.scheduler.address, "--output", tmp_path / "again")
    messages = [line for line in done.err.splitlines() if "seems to be German" in line]
    assert [message.split(": ")[1] for message in messages] == list(manifest.languages)
    assert all("use --model de" in message for message in messages)


@pytest.mark.slow
def test_a_collection_is_that_of_one_process(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    settings = {"client": client, "part_bytes": SMALL, "collection": True}
    assert tag_files(inputs, tmp_path / "out", **settings).complete
    assert joined(tmp_path / "out") == alone(inputs, "--collection") != alone(inputs)
    next((tmp_path / "out").glob("part-*3.jsonl")).unlink()
    assert tag_files(inputs, tmp_path / "out", **settings).complete
    assert joined(tmp_path / "out") == alone(inputs, "--collection")
    with pytest.raises(ValueError, match="inference"):
        tag_files(inputs, tmp_path / "out", client=client, part_bytes=SMALL)


@pytest.mark.slow
def test_known_names_go_to_the_workers(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    path = tmp_path / "names.tsv"
    path.write_text("Kenya\tPER\nNairobi\tORG\thard\n")
    tag_files(inputs, tmp_path / "out", client=client, part_bytes=SMALL, names=path)
    assert joined(tmp_path / "out") == alone(inputs, "--names", path) != alone(inputs)
    path.write_text("Kenya\tORG\n")
    with pytest.raises(ValueError, match="names"):
        tag_files(inputs, tmp_path / "out", client=client, part_bytes=SMALL, names=path)


@pytest.mark.slow
def test_documents_sample_the_same_however_they_are_cut(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    sampling = {"backend": "rdhg", "n_sweeps": 2, "record": "nothing"}
    for seed, size in ((3, SMALL), (3, 3 * SMALL), (4, SMALL)):
        tag_files(inputs, tmp_path / f"{seed}-{size}", client=client, part_bytes=size, seed=seed, **sampling)
    expected = alone(inputs, "-b", "rdhg", "--set", "n_sweeps=2", "--set", "record=nothing", "--seed", 3)
    assert joined(tmp_path / f"3-{SMALL}") == joined(tmp_path / f"3-{3 * SMALL}") == expected
    assert joined(tmp_path / f"4-{SMALL}") != expected


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_duplicates_nothing(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done >= 2 and not killed:
            killed.append(client.run(os.getpid).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)

    manifest = tag_files(inputs, tmp_path / "out", client=client, part_bytes=SMALL, progress=kill)
    assert killed
    assert manifest.complete
    assert joined(tmp_path / "out") == alone(inputs)


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(
    client: Client, inputs: Path, tmp_path: Path, alone: Alone, joined: Joined
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        tag_files(inputs, output, client=client, part_bytes=SMALL, progress=stop)
    saved = json.loads((output / "manifest.json").read_text())
    done = [part["output"]["name"] for part in saved["parts"] if part["output"]]
    assert not saved["complete"]
    assert len(done) == 4
    (output / done[0]).unlink()  # lost since then: done again
    times = {name: (output / name).stat().st_mtime_ns for name in done[1:]}
    counts: list[int] = []
    again = tag_files(inputs, output, client=client, part_bytes=SMALL, progress=lambda done, total: counts.append(done))
    assert again.complete
    assert joined(output) == alone(inputs)
    assert {name: (output / name).stat().st_mtime_ns for name in times} == times
    third = tag_files(inputs, output, part_bytes=SMALL)  # nothing to do, so no cluster is needed
    assert third.to_dict() == again.to_dict()


def test_a_run_goes_on_only_as_it_began(client: Client, tmp_path: Path, texts: list[str]) -> None:
    path, output = tmp_path / "a.txt", tmp_path / "out"
    path.write_text(texts[0])
    tag_files(path, output, client=client)
    for change, message in (
        ({"seed": 1}, "seed was 0, now it is 1"),
        ({"backend": "icm"}, 'inference was {}, now it is {"backend": "ICM('),
        ({"inputs": [path, path]}, "another order"),
    ):
        with pytest.raises(ValueError, match="contains parts of another run") as raised:
            tag_files(**{"inputs": path, "output": output, "client": client, **change})
        assert message in str(raised.value)
    path.write_text(texts[1])
    with pytest.raises(ValueError, match="has changed since the run"):
        tag_files(path, output, client=client)


@pytest.mark.slow
def test_failing_documents_are_reported_and_the_rest_goes_on(
    client: Client, tmp_path: Path, texts: list[str], alone: Alone, joined: Joined
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    lines = [json.dumps({"text": text}).encode() for text in texts]
    lines[3:5], lines[20] = [b"{broken", b"[1]"], b'{"text": "K\xf6ln"}'
    (folder / "a.jsonl").write_bytes(b"\n".join(lines))
    (folder / "b.txt").write_bytes(b"K\xf6ln")
    (folder / "c.txt").write_text(texts[0])
    messages: list[str] = []
    manifest = tag_files(folder, output, client=client, part_bytes=SMALL, fail=messages.append)
    assert (manifest.complete, manifest.failed, manifest.documents) == (True, 4, 38)
    kept = [message for part in json.loads((output / "manifest.json").read_text())["parts"]
            for message in part["output"]["failures"]]  # fmt: skip
    assert sorted(kept) == sorted(messages)
    for place in ("a.jsonl:4: not JSON", "a.jsonl:5:", "a.jsonl:21: byte 0xf6", "b.txt:1: byte 0xf6"):
        assert sum(place in message for message in messages) == 1
    assert joined(output) == alone(folder)


@pytest.mark.slow
def test_long_texts_are_cut_as_in_one_process(
    client: Client, tmp_path: Path, alone: Alone, joined: Joined, texts: list[str]
) -> None:
    path = tmp_path / "long.txt"
    text = "\n\n".join(texts)
    text = "\ufeff" + "Zoë came.\n\n" + text * (2_200_000 // len(text))
    path.write_text(text, encoding="utf-8")
    assert len(text) > 2 * PIECE_CHARACTERS
    manifest = tag_files(path, tmp_path / "out", client=client, part_bytes=900_000, links=False)
    assert len(manifest.parts) == 3
    assert joined(tmp_path / "out") == alone(path, "--set", "links=false")


def test_parts_are_filled_and_numbered() -> None:
    slices = [InputSlice(str(i), "file", 0, 0, 1, 0, 1 + i % 2, size) for i, size in enumerate([5, 5, 1, 30, 9])]
    parts = join_slices(slices, 10)
    assert [[piece.path for piece in part.slices] for part in parts] == [["0", "1"], ["2"], ["3"], ["4"]]
    assert [part.first_document for part in parts] == [0, 3, 4, 6]
