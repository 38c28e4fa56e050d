"""Linear feedback shift registers over the field of two elements, with random access.

A polynomial is the tuple of its exponents in rising order, (0, 3, 5) for 1 + x^3 + x^5; a register with it as its
characteristic polynomial produces the bits b_{i+5} = b_{i+3} + b_i (mod 2). Remainders modulo a polynomial are integers
whose bit j is the coefficient of x^j: x^n = sum of c_j x^j means b_n = sum of c_j b_j.
"""

from __future__ import annotations

import re
from math import gcd
from typing import cast

import numpy as np
from numpy.typing import NDArray

Polynomial = tuple[int, ...]

WORD = 32  # bits of a number
MOST_DEGREE = 32

# degree: exponents between 0 and the degree, offset. The polynomials are those of the table by Hansen & Mullen (1992,
# Primitive polynomials over finite fields). The offsets from degree 10 are those of Chen, Matsumoto, Nishimura & Owen
# (2012, New inputs and methods for Markov chain quasi-Monte Carlo); below, those with the least sum of t-values over
# the dimensions 2 to 5, found by trying all.
REGISTERS: dict[int, tuple[Polynomial, int]] = {
    2: ((1,), 1),
    3: ((1,), 2),
    4: ((1,), 2),
    5: ((2,), 4),
    6: ((1,), 20),
    7: ((1,), 46),
    8: ((2, 3, 4), 97),
    9: ((4,), 36),
    10: ((3,), 115),
    11: ((2,), 291),
    12: ((1, 4, 6), 172),
    13: ((1, 3, 4), 267),
    14: ((1, 3, 5), 332),
    15: ((1,), 388),
    16: ((2, 3, 5), 283),
    17: ((3,), 514),
    18: ((7,), 698),
    19: ((1, 2, 5), 706),
    20: ((3,), 1304),
    21: ((2,), 920),
    22: ((1,), 1336),
    23: ((5,), 1236),
    24: ((1, 3, 4), 1511),
    25: ((3,), 1445),
    26: ((1, 2, 6), 1906),
    27: ((1, 2, 5), 1875),
    28: ((3,), 2573),
    29: ((2,), 2633),
    30: ((1, 4, 6), 2423),
    31: ((3,), 3573),
    32: ((2, 6, 7), 3632),
}


def register(degree: int) -> tuple[Polynomial, int]:
    """A primitive polynomial of this degree, 2 to 32, and a good offset for it."""
    between, offset = REGISTERS[degree]
    return (0, *between, degree), offset


def parse_polynomial(polynomial: str | Polynomial) -> Polynomial:
    """A primitive polynomial from "1+x^3+x^5" or from its exponents; ValueError with the way out where it is none."""
    if isinstance(polynomial, str):
        terms = polynomial.replace(" ", "").replace("**", "^").lower().split("+")
        if not all(re.fullmatch(r"1|x(\^[0-9]{1,4})?", term) for term in terms):
            raise ValueError(f"polynomial must be written like 1+x^3+x^5, not {polynomial!r}")
        polynomial = tuple(0 if term == "1" else int(term[2:] or 1) for term in terms)
    elif not _whole_numbers(polynomial):
        raise ValueError(f"polynomial must be text such as 1+x^3+x^5, or its exponents (0, 3, 5), not {polynomial!r}")
    exponents = tuple(sorted(polynomial))
    shown = show_polynomial(exponents)
    if len(set(exponents)) < len(exponents) or not exponents or exponents[0] != 0:
        raise ValueError(f"polynomial {shown} needs the term 1, and each term once, as in 1+x^3+x^5")
    degree = exponents[-1]
    if not 2 <= degree <= MOST_DEGREE:
        raise ValueError(f"polynomial {shown} has degree {degree}; use one of degree 2 to {MOST_DEGREE}")
    if not is_primitive(exponents):
        raise ValueError(
            f"polynomial {shown} is not primitive, so its period is shorter than 2^{degree} - 1; use"
            f" {show_polynomial(register(degree)[0])}"
        )
    return exponents


def _whole_numbers(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, int) for each in cast("tuple[object, ...]", value))


def show_polynomial(exponents: Polynomial) -> str:
    """The text of a polynomial: (0, 3, 5) is "1+x^3+x^5"."""
    return "+".join("1" if e == 0 else "x" if e == 1 else f"x^{e}" for e in exponents)


def is_primitive(polynomial: Polynomial) -> bool:
    """Whether the powers of x are all 2^m - 1 remainders but 0: the register then has that period."""
    period = 2 ** polynomial[-1] - 1
    return power_of_x(period, polynomial) == 1 and all(
        power_of_x(period // factor, polynomial) != 1 for factor in _prime_factors(period)
    )


def power_of_x(n: int, polynomial: Polynomial) -> int:
    """The remainder of x^n."""
    result, square = 1, 2
    while n:
        if n & 1:
            result = _product(result, square, polynomial)
        square = _product(square, square, polynomial)
        n >>= 1
    return result


def _product(a: int, b: int, polynomial: Polynomial) -> int:
    result, modulus, degree = 0, sum(1 << e for e in polynomial), polynomial[-1]
    while b:
        if b & 1:
            result ^= a
        b >>= 1
        a <<= 1
        if a >> degree:
            a ^= modulus
    return result


def _prime_factors(n: int) -> list[int]:
    found: list[int] = []
    factor = 2
    while factor * factor <= n:
        if n % factor == 0:
            found.append(factor)
            while n % factor == 0:
                n //= factor
        factor += 1
    return [*found, n] if n > 1 else found


class Words:
    """The 32-bit numbers of a register: number i holds the bits b_{gi}, b_{gi+1}, .., first bit highest, g the offset.

    The bits start with 0, .., 0, 1, as many as the degree.
    """

    def __init__(self, polynomial: Polynomial, offset: int) -> None:
        self.polynomial, self.offset = polynomial, offset
        self.period = 2 ** polynomial[-1] - 1
        self._jumps: list[NDArray[np.uint32]] = []

    def between(self, begin: int, end: int) -> NDArray[np.uint32]:
        """uint32[end - begin]: the numbers begin .. end - 1, for end > begin."""
        words = np.empty(end - begin, np.uint32)
        words[0] = self._images(begin)[-1]
        done = 1
        while done < len(words):  # a jump by as many numbers as there are doubles them
            if 1 << len(self._jumps) <= done:
                self._jumps.append(_byte_tables(self._images(1 << len(self._jumps))))
            part = words[: min(done, len(words) - done)]
            first, second, third, fourth = self._jumps[done.bit_length() - 1]
            jumped = first[part >> 24] ^ second[part >> 16 & 255] ^ third[part >> 8 & 255] ^ fourth[part & 255]
            words[done : done + len(part)] = jumped
            done += len(part)
        return words

    def _images(self, number: int) -> list[int]:
        """What the number is if of the first bits only b_j is 1, for each j below the degree."""
        power, degree = power_of_x(number * self.offset % self.period, self.polynomial), self.polynomial[-1]
        images = [0] * degree
        for place in range(WORD):
            for j in range(degree):
                images[j] |= (power >> j & 1) << (WORD - 1 - place)
            power = _product(power, 2, self.polynomial)
        return images


def _byte_tables(images: list[int]) -> NDArray[np.uint32]:
    """[4, 256]: for each byte of a number, what its bits contribute to the number after the jump."""
    images = images + [0] * (WORD - len(images))
    tables: list[NDArray[np.uint32]] = []
    for byte in range(WORD // 8):
        table = np.zeros(1, np.uint32)
        for image in reversed(images[8 * byte : 8 * byte + 8]):
            table = np.concatenate([table, table ^ np.uint32(image)])
        tables.append(table)
    return np.array(tables)


def coprime_from(least: int, period: int) -> int:
    """The smallest number from ``least`` on without a common factor with ``period``."""
    while gcd(least, period) > 1:
        least += 1
    return least
