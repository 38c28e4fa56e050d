# cython: language_level=3
"""Loops of the calibration of confidences. Called by ``herdner.ner.calibration``."""

import numpy as np

from libc.math cimport exp, log, log1p
from libc.stdint cimport int64_t, uint8_t

from herdner._ext.memory cimport owned, require


cpdef object regressors(const double[::1] confidence, const double[::1] without_links, length, document,
                        double nearest, int64_t longest):
    """Return the regressors of M entities: float64[4, M].

    The rows are the log-odds of ``confidence`` and of ``without_links``, the number of tokens after the first, and the
    mean of ``without_links`` over the entities of the same document. Probabilities are clipped to [``nearest``, 1 -
    ``nearest``], and lengths to ``longest``.
    """
    cdef const int64_t[::1] lengths = owned(length, np.int64, 1, "length")
    cdef const int64_t[::1] documents = owned(document, np.int64, 1, "document")
    cdef Py_ssize_t i, n
    cdef int64_t n_documents = 0
    require(confidence is not None and without_links is not None, "each entity needs two probabilities")
    n = confidence.shape[0]
    require(without_links.shape[0] == n == lengths.shape[0] and documents.shape[0] == n,
            "each entity needs two probabilities, a length and a document")
    for i in range(n):
        require(0 <= documents[i] < 1 << 48, "documents count from 0")
        n_documents = max(n_documents, documents[i] + 1)
    cdef double[:, ::1] totals = np.zeros((2, n_documents))  # sum and number of values
    result = np.empty((4, n))
    cdef double[:, ::1] rows = result
    with nogil:
        for i in range(n):
            totals[0, documents[i]] += without_links[i]
            totals[1, documents[i]] += 1.0
        for i in range(n):
            rows[0, i] = log_odds(confidence[i], nearest)
            rows[1, i] = log_odds(without_links[i], nearest)
            rows[2, i] = <double> (min(lengths[i], longest) - 1)
            rows[3, i] = totals[0, documents[i]] / totals[1, documents[i]]
    return result


cdef inline double log_odds(double probability, double nearest) noexcept nogil:
    probability = min(max(probability, nearest), 1.0 - nearest)
    return log(probability) - log1p(-probability)


def calibrated(const double[::1] confidence not None, const double[::1] without_links not None, is_linked,
               length, document, const double[::1] label_constants not None, linked, unlinked, double length_weight,
               double document_weight, double nearest, int64_t longest):
    """Return the calibrated probability of M entities: float64[M]. An entity with probabilities of 1 keeps it.

    The first arguments are those of `regressors`; ``is_linked`` bool[M] and ``label_constants`` [M] belong to the
    entities. The coefficients are those of `herdner.ner.calibration.Calibration`.
    """
    cdef double with_links, without, constant, weight, other_constant, total
    cdef const double[:, ::1] rows = regressors(confidence, without_links, length, document, nearest, longest)
    cdef const uint8_t[::1] has_links = is_linked.view(np.uint8)
    cdef Py_ssize_t i, n = rows.shape[1]
    with_links, without, constant = tuple(linked)  # raises ValueError unless there are three
    weight, other_constant = tuple(unlinked)
    require(has_links.shape[0] == n == label_constants.shape[0], "each entity needs a label and a flag for links")
    probabilities = np.empty(n)
    cdef double[::1] result = probabilities
    with nogil:
        for i in range(n):
            if has_links[i]:
                total = with_links * rows[0, i] + without * rows[1, i] + constant
            else:
                total = weight * rows[0, i] + other_constant
            total += label_constants[i]
            total += length_weight * rows[2, i] + document_weight * rows[3, i]
            result[i] = 1.0 if min(confidence[i], without_links[i]) >= 1.0 else 1.0 / (1.0 + exp(-total))
    return probabilities
