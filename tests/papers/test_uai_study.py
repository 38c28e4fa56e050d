"""The study of samplers on graphs of the UAI competition, on files of small graphs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import uai

from herdner import TableFactors, ising
from herdner.graph import FactorGraph
from herdner.graph.uai_files import format_marginals, read_uai, write_evidence, write_uai
from herdner.inference.backends.exact import Exact


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    triples = TableFactors([[0, 1, 2], [2, 3, 4]], rng.normal(size=(2, 2, 2, 2)))
    for name, graph in {
        "Grids_1": ising(0.3, rng.normal(size=(3, 3))),
        "Wide_1": FactorGraph([2] * 5, [triples]),
    }.items():
        write_uai(tmp_path / f"{name}.uai", graph)
        write_evidence(tmp_path / f"{name}.uai.evid", {1: 1})
        marginals = np.insert(Exact().infer(graph.condition({1: 1})).marginals, 1, [0, 1], axis=0)
        (tmp_path / f"{name}.uai.MAR").write_text(format_marginals(marginals, graph.domains.sizes))
    return tmp_path


@pytest.mark.slow
def test_the_study_writes_errors_and_pictures(folder, capsys) -> None:
    uai.main(folder=folder, quick=True, out=folder / "out")
    found = json.loads((folder / "out" / "uai.json").read_text())["results"]
    by_method = found["curves"]["Grids_1"]
    assert set(by_method) == set(uai.METHODS)
    assert by_method["exact"][-1][1] < 1e-12
    assert all(by_method[name][-1][1] < 0.15 for name in uai.METHODS)
    assert "needs factors of one or two variables" in found["curves"]["Wide_1"]["blocked-gibbs"]
    printed = capsys.readouterr().out
    assert "| blocked-gibbs |" in printed
    assert "| family | gibbs | spanning forests | tempered | spanning forests / gibbs | tempered / gibbs |" in printed
    assert "| Wide | 1 | 1 |" in printed
    for name in ("uai_light.png", "uai_dark.png"):
        assert (folder / "out" / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_some_methods_only(folder, capsys) -> None:
    uai.main(folder=folder, quick=True, only=["Grids"], method=["gibbs", "tempered"], out=folder / "out")
    found = json.loads((folder / "out" / "uai.json").read_text())["results"]
    assert list(found["curves"]["Grids_1"]) == ["gibbs", "tempered"]
    assert "| family | gibbs | tempered | tempered / gibbs |" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"--method must be one of gibbs, .*, got icm"):
        uai.main(folder=folder, quick=True, method=["icm"], out=folder / "out")


def test_errors_at_a_time_are_those_of_finished_runs() -> None:
    curve = [(0.1, 0.5), (0.2, 0.25), (0.4, 0.125)]
    assert [uai.error_at(curve, t) for t in (0.05, 0.1, 0.3, 9.0)] == [np.inf, 0.5, 0.25, 0.125]
    curves = {"A_1": {"gibbs": curve}, "A_2": {"gibbs": [(0.1, 0.25)]}, "B_1": {"gibbs": "not supported"}}
    assert uai.mean_errors(curves, "gibbs", 0.4) == {"A": 0.1875}


def test_auto_without_exact_inference(folder, capsys) -> None:
    uai.main(folder=folder, only=["Grids"], auto_seconds=0.5, out=folder / "out")
    found = json.loads((folder / "out" / "uai.json").read_text())["results"]
    assert found["Grids_1"]["error"] < 0.05
    assert "1 of 1 errors are below 0.05" in capsys.readouterr().out


def test_intervals_of_log_z(folder, capsys) -> None:
    uai.main(folder=folder, interval_seconds=0.5, out=folder / "out")
    found = json.loads((folder / "out" / "uai.json").read_text())["results"]
    assert set(found) == {"Grids_1", "Wide_1"}
    graph = read_uai(folder / "Wide_1.uai").condition({1: 1})
    assert found["Wide_1"]["log_z"] == pytest.approx(Exact().infer(graph).log_z)
    assert " of 2 intervals contain log Z; the median width is " in capsys.readouterr().out
