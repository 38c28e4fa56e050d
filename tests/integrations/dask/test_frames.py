"""Bags, data frames, Parquet and file systems that are no disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dask.bag as db
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import herdner
from herdner.integrations.dask import tag_bag, tag_files, tag_frame
from herdner.integrations.dask.files import find_files
from herdner.text.io.parquet import ENTITIES
from herdner.text.io.write import entity_record

TEXT = "Ada Lovelace met Charles Babbage in London."


def entities(text: str) -> list[dict]:
    return [entity_record(entity) for entity in herdner.load("en").tag(text).entities]


@pytest.mark.slow
def test_a_bag_of_texts_and_records(client: Client) -> None:
    bag = db.from_sequence([TEXT, {"text": TEXT, "page": 3}, {"page": 4}, ""], npartitions=3)
    tagged = client.compute(tag_bag(bag)).result()  # type: ignore[union-attr]
    assert tagged[0] == {"text": TEXT, "entities": entities(TEXT)}
    assert tagged[1] == {"text": TEXT, "page": 3, "entities": entities(TEXT)}
    assert tagged[2]["entities"] is None
    assert "must be a string" in tagged[2]["error"]
    assert tagged[3] == {"text": "", "entities": []}


@pytest.mark.slow
def test_sampling_of_a_bag_does_not_depend_on_its_partitions(texts: list[str]) -> None:
    def sampled(n: int, order: int, seed: int) -> list[dict]:
        bag = db.from_sequence(texts[:8][::order], npartitions=n)
        options = {"backend": "gibbs", "n_sweeps": 3, "record": "nothing", "seed": seed}
        return tag_bag(bag, **options).compute(scheduler="sync")[::order]

    assert sampled(1, 1, 5) == sampled(3, -1, 5)
    assert sampled(1, 1, 5) != sampled(1, 1, 6)


@pytest.mark.slow
@pytest.mark.slow
def test_a_frame_gets_a_typed_column_lazily(client: Client, tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": [7, 8, 9], "body": [TEXT, None, "In Kenya."]}, index=[5, 6, 7])
    tagged = tag_frame(dd.from_pandas(frame, npartitions=2), column="body")
    assert tagged.dtypes["entities"] == pd.ArrowDtype(ENTITIES)
    result = client.compute(tagged).result()  # type: ignore[union-attr]
    assert result.index.tolist() == [5, 6, 7]
    assert result["entities"].iloc[0] == entities(TEXT)
    assert result["entities"].isna().tolist() == [False, True, False]
    tagged.to_parquet(tmp_path / "tagged", compute_kwargs={"scheduler": "sync"})
    assert pq.read_table(tmp_path / "tagged").column("entities").to_pylist()[2] == entities("In Kenya.")
    with pytest.raises(ValueError, match="no column 'text'; the frame has key, body"):
        tag_frame(dd.from_pandas(frame, npartitions=1))


@pytest.mark.slow
def test_parquet_in_and_out(client: Client, tmp_path: Path, texts: list[str], joined: Callable[[Path], bytes]) -> None:
    days = pa.array([None, *range(39)], pa.date32())
    table = pa.table({"day": days, "body": pa.array(texts).dictionary_encode(), "id": list(range(40))})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=7)
    options = {"client": client, "column": "body", "part_bytes": 6_000}
    tag_files(tmp_path / "in.parquet", tmp_path / "rows", format="parquet", **options)
    manifest = tag_files(tmp_path / "in.parquet", tmp_path / "lines", **options)
    assert len(manifest.parts) > 2
    lines = [json.loads(line) for line in joined(tmp_path / "lines").splitlines()]
    assert [line["id"] for line in lines] == list(range(40))
    assert [line["text"] for line in lines] == texts
    assert lines[3]["entities"] == entities(texts[3]) != []
    rows = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "rows").glob("*.parquet"))))
    assert rows.schema == table.schema.append(pa.field("entities", ENTITIES))
    assert rows.drop(["entities"]).to_pylist() == table.to_pylist()
    assert rows.column("entities").to_pylist() == [line["entities"] for line in lines]


@pytest.mark.slow
def test_parquet_parts_of_json_lines_have_fixed_columns(client: Client, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": TEXT, "page": 3}) + "\n")
    with pytest.warns(UserWarning, match="only the columns id, text, entities and offset; to keep other keys, write"):
        tag_files(tmp_path / "in.jsonl", tmp_path / "rows", format="parquet", client=client)
    written = pq.read_table(tmp_path / "rows" / "part-0000000.parquet")
    assert written.column_names == ["id", "text", "entities", "offset"]


def test_parquet_files_without_a_column_of_texts_fail_but_null_texts_are_kept(client: Client, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["In Kenya.", None]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"body": [1]}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 nonsense")
    messages: list[str] = []
    manifest = tag_files(str(tmp_path / "*.parquet"), tmp_path / "out", client=client, fail=messages.append)
    assert (manifest.complete, manifest.documents, manifest.failed) == (True, 2, 2)
    assert "no column 'text'; the columns of the file are body" in messages[0]
    assert "not a Parquet file" in messages[1]


def test_any_file_system_of_fsspec(texts: list[str]) -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe({f"/lake/{name}.jsonl": json.dumps({"text": TEXT}).encode() for name in "ab"})
    assert [file.path for file in find_files(["memory://lake/*.jsonl"])] == [f"memory:///lake/{n}.jsonl" for n in "ab"]
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as client:
        manifest = tag_files("memory://lake", "memory://tagged", client=client, part_bytes=10)
        assert manifest.names == ["part-0000000.jsonl", "part-0000001.jsonl"]
        tagged = [json.loads(fs.cat(f"/tagged/{name}")) for name in manifest.names]
        assert [record["entities"] for record in tagged] == [entities(TEXT)] * 2
        assert [record["id"] for record in tagged] == ["a.jsonl#1", "b.jsonl#1"]
        assert tag_files("memory://lake", "memory://tagged", client=client, part_bytes=10).complete
