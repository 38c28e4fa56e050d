/* The exponential function of a vector, for one instruction set of chain.c. */

/* exp(d) for -708 <= d <= 0, within 1 unit in the last place. d = n log 2 + r with |r| <= log(2) / 2. The polynomial is the
 * minimax approximation of (exp(r) - 1 - r) / r^2; its error is at most 1.3e-17 of exp(r). */
static ALWAYS_INLINE TARGET VEC NAME(exp_near)(VEC d) {
    const VEC n = ADD(MUL(d, SPLAT(1.4426950408889634)), SPLAT(ROUNDER));
    const VEC whole = SUB(n, SPLAT(ROUNDER));
    const VEC r = SUB(SUB(d, MUL(whole, SPLAT(0x1.62e42feep-1))), MUL(whole, SPLAT(1.9082149292705877e-10)));
    const VEC r2 = MUL(r, r), r4 = MUL(r2, r2);
    const VEC a = ADD(ADD(SPLAT(0x1.0000000000001p-1), MUL(SPLAT(0x1.5555555555556p-3), r)),
                      MUL(r2, ADD(SPLAT(0x1.5555555553d63p-5), MUL(SPLAT(0x1.11111111109b3p-7), r))));
    const VEC b = ADD(ADD(SPLAT(0x1.6c16c1788bd90p-10), MUL(SPLAT(0x1.a01a01a7c41d5p-13), r)),
                      MUL(r2, ADD(SPLAT(0x1.a019b90d2ae7ap-16), MUL(SPLAT(0x1.71de0dae63bb3p-19), r))));
    const VEC c = ADD(SPLAT(0x1.289185613a3d6p-22), MUL(SPLAT(0x1.af38a9b0ec855p-26), r));
    const VEC q = ADD(a, MUL(r4, ADD(b, MUL(r4, c))));
    return TIMES_POWER(ADD(SPLAT(1.0), ADD(r, MUL(r2, q))), n);
}

/* exp(d) for all d <= 0: exp(-708) below -708, and 0 for -inf. */
static ALWAYS_INLINE TARGET VEC NAME(exp)(VEC d) {
    return WHERE_MORE(NAME(exp_near)(MAX(d, SPLAT(-708.0))), d, SPLAT(-INFINITY));
}
