/* The types of vectors and the exponential function of a vector, for one instruction set of chain.c. */
typedef double NAME(vector) __attribute__((vector_size(8 * LANES)));
typedef double NAME(unaligned) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef uint64_t NAME(words) __attribute__((vector_size(8 * LANES)));

/* exp(d) for -708 <= d <= 0, within 1 unit in the last place. d = n log 2 + r with |r| <= log(2) / 2. The polynomial is the
 * minimax approximation of (exp(r) - 1 - r) / r^2; its error is at most 1.3e-17 of exp(r). */
static ALWAYS_INLINE TARGET VEC NAME(exp_near)(VEC d) {
    const VEC n = d * 1.4426950408889634 + ROUNDER;
    const VEC whole = n - ROUNDER;
    const VEC r = d - whole * 0x1.62e42feep-1 - whole * 1.9082149292705877e-10;
    const VEC r2 = r * r, r4 = r2 * r2;
    const VEC a = 0x1.0000000000001p-1 + 0x1.5555555555556p-3 * r + r2 * (0x1.5555555553d63p-5 + 0x1.11111111109b3p-7 * r);
    const VEC b = 0x1.6c16c1788bd90p-10 + 0x1.a01a01a7c41d5p-13 * r + r2 * (0x1.a019b90d2ae7ap-16 + 0x1.71de0dae63bb3p-19 * r);
    const VEC c = 0x1.289185613a3d6p-22 + 0x1.af38a9b0ec855p-26 * r;
    const VEC q = a + r4 * (b + r4 * c);
    return TIMES_POWER(1.0 + (r + r2 * q), n);
}

/* exp(d) for all d <= 0: exp(-708) below -708, and 0 for -inf. */
static ALWAYS_INLINE TARGET VEC NAME(exp)(VEC d) {
    return WHERE_MORE(NAME(exp_near)(MAX(d, SPLAT(-708.0))), d, SPLAT(-INFINITY));
}
