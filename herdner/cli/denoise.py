"""``herdner denoise``: a noisy picture of two, or a few, levels in, a clean one out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli.common import backend_of, command, complain, working
from herdner.cli.options import SeedOption
from herdner.cli.usage import UsageError, check_writable, options_of, wrong_use

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from herdner.inference.backend import Backend
    from herdner.studies.denoising.noise import Noise
    from herdner.studies.denoising.pictures import Observation


NoiseOption = Annotated[
    Literal["gaussian", "flip"] | None,
    typer.Option("--noise", help="What the noise did to each pixel [default: flip if the picture has few values]."),
]
BackendOption = Annotated[
    str | None,
    typer.Option(
        "--backend",
        "-b",
        help="See `herdner backends` [default: herded-gibbs, one weight a pixel; for map: annealed-gibbs].",
    ),
]


@command
def denoise(
    picture: Annotated[Path, typer.Argument(metavar="IN", help="The noisy picture, in any format Pillow reads.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write; its ending says the format.")],
    noise: NoiseOption = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Of Gaussian noise, where black is -1 and white +1 (64 greys of 255 are 0.5) [default: estimated]."
        ),
    ] = None,
    p: Annotated[float | None, typer.Option("--p", help="Of flips: their probability [default: estimated].")] = None,
    coupling: Annotated[
        float | None,
        typer.Option(help="J of J s s' over neighbours, s = -1, 1; below 0 they tend to differ [default: estimated]."),
    ] = None,
    labels: Annotated[int, typer.Option(help="Levels, or colours of a palette, of the true picture.")] = 2,
    backend: BackendOption = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Option of the backend; may be repeated.")
    ] = None,
    sweeps: Annotated[int, typer.Option(min=1, help="Sweeps of the backend.")] = 30,
    estimate: Annotated[
        Literal["mean", "map"],
        typer.Option(help="mean: each pixel's most probable label; map: the best picture that is found."),
    ] = "mean",
    soft: Annotated[bool, typer.Option("--soft", help="Write the posterior mean as greys.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Write a picture too that shows other methods and where they err or change."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="The clean picture: errors are told, and shown by --figure.")
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Denoise a picture of two levels, or of a few, by sampling a Markov random field.

    Noise and coupling are estimated from the picture where they are not given. OUT appears when it is complete.
    """
    from herdner.studies.denoising.model import denoise as run
    from herdner.studies.denoising.pictures import encode_image, make_observation, read_picture, to_image

    _check_options(noise, sigma, p, coupling, soft, estimate)
    formats = _formats([path for path in (output, figure) if path is not None])
    chosen = _backend(backend, set_, sweeps, estimate)
    flips = None if noise is None and sigma is None and p is None else noise == "flip" or p is not None
    seen = make_observation(read_picture(picture), flips, labels, str(picture))
    with working("estimating"):
        fitted, strength = _parameters(seen, sigma, p, coupling, seed)
    with working("denoising"):
        found = run(seen.y, fitted, strength, chosen, estimate, seed)
    shown = seen.picture(found.labels, fitted) if not soft else seen.soft_picture(found.mean, fitted)
    clean = None if truth is None else _truth(truth, seen, fitted)
    files = {output: encode_image(to_image(shown), formats[output])}
    if figure is not None:
        from herdner.studies.denoising.comparison import compare_methods, comparison_sheet

        with working("comparing"):
            tiles = compare_methods(seen, fitted, strength, sweeps, clean, seed)
        files[figure] = encode_image(comparison_sheet(seen, fitted, tiles), formats[figure])
    _write(files)
    told = "" if clean is None else f", {100 * float((found.labels != clean).mean()):.2f}% of the pixels wrong"
    rows, columns = seen.y.shape
    print(f"{output}: {columns} x {rows} pixels, {fitted}, coupling {strength:.3g}, {found.result.seconds:.2g} s{told}")


def _formats(paths: list[Path]) -> dict[Path, str]:
    """The formats of files that can be written."""
    from herdner.studies.denoising.pictures import picture_format

    for path in paths:
        check_writable(path)
    return {path: picture_format(path) for path in paths}


def _check_options(
    noise: str | None, sigma: float | None, p: float | None, coupling: float | None, soft: bool, estimate: str
) -> None:
    """What makes no sense whatever the picture is."""
    from herdner.studies.denoising.noise import FlipNoise, GaussianNoise

    if sigma is not None and (p is not None or noise == "flip"):
        raise UsageError("--sigma is of Gaussian noise, --p of flips; give the one of your --noise")
    if p is not None and noise == "gaussian":
        raise UsageError("--p is of flips; give --sigma for Gaussian noise, or --noise flip")
    if soft and estimate == "map":
        raise UsageError("--soft shows posterior means; leave out --estimate map")
    try:
        if sigma is not None:
            GaussianNoise(sigma)
        if p is not None:
            FlipNoise(p)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    if coupling is not None and not abs(coupling) < float("inf"):
        raise UsageError(f"--coupling must be a finite number, not {coupling}")
    if coupling is not None and coupling < 0:
        complain(
            f"coupling {coupling:g} is below 0: neighbours are taken to differ, as on a checkerboard; areas roughen"
        )


def _backend(name: str | None, pairs: list[str] | None, sweeps: int, estimate: Literal["mean", "map"]) -> Backend:
    """The backend, whose sweeps are those asked for, recording only what the estimate needs."""
    from herdner.inference.record import Record
    from herdner.inference.registry import describe_backend
    from herdner.studies.denoising.model import default_backend

    options: dict[str, object] = {**options_of(pairs)}
    if name is None and not options:
        return default_backend(estimate, sweeps)
    if name is None:
        name = "circular-dhg" if estimate == "mean" else "annealed-gibbs"
        options = {"n_bins": 1, **options} if estimate == "mean" else options
    with wrong_use(see="herdner backends"):
        known = {option.name for option in describe_backend(name).options}
    mine = {"n_sweeps": sweeps, "record": Record(best=estimate == "map", marginals=estimate == "mean")}
    return backend_of(name, {**{key: value for key, value in mine.items() if key in known}, **options})


def _parameters(
    seen: Observation, sigma: float | None, p: float | None, coupling: float | None, seed: int
) -> tuple[Noise, float]:
    """The noise and the coupling, estimated as far as they are not given."""
    from herdner.studies.denoising.estimation import estimate_parameters
    from herdner.studies.denoising.noise import FlipNoise, GaussianNoise

    given = sigma if seen.appearance is None else p
    if given is not None and coupling is not None and seen.n_labels == 2:
        return (GaussianNoise(given) if seen.appearance is None else FlipNoise(given)), coupling
    first = seen.first_noise()
    if given is not None:
        first = (
            GaussianNoise(given, first.levels) if isinstance(first, GaussianNoise) else FlipNoise(given, first.n_labels)
        )
    more = {"refit_noise": given is None, "refit_levels": seen.appearance is None and seen.n_labels > 2}
    return estimate_parameters(seen.y, first, coupling, seed=seed, **more)


def _truth(path: Path, seen: Observation, noise: Noise) -> NDArray[np.int32]:
    """The labels of the clean picture."""
    import numpy as np

    from herdner.studies.denoising.noise import GaussianNoise
    from herdner.studies.denoising.pictures import read_picture

    clean = read_picture(path)
    if clean.values.shape != seen.y.shape:
        rows, columns = clean.values.shape
        raise ValueError(f"--truth {path}: has {columns} x {rows} pixels, not {seen.y.shape[1]} x {seen.y.shape[0]}")
    if seen.appearance is None:
        assert isinstance(noise, GaussianNoise)
        return noise.most_likely(2 * clean.grey - 1)
    values = clean.values if seen.palette is not None else clean.grey
    return np.abs(values[..., None] - seen.appearance).argmin(axis=-1).astype(np.int32)


def _write(files: dict[Path, bytes]) -> None:
    """Each file appears when it is complete."""
    from herdner.base.files import atomic_write

    for path, content in files.items():
        with atomic_write(path) as stream:
            stream.write(content)
