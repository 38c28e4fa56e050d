"""Comparison of several denoisers on one picture."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Int32s
from herdner.inference.backend import Backend
from herdner.inference.record import Record
from herdner.inference.registry import make_backend
from herdner.studies.denoising.model import DenoisedPicture, denoise
from herdner.studies.denoising.noise import Noise
from herdner.studies.denoising.pictures import Observation, Picture, to_image

if TYPE_CHECKING:
    from PIL import Image

_SIDE, _MARGIN, _TEXT = 256, 8, 30
_WRONG = (220, 30, 30)


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonTile:
    """Picture denoised by one of the compared methods, with a title and the pixels to mark.

    Attributes:
        title: Name and statistics of the denoiser.
        labels: int32[rows, columns], the labels of the pixels.
        marked: bool[rows, columns], the pixels to mark.
    """

    title: str
    labels: Int32s
    marked: NDArray[np.bool_]


def comparison_methods(n_sweeps: int) -> dict[str, tuple[Backend, str]]:
    """Return the denoising methods to compare: those of HG16 (Table 2), those of HGW19 (Fig. 11), and ICM.

    Each method is a backend and the name of the estimate that it computes.

    Args:
        n_sweeps: Number of sweeps of the samplers.

    Returns:
        A dict from the name of each method to its backend and "mean" or "map".
    """
    record = Record(best=False)
    herded = {"HG": "blanket", "HG-shared": "neighbour-sum", "HG-1bin": "bins(1)"}
    return {
        "Gibbs": (make_backend("gibbs", n_sweeps=n_sweeps, record=record), "mean"),
        **{
            name: (make_backend("herded-gibbs", n_sweeps=n_sweeps, sharing=sharing, record=record), "mean")
            for name, sharing in herded.items()
        },
        "QMC Gibbs": (make_backend("qmc-gibbs", n_sweeps=n_sweeps, record=record), "mean"),
        "mean field": (make_backend("mean-field", n_sweeps=n_sweeps, trace=False), "mean"),
        "ICM": (make_backend("icm"), "map"),
    }


def compare_methods(
    observed: Observation, noise: Noise, coupling: float, n_sweeps: int, truth: Int32s | None, seed: int
) -> list[ComparisonTile]:
    """Denoise a picture with every method, and mark the wrong pixels, or the changed pixels if the truth is unknown.

    Pixels are wrong if they differ from ``truth``, and changed if they differ from the observed labels. Methods that
    raise `ValueError` are skipped with a warning in the log.

    Args:
        observed: The observation.
        noise: The noise.
        coupling: Coupling of neighbouring pixels.
        n_sweeps: Number of sweeps of the samplers.
        truth: int32[rows, columns], the true labels, if available.
        seed: Random seed.

    Returns:
        One tile for the observation and one for each method.
    """
    first = noise.most_likely(observed.y)
    against = first if truth is None else truth
    word = "changed" if truth is None else "wrong"
    title = "as observed" if truth is None else f"as observed\n{_share(first != against)} wrong"
    tiles = [ComparisonTile(title, first, first != against)]
    for method, (backend, estimate) in comparison_methods(n_sweeps).items():
        try:
            denoised: DenoisedPicture = denoise(observed.y, noise, coupling, backend, estimate, seed)  # type: ignore[arg-type]
        except ValueError as error:  # with many labels, the herding weights may exceed the memory limit
            logging.getLogger(__name__).warning("%s is omitted from the comparison: %s", method, error)
            continue
        marked = denoised.labels != against
        title = f"{method}, {denoised.result.seconds:.2g} s\n{_share(marked)} {word}"
        tiles.append(ComparisonTile(title, denoised.labels, marked))
    return tiles


def comparison_sheet(observed: Observation, noise: Noise, tiles: list[ComparisonTile]) -> Image.Image:
    """Draw the noisy picture and each denoised picture, with a map of its wrong or changed pixels below it.

    Large pictures are scaled down.

    Args:
        observed: The observation.
        noise: The noise.
        tiles: The results of the methods.

    Returns:
        An image of Pillow.
    """
    from PIL import Image, ImageDraw

    rows, columns = observed.y.shape
    scale = _SIDE / max(rows, columns)
    size = max(1, round(columns * scale)), max(1, round(rows * scale))
    noisy = Picture((observed.y + 1) / 2) if observed.appearance is None else observed.picture(observed.y, noise)
    width, height = _SIDE + _MARGIN, size[1] + _TEXT
    sheet = Image.new("RGB", (_MARGIN + width * (len(tiles) + 1), _MARGIN + height + size[1]), "white")
    draw = ImageDraw.Draw(sheet)
    shown = [("noisy", to_image(noisy), None)]
    shown += [(tile.title, to_image(observed.picture(tile.labels, noise)), tile.marked) for tile in tiles]
    for k, (title, image, marked) in enumerate(shown):
        at = _MARGIN + k * width
        draw.multiline_text((at, 2), title, fill="black", spacing=1)
        sheet.paste(image.convert("RGB").resize(size, Image.Resampling.NEAREST), (at, _TEXT))
        if marked is not None:
            sheet.paste(_map(marked).resize(size, Image.Resampling.NEAREST), (at, _TEXT + size[1] + _MARGIN // 2))
    return sheet


def _map(marked: NDArray[np.bool_]) -> Image.Image:
    from PIL import Image

    colours = np.array([(235, 235, 235), _WRONG], np.uint8)
    return Image.fromarray(colours[marked.astype(np.int64)])


def _share(marked: NDArray[np.bool_]) -> str:
    return f"{100 * marked.mean():.2f}%"
