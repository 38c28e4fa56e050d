"""``herdner denoise``: pictures in, pictures out, and one line for all that is wrong with them."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from commands import Call, one_line

pytest.importorskip("PIL", reason="pictures need Pillow: pip install '.[files]'")
from PIL import Image

from herdner.studies.denoising.pictures import read_picture


def shapes(rows: int = 60, columns: int = 70) -> np.ndarray:
    i, j = np.indices((rows, columns))
    return ((i - rows / 2) ** 2 + (j - columns / 3) ** 2 < (rows / 3) ** 2) | (abs(j - 0.8 * columns) < 4)


@pytest.fixture
def flipped(tmp_path):
    """A picture with a tenth of its pixels flipped, and the clean one."""
    x = shapes()
    y = x ^ (np.random.default_rng(0).random(x.shape) < 0.1)
    Image.fromarray(x).save(tmp_path / "clean.png")
    Image.fromarray(y).save(tmp_path / "noisy.png")
    return tmp_path


def wrong(path, x: np.ndarray) -> float:
    return float(((np.asarray(Image.open(path).convert("L")) > 127) != x).mean())


def test_a_picture_is_denoised(flipped, call: Call):
    done = call("denoise", flipped / "noisy.png", flipped / "out.png", "--truth", flipped / "clean.png")
    assert done.code == 0
    assert "70 x 60 pixels, flips with probability 0." in done.out
    assert "of the pixels wrong" in done.out
    assert wrong(flipped / "out.png", shapes()) < 0.02
    again = call("denoise", flipped / "noisy.png", flipped / "again.png")
    assert again.code == 0
    assert (flipped / "again.png").read_bytes() == (flipped / "out.png").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--noise", "flip", "--p", "0.1", "--coupling", "0.7"),
        ("--noise", "gaussian", "--sigma", "1"),
        ("--estimate", "map", "--sweeps", "60"),
        ("--backend", "icm", "--estimate", "map"),
        ("--backend", "herded-gibbs", "--set", "sharing=neighbour-sum", "--sweeps", "50"),
        ("--backend", "mean-field", "--coupling", "0.6"),
        ("--set", "n_bins=4"),
        ("--soft",),
    ],
)
def test_options(flipped, call: Call, options):
    done = call("denoise", flipped / "noisy.png", flipped / "out.png", *options)
    assert (done.code, done.err) == (0, "")
    assert wrong(flipped / "out.png", shapes()) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "pgm", "gif", "webp", "jpg"])
def test_formats(tmp_path, call: Call, suffix):
    y = shapes() ^ (np.random.default_rng(0).random((60, 70)) < 0.1)
    Image.fromarray(y).convert("L").save(tmp_path / f"in.{suffix}")
    done = call("denoise", tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}")
    assert (done.code, done.err) == (0, "")
    assert wrong(tmp_path / f"out.{suffix}", shapes()) < 0.03


def test_greys_are_a_noisy_observation(tmp_path, call: Call):
    y = np.where(shapes(), 1.0, -1.0) + np.random.default_rng(1).normal(0, 1.5, (60, 70))
    Image.fromarray(((y + 1) / 2).astype(np.float32)).save(tmp_path / "noisy.tif")
    done = call("denoise", tmp_path / "noisy.tif", tmp_path / "out.png")
    assert "Gaussian noise of sigma 1." in done.out
    assert wrong(tmp_path / "out.png", shapes()) < 0.06
    sixteen = np.clip((y + 4) / 8 * 65535, 0, 65535).astype(np.uint16)
    Image.fromarray(sixteen).save(tmp_path / "noisy.png")
    assert call("denoise", tmp_path / "noisy.png", tmp_path / "out.png").code == 0
    assert wrong(tmp_path / "out.png", shapes()) < 0.06


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "P", "1", "CMYK", "I;16"])
def test_modes_that_hold_the_same_picture(flipped, call: Call, mode):
    image = Image.open(flipped / "noisy.png")
    image = Image.fromarray(np.asarray(image, np.uint16) * 65535) if mode == "I;16" else image.convert(mode)
    image.save(flipped / "other.tif")
    done = call("denoise", flipped / "other.tif", flipped / "out.png")
    assert (done.code, done.err) == (0, "")
    assert wrong(flipped / "out.png", shapes()) < 0.02


def test_colours_of_a_palette_are_labels(tmp_path, call: Call):
    i, j = np.indices((60, 60))
    x = (i // 20 + j // 20) % 3
    y = np.where(np.random.default_rng(0).random(x.shape) < 0.15, np.random.default_rng(1).integers(0, 3, x.shape), x)
    image = Image.fromarray(y.astype(np.uint8)).convert("P")
    image.putpalette([200, 0, 0, 0, 150, 0, 0, 0, 250])
    image.save(tmp_path / "noisy.png")
    done = call("denoise", tmp_path / "noisy.png", tmp_path / "out.png", "--levels", "3")
    assert (done.code, done.err) == (0, "")
    colours = np.array([[200, 0, 0], [0, 150, 0], [0, 0, 250]])[x]
    assert (np.asarray(Image.open(tmp_path / "out.png").convert("RGB")) == colours).all(axis=-1).mean() > 0.98


def test_levels_of_grey(tmp_path, call: Call):
    i, j = np.indices((80, 80))
    greys = np.array([30, 110, 220])[(i // 20 + j // 20) % 3]
    noisy = np.clip(greys + np.random.default_rng(0).normal(0, 35, greys.shape), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(tmp_path / "noisy.png")
    done = call("denoise", tmp_path / "noisy.png", tmp_path / "out.png", "--levels", "3")
    assert (done.code, done.err) == (0, "")
    found = np.asarray(Image.open(tmp_path / "out.png"), int)
    assert len(np.unique(found)) == 3
    assert (abs(found - greys) < 20).mean() > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 2), (300, 1)])
def test_small_pictures(tmp_path, call: Call, size):
    Image.new("L", size, 255).save(tmp_path / "in.png")
    for more in ((), ("--noise", "gaussian"), ("--levels", "4"), ("--noise", "gaussian", "--levels", "3")):
        done = call("denoise", tmp_path / "in.png", tmp_path / "out.png", *more)
        assert (done.code, done.err) == (0, "")
        assert Image.open(tmp_path / "out.png").size == size


def test_the_comparison(flipped, call: Call):
    done = call(
        "denoise", flipped / "noisy.png", flipped / "out.png", "--figure", flipped / "all.png",
        "--truth", flipped / "clean.png",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    sheet = np.asarray(Image.open(flipped / "all.png"))
    assert sheet.shape[1] > 8 * 256
    assert (sheet == (220, 30, 30)).all(axis=-1).any(), "errors are marked"
    assert call("denoise", flipped / "noisy.png", flipped / "out.png", "--figure", flipped / "all.jpg").code == 0


def test_methods_that_do_not_fit_are_left_out_of_the_comparison(flipped, monkeypatch, caplog):
    from herdner.inference import make_backend
    from herdner.studies.denoising import comparison
    from herdner.studies.denoising.noise import FlipNoise
    from herdner.studies.denoising.pictures import make_observation

    small = make_backend("herded-gibbs", weight_memory=8), "mean"
    monkeypatch.setattr(
        comparison, "comparison_methods", lambda n_sweeps: {"tiny": small, "ICM": (make_backend("icm"), "map")}
    )
    seen = make_observation(read_picture(flipped / "noisy.png"), True, 2, "noisy.png")
    tiles = comparison.compare_methods(seen, FlipNoise(0.1), 0.7, 5, None, 0)
    assert [tile.title.split(",")[0] for tile in tiles] == ["as observed", "ICM"]
    assert "tiny is omitted from the comparison" in caplog.text


def test_a_negative_coupling_is_explained(flipped, call: Call):
    done = call("denoise", flipped / "noisy.png", flipped / "out.png", "--coupling", "-0.5")
    assert done.code == 0
    assert "neighbouring pixels tend to differ" in done.err


# ---- what is wrong ----


def bad(folder, kind: str):
    path = folder / f"{kind}.png"
    rng = np.random.default_rng(0)
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("no picture at all")
    elif kind == "damaged":
        Image.fromarray(rng.integers(0, 256, (200, 200)).astype(np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[:5000])
    elif kind == "folder":
        path.mkdir()
    elif kind == "colours":
        Image.fromarray(rng.integers(0, 256, (9, 9, 3)).astype(np.uint8)).save(path)
    elif kind == "transparent":
        Image.new("LA", (9, 9), (255, 100)).save(path)
    elif kind == "frames":
        path = path.with_suffix(".gif")
        Image.new("L", (9, 9)).save(path, save_all=True, append_images=[Image.new("L", (9, 9), 200)])
    elif kind == "nan":
        path = path.with_suffix(".tif")
        Image.fromarray(np.array([[0.5, np.nan]], np.float32)).save(path)
    elif kind == "huge":  # the header alone says so; nothing may be allocated
        Image.new("1", (1, 1)).save(path)
        png = bytearray(path.read_bytes())
        png[16:24] = struct.pack(">II", 40_000, 40_000)
        png[29:33] = struct.pack(">I", zlib.crc32(png[12:29]))
        path.write_bytes(png)
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "no such file"),
        ("empty", "empty, or not in a picture format"),
        ("text", "not in a picture format"),
        ("damaged", "damaged"),
        ("folder", "directory"),
        ("colours", "has colours"),
        ("transparent", "transparent"),
        ("frames", "several pictures"),
        ("nan", "finite"),
        ("huge", "pixels, more than|more than"),
    ],
)
def test_bad_pictures(tmp_path, call: Call, kind, words):
    path = bad(tmp_path, kind)
    (tmp_path / "out.png").write_bytes(b"old")
    said = one_line(call("denoise", path, tmp_path / "out.png"), 1)
    assert str(path) in said
    assert any(word in said for word in words.split("|"))
    assert (tmp_path / "out.png").read_bytes() == b"old"
    assert not list(tmp_path.glob("*.part")) + list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sigma", "0"), "sigma must be finite and above 0"),
        (("--sigma", "-1"), "sigma"),
        (("--sigma", "nan"), "sigma"),
        (("--p", "0"), "p must be above 0 and below 1"),
        (("--p", "1.5"), "p must"),
        (("--sigma", "1", "--p", "0.1"), "--sigma applies only to Gaussian noise"),
        (("--noise", "flip", "--sigma", "1"), "--sigma applies only to Gaussian noise"),
        (("--noise", "gaussian", "--p", "0.1"), "--p applies only to flip noise"),
        (("--noise", "salt"), "salt"),
        (("--coupling", "inf"), "finite"),
        (("--sweeps", "0"), "sweeps"),
        (("--estimate", "map", "--soft"), "--soft"),
        (("--backend", "nothing"), "no backend"),
        (("--backend", "gibbs", "--set", "sweeps=3"), "no option"),
        (("--set", "oops"), "KEY=VALUE"),
    ],
)
def test_wrong_options(flipped, call: Call, options, words):
    said = one_line(call("denoise", flipped / "noisy.png", flipped / "out.png", *options), 2)
    assert words in said
    assert not (flipped / "out.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--levels", "1"), "--levels must be between 2 and 256"),
        (("--backend", "icm"), "needs marginals, which this backend does not compute"),
        (("--backend", "viterbi", "--estimate", "map"), "viterbi"),
        (("--truth", "{folder}/small.png"), "must have 70 x 60 pixels, got"),
    ],
)
def test_what_does_not_fit_the_picture(flipped, call: Call, options, words):
    Image.new("L", (3, 3)).save(flipped / "small.png")
    options = [option.replace("{folder}", str(flipped)) for option in options]
    said = one_line(call("denoise", flipped / "noisy.png", flipped / "out.png", *options), 1)
    assert words.lower() in said.lower()
    assert not (flipped / "out.png").exists()


def test_more_labels_than_asked_for(tmp_path, call: Call):
    Image.fromarray(np.arange(100, dtype=np.uint8).reshape(10, 10)).save(tmp_path / "in.png")
    said = one_line(call("denoise", tmp_path / "in.png", tmp_path / "out.png", "--noise", "flip", "--levels", "5"), 1)
    assert "100 distinct values, more than the 5 levels" in said
    assert not (tmp_path / "out.png").exists()


def test_endings_that_say_no_format(flipped, call: Call):
    for name in ("out", "out.xyz", "out.html"):
        assert "ending" in one_line(call("denoise", flipped / "noisy.png", flipped / name), 1)
    said = one_line(call("denoise", flipped / "noisy.png", flipped / "no" / "out.png"), 2)
    assert "no folder" in said


def test_values_of_pictures_are_exact(tmp_path):
    greys = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(greys).save(tmp_path / "a.png")
    np.testing.assert_allclose(read_picture(tmp_path / "a.png").values * 255, greys)
    image = Image.fromarray(greys)
    image.getexif()[0x0112] = 6
    image.save(tmp_path / "turned.png", exif=image.getexif())
    np.testing.assert_allclose(read_picture(tmp_path / "turned.png").values * 255, np.rot90(greys, -1))
