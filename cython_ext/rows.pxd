# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# The full conditionals of a graph as the loops see them: pointers into the arrays of herdner.graph.conditionals, where
# their layout is described. Whoever holds a `Rows` keeps that Python object alive.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    # No array of NumPy has more axes, so no factor more variables.
    MOST_VARIABLES = 64
    # Cells that one call works on: a fraction of a second, between two looks at Ctrl-C.
    BUDGET = 1 << 24
    # What an exp or log counts among them.
    EXP_CELLS = 8


cdef struct Rows:
    int64_t n
    const int32_t *sizes
    const int32_t *widths
    const int64_t *unary_at
    const double *unary
    const int64_t *starts
    const int32_t *row_at
    const int64_t *others_at  # NULL where every factor joins two variables
    const int32_t *others
    const int32_t *places
    const double *rows


cdef inline Rows rows_of(object conditionals):
    cdef const int32_t[::1] sizes = conditionals.sizes, widths = conditionals.widths, row_at = conditionals.row_at
    cdef const int32_t[::1] others = conditionals.others, places = conditionals.places
    cdef const int64_t[::1] unary_at = conditionals.unary_at, starts = conditionals.starts
    cdef const int64_t[::1] others_at = conditionals.others_at
    cdef const double[::1] unary = conditionals.unary, rows = conditionals.rows
    cdef Rows c
    c.n = sizes.shape[0]
    c.sizes, c.widths, c.row_at, c.others = &sizes[0], &widths[0], &row_at[0], &others[0]
    c.unary_at, c.starts, c.unary, c.rows = &unary_at[0], &starts[0], &unary[0], &rows[0]
    c.others_at = NULL if others_at is None else &others_at[0]
    c.places = NULL if places is None else &places[0]
    return c


cdef inline const double *row_of(const Rows *c, int64_t i, int64_t e, const int32_t *x) noexcept nogil:
    """The row of incidence e of variable i at the state x."""
    cdef int64_t at = c.row_at[e], o
    if c.others_at == NULL:
        return c.rows + at + <int64_t> x[c.others[e]] * c.widths[i]
    for o in range(c.others_at[e], c.others_at[e + 1]):
        at += <int64_t> c.places[o] * x[c.others[o]]
    return c.rows + at


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
