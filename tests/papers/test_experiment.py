"""The harness of the experiments."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from experiment import Experiment, command, envelope, powers, slope, summary
from typer.testing import CliRunner


@pytest.fixture
def experiment(tmp_path):
    return Experiment("test", "a test", True, 3, tmp_path / "new")


def test_files_hold_what_was_found(experiment):
    figure, (left, right) = experiment.axes(2)
    left.plot([1, 2], [3, 4])
    right.plot([1, 2], [4, 3])
    experiment.finish({"numbers": np.arange(3), "mean": np.float64(0.5)}, figure)
    written = json.loads((experiment.out / "test.json").read_text())
    assert written["results"] == {"numbers": [0, 1, 2], "mean": 0.5}
    assert written["quick"]
    assert (experiment.out / "test.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_repeat_and_differ(experiment, tmp_path):
    again = Experiment("test", "a test", False, 3, tmp_path)
    assert experiment.seeds(5) == again.seeds(5)
    assert experiment.seeds(5)[:3] == again.seeds(3)
    assert len({*experiment.seeds(5), *experiment.seeds(5, 1)}) == 10
    assert experiment.rng(1).random() == again.rng(1).random() != again.rng(2).random()
    assert (experiment.size("small", "large"), again.size("small", "large")) == ("small", "large")


def test_the_time_is_told_beforehand(experiment, capsys):
    seconds = experiment.announce(lambda: sum(range(20000)), share=1 / 1000)
    assert seconds > 0
    assert "this run will take about" in capsys.readouterr().out


def test_numbers():
    assert powers(3, 7, 2) == [8, 32, 128]
    assert slope([1, 2, 4], [8, 4, 2]) == pytest.approx(-1)
    assert envelope([5, 1, 3, 0.5, 2]).tolist() == [5, 3, 3, 2, 2]
    found = summary([[1.0, 2.0], [3.0, 2.0]])
    assert found["mean"].tolist() == [2.0, 2.0]
    assert found["sd"][0] == pytest.approx(2**0.5)


@command("test_{side}", "a grid of {side} x {side}")
def grid(experiment: Experiment, side: int = 4) -> None:
    experiment.finish({"side": side, "size": experiment.size("small", "large"), "seed": experiment.seed})


def test_a_command_has_its_own_options_and_the_shared_ones(tmp_path):
    app = typer.Typer()
    app.command()(grid)
    result = CliRunner().invoke(app, ["--side", "3", "--quick", "--seed", "5", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("a grid of 3 x 3 (quick)")
    written = json.loads((tmp_path / "test_3.json").read_text())
    assert written["results"] == {"side": 3, "size": "small", "seed": 5}
    grid(out=tmp_path)
    assert json.loads((tmp_path / "test_4.json").read_text())["results"]["size"] == "large"
    with pytest.raises(TypeError, match="width"):
        grid(width=3)
    assert "The harness of the experiments." in CliRunner().invoke(app, ["--help"]).output


def test_panels_with_labels_have_a_legend(experiment):
    figure, (labelled, bare) = experiment.axes(2)
    labelled.plot([1, 2], label="one")
    bare.plot([1, 2])
    experiment.finish({}, figure)
    assert labelled.get_legend() is not None
    assert bare.get_legend() is None
