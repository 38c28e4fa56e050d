"""Pictures as arrays and back, through Pillow (extra ``files``): files are untrusted, so sizes are checked first."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s
from herdner.base.extras import import_extra
from herdner.studies.denoising.noise import GaussianNoise, Noise, estimate_flip_noise, estimate_gaussian_noise

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 2**26
MAX_CELLS = 2**28  # pixels times labels
_COLOURLESS = 24  # of 255: by how much lossy formats tint greys


class PictureError(ValueError):
    """A file is no picture that can be denoised; the message says why, in one line."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture in black and white, in greys or in the colours of a palette.

    Attributes:
        values: float64[rows, columns], greys, 0 black and 1 white, beyond which floating-point files may go; with a
            palette the numbers of the colours.
        palette: Bytes of red, green, blue of each colour.
    """

    values: Floats
    palette: bytes | None = None

    @property
    def grey(self) -> Floats:
        """The values, colours of a palette as their luma."""
        if self.palette is None:
            return self.values
        colours = np.frombuffer(self.palette, np.uint8).reshape(-1, 3) @ np.array([0.299, 0.587, 0.114]) / 255
        return np.append(colours, np.zeros(256))[self.values.astype(np.int64)]

    @property
    def distinct(self) -> Floats:
        """The different values, rising: without sorting where all occur among the first thousands of pixels."""
        few = np.unique(self.values.ravel()[:4096])
        if len(few) <= 16:
            known = self.values == few[0]
            for value in few[1:]:
                known |= self.values == value
            if known.all():
                return few
        return np.unique(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What is denoised.

    Attributes:
        y: [rows, columns], numbers (black -1, white +1) for Gaussian noise, else labels.
        looks: float64[K], the value of each label in a picture, None for the levels of Gaussian noise.
        n_labels: K.
        palette: As of `Picture`.
    """

    y: NDArray[Any]
    looks: Floats | None
    n_labels: int
    palette: bytes | None

    def first_noise(self) -> Noise:
        """A guess of the noise from neighbouring pixels or the distribution of greys."""
        if self.looks is None:
            return estimate_gaussian_noise(self.y, self.n_labels, (-1.0, 1.0) if self.n_labels == 2 else None)
        return estimate_flip_noise(self.y, self.n_labels)

    def picture(self, labels: Int32s, noise: Noise) -> Picture:
        """Labels as they look."""
        if self.looks is None:
            assert isinstance(noise, GaussianNoise)
            return Picture((np.array(noise.levels) + 1)[labels] / 2)
        return Picture(self.looks[labels], self.palette)

    def soft_picture(self, mean: Floats | None, noise: Noise) -> Picture:
        """Posterior means as greys, between those of the labels."""
        assert mean is not None
        if isinstance(noise, GaussianNoise):
            return Picture((mean + 1) / 2)
        if self.looks is None or self.palette is not None:
            raise PictureError("colours of a palette have no means; leave --soft out")
        return Picture(np.interp(mean, np.arange(len(self.looks)), self.looks))


def read_picture(path: str | os.PathLike[str]) -> Picture:
    """One picture of at most 2^26 pixels, in any format that Pillow reads, turned as its EXIF data say.

    Greys of any depth, palettes, and colours or alpha that say nothing (equal channels, all opaque).

    Raises:
        PictureError: The picture has real colours or transparency, several frames or too many pixels, or is no picture.
        OSError: The file cannot be read.
    """
    image_module = _pillow()
    from PIL import ImageOps, UnidentifiedImageError

    name = os.fspath(path)
    Path(path).open("rb").close()  # the plain reason, where there is one
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with image_module.open(path) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise PictureError(
                        f"{name}: has {image.width} x {image.height} pixels, more than {MAX_PIXELS}; cut it into parts"
                    )
                if getattr(image, "n_frames", 1) > 1:
                    raise PictureError(f"{name}: holds several pictures (frames or pages); extract one of them first")
                return _as_picture(name, ImageOps.exif_transpose(image))
    except (PictureError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise PictureError(f"{name}: is empty or no picture in a format that Pillow reads") from None
    except image_module.DecompressionBombError:
        raise PictureError(f"{name}: has more than {MAX_PIXELS} pixels; cut it into parts") from None
    except Exception as error:  # decoders raise whatever they like on broken files
        raise PictureError(
            f"{name}: cannot be decoded, it may be damaged ({str(error) or type(error).__name__})"
        ) from None


def make_observation(picture: Picture, flips: bool | None, n_labels: int, name: str) -> Observation:
    """The picture as what noise of one kind has left: ``flips``, or Gaussian; None: flips if it has few enough values.

    With two labels, greys are split in the middle between black and white where there are more than two.
    """
    if not 2 <= n_labels <= 256:
        raise ValueError(f"--labels must be 2 to 256, not {n_labels}")
    if picture.values.size * n_labels > MAX_CELLS:
        raise PictureError(f"{name}: {picture.values.size} pixels of {n_labels} labels are too many; cut it into parts")
    distinct = picture.distinct
    if flips is None:
        flips = len(distinct) <= n_labels or (n_labels == 2 and _two_sided(picture.grey))
    if not flips:
        return Observation(2 * picture.grey - 1, None, n_labels, None)
    if len(distinct) <= n_labels and len(distinct) > 1:
        labels = np.searchsorted(distinct, picture.values).astype(np.int32)
        return Observation(labels, distinct, len(distinct), picture.palette)
    if n_labels == 2:
        return Observation((picture.grey > 0.5).astype(np.int32), np.array([0.0, 1.0]), 2, None)
    if len(distinct) == 1:
        looks = np.array([distinct[0], 1.0 - float(distinct[0] > 0.5)])
        return Observation(np.zeros(picture.values.shape, np.int32), looks, 2, None)
    raise PictureError(
        f"{name}: has {len(distinct)} different values, more than the {n_labels} labels; raise --labels, or use --noise"
        " gaussian"
    )


def _two_sided(grey: Floats) -> bool:
    """Hardly a pixel is between black and white: lossy formats blur pictures of two levels a little."""
    return float((np.abs(grey - 0.5) < 0.25).mean()) < 0.05


def picture_format(path: str | os.PathLike[str]) -> str:
    """Pillow's name of the format that a file's ending stands for. PictureError where it writes none such."""
    image_module = _pillow()
    suffix = Path(path).suffix.lower()
    image_module.preinit()  # the common formats alone are quicker to load
    found = image_module.EXTENSION.get(suffix) or image_module.registered_extensions().get(suffix)
    if found is None or found not in image_module.SAVE:
        raise PictureError(f"{os.fspath(path)}: no format to write has this ending; use e.g. .png, .tif, .bmp or .jpg")
    return found


def encode_image(image: Image.Image, file_format: str) -> bytes:
    """The bytes of a file.

    Raises:
        PictureError: The format cannot hold the picture.
    """
    stream = io.BytesIO()
    try:
        image.save(stream, file_format)
    except (OSError, ValueError, KeyError, SystemError) as error:
        raise PictureError(f"{file_format} cannot hold this picture ({error}); use .png") from None
    return stream.getvalue()


def to_image(picture: Picture) -> Image.Image:
    """A picture as Pillow's, of 256 greys, or of its palette's colours."""
    image_module = _pillow()
    if picture.palette is None:
        return image_module.fromarray(np.rint(np.clip(picture.values, 0.0, 1.0) * 255).astype(np.uint8))
    image = image_module.fromarray(picture.values.astype(np.uint8)).convert("P")
    image.putpalette(picture.palette)
    return image


def _as_picture(name: str, image: Image.Image) -> Picture:
    if image.width < 1 or image.height < 1:
        raise PictureError(f"{name}: has no pixels")
    image = _opaque(name, image)
    if image.mode == "P" and image.palette is not None and image.palette.mode == "RGB":
        return Picture(np.asarray(image, np.float64), bytes(image.getpalette("RGB") or b""))
    if image.mode in ("1", "L"):
        return Picture(np.asarray(image.convert("L"), np.float64) / 255)
    if image.mode.startswith("I"):
        values = np.asarray(image, np.float64) / 65535
        if values.min() < 0 or values.max() > 1:
            raise PictureError(f"{name}: has greys beyond 16 bits; convert it to 8 or 16 bits")
        return Picture(values)
    if image.mode == "F":
        values = np.asarray(image, np.float64)
        if not np.isfinite(values).all():
            raise PictureError(f"{name}: holds pixels that are no finite numbers; replace them first")
        return Picture(values)
    coloured = image.convert("RGB")
    channels = np.asarray(coloured)
    if (np.ptp(channels, axis=-1) > _COLOURLESS).any():
        raise PictureError(f"{name}: has colours, which labels have no order for; convert it to greys first")
    return Picture(np.asarray(coloured.convert("L"), np.float64) / 255)


def _opaque(name: str, image: Image.Image) -> Image.Image:
    """The picture without its alpha, which must say nothing."""
    if image.mode not in ("LA", "La", "PA", "RGBA", "RGBa") and "transparency" not in image.info:
        return image
    with_alpha = image.convert("RGBA")
    if min(with_alpha.getchannel("A").getextrema()) < 255:  # type: ignore[type-var]
        raise PictureError(f"{name}: has transparent pixels; put it on a background first")
    return with_alpha.convert("RGB") if image.mode != "P" else image


def _pillow() -> Any:
    return import_extra("PIL.Image", "pictures need Pillow")
