"""Covertype and Year, read from files as UCI gives them."""

from __future__ import annotations

import csv
import gzip
import io
import tracemalloc
import zipfile

import fwss_logistic
import fwss_neural
import numpy as np
import pytest
import uci_files


def covertype(n: int) -> str:
    rng = np.random.default_rng(20)
    rows = np.column_stack([rng.integers(0, 4000, (n, 54)), rng.integers(1, 8, n)])
    return "".join(",".join(map(str, row)) + "\n" for row in rows.tolist())


def year(n: int) -> str:
    rng = np.random.default_rng(25)
    values = rng.normal(size=(n, 90)).round(5).tolist()
    return "".join(f"{1922 + k % 90}," + ",".join(map(str, row)) + "\n" for k, row in enumerate(values))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "text"), [("covtype", covertype(257)), ("year", year(257))])
def test_a_file_is_read_whole_with_its_target_last(name, text, packed, tmp_path, capsys):
    path = tmp_path / ("table.gz" if packed else "table")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = uci_files.read_uci(path, name)
    rows = [[float(word) for word in row] for row in csv.reader(io.StringIO(text))]
    wanted = np.array([row[1:] + row[:1] for row in rows] if name == "year" else rows, np.float32)
    assert found.dtype == np.float32
    assert np.array_equal(found, wanted)
    assert "257 lines; " in capsys.readouterr().out


def test_memory_is_little_more_than_that_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setitem(uci_files.FORMATS, "covtype", uci_files.Format("covtype.data", 55, 6000, 54, 1, 7))
    (tmp_path / "covtype.data").write_text(covertype(6000))
    peaks = []
    for _ in range(3):  # threads that earlier tests left behind may take memory meanwhile
        tracemalloc.start()
        found = uci_files.read_uci(tmp_path / "covtype.data", "covtype")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(found) == 6000
    assert min(peaks) < 1.4 * found.nbytes


def zipped(text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("table", text)
    return stream.getvalue()


def broken(line: str) -> str:
    return covertype(2) + line + "\n" + covertype(1)


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (broken(",".join(["1"] * 30)), "table: cannot be read as covtype.data: the number of columns changed from 55"),
        (
            broken(",".join(["1"] * 54 + ["8"])),
            "line 3: expected finite numbers, and a target from 1 to 7; the file is not",
        ),
        (broken(",".join(["1"] * 53 + ["x", "2"])), "could not convert string 'x' to float32 at row 2, column 54"),
        (broken(",".join(["1"] * 53 + ["nan", "2"])), "line 3: expected finite numbers"),
        (broken(",".join(["1"] * 53 + ["1_0", "2"])), "could not convert string '1_0'"),
        (broken(",".join(["1"] * 53 + ["1e39", "2"])), "line 3: expected finite numbers"),
        (year(3), "expected 55 numbers per line as in covtype.data, got 91"),
        ("", "expected 55 numbers per line as in covtype.data"),
        (zipped("1,2\n"), "is a zip archive; extract it first"),
        (gzip.compress(covertype(500).encode()), "cannot be read as covtype.data"),
    ],
)
def test_what_is_no_such_table_is_one_line(content, said, tmp_path):
    path = tmp_path / "table"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit, match=said) as raised:
        uci_files.read_uci(path, "covtype")
    assert "\n" not in str(raised.value)


def test_the_scripts_take_the_files(tmp_path):
    (tmp_path / "covtype.data").write_text(covertype(300))
    (tmp_path / "year.txt").write_text(year(20))
    name, inputs, labels = fwss_logistic.load(str(tmp_path / "covtype.data"))
    assert (name, inputs.shape) == ("Covertype", (300, 54))
    assert set(labels) == {0.0, 1.0}
    model, accuracy = fwss_logistic.prepare(inputs, labels, np.random.default_rng(0))
    assert np.abs(model.inputs[:, :-1].mean(axis=0)).max() < 1e-4
    assert 0 <= accuracy(model.draw_prior(np.random.default_rng(1), 3), np.ones(3)) <= 1
    found, rows = fwss_neural.rows_of(str(tmp_path / "year.txt"))
    assert (found, rows.shape) == ("year", (20, 91))
    for script in (fwss_logistic.load, fwss_neural.rows_of):
        with pytest.raises(SystemExit, match=r"an existing file, got 'nowhere.txt'"):
            script("nowhere.txt")
