"""Command ``herdner denoise``: removal of noise from a picture of two or a few levels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.base.files import atomic_write
from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import parse_backend, print_note, show_activity
from herdner.cli.usage import UsageError, check_distinct, check_output, parse_options, usage_errors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from herdner.inference.backend import Backend
    from herdner.studies.denoising.noise import Noise
    from herdner.studies.denoising.pictures import Observation

# fmt: off
_SigmaOption = Annotated[float | None, typer.Option(
    help="Standard deviation of Gaussian noise, where black is -1 and white +1 (64 of 255 greys are 0.5) [default: "
    "estimated].")]
_BackendOption = Annotated[str | None, typer.Option(
    "--backend", "-b", help="Inference backend (see `herdner backends`) [default: herded Gibbs sampling with one "
    "weight per pixel; with --estimate map: annealed-gibbs].")]
# fmt: on


@command
def denoise(
    picture: Annotated[Path, typer.Argument(metavar="IN", help="Noisy picture, in any format that Pillow reads.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its extension chooses the format.")],
    noise: Annotated[Literal["gaussian", "flip"] | None, typer.Option(
        "--noise", help="Kind of noise [default: flip if the picture has few values, else gaussian].")] = None,
    sigma: _SigmaOption = None,
    p: Annotated[float | None, typer.Option(
        "--p", help="Probability that noise changes a pixel [default: estimated].")] = None,
    coupling: Annotated[float | None, typer.Option(
        help="J of the potential J s s' of neighbours with states -1 and 1; if negative, neighbours tend to differ "
        "[default: estimated].")] = None,
    levels: Annotated[int, typer.Option(help="Number of grey levels or palette colours of the true picture.")] = 2,
    backend: _BackendOption = None,
    set_: opt.BackendSetOption = None,
    sweeps: Annotated[int, typer.Option(min=1, help="Number of sweeps of the backend.")] = 30,
    estimate: Annotated[Literal["mean", "map"], typer.Option(
        help="mean: the most probable level of each pixel; map: the most probable picture.")] = "mean",
    soft: Annotated[bool, typer.Option("--soft", help="Write the posterior mean as grey levels.")] = False,
    figure: Annotated[Path | None, typer.Option(
        "--figure", help="Also write a picture that compares several methods and shows their errors.")] = None,
    truth: Annotated[Path | None, typer.Option(
        help="True picture: print the share of wrong pixels, and show these pixels in the --figure.")] = None,
    seed: opt.SeedOption = 0,
) -> None:  # fmt: skip
    """Denoise a picture that has few grey levels or colours by sampling a Markov random field.

    Noise and coupling are estimated from the picture if their options are not set. OUT appears when it is complete.
    """
    from herdner.studies.denoising.model import denoise as denoise_array
    from herdner.studies.denoising.pictures import (
        encode_image,
        make_observation,
        picture_format,
        read_picture,
        to_image,
    )

    _check_options(noise, sigma, p, coupling, soft, estimate)
    check_distinct({"OUT": output, "--figure": figure})
    check_output(output, [picture, truth], "OUT", is_text=False)
    check_output(figure, [picture, truth], "--figure", is_text=False)
    formats = {path: picture_format(path) for path in (output, figure) if path is not None}
    engine = _make_backend(backend, set_, sweeps, estimate)
    is_flip = None if noise is None and sigma is None and p is None else noise == "flip" or p is not None
    observation = make_observation(read_picture(picture), is_flip, levels, str(picture))
    with show_activity("estimating"):
        noise_model, strength = _parameters(observation, sigma, p, coupling, seed)
    with show_activity("denoising"):
        result = denoise_array(observation.y, noise_model, strength, engine, estimate, seed)
    if soft:
        denoised = observation.soft_picture(result.mean, noise_model)
    else:
        denoised = observation.picture(result.labels, noise_model)
    true_levels = None if truth is None else _read_truth(truth, observation, noise_model)
    files = {output: encode_image(to_image(denoised), formats[output])}
    if figure is not None:
        from herdner.studies.denoising.comparison import compare_methods, comparison_sheet

        with show_activity("comparing"):
            tiles = compare_methods(observation, noise_model, strength, sweeps, true_levels, seed)
        files[figure] = encode_image(comparison_sheet(observation, noise_model, tiles), formats[figure])
    for path, content in files.items():
        with atomic_write(path) as stream:
            stream.write(content)
    rows, columns = observation.y.shape
    wrong = ""
    if true_levels is not None:
        wrong = f", {100 * float((result.labels != true_levels).mean()):.2f}% of the pixels wrong"
    print(
        f"{output}: {columns} x {rows} pixels, {noise_model}, coupling {strength:.3g}, "
        f"{result.result.seconds:.2g} s{wrong}"
    )


def _check_options(
    noise: str | None, sigma: float | None, p: float | None, coupling: float | None, soft: bool, estimate: str
) -> None:
    """Raise a usage error for options that contradict each other."""
    from herdner.studies.denoising.noise import FlipNoise, GaussianNoise

    if sigma is not None and (p is not None or noise == "flip"):
        raise UsageError("--sigma applies only to Gaussian noise; for flip noise use --p")
    if p is not None and noise == "gaussian":
        raise UsageError("--p applies only to flip noise; for Gaussian noise use --sigma")
    if soft and estimate == "map":
        raise UsageError(
            "--soft cannot be combined with --estimate map, which has no posterior means; leave out one of them"
        )
    try:
        if sigma is not None:
            GaussianNoise(sigma)
        if p is not None:
            FlipNoise(p)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    if coupling is not None and not abs(coupling) < float("inf"):
        raise UsageError(f"--coupling must be a finite number, got {coupling}")
    if coupling is not None and coupling < 0:
        print_note(f"coupling {coupling:g} is negative: neighbouring pixels tend to differ, and areas become rough")


def _make_backend(name: str | None, pairs: list[str] | None, sweeps: int, estimate: Literal["mean", "map"]) -> Backend:
    """Create a backend that runs ``sweeps`` sweeps and records the results that the estimate requires."""
    from herdner.inference.record import Record
    from herdner.inference.registry import describe_backend
    from herdner.studies.denoising.model import default_backend

    options: dict[str, object] = {**parse_options(pairs)}
    if name is None and not options:
        return default_backend(estimate, sweeps)
    if name is None:
        name = "circular-dhg" if estimate == "mean" else "annealed-gibbs"
        options = {"n_bins": 1, **options} if estimate == "mean" else options
    with usage_errors(see="herdner backends"):
        supported = {option.name for option in describe_backend(name).options}
    defaults = {"n_sweeps": sweeps, "record": Record(best=estimate == "map", marginals=estimate == "mean")}
    return parse_backend(name, {**{key: value for key, value in defaults.items() if key in supported}, **options})


def _parameters(
    observation: Observation, sigma: float | None, p: float | None, coupling: float | None, seed: int
) -> tuple[Noise, float]:
    """Return the noise model of a picture and the coupling of its neighbouring pixels.

    Parameters that no option sets are estimated from the picture.
    """
    from herdner.studies.denoising.estimation import estimate_parameters
    from herdner.studies.denoising.noise import FlipNoise, GaussianNoise

    value = sigma if observation.appearance is None else p
    if value is not None and coupling is not None and observation.n_labels == 2:
        return (GaussianNoise(value) if observation.appearance is None else FlipNoise(value)), coupling
    first = observation.first_noise()
    if value is not None:
        first = (
            GaussianNoise(value, first.levels) if isinstance(first, GaussianNoise) else FlipNoise(value, first.n_labels)
        )
    options = {
        "refit_noise": value is None,
        "refit_levels": observation.appearance is None and observation.n_labels > 2,
    }
    return estimate_parameters(observation.y, first, coupling, seed=seed, **options)


def _read_truth(path: Path, observation: Observation, noise: Noise) -> NDArray[np.int32]:
    """Return the level (grey level or colour) of each pixel of the true picture, int32[rows, columns]."""
    import numpy as np

    from herdner.studies.denoising.noise import GaussianNoise
    from herdner.studies.denoising.pictures import read_picture

    truth = read_picture(path)
    if truth.values.shape != observation.y.shape:
        (rows, columns), (expected_rows, expected_columns) = truth.values.shape, observation.y.shape
        raise ValueError(
            f"--truth {path}: the picture must have {expected_columns} x {expected_rows} pixels, got {columns} x {rows}"
        )
    if observation.appearance is None:
        assert isinstance(noise, GaussianNoise)
        return noise.most_likely(2 * truth.grey - 1)
    values = truth.values if observation.palette is not None else truth.grey
    return np.abs(values[..., None] - observation.appearance).argmin(axis=-1).astype(np.int32)
