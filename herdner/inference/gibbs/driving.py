"""Driving sequences: the uniform numbers of quasi-Monte Carlo Gibbs sampling (HG16 Sec. 4.1, HGW19 Sec. 7).

Such a sampler uses, in place of random numbers, a sequence of numbers that fills the unit cube more evenly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import gcd, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.base.extras import check_extra
from herdner.base.options import parse_call
from herdner.inference.gibbs.registers import MOST_DEGREE, REGISTERS, WORD, RegisterNumbers

_CHUNK = 2**18  # number of numbers that are computed at a time
_SHUFFLED = 16  # number of chunks whose points are shuffled together


Uniforms = Callable[[int, int], Floats]
"""Function that returns the numbers of a driving sequence for one run. Only one thread may call it.

``uniforms(first, last)`` returns the numbers in [0, 1) for the updates ``first`` to ``last - 1``, counted through all
sweeps, float64[last - first].
"""


class DrivingSequence(ABC):
    """Driving sequence: numbers in [0, 1) that replace random numbers. Each update of a variable uses one number."""

    __slots__ = ()
    SYNTAX: ClassVar[str] = "sobol, lfsr or lfsr(degree) with a degree from 2 to 32"

    @abstractmethod
    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        """Start a run, and return the function that computes the numbers in [0, 1) from which the run draws its states.

        Update g of the run is step g % n_steps of sweep g // n_steps. The same state of ``rng`` gives the same
        numbers, regardless of the ranges in which they are requested.

        Args:
            n_steps: Number of updates in a sweep, at least 1.
            n_sweeps: Number of sweeps.
            rng: Source of randomness.

        Raises:
            ValueError: The sequence does not support so many updates.
        """

    @classmethod
    def from_text(cls, text: str) -> DrivingSequence:
        """Parse a driving sequence such as ``sobol``, ``lfsr`` or ``lfsr(10)``.

        Args:
            text: Name of the driving sequence, for ``lfsr`` optionally followed by a register in parentheses.

        Returns:
            The driving sequence.

        Raises:
            ValueError: The text is not a driving sequence.
        """
        # `rotate` is set here, so a second argument in the text is an error.
        makers: dict[str, Callable[..., DrivingSequence]] = {"sobol": Sobol, "lfsr": partial(LFSR, rotate=True)}
        return parse_call(text, makers, "driving sequence", cls.SYNTAX)


@dataclass(frozen=True, slots=True)
class LFSR(DrivingSequence):
    """Periodic driving sequence of a linear-feedback shift register (LFSR).

    A register of degree m has the period N = 2^m - 1. Sweep t uses the numbers t n_steps, t n_steps + 1, .. modulo N.
    If n_steps and N have a common factor c, one number is skipped after every N / c sweeps (Tribble 2007; Chen et al.
    2012), so that in N sweeps, every step uses each number of the period once. The initial point of zeros of Chen et
    al. is omitted.

    Attributes:
        register: Degree of the register, 2 to 32, or "hgw19" for the register of HGW19 Fig. 11. None takes the degree
            whose period is nearest to the number of sweeps; 2^m - 1 sweeps then use one whole period, as in HG16.
        rotate: Shift the numbers of each step modulo 1 by a uniform random number (Cranley-Patterson), so that each
            number is uniform and different seeds give different runs.
    """

    register: int | str | None = None
    rotate: bool = True

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if ``register`` is neither a degree from 2 to 32 nor "hgw19"."""
        is_name = isinstance(self.register, int | str) and not isinstance(self.register, bool)
        if self.register is not None and not (is_name and self.register in REGISTERS):
            raise ValueError(
                f"lfsr: `register` must be the length of the register, 2 to {MOST_DEGREE} bits, got {self.register!r}"
            )

    def __str__(self) -> str:
        """Return the driving sequence as a string that `DrivingSequence.from_text` parses."""
        return "lfsr" if self.register is None else f"lfsr({self.register})"

    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        """Start a run, and return the function that computes the numbers in [0, 1) from which the run draws its states.

        Args:
            n_steps: Number of updates in a sweep, at least 1.
            n_sweeps: Number of sweeps.
            rng: Source of the random shifts.

        Raises:
            ValueError: A sweep has no update.
        """
        _check_steps(n_steps)
        default = min(MOST_DEGREE, max(2, round(log2(n_sweeps + 1))))
        register = RegisterNumbers(*REGISTERS[default if self.register is None else self.register])
        period = register.period
        shared = gcd(n_steps, period)
        lap = period // shared
        rotation = rng.random(n_steps) if self.rotate else None
        sequence = _Chunks(lambda n: register.between(n * _CHUNK, min((n + 1) * _CHUNK, period)), _CHUNK)

        def uniforms(first: int, last: int) -> Floats:
            update = np.arange(first, last)
            skipped = update // (lap * n_steps) if shared > 1 else 0
            numbers = sequence.take((update + skipped) % period).astype(np.float64) * 2.0**-WORD
            if rotation is not None:
                numbers += rotation[update % n_steps]
                numbers -= numbers >= 1
            return numbers

        return uniforms


@dataclass(frozen=True, slots=True)
class Sobol(DrivingSequence):
    """Driving sequence of scrambled Sobol' points.

    Each sweep uses one point, and each update one coordinate of this point; 21201 dimensions are available.

    The points are shuffled (Liao 1998), as a Markov chain requires (Tribble & Owen 2008). In the original order, every
    second number of a dimension is in the same half of [0, 1), and the chain would converge to a wrong distribution.
    All points of a run are shuffled together; runs of more than 2^22 numbers are shuffled in parts. The points fill the
    cube most evenly if the number of sweeps is a power of 2.
    """

    def __str__(self) -> str:
        """Return the driving sequence as a string that `DrivingSequence.from_text` parses."""
        return "sobol"

    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        """Start a run, and return the function that computes the numbers in [0, 1) from which the run draws its states.

        Args:
            n_steps: Number of updates in a sweep, 1 to 21201.
            n_sweeps: Number of sweeps.
            rng: Source of scrambling and shuffling.

        Raises:
            ValueError: The number of updates in a sweep is out of range.
        """
        check_extra("scipy", "Sobol numbers need SciPy")
        from scipy.stats import qmc  # pyright: ignore[reportMissingTypeStubs]

        _check_steps(n_steps)
        if n_steps > qmc.Sobol.MAXDIM:
            raise ValueError(f"sobol: a sweep can have at most {qmc.Sobol.MAXDIM} updates, not {n_steps}; use lfsr")
        engine, key = qmc.Sobol(n_steps, scramble=True, bits=32, rng=rng), int(rng.integers(2**63))
        n_points = 1 << min((_SHUFFLED * _CHUNK // n_steps).bit_length() - 1, max(n_sweeps - 1, 0).bit_length())

        def points(chunk: int) -> Floats:
            if engine.num_generated != chunk * n_points:
                engine.reset()
                if chunk:  # SciPy cannot fast-forward by 0
                    engine.fast_forward(chunk * n_points)
            order, n = np.arange(n_points), min(max(n_sweeps - chunk * n_points, 0), n_points)
            order[:n] = np.random.default_rng([key, chunk]).permutation(n)
            return engine.random(n_points)[order].ravel()

        sequence = _Chunks(points, n_points * n_steps)
        return lambda first, last: sequence.take(np.arange(first, last)).astype(np.float64, copy=False)


Numbers = Floats | NDArray[np.uint32]


class _Chunks:
    """Sequence of numbers that is computed in chunks of ``size`` numbers. The latest chunk is cached."""

    def __init__(self, make: Callable[[int], Numbers], size: int) -> None:
        """Store ``make``, the function that computes the chunk with a given index, from 0."""
        self._chunk, self._size = lru_cache(maxsize=1)(make), size

    def take(self, positions: Int64s) -> Numbers:
        """Return the elements of this sequence at the indices ``positions``.

        Args:
            positions: int64[n], indices from 0.
        """
        chunks = positions // self._size
        if len(chunks) and (chunks == chunks[0]).all():
            return self._chunk(int(chunks[0]))[positions - chunks[0] * self._size]
        values = np.empty(len(positions))
        for number in np.unique(chunks).tolist():
            here = chunks == number
            values[here] = self._chunk(number)[positions[here] - number * self._size]
        return values


def _check_steps(n_steps: int) -> None:
    if n_steps < 1:
        raise ValueError(f"a sweep needs at least one update, not {n_steps}")
