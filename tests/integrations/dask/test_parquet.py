"""Parquet files: what is damaged is a ValueError of one line."""

from __future__ import annotations

import io

import pytest

from herdner.text.io.source import Source

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[dask]'")
pq = pytest.importorskip("pyarrow.parquet")
parquet = pytest.importorskip("herdner.text.io.parquet")


@pytest.mark.parametrize("compression", ["zstd", "gzip", "snappy"])
def test_pages_that_cannot_be_unpacked_are_told(compression: str) -> None:
    stream = io.BytesIO()
    table = pa.table({"id": [str(n) for n in range(500)], "text": [f"Ada met {n} men." for n in range(500)]})
    pq.write_table(table, stream, compression=compression, use_dictionary=False)
    column = pq.ParquetFile(stream).metadata.row_group(0).column(1)
    data = bytearray(stream.getvalue())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 300 : end] = bytes(300)
    groups = parquet.count_rows(io.BytesIO(data), "text")
    rows = parquet.read_rows(io.BytesIO(data), Source("f", "f", None, None), "text", range(len(groups)), 0)
    with pytest.raises(ValueError, match=r"^damaged Parquet file \([^\n]*\)$"):
        list(rows)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(20) + b"PAR1", b"{}" * 40])
def test_files_that_are_none_are_told(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not a Parquet file, or damaged \([^\n]*\)$"):
        parquet.count_rows(io.BytesIO(data), "text")
