# cython: language_level=3, boundscheck=True
"""Herding over a finite set. Called by ``herdner.studies.herding``, which checks the arguments."""

import numpy as np

from libc.stdint cimport int64_t

from herdner._ext.memory cimport owned


def herd(const double[:, ::1] features, const double[::1] moments, double[::1] weights, int64_t[::1] samples):
    """Herd ``samples`` [T] from points with ``features`` [n, d]; ``weights`` [d] are updated in place.

    Each sample is the point whose features have the largest inner product with the weights, the first of equals. The
    weights then gain ``moments`` [d] minus the features of that point.
    """
    cdef int64_t t, x, j, best
    cdef double score, largest
    with nogil:
        for t in range(samples.shape[0]):
            best, largest = 0, 0
            for x in range(features.shape[0]):
                score = 0
                for j in range(features.shape[1]):
                    score += features[x, j] * weights[j]
                if x == 0 or score > largest:
                    best, largest = x, score
            for j in range(features.shape[1]):
                weights[j] += moments[j] - features[best, j]
            samples[t] = best


def herd_categorical(parts, int64_t whole, int64_t[::1] weights, int64_t[::1] samples):
    """Herd ``samples`` [T] from the probabilities ``parts`` [K] / ``whole``.

    The features are indicators; states of probability 0 are never chosen. ``weights`` [K] are integers in units of
    1 / ``whole``, so that no rounding error accumulates.
    """
    cdef const int64_t[::1] part = owned(parts, np.int64, 1, "parts")
    cdef int64_t t, k, best
    with nogil:
        for t in range(samples.shape[0]):
            best = -1
            for k in range(part.shape[0]):
                if part[k] > 0 and (best < 0 or weights[k] > weights[best]):
                    best = k
            for k in range(part.shape[0]):
                weights[k] += part[k]
            if best < 0:
                break  # the probabilities are all 0
            weights[best] -= whole
            samples[t] = best
