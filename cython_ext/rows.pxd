# cython: language_level=3
# The full conditionals of a graph as the loops see them (engine/conditional.h): pointers into the arrays of
# herdner.graph.conditionals, where their layout is described. Whoever holds them keeps that Python object alive.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    # No array of NumPy has more axes, so no factor more variables.
    MOST_VARIABLES = 64
    # Cells that one call works on: a fraction of a second, between two looks at Ctrl-C.
    BUDGET = 1 << 24
    # What an exp or log counts among them.
    EXP_CELLS = 8


cdef extern from "engine/conditional.h" nogil:
    ctypedef struct conditionals:
        int64_t n, n_unary, n_rows
        const int32_t *sizes
        const int32_t *widths
        const int64_t *unary_at
        const double *unary
        const int64_t *starts
        const int32_t *row_at
        const int64_t *others_at
        const int32_t *others
        const int32_t *places
        const double *rows
    int64_t row_of_int32(const conditionals *c, int64_t e, int64_t width, const int32_t *x)
    double label_value(const double *row, int64_t k, int64_t n_labels)


cdef inline conditionals rows_of(object laid_out):
    cdef const int32_t[::1] sizes = laid_out.sizes, widths = laid_out.widths, row_at = laid_out.row_at
    cdef const int32_t[::1] others = laid_out.others, places = laid_out.places
    cdef const int64_t[::1] unary_at = laid_out.unary_at, starts = laid_out.starts, others_at = laid_out.others_at
    cdef const double[::1] unary = laid_out.unary, rows = laid_out.rows
    cdef conditionals c
    c.n, c.n_unary, c.n_rows = sizes.shape[0], unary.shape[0], rows.shape[0]
    c.sizes, c.widths, c.row_at, c.others = &sizes[0], &widths[0], &row_at[0], &others[0]
    c.unary_at, c.starts, c.unary, c.rows = &unary_at[0], &starts[0], &unary[0], &rows[0]
    c.others_at = NULL if others_at is None else &others_at[0]
    c.places = NULL if places is None else &places[0]
    return c


# The configurations of a few variables, the last one fastest, each weighted by the product of its probabilities under
# independent distributions q [V, stride].
cdef struct Configurations:
    const int32_t *scope
    int n
    const int32_t *sizes
    const double *q
    int64_t stride
    int32_t x[MOST_VARIABLES]
    double weights[MOST_VARIABLES + 1]


cdef inline void weigh_from(Configurations *c, int d) noexcept nogil:
    for d in range(d, c.n):
        c.weights[d + 1] = c.weights[d] * c.q[c.scope[d] * c.stride + c.x[d]]


cdef inline void first_configuration(Configurations *c, const int32_t *scope, int n) noexcept nogil:
    cdef int d
    c.scope, c.n = scope, n
    c.weights[0] = 1.0
    for d in range(n):
        c.x[d] = 0
    weigh_from(c, 0)


cdef inline bint next_configuration(Configurations *c) noexcept nogil:
    cdef int d = c.n - 1
    while d >= 0:
        c.x[d] += 1
        if c.x[d] < c.sizes[c.scope[d]]:
            weigh_from(c, d)
            return True
        c.x[d] = 0
        d -= 1
    return False
