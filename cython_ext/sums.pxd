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
