# Sums that lose few digits.
from libc.math cimport INFINITY, exp, log


# Compensated (Kahan) summation, whose error does not grow with the number of terms.
cdef struct CompensatedSum:
    double value
    double lost  # the rounding error of `value` so far


cdef inline void add(CompensatedSum *total, double term) noexcept nogil:
    cdef double after
    term -= total.lost
    after = total.value + term
    total.lost = (after - total.value) - term
    total.value = after


cdef inline double log_sum_exp(const double *row, Py_ssize_t n) noexcept nogil:
    """Return log sum_k exp(row[k])."""
    cdef double top = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        top = max(top, row[k])
    if top == -INFINITY:
        return top
    for k in range(n):
        total += exp(row[k] - top)
    return top + log(total)
