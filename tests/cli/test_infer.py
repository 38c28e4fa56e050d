"""``herdner infer``: results in the format of the UAI competitions, on standard output and nothing else there."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from time import perf_counter

import numpy as np
import pytest
from data import ELSEWHERE
from patience import PATIENCE

from herdner import FactorGraph, TableFactors, ising, save_graph
from herdner.graph.uai_files import write_uai
from herdner.inference import BACKENDS, Interrupted, Result
from herdner.inference.backends.auto import Auto
from herdner.inference.backends.exact import Exact


@pytest.fixture
def files(tmp_path):
    graph = ising(0.4, np.random.default_rng(1).normal(size=(3, 3)))
    write_uai(tmp_path / "grid.uai", graph)
    (tmp_path / "grid.evid").write_text("2 0 1 4 0")
    return graph, str(tmp_path / "grid.uai"), str(tmp_path / "grid.evid")


def test_marginals_hold_the_observed_variables_too(call, files):
    graph, uai, evid = files
    outcome = call("infer", uai, "--evidence", evid, "--task", "MAR", "--seconds", "20")
    assert outcome.code == 0, outcome.err
    head, line = outcome.out.splitlines()
    numbers = [float(word) for word in line.split()]
    assert (head, numbers[0]) == ("MAR", 9)
    rows = np.array(numbers[1:]).reshape(9, 3)
    assert rows[:, 0].tolist() == [2] * 9
    assert rows[0, 1:].tolist() == [0, 1]
    assert rows[4, 1:].tolist() == [1, 0]
    expected = Exact().infer(graph.condition({0: 1, 4: 0})).marginals
    np.testing.assert_allclose(np.delete(rows[:, 1:], [0, 4], axis=0), expected, atol=1e-12)


def test_the_other_tasks(call, files, tmp_path):
    graph, uai, evid = files
    result = Exact().infer(graph)
    head, value = call("infer", uai, "--task", "PR").out.splitlines()
    assert head == "PR"
    assert float(value) == pytest.approx(result.log_z / math.log(10))
    head, line = call("infer", uai, "--task", "MPE", "--backend", "exact").out.splitlines()
    assert head == "MPE"
    assert line.split() == ["9", *map(str, result.state.tolist())]
    samples = call("infer", uai, "--evidence", evid, "--task", "samples", "--samples", "20").out.splitlines()
    assert len(samples) == 20
    assert {(line.split()[0], line.split()[4]) for line in samples} == {("1", "0")}
    assert call("infer", uai, "-o", str(tmp_path / "out.MAR")).out == ""
    assert (tmp_path / "out.MAR").read_text().startswith("MAR\n9 2 ")


def test_a_scan_for_the_variables_that_the_user_asks_about(call, files):
    graph, uai, evid = files
    many = ["--set", "n_sweeps=20000", "--set", "n_steps=12"]
    outcome = call("infer", uai, "--evidence", evid, "--backend", "dogs", "--variable", "5", "--variable", "0", *many)
    assert outcome.code == 0, outcome.err
    head, line = outcome.out.splitlines()
    numbers = [float(word) for word in line.split()]
    assert (head, numbers[0], numbers[4:]) == ("MAR", 2, [2, 0, 1])  # variable 0 is observed
    expected = Exact().infer(graph.condition({0: 1, 4: 0})).marginals
    np.testing.assert_allclose(numbers[2:4], expected[3], atol=0.03)  # 5 is the fourth variable without evidence
    assert "dogs: after 12 updates the weighted total variation is at most" in outcome.err
    annealed = call("infer", uai, "--backend", "dogs", "--set", "n_sweeps=9", "--set", "annealing=linear(0.1, 2)")
    assert "dogs: no certificate: the inverse temperature is not 1" in annealed.err
    same = call("infer", uai, "--backend", "exact", "--variable", "3").out.split()
    np.testing.assert_allclose(np.array(same[3:], float), Exact().infer(graph).marginals[3], atol=1e-12)


@pytest.mark.slow
def test_samplers_keep_the_time_limit_and_print_intervals(call, files):
    graph, uai, _ = files
    outcome = call("infer", uai, "--task", "PR", "--backend", "annealed-importance", "--seconds", "1")
    assert outcome.code == 0, outcome.err
    head, value = outcome.out.splitlines()
    assert head == "PR"
    assert float(value) == pytest.approx(Exact().infer(graph).log_z / math.log(10), abs=0.2)
    assert "the 95 % interval of log10 Z is" in outcome.err
    head, line = call("infer", uai, "--backend", "tempered", "--seconds", "1").out.splitlines()
    rows = np.array(line.split()[1:], float).reshape(9, 3)
    np.testing.assert_allclose(rows[:, 1:], Exact().infer(graph).marginals, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("backend", sorted(set(BACKENDS) - {"viterbi"}))
def test_every_backend_keeps_the_time_limit(call, files, backend):
    _, uai, _ = files
    began = perf_counter()
    outcome = call("infer", uai, "--task", "MPE", "--backend", backend, "--seconds", "0.5")
    assert outcome.code == 0, outcome.err
    assert perf_counter() - began < 0.5 + PATIENCE / 10
    assert outcome.out.startswith("MPE\n9 ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["gibbs", "dhg", "herded-gibbs", "blocked-gibbs", "dogs", "qmc-gibbs", "bounded-error"]
)
def test_all_samplers_print_samples(call, files, backend):
    graph, uai, evid = files
    expected = Exact().infer(graph.condition({0: 1, 4: 0})).marginals[:, 1]
    options = ["infer", uai, "--evidence", evid, "--task", "samples", "--backend", backend]
    for length in (["--samples", "2000"], ["--seconds", "2"], ["--set", "n_chains=3", "--samples", "1001"]):
        outcome = call(*options, *length)
        assert outcome.code == 0, outcome.err
        states = np.array([line.split() for line in outcome.out.splitlines()], int)
        if "--seconds" in length:
            assert 1 <= len(states) <= 1000
        else:
            assert len(states) == int(length[-1])
        assert set(zip(*states[:, [0, 4]].T.tolist(), strict=True)) == {(1, 0)}
        if len(states) >= 1000:
            np.testing.assert_allclose(np.delete(states, [0, 4], axis=1).mean(axis=0), expected, atol=0.08)
    outcome = call(*options, "--samples", "50", "--set", "n_sweeps=20", "--seconds", "5")
    assert len(outcome.out.splitlines()) == 20
    assert "the time sufficed for 20 samples, not 50" in outcome.err


def test_a_missing_convergence_and_bounds_are_noted(call, files):
    graph, uai, _ = files
    short = ["--set", "n_sweeps=1", "--set", "tolerance=0"]
    for backend in ("belief-propagation", "max-product", "mean-field", "sum-product", "tree-reweighted"):
        outcome = call("infer", uai, "--task", "MPE", "-b", backend, *short)
        assert outcome.code == 0, outcome.err
        assert outcome.err.count("\n") == 1 + (backend == "tree-reweighted")
        assert f"{backend}: not converged after " in outcome.err
        assert "converged" not in call("infer", uai, "--task", "MPE", "-b", backend, "--set", "damping=0.5").err
    log_z = Exact().infer(graph).log_z / math.log(10)
    for backend, *options in (("mini-bucket", "--set", "max_log2_cells=0"), ("tree-reweighted",)):
        outcome = call("infer", uai, "--task", "PR", "-b", backend, *options)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"{backend} computes only bounds on the partition function" in outcome.err
        low, high = re.search(r"log10 Z is at least (\S+) and at most (\S+)\n", outcome.err).groups()
        assert float(low) - 1e-9 <= log_z <= float(high) + 1e-9
    outcome = call("infer", uai, "--task", "PR", "-b", "mini-bucket")  # the bounds are equal
    assert outcome.code == 0
    assert float(outcome.out.split()[1]) == pytest.approx(log_z, abs=1e-9)


def test_an_approximate_partition_function_is_noted(call, files):
    for backend, note in (
        ("mean-field", "a lower bound on log10 Z"),
        ("sum-product", "the Bethe approximation of log10 Z, which is exact if the factors form no cycles"),
        ("belief-propagation", "the Bethe approximation of log10 Z, which is exact if the factors form no cycles"),
    ):
        assert f"{backend}: the result is {note}\n" in call("infer", files[1], "--task", "PR", "-b", backend).err
        assert "the result is" not in call("infer", files[1], "--task", "MAR", "-b", backend).err


def test_messages_about_variables_of_a_conditioned_graph_say_so(call, tmp_path):
    write_uai(tmp_path / "graph.uai", FactorGraph([2] * 4, [TableFactors([[1, 2, 3]], np.zeros((1, 2, 2, 2)))]))
    (tmp_path / "graph.evid").write_text("1 0 1")
    note = "(variables are numbered from 0 without the observed ones)"
    for evidence, variables in ((["--evidence", tmp_path / "graph.evid"], "0, 1 and 2"), ([], "1, 2 and 3")):
        outcome = call("infer", tmp_path / "graph.uai", *evidence, "-b", "blocked-gibbs")
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        assert f"joins variables {variables}: blocked-gibbs" in outcome.err
        assert (note in outcome.err) == bool(evidence)


def test_exact_inference_prints_its_cost(call, files, tmp_path):
    graph, uai, _ = files
    err = call("infer", uai, "-b", "exact").err
    assert f"exact: {Exact().plan(graph)}, 0." in err
    assert err.count("\n") == 1
    assert f"auto: exact ({Exact().plan(graph)}), 0." in call("infer", uai).err
    (tmp_path / "all.evid").write_text("9 " + " ".join(f"{v} 0" for v in range(9)))
    assert call("infer", uai, "--evidence", tmp_path / "all.evid", "-b", "gibbs").err == ""


def test_results_are_compared_with_a_file_of_the_same_task(call, files, tmp_path):
    _, uai, evid = files
    for task, same in [
        ("MAR", "total variation distance of the marginals is 0 on average and at most 0"),
        ("PR", "log10 of the partition function differs by 0"),
        ("MPE", "log10 of the probability of the joint state differs by 0"),
    ]:
        truth = tmp_path / f"truth.{task}"
        options = ["infer", uai, "--evidence", evid, "--task", task]
        call(*options, "-o", truth, "-b", "exact")
        outcome = call(*options, "-b", "exact", "--truth", truth)
        assert outcome.out == truth.read_text()
        assert same in outcome.err
        approximate = call(*options, "-b", "mean-field", "--truth", truth)
        assert f"truth.{task}: " in approximate.err
        assert (same in approximate.err) == (task == "MPE")


@pytest.mark.slow
def test_tasks_without_exact_inference(call, files):
    graph, uai, evid = files
    limits = ["--seconds", "2", "--set", "max_log2_cells=0"]
    outcome = call("infer", uai, "--evidence", evid, "--task", "samples", "--samples", "7", *limits)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert 1 <= len(lines) <= 7
    assert all(len(line.split()) == 9 and line.split()[0] == "1" and line.split()[4] == "0" for line in lines)
    assert len(lines) == 7 or f"the time sufficed for {len(lines)} samples, not 7" in outcome.err
    best = Exact().infer(graph)
    assert call("infer", uai, "--task", "MPE", *limits).out.split()[2:] == list(map(str, best.state.tolist()))
    assert float(call("infer", uai, "--task", "PR", *limits).out.split()[1]) == pytest.approx(
        best.log_z / math.log(10), abs=0.5
    )
    exact = call("infer", uai, "--task", "samples", "--samples", "3", "--backend", "exact")
    assert len(exact.out.splitlines()) == 3
    assert (
        "could not remove the impossible states of this graph within"
        in call("infer", uai, "--backend", "exact", "--seconds", "1e-5").err
    )


@pytest.mark.parametrize("options", [[], ["--set", "max_log2_cells=0"]])
def test_evidence_of_probability_0_is_reported(call, tmp_path, options):
    (tmp_path / "graph.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 0 0 0.5 0.5")
    (tmp_path / "graph.evid").write_text("1 0 0")
    outcome = call("infer", tmp_path / "graph.uai", "--evidence", tmp_path / "graph.evid", *options)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "graph.evid: the evidence has probability 0, because zeros of factors exclude every joint" in outcome.err


@pytest.mark.parametrize("options", [[], ["-b", "exact"], ["-b", "tempered", "--seconds", "1"]])
def test_a_graph_without_possible_state_is_explained(call, tmp_path, options):
    (tmp_path / "graph.uai").write_text("MARKOV 3 2 2 2 3 1 2 2 0 1 1 0 2 1 1 4 0 0 0.5 0.5 2 1 0")
    outcome = call("infer", tmp_path / "graph.uai", *options)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "graph.uai: every joint state has probability 0" in outcome.err
    named = "these factors suffice, named by their variables: (0), (0 1)"
    assert (named if find_spec("pysat") else "to see which, install python-sat") in outcome.err
    (tmp_path / "graph.uai").write_text("MARKOV 2 2 2 2 1 0 2 0 1 2 1 1 4 0 0 0 0")
    assert "named by their variables: (0 1)" in call("infer", tmp_path / "graph.uai", *options).err


def test_observations_that_contradict_a_factor_are_named(call, tmp_path):
    pytest.importorskip("pysat")
    (tmp_path / "graph.uai").write_text("MARKOV 3 2 2 2 2 2 0 2 1 1 4 0 1 1 0 2 1 1")
    (tmp_path / "graph.evid").write_text("3 0 1 1 0 2 1")
    outcome = call("infer", tmp_path / "graph.uai", "--evidence", tmp_path / "graph.evid")
    assert "the observed variables 0 2 contradict the factors of the variables (0 2)" in outcome.err


def test_a_task_may_be_in_lower_case(call, files):
    assert call("infer", files[1], "--task", "pr").out == call("infer", files[1], "--task", "PR").out


@pytest.mark.slow
def test_wrong_calls_are_one_line(call, files, tmp_path):
    _, uai, _ = files
    (tmp_path / "binary.uai").write_bytes(bytes(range(128, 256)))
    for arguments, code, message in [
        (["infer", str(tmp_path / "none.uai")], 1, "no such file"),
        (["infer", str(tmp_path / "binary.uai")], 1, "binary.uai:1: the file must begin with MARKOV or BAYES, got"),
        (["infer", uai, "--evidence", uai], 1, "must be an integer"),
        (["infer", uai, "--task", "PR", "--backend", "gibbs"], 2, "does not compute the partition function"),
        (["infer", uai, "--task", "samples", "--backend", "icm"], 2, "exact, tempered or gibbs, got icm"),
        (["infer", uai, "--task", "samples", "-b", "annealed-gibbs"], 2, "tempered or gibbs, got annealed-gibbs"),
        (["infer", uai, "--task", "samples", "--truth", uai], 2, "--truth requires --task MAR, PR or MPE, got samples"),
        (["infer", uai, "--task", "PR", "--truth", uai], 1, "grid.uai:1: the file must begin with PR, got 'MARKOV'"),
        (["infer", uai, "--task", "map"], 2, "'map' is not one of 'mar', 'pr', 'mpe', 'samples'"),
        (["infer", uai, "--seconds", "0"], 2, "--seconds must be a positive number, got 0"),
        (["infer", uai, "--backend", "gibs"], 2, "gibs"),
        (["infer", uai, "--variable", "9"], 2, "--variable must be from 0 to 8, got 9"),
        (["infer", uai, "--variable", "1", "--task", "PR"], 2, "--variable requires --task MAR, got PR"),
        (["infer", uai, "-b", "dogs", "--set", "targets=variables(1)"], 2, "--set targets: use --variable N instead"),
    ]:
        outcome = call(*arguments)
        assert outcome.code == code, (arguments, outcome.err)
        assert message in outcome.err
        assert outcome.out == ""
        assert outcome.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["auto", "exact", "gibbs", "dhg", "tempered", "belief-propagation"])
def test_all_variables_are_observed(call, tmp_path, backend):
    (tmp_path / "graph.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 2 3 4")
    (tmp_path / "graph.evid").write_text("2 0 1 1 0")
    options = ["infer", tmp_path / "graph.uai", "--evidence", tmp_path / "graph.evid", "-b", backend, "--task"]
    assert call(*options, "MAR").out == "MAR\n2 2 0 1 2 1 0\n"
    assert float(call(*options, "PR").out.split()[1]) == pytest.approx(math.log10(3))
    assert call(*options, "MPE").out == "MPE\n2 1 0\n"
    if backend != "belief-propagation":
        assert call(*options, "samples", "--samples", "3").out == "1 0\n" * 3


def test_a_graph_without_variables(call, tmp_path):
    (tmp_path / "graph.uai").write_text("MARKOV 0 1 0 1 5")
    assert call("infer", tmp_path / "graph.uai").out == "MAR\n0\n"
    assert float(call("infer", tmp_path / "graph.uai", "--task", "PR").out.split()[1]) == pytest.approx(math.log10(5))
    outcome = call("infer", tmp_path / "graph.uai", "--task", "samples", "--samples", "2")
    assert (outcome.code, outcome.out) == (0, "\n\n")


def test_variables_are_printed_by_name(call, tmp_path):
    table = np.log([[[0.72, 0.08], [0.02, 0.18]]])
    graph = FactorGraph([2, 2], [TableFactors([[0, 1]], table)], names=["rain", "wet"])
    save_graph(tmp_path / "rain.npz", graph)
    outcome = call("infer", tmp_path / "rain.npz", "--variable", "wet", "--variable", "0")
    np.testing.assert_allclose(np.array(outcome.out.split()[1:], float), [2, 2, 0.74, 0.26, 2, 0.8, 0.2])
    wrong = call("infer", tmp_path / "rain.npz", "--variable", "dry")
    assert wrong.code == 2
    assert "--variable must be from 0 to 1 or the name of a variable, got dry" in wrong.err


@pytest.mark.parametrize("task", ["MAR", "PR", "MPE", "samples"])
def test_an_interrupted_run_prints_the_best_result_so_far(call, files, monkeypatch, task):
    graph, uai, _ = files
    whole = Exact(n_samples=4).infer(graph, 0)

    def interrupted(*_, **__):
        raise Interrupted(whole)

    monkeypatch.setattr(Auto, "infer", interrupted)
    outcome = call("infer", uai, "--task", task)
    assert outcome.code == 130
    assert outcome.err == "herdner: interrupted; the output is the best result so far\n"
    assert len(outcome.out.splitlines()) == (4 if task == "samples" else 2)


@pytest.mark.parametrize("task", ["MAR", "PR", "samples"])
def test_an_interrupted_run_without_a_result_prints_one_line(call, files, monkeypatch, task):
    def interrupted(*_, **__):
        raise Interrupted(Result(state=np.zeros(9, np.int32), log_potential=0.0, samples=np.zeros((1, 0, 9), np.int32)))

    monkeypatch.setattr(Auto, "infer", interrupted)
    outcome = call("infer", files[1], "--task", task)
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "herdner: interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_process_without_a_traceback(tmp_path):
    save_graph(tmp_path / "grid.npz", ising(0.4, np.random.default_rng(0).normal(size=(100, 100))))
    command = [sys.executable, "-m", "herdner", "infer", tmp_path / "grid.npz", "--seconds", "300", "--verbose"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ELSEWHERE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    assert b"auto: exact inference " in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"herdner: interrupted" in errors.splitlines()[-1]
    assert b"Traceback" not in errors
    assert output == b"" or output.startswith(b"MAR\n10000 2 ")
