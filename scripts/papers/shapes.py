"""Binary shapes from a folder of pictures, such as MPEG-7 CE Shape-1 Part B."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from herdner.studies.denoising.pictures import read_picture

SUFFIXES = {".png", ".gif", ".bmp", ".pbm", ".pgm", ".tif", ".tiff", ".jpg", ".jpeg"}
Shapes = Annotated[
    Path, typer.Argument(help="Folder of binary pictures, e.g. MPEG-7 CE Shape-1 Part B.", exists=True, file_okay=False)
]


def shape_paths(folder: Path) -> list[Path]:
    """Return the paths of the pictures in a folder and its subfolders, in a fixed order."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise typer.BadParameter(f"{folder}: contains no pictures")
    return found


def read_shape(path: Path) -> NDArray[np.int32]:
    """Return a binary picture, int32[rows, columns]: 1 for pixels brighter than the middle between black and white."""
    return (read_picture(path).grey > 0.5).astype(np.int32)


def resized(shape: NDArray[np.int32], side: int) -> NDArray[np.int32]:
    """Return the shape, scaled by nearest pixels to at most ``side`` pixels in height and width."""
    step = max(1.0, max(shape.shape) / side)
    rows, columns = (np.minimum((np.arange(int(n / step)) + 0.5) * step, n - 1).astype(int) for n in shape.shape)
    return np.ascontiguousarray(shape[np.ix_(rows, columns)])
