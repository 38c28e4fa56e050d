"""Linear feedback shift registers over the field of two elements, with random access.

A polynomial is the tuple of its exponents in ascending order, (0, 3, 5) for 1 + x^3 + x^5. The register with this
characteristic polynomial produces the bits b_{i+5} = b_{i+3} + b_i (mod 2). A remainder modulo a polynomial is an
integer whose bit j is the coefficient of x^j: x^n = sum of c_j x^j means b_n = sum of c_j b_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from herdner.base.checks import check_integer

Polynomial = tuple[int, ...]

WORD = 32  # bits of a number
MOST_DEGREE = 32

# Primitive polynomial and offset by degree. The polynomials are those of Hansen & Mullen (1992, Primitive polynomials
# over finite fields). The offsets from degree 10 on are those of Chen, Matsumoto, Nishimura & Owen (2012, New inputs
# and methods for Markov chain quasi-Monte Carlo). Smaller degrees have the offset with the least sum of t-values over
# the dimensions 2 to 5, by exhaustive search.
REGISTERS: dict[int | str, tuple[Polynomial, int]] = {
    2: ((0, 1, 2), 1), 3: ((0, 1, 3), 2), 4: ((0, 1, 4), 2), 5: ((0, 2, 5), 4), 6: ((0, 1, 6), 20),
    7: ((0, 1, 7), 46), 8: ((0, 2, 3, 4, 8), 97), 9: ((0, 4, 9), 36), 10: ((0, 3, 10), 115), 11: ((0, 2, 11), 291),
    12: ((0, 1, 4, 6, 12), 172), 13: ((0, 1, 3, 4, 13), 267), 14: ((0, 1, 3, 5, 14), 332), 15: ((0, 1, 15), 388),
    16: ((0, 2, 3, 5, 16), 283), 17: ((0, 3, 17), 514), 18: ((0, 7, 18), 698), 19: ((0, 1, 2, 5, 19), 706),
    20: ((0, 3, 20), 1304), 21: ((0, 2, 21), 920), 22: ((0, 1, 22), 1336), 23: ((0, 5, 23), 1236),
    24: ((0, 1, 3, 4, 24), 1511), 25: ((0, 3, 25), 1445), 26: ((0, 1, 2, 6, 26), 1906),
    27: ((0, 1, 2, 5, 27), 1875), 28: ((0, 3, 28), 2573), 29: ((0, 2, 29), 2633), 30: ((0, 1, 4, 6, 30), 2423),
    31: ((0, 3, 31), 3573), 32: ((0, 2, 6, 7, 32), 3632),
    "hgw19": ((0, 3, 5), 3),  # HGW19 Fig. 11
}  # fmt: skip


def _check_polynomial(polynomial: Polynomial) -> Polynomial:
    """Return a polynomial's exponents; raise `ValueError` unless they start at 0 and rise to a degree from 2 to 32.

    Args:
        polynomial: Exponents in ascending order.

    Returns:
        The exponents as ints.

    Raises:
        ValueError: An exponent is not an integer, the exponents do not rise from 0, or the degree is out of range.
    """
    exponents = tuple(check_integer(e, "an exponent of `polynomial`", 0, MOST_DEGREE) for e in polynomial)
    if exponents != tuple(sorted({0, *exponents})) or exponents[-1] < 2:
        raise ValueError(f"exponents of `polynomial` must rise from 0 to at least 2, got {exponents!r:.80}")
    return exponents


def power_of_x(n: int, polynomial: Polynomial) -> int:
    """Return the remainder of x^n modulo a polynomial over the integers modulo 2.

    Args:
        n: Exponent, at least 0.
        polynomial: Exponents of the polynomial.

    Raises:
        ValueError: ``n`` is negative, or the exponents do not rise from 0 to a degree of 2 to 32.
    """
    n, polynomial = check_integer(n, "`n`", least=0), _check_polynomial(polynomial)
    result, square = 1, 2
    while n:
        if n & 1:
            result = _product(result, square, polynomial)
        square = _product(square, square, polynomial)
        n >>= 1
    return result


def _product(a: int, b: int, polynomial: Polynomial) -> int:
    """Return the remainder of a times b modulo a polynomial; all three are polynomials over the integers modulo 2."""
    result, modulus, degree = 0, sum(1 << e for e in polynomial), polynomial[-1]
    while b:
        if b & 1:
            result ^= a
        b >>= 1
        a <<= 1
        if a >> degree:
            a ^= modulus
    return result


class RegisterNumbers:
    """Sequence of 32-bit numbers from a shift register.

    Number i consists of 32 consecutive bits of the register's sequence b, from bit b_{gi} on, where g is the offset.

    The highest bit comes first. The sequence of a register of degree m starts with the m bits 0, .., 0, 1.
    """

    def __init__(self, polynomial: Polynomial, offset: int) -> None:
        """Store the polynomial and the offset of a linear-feedback shift register (LFSR).

        Args:
            polynomial: Exponents of a primitive polynomial of degree 2 to 32.
            offset: Distance of the first bits of consecutive numbers, coprime to the period.

        Raises:
            ValueError: The exponents do not rise from 0 to a degree of 2 to 32, or the offset is no positive integer.
        """
        self.polynomial, self.offset = _check_polynomial(polynomial), check_integer(offset, "`offset`")
        self.period = 2 ** self.polynomial[-1] - 1
        self._jumps: list[NDArray[np.uint32]] = []

    def between(self, begin: int, end: int) -> NDArray[np.uint32]:
        """Return the outputs of the register with indices from ``begin`` to ``end - 1``, uint32[end - begin].

        Args:
            begin: Index of the first output.
            end: Index after the last output, above ``begin``.
        """
        numbers = np.empty(end - begin, np.uint32)
        numbers[0] = self._images(begin)[-1]
        n = 1
        while n < len(numbers):  # the next n numbers follow from the first n by a jump
            if 1 << len(self._jumps) <= n:
                self._jumps.append(_byte_tables(self._images(1 << len(self._jumps))))
            part = numbers[: min(n, len(numbers) - n)]
            first, second, third, fourth = self._jumps[n.bit_length() - 1]
            numbers[n : n + len(part)] = (
                first[part >> 24] ^ second[part >> 16 & 255] ^ third[part >> 8 & 255] ^ fourth[part & 255]
            )
            n += len(part)
        return numbers

    def _images(self, number: int) -> list[int]:
        """Return output number ``number`` of the register for each start state with a single 1 bit.

        In start state j, bit j is 1 and all other bits are 0.

        For any other start state b, the output is the exclusive or of the entries j with b_j = 1.
        """
        power, degree = power_of_x(number * self.offset % self.period, self.polynomial), self.polynomial[-1]
        images = [0] * degree
        for place in range(WORD):
            for j in range(degree):
                images[j] |= (power >> j & 1) << (WORD - 1 - place)
            power = _product(power, 2, self.polynomial)
        return images


def _byte_tables(images: list[int]) -> NDArray[np.uint32]:
    """Return tables uint32[4, 256]; the exclusive or of the entries for an output's 4 bytes is a later output."""
    images = images + [0] * (WORD - len(images))
    tables: list[NDArray[np.uint32]] = []
    for byte in range(WORD // 8):
        table = np.zeros(1, np.uint32)
        for image in reversed(images[8 * byte : 8 * byte + 8]):
            table = np.concatenate([table, table ^ np.uint32(image)])
        tables.append(table)
    return np.array(tables)
