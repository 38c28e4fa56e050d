# cython: language_level=3
"""Loops of the calibration of confidences. Called by ``herdner.ner.calibration``."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t

from herdner._ext.memory cimport owned, require


def means_of_documents(documents, const double[::1] values not None):
    """Return, for each of M values, the mean of the values of its document: float64[M].

    ``documents`` int64[M] are the documents of the values, at least 0. Values are added in their order.
    """
    cdef const int64_t[::1] document = owned(documents, np.int64, 1, "documents")
    cdef Py_ssize_t i, n = values.shape[0]
    cdef int64_t n_documents = 0
    require(document.shape[0] == n, "each value needs a document")
    for i in range(n):
        require(0 <= document[i] < 1 << 48, "documents count from 0")
        n_documents = max(n_documents, document[i] + 1)
    cdef double[:, ::1] totals = np.zeros((2, n_documents))  # sum and number of values
    means = np.empty(n)
    cdef double[::1] result = means
    with nogil:
        for i in range(n):
            totals[0, document[i]] += values[i]
            totals[1, document[i]] += 1.0
        for i in range(n):
            result[i] = totals[0, document[i]] / totals[1, document[i]]
    return means


def calibrated_log_odds(const double[::1] odds not None, const double[::1] chain_odds not None,
                        const double[::1] extra_tokens not None, const double[::1] document_means not None,
                        const uint8_t[::1] is_linked not None, const uint8_t[::1] is_certain not None,
                        const double[::1] label_constants not None, linked, unlinked, double length, double document):
    """Return the calibrated log-odds of M entities: float64[M], +inf for entities that are certain.

    The other arguments are the regressors and coefficients of `herdner.ner.calibration.Calibration`.
    """
    cdef double with_links, without_links, constant, weight, other_constant, total
    cdef Py_ssize_t i, n = odds.shape[0]
    with_links, without_links, constant = tuple(linked)  # raises ValueError unless there are three
    weight, other_constant = tuple(unlinked)
    require(chain_odds.shape[0] == n == extra_tokens.shape[0] == document_means.shape[0] == is_linked.shape[0]
            and is_certain.shape[0] == n == label_constants.shape[0], "each entity needs a value of each regressor")
    log_odds = np.empty(n)
    cdef double[::1] result = log_odds
    with nogil:
        for i in range(n):
            if is_linked[i]:
                total = with_links * odds[i] + without_links * chain_odds[i] + constant
            else:
                total = weight * odds[i] + other_constant
            total += label_constants[i]
            total += length * extra_tokens[i] + document * document_means[i]
            result[i] = INFINITY if is_certain[i] else total
    return log_odds
