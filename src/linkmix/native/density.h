/* Vectors, and the log-densities of rows, written once and compiled for each type of numbers and instruction set.
 *
 * The including file defines
 *   SINGLE    1 for floats, 0 for doubles,
 *   W         numbers in one vector,
 *   FN(name)  the name of a function for this type and instruction set,
 *   TARGET    the attribute that makes the compiler use it,
 * and includes undefine.h when it is done.
 *
 * Rows are read in blocks of at most BLOCK and laid out in panels of PANEL = 3 W rows, column after column, so that one
 * vector holds one column of W rows:  panels[(p * d + j) * PANEL + lane].  A tile of 4 columns times 3 vectors of rows
 * fills the sixteen registers of AVX2.
 */

#define PANEL (3 * W)
#define INLINE static inline __attribute__((always_inline)) TARGET

#if SINGLE
#define REAL float
#define GAUSS GaussSingle
typedef float FN(vec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int FN(ivec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int FN(whole) __attribute__((may_alias));
typedef unsigned FN(uvec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
#else
#define REAL double
#define GAUSS Gauss
typedef double FN(vec) __attribute__((vector_size(8 * W), aligned(8), may_alias));
typedef long long FN(ivec) __attribute__((vector_size(8 * W), aligned(8), may_alias));
typedef long long FN(whole) __attribute__((may_alias));
typedef unsigned long long FN(uvec) __attribute__((vector_size(8 * W), aligned(8), may_alias));
#endif
#define vec FN(vec)
#define ivec FN(ivec)
#define uvec FN(uvec)
#define LOAD(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define CHOOSE(mask, a, b) ((vec)(((mask) & (ivec)(a)) | (~(mask) & (ivec)(b))))
#if W == 4 && !SINGLE
#define MAXIMUM(a, b) ((vec)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define ROOT(a) ((vec)_mm256_sqrt_pd((__m256d)(a)))
#elif W == 8 && !SINGLE
#define MAXIMUM(a, b) ((vec)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define ROOT(a) ((vec)_mm512_sqrt_pd((__m512d)(a)))
#elif W == 8
#define MAXIMUM(a, b) ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define ROOT(a) ((vec)_mm256_sqrt_ps((__m256)(a)))
#else
#define MAXIMUM(a, b) CHOOSE((ivec)((a) > (b)), a, b)
#define ROOT(a) FN(root)(a)
#endif

INLINE vec FN(all)(REAL x)
{
#if W == 2
    return (vec){x, x};
#elif W == 4
    return (vec){x, x, x, x};
#else
    return (vec){x, x, x, x, x, x, x, x};
#endif
}

#if W == 2 || (W == 4 && SINGLE)
INLINE vec FN(root)(vec v)
{
    for (int i = 0; i < W; i++)
        v[i] = (REAL)sqrt((double)v[i]);
    return v;
}
#endif

/* Adds the lanes in a fixed order, so that the sum does not depend on the compiler. */
INLINE REAL FN(sum)(vec v)
{
    REAL s = 0.0;
    for (int i = 0; i < W; i++)
        s += v[i];
    return s;
}

#if SINGLE
#define FRACTION_BITS 23
#define EXPONENT_BIAS 127
#define SHIFT 0x1.8p23f
#define LOWEST -87.0f
#else
#define FRACTION_BITS 52
#define EXPONENT_BIAS 1023
#define SHIFT 0x1.8p52
#define LOWEST -708.0
#endif

/* exp(x) for x <= 0, to one unit in the last place (floats: two); zero below LOWEST, where the result would be
 * subnormal. Never compile this with -ffast-math: (t - shift) must not become t. */
INLINE vec FN(exp)(vec x)
{
    const vec shift = FN(all)(SHIFT), lowest = FN(all)(LOWEST);
    ivec tiny = (ivec)(x < lowest);
    vec clipped = MAXIMUM(x, lowest);
#if SINGLE
    vec t = clipped * 0x1.715476p0f + shift; /* the low bits of t are n = round(x / log 2) */
    vec n = t - shift;
    vec r = clipped - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
#else
    vec t = clipped * 0x1.71547652b82fep0 + shift; /* the low bits of t are n = round(x / log 2) */
    vec n = t - shift;
    vec r = clipped - n * 0x1.62e42fefa0000p-1;
    r = r - n * 0x1.cf79abc9e3b3ap-40;
    vec r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    /* 1 + r + r^2 q(r), where q interpolates at Chebyshev points: an error of 2e-17 */
    vec p01 = r + 1.0;
    vec p23 = r * 0x1.5555555555556p-3 + 0x1.0000000000001p-1;
    vec p45 = r * 0x1.11111111109a8p-7 + 0x1.5555555553d4fp-5;
    vec p67 = r * 0x1.a01a01a7c9a33p-13 + 0x1.6c16c17893968p-10;
    vec p89 = r * 0x1.71de0d9ab7628p-19 + 0x1.a019b8ef1155cp-16;
    vec pab = r * 0x1.af38d8a6092a9p-26 + 0x1.2891a93963639p-22;
    vec p03 = p23 * r2 + p01, p47 = p67 * r2 + p45, p8b = pab * r2 + p89;
    vec p07 = p47 * r4 + p03;
    vec p = p8b * r8 + p07;
#endif
    vec scaled = (vec)((uvec)p + ((uvec)t << FRACTION_BITS));
    return (vec)(~tiny & (ivec)scaled);
}

/* log(x), plus rest / x if there is a rest, for a normal x > 0, to about one unit in the last place; polynomials as in
 * fdlibm. */
INLINE vec FN(log_and_rest)(vec x, const vec *rest)
{
#if SINGLE
    const uvec half_root = (uvec)FN(all)(0x1.6a09e6p-1f);
#else
    const uvec half_root = (uvec)FN(all)(0x1.6a09e667f3bcdp-1);
#endif
    const uvec bias = (uvec)((ivec)FN(all)(0) + EXPONENT_BIAS);
    /* x = 2^n m with m between the roots of 1/2 and 2 */
    uvec n_biased = ((uvec)x - half_root + (bias << FRACTION_BITS)) >> FRACTION_BITS;
    vec n = (vec)((uvec)FN(all)(SHIFT) + n_biased) - (SHIFT + EXPONENT_BIAS);
    vec f = (vec)((uvec)x - ((n_biased - bias) << FRACTION_BITS)) - 1;
    vec s = f / (f + 2), z = s * s, w = z * z, half_square = f * f * (REAL)0.5;
#if SINGLE
    vec even = w * (w * 0xf89e26.0p-26f + 0xccce13.0p-25f);
    vec odd = z * (w * 0x91e9ee.0p-25f + 0xaaaaaa.0p-24f);
    const float log_2_high = 0x1.62e3p-1f, log_2_low = 0x1.2fefa2p-17f;
#else
    vec even = w * (w * (w * 1.531383769920937332e-01 + 2.222219843214978396e-01) + 3.999999999940941908e-01);
    vec odd = w * (w * (w * 1.479819860511658591e-01 + 1.818357216161805012e-01) + 2.857142874366239149e-01);
    odd = z * (odd + 6.666666666666735130e-01);
    const double log_2_high = 6.93147180369123816490e-01, log_2_low = 1.90821492927058770002e-10;
#endif
    vec small = n * log_2_low;
    if (rest)
        small += *rest / x;
    vec low = s * (half_square + (even + odd)) + small;
    return (low - half_square) + f + n * log_2_high;
}

INLINE vec FN(log)(vec x)
{
    return FN(log_and_rest)(x, NULL);
}

/* log(1 + y) for y >= 0, also for a tiny or infinite y. */
INLINE vec FN(log1p)(vec y)
{
    vec x = y + 1;
    vec lost = CHOOSE((ivec)(y < FN(all)(1)), y - (x - 1), 1 - (x - y)); /* by rounding 1 + y */
    return CHOOSE((ivec)(y < FN(all)(INFINITY)), FN(log_and_rest)(x, &lost), y);
}

/* ---- rows into panels ---------------------------------------------------------------------------------------- */

#if W == 8 && !SINGLE
/* The columns of eight contiguous rows: column j goes to `to + j * step`. */
INLINE void FN(turn)(const char *const rows[8], const int single, Long d, double *to, Long step)
{
    for (Long j = 0; j < d; j += 8) {
        const __mmask8 some = (__mmask8)(d - j < 8 ? (1 << (d - j)) - 1 : 255);
        __m512d r[8], twos[8];
        for (int k = 0; k < 8; k++)
            if (single) {
                __m512 low = _mm512_maskz_loadu_ps(some, (const float *)rows[k] + j);
                r[k] = _mm512_cvtps_pd(_mm512_castps512_ps256(low));
            } else
                r[k] = _mm512_maskz_loadu_pd(some, (const double *)rows[k] + j);
        for (int k = 0; k < 4; k++) { /* even and odd columns of two rows */
            twos[k] = _mm512_unpacklo_pd(r[2 * k], r[2 * k + 1]);
            twos[4 + k] = _mm512_unpackhi_pd(r[2 * k], r[2 * k + 1]);
        }
        for (int odd = 0; odd < 2; odd++) {
            const __m512d *t = twos + 4 * odd;
            __m512d a = _mm512_shuffle_f64x2(t[0], t[1], 0x88), b = _mm512_shuffle_f64x2(t[2], t[3], 0x88);
            r[odd] = _mm512_shuffle_f64x2(a, b, 0x88);
            r[4 + odd] = _mm512_shuffle_f64x2(a, b, 0xdd);
            a = _mm512_shuffle_f64x2(t[0], t[1], 0xdd), b = _mm512_shuffle_f64x2(t[2], t[3], 0xdd);
            r[2 + odd] = _mm512_shuffle_f64x2(a, b, 0x88);
            r[6 + odd] = _mm512_shuffle_f64x2(a, b, 0xdd);
        }
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            if (j + k < d)
                STORE(to + (j + k) * step, (vec)r[k]);
    }
}

INLINE void FN(turn_rows)(const Rows *x, const char *const rows[8], double *to, Long step)
{
    if (x->single)
        FN(turn)(rows, 1, x->d, to, step);
    else
        FN(turn)(rows, 0, x->d, to, step);
}
#endif

/* Pads a block to `padded` rows with copies of its first row. */
static TARGET void FN(load)(const Rows *x, Long first, Long n, Long padded, REAL *panels)
{
    const Long d = x->d;
    const char *block = x->data + first * x->row_stride;
#if W == 8 && !SINGLE
    if (contiguous(x) && d > 2) {
        for (Long start = 0; start < padded; start += PANEL)
            for (int v = 0; v < PANEL; v += W) {
                const char *rows[W];
                for (int k = 0; k < W; k++)
                    rows[k] = block + (start + v + k < n ? start + v + k : 0) * x->row_stride;
                FN(turn_rows)(x, rows, panels + start * d + v, PANEL);
            }
        return;
    }
#endif
    for (Long start = 0; start < padded; start += PANEL)
        for (Long j = 0; j < d; j++) {
            REAL *out = panels + start * d + j * PANEL;
            const char *column = block + (x->columns ? x->columns[j] : j) * x->column_stride;
            const char *at = column + start * x->row_stride;
            if (start + PANEL > n)
                for (int b = 0; b < PANEL; b++) {
                    at = column + (start + b < n ? start + b : 0) * x->row_stride;
                    out[b] = x->single ? (REAL)*(const float *)at : (REAL)*(const double *)at;
                }
            else if (x->single)
                for (int b = 0; b < PANEL; b++)
                    out[b] = (REAL)*(const float *)(at + b * x->row_stride);
            else
                for (int b = 0; b < PANEL; b++)
                    out[b] = (REAL)*(const double *)(at + b * x->row_stride);
        }
}

/* ---- log-densities ------------------------------------------------------------------------------------------- */

/* x - mean. A mean in floats has a low part, so that rows far from the origin keep their digits. */
INLINE vec FN(minus)(vec x, REAL mean, const REAL *low)
{
#if SINGLE
    return (x - mean) - *low;
#else
    return x - mean;
#endif
}

/* Adds to `distance` the squares of I columns of the whitened rows; the remainder of these columns is a triangle. */
INLINE void FN(tile)(const int I, const REAL *coefficients, const REAL *rows, Long before, vec distance[3])
{
    vec y[4][3];
    for (int i = 0; i < I; i++)
        for (int v = 0; v < 3; v++)
            y[i][v] = FN(all)(0);
    for (Long j = 0; j < before; j++) {
        vec x0 = LOAD(rows + j * PANEL), x1 = LOAD(rows + j * PANEL + W), x2 = LOAD(rows + j * PANEL + 2 * W);
#pragma GCC unroll 4
        for (int i = 0; i < I; i++) {
            vec a = FN(all)(coefficients[i]);
            y[i][0] += a * x0;
            y[i][1] += a * x1;
            y[i][2] += a * x2;
        }
        coefficients += I;
    }
    rows += before * PANEL;
#pragma GCC unroll 4
    for (int j = 0; j < I; j++) {
        vec x0 = LOAD(rows + j * PANEL), x1 = LOAD(rows + j * PANEL + W), x2 = LOAD(rows + j * PANEL + 2 * W);
#pragma GCC unroll 4
        for (int i = j; i < I; i++) {
            vec a = FN(all)(coefficients[j * I + i]);
            y[i][0] += a * x0;
            y[i][1] += a * x1;
            y[i][2] += a * x2;
        }
    }
    for (int i = 0; i < I; i++)
        for (int v = 0; v < 3; v++)
            distance[v] += y[i][v] * y[i][v];
}

/* The same for at most four columns: the differences never leave the registers. */
INLINE void FN(few_columns)(const int d, const REAL *mean, const REAL *low, const REAL *coefficients,
                            const REAL *panel, vec distance[3])
{
#pragma GCC unroll 3
    for (int v = 0; v < 3; v++) {
        vec x[4];
#pragma GCC unroll 4
        for (int j = 0; j < d; j++)
            x[j] = FN(minus)(LOAD(panel + j * PANEL + v * W), mean[j], low + j);
#pragma GCC unroll 4
        for (int i = 0; i < d; i++) {
            vec y = x[0] * coefficients[i];
#pragma GCC unroll 4
            for (int j = 1; j <= i; j++)
                y += x[j] * coefficients[j * d + i];
            distance[v] += y * y;
        }
    }
}

/* Log-densities plus offsets go to `joint` (C, BLOCK), squared distances to `distances` (C, BLOCK) if it is not NULL. */
static TARGET void FN(log_joint)(const GAUSS *g, const REAL *panels, Long padded, REAL *joint, REAL *distances,
                                 REAL *differences)
{
    const Long d = g->d;
    for (Long c = 0; c < g->n_components; c++) {
        const REAL *mean = g->means + c * d, *low = g->low_means + (SINGLE ? c * d : 0);
        const vec offset = FN(all)(g->offsets[c]);
        for (Long start = 0; start < padded; start += PANEL) {
            const REAL *panel = panels + start * d;
            vec distance[3] = {FN(all)(0), FN(all)(0), FN(all)(0)};
            if (g->form == FULL) {
                const REAL *coefficients = g->packed + c * g->packed_size;
                if (d == 1)
                    FN(few_columns)(1, mean, low, coefficients, panel, distance);
                else if (d == 2)
                    FN(few_columns)(2, mean, low, coefficients, panel, distance);
                else if (d == 3)
                    FN(few_columns)(3, mean, low, coefficients, panel, distance);
                else if (d == 4)
                    FN(few_columns)(4, mean, low, coefficients, panel, distance);
                else {
                    for (Long j = 0; j < d; j++)
                        for (int v = 0; v < PANEL; v += W)
                            STORE(differences + j * PANEL + v, FN(minus)(LOAD(panel + j * PANEL + v), mean[j], low + j));
                    Long i = 0;
                    for (; i + 4 <= d; i += 4) {
                        FN(tile)(4, coefficients, differences, i, distance);
                        coefficients += 4 * (i + 4);
                    }
                    if (d - i == 3)
                        FN(tile)(3, coefficients, differences, i, distance);
                    else if (d - i == 2)
                        FN(tile)(2, coefficients, differences, i, distance);
                    else if (d - i == 1)
                        FN(tile)(1, coefficients, differences, i, distance);
                }
            } else {
                const REAL *whitener = g->whiteners + (g->form == DIAGONAL ? c * d : c);
                for (Long j = 0; j < d; j++) {
                    REAL scale = whitener[g->form == DIAGONAL ? j : 0];
                    for (int v = 0; v < 3; v++) {
                        vec y = FN(minus)(LOAD(panel + j * PANEL + v * W), mean[j], low + j) * scale;
                        distance[v] += y * y;
                    }
                }
            }
            if (distances)
                for (int v = 0; v < 3; v++)
                    STORE(distances + c * BLOCK + start + v * W, distance[v]);
            REAL *to = joint + c * BLOCK + start;
            if (g->degrees) {
                const REAL nu = g->degrees[c], exponent = (REAL)0.5 * (nu + (REAL)d);
                for (int v = 0; v < 3; v++)
                    STORE(to + v * W, offset - exponent * FN(log1p)(distance[v] / nu));
            } else
                for (int v = 0; v < 3; v++)
                    STORE(to + v * W, offset - (REAL)0.5 * distance[v]);
        }
    }
}
