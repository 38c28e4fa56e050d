"""Driving sequences: where a quasi-random sampler ("MCQMC", HG16 Sec. 4.1, HGW19 Sec. 7) has its uniform numbers from.

Such a sampler is an ordinary one whose generator is replaced by a sequence that fills the unit cube more evenly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, log2
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.base.checks import check_integer
from herdner.base.options import parse_call
from herdner.inference.gibbs.registers import (
    MOST_DEGREE,
    WORD,
    Polynomial,
    Words,
    coprime_from,
    parse_polynomial,
    register,
    show_polynomial,
)

_CHUNK = 2**18  # numbers made at a time
_SHUFFLED = 16  # chunks whose points are shuffled together


class Uniforms(Protocol):
    """The numbers of one run, for one thread."""

    def __call__(self, first: int, last: int) -> Floats:
        """float64[last - first] in [0, 1): those of the updates first .. last - 1, counted through all sweeps."""
        ...


class Driving(ABC):
    """A driving sequence. A run of ``n_sweeps`` sweeps of ``n_steps`` updates takes one number for each update."""

    __slots__ = ()
    SYNTAX: ClassVar[str] = "sobol, lfsr or lfsr(polynomial, offset) as in lfsr(1+x^3+x^5, 3)"

    @abstractmethod
    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        """The numbers of a run: update g is step g % n_steps of sweep g // n_steps.

        The same state of ``rng`` gives the same numbers, in whatever pieces they are asked for.
        """

    @classmethod
    def from_text(cls, text: str) -> Driving:
        """A sequence such as "sobol", "lfsr" or "lfsr(1+x^3+x^5, 3)"."""

        def lfsr(polynomial: str | None = None, offset: int | None = None) -> LFSR:
            return LFSR(polynomial, offset)

        makers: dict[str, Callable[..., Driving]] = {"sobol": Sobol, "lfsr": lfsr}
        return parse_call(text, makers, "driving sequence", cls.SYNTAX)


@dataclass(frozen=True, slots=True)
class LFSR(Driving):
    """The numbers of a linear feedback shift register in their order, its whole period over and over.

    Sweep t uses the numbers t n_steps, t n_steps + 1, .. modulo N. Where n_steps and N have a factor c in common, one
    number is skipped after every N / c sweeps (Tribble 2007; Chen et al. 2012), so that N sweeps take every number of
    the period at every step. The point of zeros that Chen et al. put before the others is left out.

    Attributes:
        polynomial: A primitive polynomial of degree m from 2 to 32, "1+x^3+x^5" or its exponents (0, 3, 5); the bits
            ``b_{i+5} = b_{i+3} + b_i`` then have the period N = 2^m - 1, and number i is ``0.b_{gi} b_{gi+1} ...`` with
            32 bits. By default the degree is such that N is nearest to the number of sweeps: choose 2^m - 1 sweeps to
            use the whole period in one run as HG16 does.
        offset: g, which has no factor in common with N; of the default polynomial it is tabled, of others the least
            from m on.
        rotate: The numbers of each step are shifted modulo 1 by a uniform number from the generator
            (Cranley-Patterson), so that each is uniform and runs can be repeated with another seed.
    """

    polynomial: str | Polynomial | None = None
    offset: int | None = None
    rotate: bool = True

    def __post_init__(self) -> None:
        if self.polynomial is None:
            if self.offset is not None:
                raise ValueError("lfsr: an offset needs its polynomial; give both, as in lfsr(1+x^3+x^5, 3)")
            return
        try:
            polynomial = parse_polynomial(self.polynomial)
        except ValueError as error:
            raise ValueError(f"lfsr: {error}") from None
        period = 2 ** polynomial[-1] - 1
        offset = (
            coprime_from(polynomial[-1], period) if self.offset is None else check_integer(self.offset, "lfsr: offset")
        )
        if gcd(offset, period) > 1:
            raise ValueError(
                f"lfsr: offset {offset} must have no factor in common with the period {period};"
                f" use {coprime_from(offset, period)}"
            )
        object.__setattr__(self, "polynomial", polynomial)
        object.__setattr__(self, "offset", offset)

    def __str__(self) -> str:
        if self.polynomial is None:
            return "lfsr"
        return f"lfsr({show_polynomial(parse_polynomial(self.polynomial))}, {self.offset})"

    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        _check_steps(n_steps)
        polynomial, offset = self._register(n_sweeps)
        words = Words(polynomial, offset)
        shared = gcd(n_steps, words.period)
        lap = words.period // shared
        rotation = rng.random(n_steps) if self.rotate else None
        sequence = _Chunked(lambda n: words.between(n * _CHUNK, min((n + 1) * _CHUNK, words.period)), _CHUNK)

        def uniforms(first: int, last: int) -> Floats:
            update = np.arange(first, last)
            skipped = update // (lap * n_steps) if shared > 1 else 0
            numbers = sequence.take((update + skipped) % words.period).astype(np.float64) * 2.0**-WORD
            if rotation is not None:
                numbers += rotation[update % n_steps]
                numbers -= numbers >= 1
            return numbers

        return uniforms

    def _register(self, n_sweeps: int) -> tuple[Polynomial, int]:
        if self.polynomial is None or self.offset is None:
            return register(min(MOST_DEGREE, max(2, round(log2(n_sweeps + 1)))))
        return parse_polynomial(self.polynomial), self.offset


@dataclass(frozen=True, slots=True)
class Sobol(Driving):
    """Scrambled Sobol' points from SciPy, one for each sweep, with a dimension for each step: at most 21201 of them.

    They come in a random order (Liao 1998), as a Markov chain needs (Tribble & Owen 2008): in their own order every
    second point is in the same half, and the chain goes to a wrong distribution. All points of a run are shuffled
    together, or, where these are more than 2^22 numbers, each 2^22 numbers. Most even where the number of sweeps is a
    power of 2.
    """

    def __str__(self) -> str:
        return "sobol"

    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        from scipy.stats import qmc  # pyright: ignore[reportMissingTypeStubs]

        _check_steps(n_steps)
        if n_steps > qmc.Sobol.MAXDIM:
            raise ValueError(
                f"sobol: {n_steps} updates a sweep are more dimensions than the {qmc.Sobol.MAXDIM} it has; use lfsr"
            )
        engine, key = qmc.Sobol(n_steps, scramble=True, bits=32, rng=rng), int(rng.integers(2**63))
        n_points = 1 << min((_SHUFFLED * _CHUNK // n_steps).bit_length() - 1, max(n_sweeps - 1, 0).bit_length())

        def points(chunk: int) -> Floats:
            if engine.num_generated != chunk * n_points:
                engine.reset()
                if chunk:  # SciPy cannot go forward by 0
                    engine.fast_forward(chunk * n_points)
            order, n = np.arange(n_points), min(max(n_sweeps - chunk * n_points, 0), n_points)
            order[:n] = np.random.default_rng([key, chunk]).permutation(n)
            return engine.random(n_points)[order].ravel()

        sequence = _Chunked(points, n_points * n_steps)
        return lambda first, last: sequence.take(np.arange(first, last)).astype(np.float64, copy=False)


Numbers = Floats | NDArray[np.uint32]


class _Chunked:
    """A sequence that is made in chunks of ``size``, the last of which is kept."""

    def __init__(self, make: Callable[[int], Numbers], size: int) -> None:
        self._make, self._size = make, size
        self._number = -1
        self._values: Numbers = np.empty(0)

    def take(self, positions: Int64s) -> Numbers:
        chunks = positions // self._size
        if len(chunks) and (chunks == chunks[0]).all():
            return self._chunk(int(chunks[0]))[positions - chunks[0] * self._size]
        values = np.empty(len(positions))
        for number in np.unique(chunks).tolist():
            here = chunks == number
            values[here] = self._chunk(number)[positions[here] - number * self._size]
        return values

    def _chunk(self, number: int) -> Numbers:
        if number != self._number:
            self._number, self._values = number, self._make(number)
        return self._values


def _check_steps(n_steps: int) -> None:
    if n_steps < 1:
        raise ValueError(f"a sweep needs at least one update, not {n_steps}")
