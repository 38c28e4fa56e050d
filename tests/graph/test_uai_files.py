"""Files of the UAI inference competitions: what is written is read, and malformed files are refused by position."""

from __future__ import annotations

import gzip
import lzma
import zipfile

import numpy as np
import pytest

from herdner.base import memory
from herdner.base.memory import NotEnoughMemory
from herdner.graph import FactorGraph, GraphFileError, TableFactors, uai_files
from herdner.graph.uai_files import (
    format_log_z,
    format_marginals,
    format_state,
    read_evidence,
    read_log_z,
    read_marginals,
    read_samples,
    read_state,
    read_uai,
    write_evidence,
    write_uai,
)
from herdner.text.io.source import FormatError

EXAMPLE = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def test_the_published_example_is_read(tmp_path):
    path = tmp_path / "graph.uai"
    path.write_text(EXAMPLE)
    graph = read_uai(path)
    assert graph.domains.sizes.tolist() == [2, 2, 3]
    assert graph.log_potential([1, 0, 2]) == pytest.approx(np.log(0.564 * 0.920 * 0.457))
    assert graph.log_potential([0, 1, 1]) == -np.inf
    packed = tmp_path / "graph.uai.gz"
    packed.write_bytes(gzip.compress(EXAMPLE.encode()))
    assert read_uai(packed).log_potential([1, 0, 2]) == graph.log_potential([1, 0, 2])


def test_a_zip_archive_of_one_file_is_read(tmp_path):
    path = tmp_path / "graph.uai.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/graph.uai", EXAMPLE)
    (tmp_path / "graph.uai").write_text(EXAMPLE)
    tables = [group.tables for group in read_uai(tmp_path / "graph.uai").factors]
    assert all(np.array_equal(group.tables, table) for group, table in zip(read_uai(path).factors, tables, strict=True))
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(GraphFileError, match="cannot be read"):
        read_uai(damaged)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("second", "")
    with pytest.raises(GraphFileError, match="must contain one file, got 2"):
        read_uai(path)
    with pytest.raises(FormatError, match="no such file"):
        read_uai(tmp_path / "none.zip")


def test_comments_are_left_out_and_errors_name_their_line(tmp_path):
    path = tmp_path / "graph.uai"
    comments = EXAMPLE.replace("3\n2 2 3\n", "3 # nbr Nodes\n2 2 3# 9 9\n").replace("4\n", "4 # {0, 1}\n")
    path.write_text("# a comment\n\n" + comments + "#")
    assert read_uai(path).log_potential([1, 0, 2]) == pytest.approx(np.log(0.564 * 0.920 * 0.457))
    path.write_text("# a comment\n\n" + comments.replace("0.128", "-1"))
    with pytest.raises(GraphFileError, match=r"graph.uai:15: table entries"):
        read_uai(path)


def test_what_is_written_is_read_again(tmp_path):
    rng = np.random.default_rng(1)
    tables = rng.normal(size=(2, 2, 3, 2))
    tables[0, 1, 2, 0] = -np.inf
    graph = FactorGraph(
        [2, 3, 2, 1],
        [TableFactors([[0, 1, 2], [2, 1, 0]], tables, scale=[1, 2.5]), TableFactors(np.empty((1, 0)), [0.5])],
    )
    write_uai(tmp_path / "graph.uai", graph)
    again = read_uai(tmp_path / "graph.uai")
    states = np.indices((2, 3, 2, 1)).reshape(4, -1).T
    np.testing.assert_allclose(again.log_potential(states), graph.log_potential(states), rtol=1e-12)
    write_evidence(tmp_path / "graph.evid", {2: 1, 0: 0})
    assert read_evidence(tmp_path / "graph.evid", graph) == {2: 1, 0: 0}
    marginals = np.array([rng.dirichlet(np.arange(3) < size) for size in (2, 3, 3, 1)])
    (tmp_path / "out.MAR").write_text(format_marginals(marginals, np.array([2, 3, 3, 1])))
    assert [row.tolist() for row in read_marginals(tmp_path / "out.MAR")] == [
        row[:size].tolist() for row, size in zip(marginals, [2, 3, 3, 1], strict=True)
    ]


@pytest.mark.parametrize(("extension", "decompress"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_files_are_compressed_by_their_extension(tmp_path, extension, decompress):
    (tmp_path / "source.uai").write_text(EXAMPLE)
    graph, evidence = read_uai(tmp_path / "source.uai"), {2: 1, 0: 0}
    for name, write, value in [("graph.uai", write_uai, graph), ("graph.evid", write_evidence, evidence)]:
        write(tmp_path / name, value)
        write(tmp_path / f"{name}{extension}", value)
        assert decompress((tmp_path / f"{name}{extension}").read_bytes()) == (tmp_path / name).read_bytes()
    again = read_uai(tmp_path / f"graph.uai{extension}")
    states = np.indices((2, 2, 3)).reshape(3, -1).T
    np.testing.assert_allclose(again.log_potential(states), graph.log_potential(states), rtol=1e-12)
    assert read_evidence(tmp_path / f"graph.evid{extension}", graph) == evidence
    with pytest.raises(ValueError, match=r"graph\.uai\.zip: cannot write files with this extension; expected \.gz"):
        write_uai(tmp_path / "graph.uai.zip", graph)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "MARKOW", r":1: the file must begin with MARKOV or BAYES, got 'MARKOW'"),
        ("2 2 3", "2 0 3", r":3: a number of states must be an integer from 1 to 2147483647, got '0'"),
        ("2 0 1", "2 0 3", r":6: a variable must be an integer from 0 to 2, got '3'"),
        ("2 0 1", "2 1 1", r":6: the scope \[1, 1\] names a variable twice"),
        ("\n4\n", "\n5\n", r":12: the table of the variables \[0, 1\] must have 4 entries, got 5"),
        ("0.920", "-0.920", r":14: table entries must be finite numbers of at least 0, got '-0.920'"),
        ("0.811", "0.8x1", r":18: table entries must be finite numbers of at least 0, got '0.8x1'"),
        ("0.189", "", r":18: the file ends where table entries should be"),
        ("0.189", "0.189 7", r":18: expected the end of the file, got '7'"),
        ("MARKOV\n3", "MARKOV\n99999999999", r":2: the number of variables must be an integer from 0 to \d+"),
    ],
)
def test_malformed_files_are_refused_with_their_position(tmp_path, old, new, message):
    path = tmp_path / "graph.uai"
    path.write_text(EXAMPLE.replace(old, new, 1))
    with pytest.raises(GraphFileError, match=message) as error:
        read_uai(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("n_characters", [1, 7, 40])
def test_files_are_split_into_blocks(tmp_path, monkeypatch, n_characters):
    path = tmp_path / "graph.uai"
    path.write_text(EXAMPLE)
    expected = read_uai(path)
    monkeypatch.setattr(uai_files, "_BLOCK_CHARACTERS", n_characters)
    found = read_uai(path)
    assert found.domains.sizes.tolist() == expected.domains.sizes.tolist()
    for ours, theirs in zip(found.factors, expected.factors, strict=True):
        assert ours.scopes.tolist() == theirs.scopes.tolist()
        assert ours.tables.tolist() == theirs.tables.tolist()
    path.write_text(EXAMPLE.replace("0.811", "0.8x1"))
    with pytest.raises(GraphFileError, match=r":18: table entries must be finite numbers of at least 0, got '0.8x1'"):
        read_uai(path)


def test_a_file_whose_graph_may_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    """A packed file of half a megabyte may have 2^29 characters."""
    (tmp_path / "graph.uai.gz").write_bytes(gzip.compress(b"MARKOV " + b"1 " * 10**7))
    monkeypatch.setattr(memory, "free_memory", lambda: 10**8)
    with pytest.raises(NotEnoughMemory, match=r"graph.uai.gz, a text of 20,000,007 characters, takes about 480.0 MB"):
        read_uai(tmp_path / "graph.uai.gz")


@pytest.mark.parametrize(
    ("text", "evidence"), [("", {}), ("0", {}), ("2 0 1 2 2", {0: 1, 2: 2}), ("1\n2 0 1 2 2", {0: 1, 2: 2})]
)
def test_evidence_of_all_years_is_read(tmp_path, text, evidence):
    path = tmp_path / "graph.evid"
    path.write_text(text)
    assert read_evidence(path) == evidence


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 3 0", "a variable must be an integer from 0 to 2, got '3'"),
        ("1 2 3", "the state of variable 2 must be an integer from 0 to 2, got '3'"),
        ("2 0 1 0 1", "variable 0 is observed twice"),
        ("1 0 1 1 1", "expected the end of the file"),
        ("3 0 1 1 1", "the file ends where a variable should be"),
        ("2 0 1 2", "the file ends where the state of variable 2 should be"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(tmp_path, text, message):
    (tmp_path / "graph.uai").write_text(EXAMPLE)
    path = tmp_path / "graph.evid"
    path.write_text(text)
    with pytest.raises(GraphFileError, match=message):
        read_evidence(path, read_uai(tmp_path / "graph.uai"))


def test_results_that_are_written_are_read_again(tmp_path):
    (tmp_path / "graph.uai").write_text(EXAMPLE)
    graph = read_uai(tmp_path / "graph.uai")
    (tmp_path / "out.PR").write_text(format_log_z(-12.25))
    assert read_log_z(tmp_path / "out.PR") == pytest.approx(-12.25, rel=1e-15)
    (tmp_path / "zero.PR").write_text("PR\n1\n-inf # no joint state\n")
    assert read_log_z(tmp_path / "zero.PR") == -np.inf
    (tmp_path / "out.MPE.gz").write_bytes(gzip.compress(format_state([1, 0, 2]).encode()))
    assert read_state(tmp_path / "out.MPE.gz", graph) == [1, 0, 2]
    (tmp_path / "samples").write_text("1 0 2\n0 0 1\n")
    assert read_samples(tmp_path / "samples", graph).tolist() == [[1, 0, 2], [0, 0, 1]]
    (tmp_path / "samples").write_text("# two samples\n1 0 2\n\n0 0 1\n\n")
    for known in (graph, None):
        assert read_samples(tmp_path / "samples", known).tolist() == [[1, 0, 2], [0, 0, 1]]
    (tmp_path / "samples").write_text("\n\n")
    assert read_samples(tmp_path / "samples").shape == (2, 0)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (read_marginals, "MAR 1 2 0.25 0.75", [[0.25, 0.75]]),
        (read_marginals, "MAR\n1\n1 2 0.25 0.75", [[0.25, 0.75]]),
        (read_marginals, "MAR\n1\n2 1 1 2 0 1", [[1.0], [0.0, 1.0]]),
        (read_marginals, "MAR 0", []),
        (read_state, "MPE\n1\n2\n1 0", [1, 0]),
        (read_state, "MPE 1 1", [1]),
        (read_state, "MPE 1 1 3", [3]),
        (read_state, "mpe 0", []),
    ],
)
def test_results_of_all_years_are_read(tmp_path, read, text, expected):
    path = tmp_path / "result"
    path.write_text(text)
    assert [each if isinstance(each, int) else each.tolist() for each in read(path)] == expected


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_marginals, "PR\n0", r":1: the file must begin with MAR, got 'PR'"),
        (read_marginals, "MAR\n2\n2 1 0\n2 1 0", r":2: the number of variables must be 3, got '2'"),
        (read_marginals, "MAR\n3\n2 1 0\n3 1 0 0", r":4: a number of states must be 2, got '3'"),
        (read_marginals, "MAR\n3\n2 1 0\n2 1 1 3 1 0 0", r":4: the probabilities of variable 1 must add up to 1"),
        (read_marginals, "MAR\n3\n2 1 0\n2 1 0\n3 1 0", r":5: the file ends where probabilities should be"),
        (read_log_z, "PR\nx", r":2: log10 of the partition function must be a number, got 'x'"),
        (read_log_z, "PR\n1 2 3", r":2: expected the end of the file, got '2'"),
        (read_log_z, "PR", r":1: the file ends where log10 of the partition function should be"),
        (read_state, "MPE\n3 0 0", r":2: the file ends where the state of variable 2 should be"),
        (read_state, "MPE\n3 0 2 0", r":2: the state of variable 1 must be an integer from 0 to 1, got '2'"),
        (read_state, "MPE\n3 0 0 0\n-BEGIN-", r":3: expected the end of the file, got '-BEGIN-'"),
        (read_samples, "0 0 0\n0 1", r":2: a joint state must have 3 numbers, got 2"),
        (read_samples, "0 0 0\n0 1 3", r":2: the state of variable 2 must be an integer from 0 to 2, got '3'"),
    ],
)
def test_malformed_results_are_refused_with_their_position(tmp_path, read, text, message):
    (tmp_path / "graph.uai").write_text(EXAMPLE)
    graph = read_uai(tmp_path / "graph.uai")
    path = tmp_path / "result"
    path.write_text(text)
    with pytest.raises(GraphFileError, match="result" + message) as error:
        read(path) if read is read_log_z else read(path, graph)
    assert "\n" not in str(error.value)
