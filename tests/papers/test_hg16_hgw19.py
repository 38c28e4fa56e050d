"""The scripts of HG16 and HGW19 run, and what they find on small runs is what the papers say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install '.[evaluate]'")
pytest.importorskip("PIL", reason="pictures need Pillow: pip install '.[files]'")

import hg16_denoising
import hg16_fig5
import hg16_fig7
import hgw19_fig1
import hgw19_fig9
import hgw19_fig11
import hgw19_parts
from experiment import slope
from PIL import Image


def found(out: Path, name: str) -> dict:
    assert (out / f"{name}.png").stat().st_size > 5000
    return json.loads((out / f"{name}.json").read_text())["results"]


@pytest.mark.slow
def test_parts_of_the_error_on_rings(tmp_path):
    """HGW19 Fig. 3: D^herding falls like 1 / T, D^all follows D^z, both stop above D^cor's estimate or near it."""
    hgw19_parts.main(figure="3", quick=True, out=tmp_path)
    for ring in found(tmp_path, "hgw19_fig3").values():
        assert ring["slope of herding"] == pytest.approx(-1, abs=0.1)
        assert np.corrcoef(np.log(ring["all"]), np.log(ring["z"]))[0, 1] > 0.99
        assert ring["cor"][-1] > 0.8 * ring["estimate"]


@pytest.mark.slow
def test_bins_and_bounds_on_errors(tmp_path):
    """HGW19 Fig. 4, 6, 7, 8, the latter also on the graph of the authors."""
    for figure in ("4", "6", "7", "8", "6-G4", "8-G4"):
        hgw19_parts.main(figure=figure, quick=True, out=tmp_path)
    by_bins = found(tmp_path, "hgw19_fig4")
    for part, rising in (("herding", True), ("approx", False), ("cor", False), ("all", False)):
        ends = [by_bins[f"B={n}"][part][-1] for n in (4, 16, 64, 256)]
        assert ends == sorted(ends, reverse=not rising), part
    assert found(tmp_path, "hgw19_fig6")["threshold"][-1] < found(tmp_path, "hgw19_fig6")["threshold"][0] / 5
    bounded = found(tmp_path, "hgw19_fig7")
    ends = [bounded[name]["herding"][-1] for name in ("c=0 (HG)", "c=1", "c=10", "c=inf (Gibbs)")]
    assert ends == sorted(ends)
    random = found(tmp_path, "hgw19_fig8")
    assert random["RDHG(16)"]["all"][-1] < random["DHG(16)"]["all"][-1]


def test_the_table_of_returns(tmp_path):
    hgw19_parts.main(figure="table1", quick=True, out=tmp_path)
    written = json.loads((tmp_path / "hgw19_table1.json").read_text())["results"]
    for ring in written.values():
        assert ring["total"] == pytest.approx(ring["exact total"], rel=0.15)


@pytest.mark.slow
def test_weight_sharing_and_averages(tmp_path):
    """HGW19 Fig. 1: few weights help early; Fig. 9: RDHG is ahead of Gibbs."""
    hgw19_fig1.main(quick=True, out=tmp_path)
    hgw19_fig9.main(quick=True, out=tmp_path)
    sharing = found(tmp_path, "hgw19_fig1")
    early = sharing["lengths"].index(128)
    assert sharing["left, Herding(2)"][early] < sharing["left, Gibbs"][early]
    assert sharing["right, DHG, B=1"][early] < sharing["right, Gibbs"][early] / 2
    averages = found(tmp_path, "hgw19_fig9")
    for name in ("0 to 0.5", "0 to 0.1"):
        assert averages[f"{name}, RDHG(64)"][-1] < averages[f"{name}, Gibbs"][-1]


@pytest.mark.slow
def test_two_and_four_variables(tmp_path):
    """HG16 Fig. 5: the rates; Fig. 7: the error of herded Gibbs stops, that of complete herding does not."""
    hg16_fig5.main(quick=True, out=tmp_path)
    hg16_fig7.main(quick=True, out=tmp_path)
    two, four = found(tmp_path, "hg16_fig5"), found(tmp_path, "hg16_fig7")
    lengths = two["lengths"]
    assert slope(lengths, two["eps=0.1, herded Gibbs"]["median"][1]) == pytest.approx(-1, abs=0.2)
    assert slope(lengths, two["eps=0.1, Gibbs"]["median"][1]) == pytest.approx(-0.5, abs=0.1)
    assert four["complete herded Gibbs"]["error"][-1] < four["herded Gibbs"]["error"][-1] / 5


@pytest.fixture
def shapes(tmp_path) -> Path:
    """A folder with a disc, a bar and a ring."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    i, j = np.indices((70, 90))
    r = (i - 35) ** 2 + (j - 40) ** 2
    for name, shape in {"disc": r < 600, "bar": abs(i - 30) < 9, "ring": (r < 900) & (r > 300)}.items():
        Image.fromarray(shape).save(folder / f"{name}.png")
    return folder


@pytest.mark.slow
def test_shapes(shapes, tmp_path):
    """HGW19 Fig. 11: the more sharing, the fewer wrong pixels after 31 samples; Gibbs has most."""
    hgw19_fig11.main(shapes=shapes, quick=True, out=tmp_path)
    ends = {name: found(tmp_path, "hgw19_fig11")[name]["mean"][-1] for name in hgw19_fig11.ORDER}
    assert ends["HG-1bin"] < ends["HG"] < ends["Gibbs"]
    assert ends["HG-shared"] < ends["Gibbs"]


@pytest.mark.slow
def test_gaussian_noise(shapes, tmp_path):
    """HG16 Table 2 at the sigma where the methods differ most for certain."""
    hg16_denoising.main(picture=shapes / "disc.png", quick=True, out=tmp_path)
    table = found(tmp_path, "hg16_denoising")["table"]
    assert table["HG-shared"][1][0] < table["Gibbs"][1][0]
    assert table["HG"][1][0] < table["Gibbs"][1][0]
