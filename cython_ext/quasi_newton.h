/* Loops over a block of coordinates, for quasi_newton.pyx. Compilers make vector code of them, for AVX2 where the processor
 * has it. Sums have LANES parts side by side, so that the instruction set does not change the results. */
#ifndef HERDNER_QUASI_NEWTON_H
#define HERDNER_QUASI_NEWTON_H

#include <math.h>
#include <stdint.h>

#define LANES 8
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Execute a statement for each i below n; its sums must add to element `lane` of an array. */
#define EACH(n, ...)                                                                                                   \
    do {                                                                                                               \
        int64_t begin = 0;                                                                                             \
        for (; begin + LANES <= (n); begin += LANES)                                                                   \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                const int64_t i = begin + lane;                                                                        \
                __VA_ARGS__                                                                                            \
            }                                                                                                          \
        for (int lane = 0; begin + lane < (n); lane++) {                                                               \
            const int64_t i = begin + lane;                                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    } while (0)

static ALWAYS_INLINE double total(const double *parts) {
    double sum = 0.0;
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum;
}

/* Store the differences of two points and of their gradients, rounded to float, and the gradient plus the L1 norm at the new
 * point. Store the sum of squares and the largest absolute value of the latter. */
static ALWAYS_INLINE void differences_body(const double *restrict point, const double *restrict trial,
                                           const double *restrict gradient, const double *restrict trial_gradient,
                                           const double *restrict l1, int64_t n, float *restrict shift,
                                           float *restrict change, double *restrict slope, double *restrict sums) {
    double squares[LANES] = {0.0}, largest[LANES] = {0.0};
    EACH(n, {
        const double g = trial_gradient[i], x = trial[i], w = l1[i];
        const double at_zero = g > w ? g - w : g < -w ? g + w : 0.0;
        const double value = x > 0.0 ? g + w : x < 0.0 ? g - w : at_zero;
        shift[i] = (float)(x - point[i]);
        change[i] = (float)(g - gradient[i]);
        slope[i] = value;
    });
    EACH(n, {
        const double size = fabs(slope[i]);
        squares[lane] += size * size;
        largest[lane] = size > largest[lane] ? size : largest[lane];
    });
    sums[0] = total(squares);
    sums[1] = 0.0;
    for (int lane = 0; lane < LANES; lane++) sums[1] = largest[lane] > sums[1] ? largest[lane] : sums[1];
}

/* Store the products of a row with three vectors. */
static ALWAYS_INLINE void products_body(const float *restrict row, const float *restrict shift,
                                        const float *restrict change, const double *restrict slope, int64_t n,
                                        double *restrict sums) {
    double of_shift[LANES] = {0.0}, of_change[LANES] = {0.0}, of_slope[LANES] = {0.0};
    EACH(n, {
        const double number = row[i];
        of_shift[lane] += number * shift[i];
        of_change[lane] += number * change[i];
        of_slope[lane] += number * slope[i];
    });
    sums[0] = total(of_shift);
    sums[1] = total(of_change);
    sums[2] = total(of_slope);
}

/* Add a multiple of a row to a direction. */
static ALWAYS_INLINE void add_row_body(const float *restrict row, double coefficient, int64_t n,
                                       double *restrict direction) {
    for (int64_t i = 0; i < n; i++) direction[i] += coefficient * row[i];
}

/* Add a multiple of the gradient to a direction, and set coordinates that would raise the value to 0. */
static ALWAYS_INLINE void keep_descent_body(const double *restrict slope, double coefficient, int64_t n,
                                            double *restrict direction) {
    for (int64_t i = 0; i < n; i++) {
        const double sum = direction[i] + coefficient * slope[i];
        direction[i] = sum * slope[i] < 0.0 ? sum : 0.0;
    }
}

/* Take a step in a direction; coordinates that would leave the orthant become 0. Store the L1 norm of the new point, and the
 * product of `slope` and the step. */
static ALWAYS_INLINE void advance_body(const double *restrict point, const double *restrict slope,
                                       const double *restrict l1, const double *restrict direction, double length,
                                       int64_t n, double *restrict trial, double *restrict sums) {
    double norm[LANES] = {0.0}, product[LANES] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        const double side = point[i] != 0.0 ? point[i] : -slope[i], value = point[i] + length * direction[i];
        trial[i] = value * copysign(1.0, side) > 0.0 ? value : 0.0;
    }
    EACH(n, {
        norm[lane] += l1[i] * fabs(trial[i]);
        product[lane] += slope[i] * (trial[i] - point[i]);
    });
    sums[0] = total(norm);
    sums[1] = total(product);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define WITH_AVX2(name, parameters, ...)                                                                               \
    __attribute__((target("avx2"))) static void name##_avx2 parameters { name##_body(__VA_ARGS__); }                   \
    static void name parameters {                                                                                      \
        if (__builtin_cpu_supports("avx2"))                                                                            \
            name##_avx2(__VA_ARGS__);                                                                                  \
        else                                                                                                           \
            name##_body(__VA_ARGS__);                                                                                  \
    }
#else
#define WITH_AVX2(name, parameters, ...)                                                                               \
    static void name parameters { name##_body(__VA_ARGS__); }
#endif

WITH_AVX2(differences,
          (const double *point, const double *trial, const double *gradient, const double *trial_gradient, const double *l1,
           int64_t n, float *shift, float *change, double *slope, double *sums),
          point, trial, gradient, trial_gradient, l1, n, shift, change, slope, sums)
WITH_AVX2(products,
          (const float *row, const float *shift, const float *change, const double *slope, int64_t n, double *sums), row,
          shift, change, slope, n, sums)
WITH_AVX2(add_row, (const float *row, double coefficient, int64_t n, double *direction), row, coefficient, n, direction)
WITH_AVX2(keep_descent, (const double *slope, double coefficient, int64_t n, double *direction), slope, coefficient, n,
          direction)
WITH_AVX2(advance,
          (const double *point, const double *slope, const double *l1, const double *direction, double length, int64_t n,
           double *trial, double *sums),
          point, slope, l1, direction, length, n, trial, sums)

#undef EACH
#undef LANES
#undef ALWAYS_INLINE
#undef WITH_AVX2
#endif
