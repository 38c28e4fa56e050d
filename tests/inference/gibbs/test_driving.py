"""Driving sequences: periods, evenness, and numbers that do not depend on the pieces in which they are requested."""

from __future__ import annotations

from itertools import pairwise
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from herdner.inference.gibbs import LFSR, DrivingSequence, Sobol, driving
from herdner.inference.gibbs.registers import REGISTERS, RegisterNumbers, power_of_x


def bits_of(polynomial, n):
    """Return the first n bits of a register by its recurrence."""
    degree, bits = polynomial[-1], [0] * (polynomial[-1] - 1) + [1]
    while len(bits) < n:
        bits.append(sum(bits[len(bits) - degree + e] for e in polynomial[:-1]) % 2)
    return bits


@pytest.mark.parametrize("degree", [2, 3, 5, 8, 12])
def test_numbers_are_the_bits_of_the_recurrence(degree):
    polynomial, offset = REGISTERS[degree]
    n = min(2**degree - 1, 200)
    bits = bits_of(polynomial, n * offset + 32)
    expected = [int("".join(map(str, bits[i * offset : i * offset + 32])), 2) for i in range(n)]
    numbers = RegisterNumbers(polynomial, offset)
    assert numbers.between(0, n).tolist() == expected
    assert numbers.between(n // 3, n - 1).tolist() == expected[n // 3 : -1]


@pytest.mark.parametrize("degree", range(2, 17))
def test_small_registers_have_their_full_period(degree):
    polynomial, offset = REGISTERS[degree]
    bits = bits_of(polynomial, 2 * (2**degree - 1) + degree)
    windows = {tuple(bits[i : i + degree]) for i in range(2**degree - 1)}
    assert len(windows) == 2**degree - 1
    leading = RegisterNumbers(polynomial, offset).between(0, 2**degree - 1) >> (32 - degree)
    assert np.array_equal(np.sort(leading), np.arange(1, 2**degree))


def is_primitive(polynomial):
    """Return whether the powers of x are all non-zero remainders, so that the register has the full period."""
    period = 2 ** polynomial[-1] - 1
    rest, factors, factor = period, set(), 2
    while factor * factor <= rest:
        while rest % factor == 0:
            factors.add(factor)
            rest //= factor
        factor += 1
    factors |= {rest} - {1}
    return power_of_x(period, polynomial) == 1 and all(power_of_x(period // f, polynomial) != 1 for f in factors)


@pytest.mark.parametrize("name", REGISTERS)
def test_every_register_is_primitive_with_a_coprime_offset(name):
    polynomial, offset = REGISTERS[name]
    assert polynomial[-1] == (5 if name == "hgw19" else name)
    assert is_primitive(polynomial)
    assert gcd(offset, 2 ** polynomial[-1] - 1) == 1


def test_primitive_polynomials_have_the_full_period():
    """Count the states of the recurrence for all polynomials of degree 6 with the term 1."""
    for middle in range(32):
        polynomial = (0, *(j + 1 for j in range(5) if middle >> j & 1), 6)
        bits = bits_of(polynomial, 80)
        period = next(n for n in range(1, 64) if bits[n : n + 6] == bits[:6])
        assert is_primitive(polynomial) == (period == 63)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 9, 10, 21, 63, 100, 126])
def test_over_a_period_every_step_takes_every_number(n_steps):
    uniforms = LFSR(rotate=False).begin(n_steps, 63, np.random.default_rng(0))
    numbers = uniforms(0, 63 * n_steps).reshape(63, n_steps)
    assert np.array_equal(np.sort(np.floor(numbers * 64), axis=0), np.tile(np.arange(1, 64)[:, None], n_steps))


@pytest.mark.parametrize("n_steps", [1, 2, 3, 5])
def test_rotated_numbers_are_as_even(n_steps):
    numbers = LFSR().begin(n_steps, 1023, np.random.default_rng(1))(0, 1023 * n_steps).reshape(1023, n_steps)
    assert ((numbers >= 0) & (numbers < 1)).all()
    for column in numbers.T:
        assert np.abs(np.sort(column) - (np.arange(1023) + 0.5) / 1023).max() < 2 / 1023


def test_consecutive_numbers_fill_the_square():
    """Each of 16 x 16 squares holds 4 of the 1023 points of a period of two steps; one lacks the origin."""
    numbers = LFSR(rotate=False).begin(2, 1023, np.random.default_rng(0))(0, 2046).reshape(-1, 2)
    squares = np.unique(np.floor(numbers * 16).astype(int), axis=0, return_counts=True)[1]
    assert len(squares) == 256
    assert (squares >= 3).all()
    assert (squares <= 4).all()


@pytest.mark.parametrize("n_steps", [1, 3, 50])
def test_sobol_points_are_stratified(n_steps):
    numbers = Sobol().begin(n_steps, 256, np.random.default_rng(2))(0, 256 * n_steps).reshape(256, n_steps)
    assert np.array_equal(np.sort(np.floor(numbers * 256), axis=0), np.tile(np.arange(256.0)[:, None], n_steps))


@pytest.mark.parametrize("sequence", [LFSR(), LFSR(10), Sobol()])
def test_means_are_better_than_those_of_random_numbers(sequence):
    """The mean of a function of three steps over 1023 sweeps varies between seeds far less than 1 / sqrt(n)."""
    errors, spread = [], np.sqrt(((1 + 1 / 12) ** 3 - 1) / 1023)
    for seed in range(30):
        numbers = sequence.begin(3, 1023, np.random.default_rng(seed))(0, 3 * 1023).reshape(-1, 3)
        errors.append(np.prod(numbers + 0.5, axis=1).mean() - 1)
    assert np.sqrt(np.mean(np.square(errors))) < spread / 4


@pytest.fixture(scope="module", params=["lfsr", "lfsr(hgw19)", "sobol"])
def sequence(request):
    return DrivingSequence.from_text(request.param)


@examples(25)
@given(st.integers(1, 40), st.lists(st.integers(0, 4000), max_size=6), st.integers(0, 5))
def test_pieces_change_nothing(sequence, n_steps, cuts, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driving, "_CHUNK", 64)
        whole, parts, other = (sequence.begin(n_steps, 100, np.random.default_rng(s)) for s in (seed, seed, seed + 1))
        cuts = [0, *sorted(cuts), 4000]
        numbers = whole(0, 4000)
        pieces = [parts(first, last) for first, last in pairwise(cuts)]
        assert np.array_equal(np.concatenate(pieces), numbers)
        assert numbers.dtype == np.float64
        assert np.array_equal(parts(17, 30), numbers[17:30])  # going back is possible
        assert not np.array_equal(other(0, 4000), numbers)


def test_the_default_period_is_nearest_to_the_sweeps():
    for n_sweeps, period in ((1, 3), (31, 31), (32, 31), (1000, 1023), (262_143, 2**18 - 1), (10**12, 2**32 - 1)):
        numbers = LFSR(rotate=False).begin(1, n_sweeps, np.random.default_rng(0))
        assert numbers(0, 1) == numbers(period, period + 1)
        assert (numbers(0, 3) != numbers(period // 2, period // 2 + 3)).all()


def test_text_and_value_are_the_same():
    assert DrivingSequence.from_text("lfsr(10)") == LFSR(10)
    assert DrivingSequence.from_text("LFSR(hgw19)") == LFSR("hgw19")
    for value in (LFSR(), LFSR(4), LFSR("hgw19"), Sobol()):
        assert DrivingSequence.from_text(str(value)) == value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LFSR(1), "`register` must be the length of the register, 2 to 32 bits, got 1"),
        (lambda: LFSR(33), "`register` must be the length of the register, 2 to 32 bits, got 33"),
        (lambda: LFSR(True), "`register` must be the length of the register, 2 to 32 bits, got True"),
        (lambda: LFSR("1+x^2+x^5"), "`register` must be the length of the register, 2 to 32 bits"),
        (lambda: DrivingSequence.from_text("lfsr(5, 4)"), "driving sequence must be sobol, lfsr or lfsr"),
        (lambda: DrivingSequence.from_text("halton"), "must be sobol, .* not 'halton'"),
        (
            lambda: Sobol().begin(21202, 10, np.random.default_rng(0)),
            "at most 21201 updates, not 21202; use lfsr",
        ),
        (lambda: LFSR().begin(0, 10, np.random.default_rng(0)), "at least one update"),
    ],
)
def test_faults_are_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("polynomial", [(0, 3, 2**63 - 1), (0, 3, 33), (1, 3), (0, 5, 3), (0, 1), (0,), (), (0, 2.0)])
def test_polynomials_that_no_register_has_are_refused(polynomial):
    with pytest.raises(ValueError, match="polynomial"):
        RegisterNumbers(polynomial, 1)
    with pytest.raises(ValueError, match="polynomial"):
        power_of_x(5, polynomial)


def test_negative_exponents_are_refused():
    with pytest.raises(ValueError, match="`n` must be a whole number of at least 0"):
        power_of_x(-1, (0, 2, 5))
