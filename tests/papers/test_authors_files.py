"""Graphs and columns of HGW19's authors: what is read, what is refused, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from authors_files import (
    COLUMNS,
    error_table,
    expectation_table,
    read_boltzmann,
    read_expectations,
    read_table,
    table_text,
)
from oracle import Oracle

from herdner import (
    FactorGraph,
    Record,
    TableFactors,
    boltzmann_machine,
    chain_graph,
    circular_dhg,
    dhg,
    herded_gibbs,
    make_backend,
    rdhg,
)

SMALL = "3 2\n0.5\n-0.1\n0.25\n0 1 0.3\n1 2 -0.7\n"
# The complete graph G4 of HGW19 Fig. 4 and 6: all couplings in the order of the pairs, and the biases.
G4_BIASES = [-0.338774, 0.226435, -0.309108, -0.179841, 0.406350, -0.479295, 0.495784, -0.362201]
G4_COUPLINGS = [
    0.483269, 0.298513, 0.114327, 0.495506, -0.033260, -0.004055, -0.159564, 0.204190, -0.171402, 0.241808, 0.075382,
    -0.061721, -0.345483, 0.459356, 0.395888, -0.314458, -0.095033, -0.225642, -0.369057, 0.251298, -0.428253, 0.350301,
    -0.488976, -0.222729, -0.407753, -0.106807, -0.113315, -0.484744,
]  # fmt: skip


def g4():
    pairs = [(i, j) for i in range(8) for j in range(i + 1, 8)]
    return boltzmann_machine(G4_COUPLINGS, G4_BIASES, (-1, 1), edges=pairs)


def test_a_graph_file_is_the_machine_it_describes(tmp_path) -> None:
    (tmp_path / "g.txt").write_text(SMALL.replace("\n", "  \n", 2))
    graph = read_boltzmann(tmp_path / "g.txt")
    want = []
    for x in np.ndindex(2, 2, 2):
        s = 2.0 * np.array(x) - 1
        want.append(0.5 * s[0] - 0.1 * s[1] + 0.25 * s[2] + 0.3 * s[0] * s[1] - 0.7 * s[1] * s[2])
    found = Oracle.of_graph(graph).probabilities
    np.testing.assert_allclose(found, np.exp(want) / np.exp(want).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the file ends before the number of variables"),
        ("3", 1, "the file ends before the number of pairs"),
        (SMALL[:-5], 6, "the file ends early: 3 variables and 2 pairs are 11 numbers, not 10"),
        ("999999 99999999\n1", 2, "the file ends early"),
        (SMALL.replace("1 2 -0.7", "1 1 -0.7"), 6, "the pair 1 1 names variable 1 twice"),
        (SMALL.replace("1 2 -0.7", "1 0 -0.7"), 6, "the pair 1 0 comes twice"),
        (SMALL.replace("1 2 -0.7", "1 3 -0.7"), 6, "names variable 3, but the variables are 0 to 2"),
        (SMALL.replace("1 2 -0.7", "-1 2 -0.7"), 6, "expected a variable of a pair, an integer, got '-1'"),
        (SMALL.replace("-0.1", "nan"), 3, "expected the bias of variable 1, a number, got 'nan'"),
        (SMALL.replace("-0.1", "1e999"), 3, "got '1e999'"),
        (SMALL.replace("-0.1", "1_0"), 3, "got '1_0'"),
        (SMALL.replace("3 2", "three 2"), 1, "expected the number of variables, an integer, got 'three'"),
        (SMALL.replace("3 2", "0 0"), 1, "at least one variable"),
        (SMALL + "2 0 0.1\n", 7, "'2' comes after the last of 2 pairs"),
        ("PK\x03\x04\x00\xff\x00", 1, "an integer, got"),
    ],
)
def test_what_is_no_graph_file_is_told_in_one_line(tmp_path, text: str, line: int, words: str) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="line") as raised:
        read_boltzmann(path)
    assert str(raised.value).startswith(f"{path}, line {line}: ")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_tables_are_written_as_they_are_read(tmp_path) -> None:
    graph, lengths = g4(), [1, 2, 1024]
    table = error_table(graph, rdhg(n_bins=8), lengths, runs=2, seed=1)
    assert table.shape == (3, len(COLUMNS))
    assert (table[:, COLUMNS.index("bin")] > 0).all()
    assert table[0, COLUMNS.index("cor")] == 0
    assert table_text(lengths, table).startswith("2^1\t")
    assert "\n2^11\t" in table_text(lengths, table)
    (tmp_path / "t.txt").write_text(table_text(lengths, table))
    again, found = read_table(tmp_path / "t.txt")
    assert again == lengths
    np.testing.assert_allclose(found, table, atol=1e-15)
    for text, words in (
        ("2^1\t0.5\n", "expected six numbers after 2"),
        ("2^1 nan 0 0 0 0 0\n", "six numbers of at least 0"),
        ("2^1 -1 0 0 0 0 0\n", "six numbers of at least 0"),
        ("2^x 1 2", "line 1"),
        ("1024 1 2", "line 1"),
        ("", "empty table"),
    ):
        (tmp_path / "t.txt").write_text(text)
        with pytest.raises(ValueError, match=words):
            read_table(tmp_path / "t.txt")
    with pytest.raises(ValueError, match="`runs` must be at least 1"):
        error_table(graph, dhg(), [2], runs=0)
    with pytest.raises(ValueError, match="need powers of two, got 3 sweeps"):
        table_text([3], table[:1])


@pytest.mark.parametrize(
    ("plan", "theirs"),
    [  # all, z, herding, approx, cor, in the line 2^20 of their result files
        (dhg(n_bins=4), (0.28249, 0.24392, 6.0e-6, 0.091189, 0.027667)),
        (dhg(n_bins=64), (0.009769, 0.007701, 7.14e-5, 0.0026027, 0.0029260)),
    ],
    ids=["4 bins", "64 bins"],
)
def test_dhg_gives_the_numbers_of_the_authors_on_their_graph(plan, theirs) -> None:
    (found,) = error_table(g4(), plan, [2**19], runs=4, seed=1)
    np.testing.assert_allclose(found[[0, 1, 3, 4]], np.array(theirs)[[0, 1, 3, 4]], rtol=0.08)
    assert found[2] == pytest.approx(theirs[2], rel=0.4)


def test_trials_of_an_expectation_are_parts_of_one_run() -> None:
    """Beside the states of that run, of which the last variable's labels and their chances are averaged by hand."""
    graph, lengths, trials = g4(), [1, 3, 8], 5
    mean, sd = expectation_table(graph, dhg(n_bins=4), lengths, trials, seed=2)
    kept = Record(best=False, marginals=False, every=1)
    x = dhg(8 * trials, n_bins=4, record=kept).infer(graph, 2).samples[0]
    joint = Oracle.of_graph(graph).probabilities.reshape((2,) * 8)
    chances = np.array([joint[(*state[:-1], 1)] / joint[tuple(state[:-1])].sum() for state in x.tolist()])
    truth = joint.sum(axis=tuple(range(7)))[1]
    for at, n in enumerate(lengths):
        for kind, values in enumerate((x[:, -1], chances)):
            off = [abs(values[k * 8 : k * 8 + n].mean() - truth) for k in range(trials)]
            assert mean[at, kind] == pytest.approx(np.mean(off), abs=1e-12)
            assert sd[at, kind] == pytest.approx(np.std(off, ddof=1), abs=1e-12)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_boltzmann, SMALL),
        (read_table, "2^1\t0.5\t0.25\t0.1\t0\t0\t1\t\n2^2\t0.5\t0.25\t0.1\t0\t0\t1\t\n"),
        (read_expectations, "0.5\n0.25\n\n1e-3\n"),
    ],
)
def test_random_changes_of_a_file_are_read_or_raise_value_error(tmp_path, read, text: str) -> None:
    path, messages = tmp_path / "file.txt", list[str]()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        data = bytearray(text.encode())
        for at in rng.integers(len(data), size=rng.integers(1, 4)).tolist():
            data[at] = rng.integers(256)
        path.write_bytes(data)
        try:
            read(path)
        except ValueError as error:
            messages.append(str(error))
    assert 0 < len(messages) < 200
    assert not any("\n" in message for message in messages)


def test_expectations_of_the_authors_are_read(tmp_path) -> None:
    (tmp_path / "e.txt").write_text("0.5\n0.25\n\n0.125\n")
    lengths, found = read_expectations(tmp_path / "e.txt")
    assert lengths == [1, 2, 4]
    assert found.tolist() == [0.5, 0.25, 0.125]
    for text, words in (
        ("", "empty table"),
        ("0.5\nx\n", "line 2: expected one number"),
        ("-1\n", "line 1"),
        ("0.5 0.5\n", "line 1"),
        ("nan\n", "line 1"),
        ("0\n" * 63, "line 63"),
    ):
        (tmp_path / "e.txt").write_text(text)
        with pytest.raises(ValueError, match=words):
            read_expectations(tmp_path / "e.txt")
    with pytest.raises(ValueError, match="`trials` must be at least 1"):
        expectation_table(g4(), dhg(), [2], trials=0)
    with pytest.raises(ValueError, match="binary last variable, got 3 states"):
        expectation_table(chain_graph(np.zeros((2, 3)), np.zeros((3, 3))), dhg(), [2])


def test_dhg_is_algorithm_5_and_circular_dhg_is_not() -> None:
    """The labels that one bin gave have a start w in (p - 1, p] from which w > 0 says each, then w += p - x."""

    def has_a_start(plan, seed: int) -> bool:
        samples = plan.infer(graph, seed, start=np.zeros(2, np.int32)).samples[0]
        before = np.vstack([[0, 0], samples[:-1]])
        p = given_other[before[:, 1]]  # variable 0 is drawn first, given the last state of variable 1
        x = samples[:, 0]
        since = np.concatenate([[0.0], np.cumsum(p - x)[:-1]])
        low, high = max([p[0] - 1, *(-since[x == 1])]), min([p[0], *(-since[x == 0])])
        return low < high

    graph = boltzmann_machine([[0, 0.9], [0.9, 0]], [0.3, -0.2], (-1, 1))
    given_other = 1 / (1 + np.exp(-2 * (0.3 + 0.9 * np.array([-1, 1]))))
    kept = Record(best=False, marginals=False, every=1)
    for seed in range(5):
        assert has_a_start(dhg(400, n_bins=1, record=kept), seed)
        assert has_a_start(make_backend("dhg", n_sweeps=400, n_bins=1, record=kept), seed)
        assert not has_a_start(circular_dhg(400, n_bins=1, record=kept), seed)
    same = herded_gibbs(50, sharing=dhg(n_bins=4).sharing, record=kept).infer(graph, 3).samples
    assert np.array_equal(circular_dhg(50, n_bins=4, record=kept).infer(graph, 3).samples, same)


@pytest.mark.parametrize(("p", "is_drawn"), [(1.3e-10, True), (1.0e-10, False)])
def test_dhg_draws_no_state_whose_probability_rounds_to_zero(p: float, is_drawn: bool) -> None:
    """Algorithm 5 would draw state 1 beside state 1 in both cases, as their weight is that of the probability 0.45."""
    table = np.log([[0.5, 0.5], [0.45 / 0.55 * 0.5, p / (1 - p) * 0.5]])
    graph = FactorGraph([2, 2], [TableFactors([[0, 1]], table[None])])
    samples = dhg(4000, n_bins=1, record=Record(best=False, marginals=False, every=1)).infer(graph, 1).samples[0]
    before = np.append(0, samples[:-1, 1])
    assert ((before == 1) & (samples[:, 0] == 1)).any() == is_drawn
