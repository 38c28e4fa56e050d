# cython: language_level=3
# The full conditionals of a graph for the loops (engine/conditional.h), which get them from a
# `herdner._ext.conditionals.CompiledConditionals`; herdner.graph.conditionals describes their layout.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    # NumPy arrays have at most so many axes, so factors have at most so many variables.
    MOST_VARIABLES = 64
    # Cells that one call processes, in a fraction of a second; between calls Python checks for Ctrl-C.
    BUDGET = 1 << 24
    # The cost of an exp or log, in cells.
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
    double state_value(const double *row, int64_t k, int64_t n_states)


# An iterator over the joint states of a few variables, the last one fastest. Each has as its weight the product of its
# probabilities under independent distributions q [V, stride].
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
