"""Conversion between picture files and arrays by Pillow (extra ``files``), with a limit on the number of pixels."""

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
from herdner.base.representation import short_repr
from herdner.studies.denoising.noise import GaussianNoise, Noise, estimate_flip_noise, estimate_gaussian_noise

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 2**26
MAX_CELLS = 2**28  # pixels times labels
_GREY_TOLERANCE = 24  # largest difference of channels (of 255) in a pixel that counts as grey; lossy formats tint greys


class PictureError(ValueError):
    """Error: a file contains no picture that can be denoised. The message is one line."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Picture in black and white, in grey values, or in the colours of a palette.

    Attributes:
        values: float64[rows, columns], greys from 0 (black) to 1 (white), beyond this range in some floating-point
            files. With a palette, the indices of the colours.
        palette: Red, green and blue byte of each colour, or None.
    """

    values: Floats
    palette: bytes | None = None

    __repr__ = short_repr

    @property
    def grey(self) -> Floats:
        """Grey value of each pixel; colours of a palette are converted to luma (brightness)."""
        if self.palette is None:
            return self.values
        colours = np.frombuffer(self.palette, np.uint8).reshape(-1, 3) @ np.array([0.299, 0.587, 0.114]) / 255
        return np.append(colours, np.zeros(256))[self.values.astype(np.int64)]

    @property
    def distinct_values(self) -> Floats:
        """Distinct values of the picture in increasing order."""
        few = np.unique(self.values.ravel()[:4096])
        if len(few) <= 16:
            covered = self.values == few[0]
            for value in few[1:]:
                covered |= self.values == value
            if covered.all():
                return few
        return np.unique(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Noisy picture, converted to the numbers (for Gaussian noise) or labels (for flip noise) that denoising uses.

    Attributes:
        y: [rows, columns], numbers (black -1, white +1) for Gaussian noise, else labels.
        appearance: float64[K], the value of each label in a picture. None for Gaussian noise, whose levels are the
            values.
        n_labels: Number of labels, K.
        palette: See `Picture`.
    """

    y: NDArray[Any]
    appearance: Floats | None
    n_labels: int
    palette: bytes | None

    __repr__ = short_repr

    def first_noise(self) -> Noise:
        """Return an initial noise model: flip noise from neighbouring pixels, or Gaussian noise from grey values."""
        if self.appearance is None:
            return estimate_gaussian_noise(self.y, self.n_labels, (-1.0, 1.0) if self.n_labels == 2 else None)
        return estimate_flip_noise(self.y, self.n_labels)

    def picture(self, labels: Int32s, noise: Noise) -> Picture:
        """Convert pixel labels to a picture.

        Args:
            labels: int32[rows, columns].
            noise: The noise model, for its levels.

        Returns:
            The picture, in the greys or colours of the observed one.
        """
        if self.appearance is None:
            assert isinstance(noise, GaussianNoise)
            return Picture((np.array(noise.levels) + 1)[labels] / 2)
        return Picture(self.appearance[labels], self.palette)

    def soft_picture(self, mean: Floats | None, noise: Noise) -> Picture:
        """Convert posterior means of pixels to a picture, whose greys lie between the greys of the labels.

        Args:
            mean: float64[rows, columns], from `DenoisedPicture`.
            noise: The noise model, for its levels.

        Returns:
            The picture.

        Raises:
            PictureError: The picture has a palette, whose colours cannot be averaged.
        """
        assert mean is not None
        if isinstance(noise, GaussianNoise):
            return Picture((mean + 1) / 2)
        if self.appearance is None or self.palette is not None:
            raise PictureError("--soft averages labels, but the colours of a palette cannot be averaged; omit --soft")
        return Picture(np.interp(mean, np.arange(len(self.appearance)), self.appearance))


def read_picture(path: str | os.PathLike[str]) -> Picture:
    """Read a picture of at most 2^26 pixels, in any file format that Pillow supports.

    The picture is rotated according to its EXIF data.

    Greys of 1 to 16 bits or floating-point numbers are supported, and palettes. Colours are accepted if the channels of
    each pixel are almost equal, and an alpha channel if all pixels are opaque.

    Args:
        path: The file.

    Returns:
        The picture.

    Raises:
        PictureError: The file is no picture, or has colours, transparency, several frames, or too many pixels.
        OSError: The file cannot be read.
    """
    image_module = _pillow()
    from PIL import ImageOps, UnidentifiedImageError

    name = os.fspath(path)
    Path(path).open("rb").close()  # raises OSError, which the code below would convert to a PictureError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with image_module.open(path) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise PictureError(
                        f"{name}: the picture has {image.width} x {image.height} pixels, more than {MAX_PIXELS};"
                        " split the picture"
                    )
                if getattr(image, "n_frames", 1) > 1:
                    raise PictureError(f"{name}: the file has several pictures (frames or pages); extract one first")
                return _as_picture(name, ImageOps.exif_transpose(image))
    except (PictureError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise PictureError(f"{name}: the file is empty, or not in a picture format that Pillow reads") from None
    except image_module.DecompressionBombError:
        raise PictureError(f"{name}: the picture has more than {MAX_PIXELS} pixels; split the picture") from None
    except Exception as error:  # decoders raise errors of any type on broken files
        reason = str(error) or type(error).__name__
        raise PictureError(f"{name}: cannot be decoded, it may be damaged ({reason})") from None


def make_observation(picture: Picture, flips: bool | None, n_labels: int, name: str) -> Observation:
    """Convert a picture to an observation with Gaussian noise, or with flip noise if ``flips`` is True.

    With flip noise, two labels and more than two values, greys are divided at the middle between black and white.

    Args:
        picture: The picture.
        flips: True for flip noise, False for Gaussian noise. None selects flip noise if the picture has at most
            ``n_labels`` values, or two labels and few pixels between black and white.
        n_labels: Number of labels.
        name: Name of the picture in error messages.

    Returns:
        The observation, with labels for flip noise or numbers for Gaussian noise.

    Raises:
        ValueError: ``n_labels`` is out of range.
        PictureError: The picture has too many pixels or values.
    """
    if not 2 <= n_labels <= 256:
        raise ValueError(f"--levels must be between 2 and 256, got {n_labels}")
    if picture.values.size * n_labels > MAX_CELLS:
        raise PictureError(
            f"{name}: {picture.values.size} pixels times {n_labels} labels exceed {MAX_CELLS}; split the picture,"
            " or use fewer labels"
        )
    distinct_values = picture.distinct_values
    if flips is None:
        flips = len(distinct_values) <= n_labels or (n_labels == 2 and _two_sided(picture.grey))
    if not flips:
        return Observation(2 * picture.grey - 1, None, n_labels, None)
    if len(distinct_values) <= n_labels and len(distinct_values) > 1:
        labels = np.searchsorted(distinct_values, picture.values).astype(np.int32)
        return Observation(labels, distinct_values, len(distinct_values), picture.palette)
    if n_labels == 2:
        return Observation((picture.grey > 0.5).astype(np.int32), np.array([0.0, 1.0]), 2, None)
    if len(distinct_values) == 1:
        appearance = np.array([distinct_values[0], 1.0 - float(distinct_values[0] > 0.5)])
        return Observation(np.zeros(picture.values.shape, np.int32), appearance, 2, None)
    raise PictureError(
        f"{name}: the picture has {len(distinct_values)} distinct values, more than the {n_labels} levels; increase"
        " --levels, or use --noise gaussian"
    )


def _two_sided(grey: Floats) -> bool:
    """Return True if fewer than 5 % of the pixels have a grey value between 0.25 and 0.75 (0: black, 1: white).

    This is typical of two-level pictures that lossy formats have blurred.
    """
    return float((np.abs(grey - 0.5) < 0.25).mean()) < 0.05


def picture_format(path: str | os.PathLike[str]) -> str:
    """Return Pillow's name for the file format to which the file extension of ``path`` belongs.

    Args:
        path: The file to write.

    Raises:
        PictureError: Pillow cannot write a format with this extension.
    """
    image_module = _pillow()
    suffix = Path(path).suffix.lower()
    image_module.preinit()  # loads the common formats only, which is quicker
    suffix_format = image_module.EXTENSION.get(suffix) or image_module.registered_extensions().get(suffix)
    if suffix_format is None or suffix_format not in image_module.SAVE:
        raise PictureError(
            f"{os.fspath(path)}: no writable format has this file extension; use e.g. .png, .tif, .bmp or .jpg"
        )
    return suffix_format


def encode_image(image: Image.Image, file_format: str) -> bytes:
    """Encode an image in the file format ``file_format``, and return its bytes.

    Args:
        image: The image.
        file_format: Pillow's name of the format.

    Raises:
        PictureError: The format cannot represent the image.
    """
    stream = io.BytesIO()
    try:
        image.save(stream, file_format)
    except (OSError, ValueError, KeyError, SystemError) as error:
        raise PictureError(f"{file_format} cannot represent this picture ({error}); use .png") from None
    return stream.getvalue()


def to_image(picture: Picture) -> Image.Image:
    """Convert a picture to a Pillow image: with 256 grey values, or with the palette of the picture.

    Args:
        picture: The picture.

    Returns:
        The image.
    """
    image_module = _pillow()
    if picture.palette is None:
        return image_module.fromarray(np.rint(np.clip(picture.values, 0.0, 1.0) * 255).astype(np.uint8))
    image = image_module.fromarray(picture.values.astype(np.uint8)).convert("P")
    image.putpalette(picture.palette)
    return image


def _as_picture(name: str, image: Image.Image) -> Picture:
    if image.width < 1 or image.height < 1:
        raise PictureError(f"{name}: the picture has no pixels")
    image = _opaque(name, image)
    if image.mode == "P" and image.palette is not None and image.palette.mode == "RGB":
        return Picture(np.asarray(image, np.float64), bytes(image.getpalette("RGB") or b""))
    if image.mode in ("1", "L"):
        return Picture(np.asarray(image.convert("L"), np.float64) / 255)
    if image.mode.startswith("I"):
        values = np.asarray(image, np.float64) / 65535
        if values.min() < 0 or values.max() > 1:
            raise PictureError(f"{name}: the picture has greys of more than 16 bits; convert it to 8 or 16 bits")
        return Picture(values)
    if image.mode == "F":
        values = np.asarray(image, np.float64)
        if not np.isfinite(values).all():
            raise PictureError(f"{name}: the picture has pixels that are not finite; replace them first")
        return Picture(values)
    rgb = image.convert("RGB")
    channels = np.asarray(rgb)
    if (np.ptp(channels, axis=-1) > _GREY_TOLERANCE).any():
        raise PictureError(f"{name}: the picture has colours, which labels cannot represent; convert it to greys first")
    return Picture(np.asarray(rgb.convert("L"), np.float64) / 255)


def _opaque(name: str, image: Image.Image) -> Image.Image:
    """Return the image without its alpha channel; raise `PictureError` if any pixel is transparent."""
    if image.mode not in ("LA", "La", "PA", "RGBA", "RGBa") and "transparency" not in image.info:
        return image
    with_alpha = image.convert("RGBA")
    if min(with_alpha.getchannel("A").getextrema()) < 255:  # type: ignore[type-var]
        raise PictureError(f"{name}: the picture has transparent pixels; flatten it onto a background first")
    return with_alpha.convert("RGB") if image.mode != "P" else image


def _pillow() -> Any:
    return import_extra("PIL.Image", "pictures need Pillow")
