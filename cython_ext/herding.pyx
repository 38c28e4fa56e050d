# cython: language_level=3
"""Herding over a finite set; ``herdner.studies.herding`` checks the arguments."""

from libc.stdint cimport int64_t


def herd(const double[:, ::1] features, const double[::1] moments, double[::1] weights, int64_t[::1] samples):
    """Each sample is the point whose ``features`` [n, d] have the largest product with ``weights`` [d], the first of
    equals; the weights, which are changed, then gain ``moments`` less the features of that point."""
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


def herd_categorical(const int64_t[::1] parts, int64_t whole, int64_t[::1] weights, int64_t[::1] samples):
    """The same for the probabilities ``parts`` / ``whole`` [K], with indicators as features and labels of probability 0
    left out. The ``weights`` are in units of 1 / ``whole``, so that no rounding adds up."""
    cdef int64_t t, k, best
    with nogil:
        for t in range(samples.shape[0]):
            best = -1
            for k in range(parts.shape[0]):
                if parts[k] > 0 and (best < 0 or weights[k] > weights[best]):
                    best = k
            for k in range(parts.shape[0]):
                weights[k] += parts[k]
            weights[best] -= whole
            samples[t] = best
