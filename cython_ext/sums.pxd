# Sums that lose no digits to rounding, however many terms they have (Kahan).


cdef struct CompensatedSum:
    double value
    double lost  # what rounding took from it


cdef inline void add(CompensatedSum *total, double term) noexcept nogil:
    cdef double after
    term -= total.lost
    after = total.value + term
    total.lost = (after - total.value) - term
    total.value = after
