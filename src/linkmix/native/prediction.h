/* What is told about single rows: log-densities, probabilities and classes. Compiled after density.h, in doubles and in
 * floats. */

#if SINGLE
#define LARGE 0x1p14f /* the square root of 1 + LARGE^2 is LARGE, up to rounding */
#define TINY 1e-30f   /* a sum of exponentials above this has all its digits */
#else
#define LARGE 0x1p28
#define TINY 1e-280
#endif

static TARGET int FN(all_above)(const REAL *numbers, Long n, REAL least)
{
    ivec below = (ivec)FN(all)(0);
    for (Long i = 0; i < n; i += W)
        below |= ~(ivec)(LOAD(numbers + i) > least);
    for (int i = 0; i < W; i++)
        if (below[i])
            return 0;
    return 1;
}

INLINE void FN(fill)(REAL *numbers, Long n, REAL with)
{
    for (Long b = 0; b < n; b += W)
        STORE(numbers + b, FN(all)(with));
}

/* Whether no number is infinite or missing. */
static TARGET int FN(finite)(const REAL *numbers, Long n)
{
    vec sum = FN(all)(0);
    for (Long i = 0; i < n; i += W)
        sum += LOAD(numbers + i) * 0;
    return FN(sum)(sum) == 0;
}

/* Replaces the values of compressed columns by asinh((x - middle) / width) and adds to `slopes`, if it is not NULL, the
 * logarithm of the root of 1 + ((x - middle) / width)^2. */
static TARGET void FN(compress)(const Prediction *p, Long d, Long padded, REAL *panels, REAL *slopes)
{
    if (slopes)
        FN(fill)(slopes, padded, 0);
    for (Long k = 0; k < p->n_compressed; k++) {
        const REAL middle = (REAL)p->middles[k], low = (REAL)(p->middles[k] - (double)middle);
        const REAL inverse = (REAL)(1.0 / p->widths[k]);
        for (Long start = 0; start < padded; start += PANEL) {
            REAL *at = panels + start * d + p->compressed[k] * PANEL;
            for (int v = 0; v < PANEL; v += W) {
                vec far = FN(minus)(LOAD(at + v), middle, &low) * inverse;
                const ivec negative = (ivec)(far < 0);
                const vec a = CHOOSE(negative, -far, far), square = a * a;
                const ivec large = (ivec)(a > LARGE);
                vec y = FN(log1p)(CHOOSE(large, 2 * a - 1, a + square / (1 + ROOT(1 + square))));
                STORE(at + v, CHOOSE(negative, -y, y));
                if (slopes) {
                    vec slope = FN(log1p)(CHOOSE(large, a - 1, square));
                    STORE(slopes + start + v, LOAD(slopes + start + v) + CHOOSE(large, slope, slope * (REAL)0.5));
                }
            }
        }
    }
}

/* The functions below go over the rows of a block in panels, and for each panel from component to component, or class
 * to class: what is summed up stays in registers, and the loops over few classes have three vectors to work on. */
#define EACH(v) _Pragma("GCC unroll 3") for (int v = 0; v < 3; v++)

/* Not inlined: within the long function that calls it, its loop would not keep enough of the registers. */
#define APART static __attribute__((noinline)) TARGET

INLINE void FN(load_panel)(const REAL *from, const double *plus, vec x[3])
{
    EACH(v) x[v] = LOAD(from + v * W);
    if (plus)
        EACH(v) x[v] += (REAL)*plus;
}

/* The largest of n columns; `plus` is added to each of them if it is not NULL. */
INLINE void FN(tops)(const REAL *columns, const double *plus, Long n, Long padded, REAL *tops)
{
    for (Long b = 0; b < padded; b += PANEL) {
        vec top[3], x[3];
        EACH(v) top[v] = FN(all)(-INFINITY);
        for (Long i = 0; i < n; i++) {
            FN(load_panel)(columns + i * BLOCK + b, plus ? plus + i : NULL, x);
            EACH(v) top[v] = MAXIMUM(x[v], top[v]);
        }
        EACH(v) STORE(tops + b + v * W, top[v]);
    }
}

/* Zero in place of minus infinity, so that it can be subtracted. */
INLINE void FN(make_finite)(REAL *tops, Long padded)
{
    for (Long b = 0; b < padded; b += W)
        STORE(tops + b, CHOOSE((ivec)(LOAD(tops + b) > FN(all)(-INFINITY)), LOAD(tops + b), FN(all)(0)));
}

/* Sums of exp((column - top) * factor) over n columns go to `sums`, and the exponentials to `out` if it is not NULL. */
APART void FN(exp_sums)(const REAL *columns, const double *plus, Long n, Long padded, const REAL *tops, REAL factor,
                        REAL *out, REAL *sums)
{
    for (Long b = 0; b < padded; b += PANEL) {
        vec sum[3], x[3];
        EACH(v) sum[v] = FN(all)(0);
        for (Long i = 0; i < n; i++) {
            FN(load_panel)(columns + i * BLOCK + b, plus ? plus + i : NULL, x);
            EACH(v) x[v] = (x[v] - LOAD(tops + b + v * W)) * factor;
            EACH(v) x[v] = FN(exp)(x[v]);
            EACH(v) sum[v] += x[v];
            if (out)
                EACH(v) STORE(out + i * BLOCK + b + v * W, x[v]);
        }
        EACH(v) STORE(sums + b + v * W, sum[v]);
    }
}

/* top + log(sum) go to `sums`; minus infinity where the sum is zero. */
APART void FN(logarithms)(Long padded, const REAL *tops, REAL *sums)
{
    for (Long b = 0; b < padded; b += W) {
        const vec sum = LOAD(sums + b), top = LOAD(tops + b);
        const ivec some = (ivec)(sum > FN(all)(0));
        STORE(sums + b, CHOOSE(some, top + FN(log)(CHOOSE(some, sum, FN(all)(1))), FN(all)(-INFINITY)));
    }
}

/* Mixes exponentials (C, BLOCK) by the weights (C,) of one class. */
INLINE void FN(mix)(const double *weights, Long C, Long padded, const REAL *exponentials, REAL *sums)
{
    FN(fill)(sums, padded, 0);
    for (Long c = 0; c < C; c++) {
        const REAL weight = (REAL)weights[c];
        for (Long b = 0; b < padded; b += W)
            STORE(sums + b, LOAD(sums + b) + LOAD(exponentials + c * BLOCK + b) * weight);
    }
}

/* Densities of the classes relative to the largest of the row; `joint` is overwritten by exponentials. */
INLINE void FN(class_sums)(const Prediction *p, Long padded, const REAL *tops, REAL *joint, REAL *classes, REAL *room)
{
    const Long M = p->n_classes, K = p->per_class, C = p->n_components;
    if (p->mixing)
        FN(exp_sums)(joint, NULL, C, padded, tops, 1, joint, room);
    for (Long m = 0; m < M; m++)
        if (p->mixing)
            FN(mix)(p->mixing + m * C, C, padded, joint, classes + m * BLOCK);
        else
            FN(exp_sums)(joint + m * K * BLOCK, NULL, K, padded, tops, 1, NULL, classes + m * BLOCK);
}

/* Log-densities of the classes, which may be too far apart for a common top. */
INLINE void FN(class_logs)(const Prediction *p, Long padded, const REAL *tops, const REAL *joint, REAL *exponentials,
                           REAL *classes, REAL *room)
{
    const Long M = p->n_classes, K = p->per_class, C = p->n_components;
    REAL *own_tops = room, *unused = room + BLOCK;
    if (p->mixing)
        FN(exp_sums)(joint, NULL, C, padded, tops, 1, exponentials, unused);
    for (Long m = 0; m < M; m++) {
        REAL *to = classes + m * BLOCK;
        if (!p->mixing) {
            FN(tops)(joint + m * K * BLOCK, NULL, K, padded, own_tops);
            FN(make_finite)(own_tops, padded);
            FN(exp_sums)(joint + m * K * BLOCK, NULL, K, padded, own_tops, 1, NULL, to);
            FN(logarithms)(padded, own_tops, to);
            continue;
        }
        FN(mix)(p->mixing + m * C, C, padded, exponentials, to);
        if (FN(all_above)(to, padded, TINY)) {
            FN(logarithms)(padded, tops, to);
            continue;
        }
        FN(tops)(joint, p->log_mixing + m * C, C, padded, own_tops);
        FN(make_finite)(own_tops, padded);
        FN(exp_sums)(joint, p->log_mixing + m * C, C, padded, own_tops, 1, NULL, to);
        FN(logarithms)(padded, own_tops, to);
    }
}

/* Position of the largest of M columns; the first one if several are. */
INLINE void FN(largest)(Long M, Long padded, const REAL *classes, REAL *best, FN(whole) *at)
{
    FN(fill)(best, padded, -INFINITY);
    memset(at, 0, sizeof(*at) * (size_t)padded);
    for (Long m = 0; m < M; m++) {
        const ivec here = (ivec)FN(all)(0) + (FN(whole))m;
        for (Long b = 0; b < padded; b += W) {
            const vec v = LOAD(classes + m * BLOCK + b), before = LOAD(best + b);
            const ivec better = (ivec)(v > before);
            STORE(best + b, CHOOSE(better, v, before));
            *(ivec *)(at + b) = (better & here) | (~better & *(const ivec *)(at + b));
        }
    }
}

/* Four rows of four columns, each row times its factor, if there are any, plus the base. */
INLINE void FN(turn_four)(const REAL *columns, const REAL *factors, double base, double *out, Long step)
{
#if W == 8 && SINGLE
    __m128 r[4];
    const __m256d more = _mm256_set1_pd(base);
    for (int i = 0; i < 4; i++) {
        r[i] = _mm_loadu_ps(columns + i * BLOCK);
        if (factors)
            r[i] = _mm_mul_ps(r[i], _mm_loadu_ps(factors));
    }
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
    for (int i = 0; i < 4; i++)
        _mm256_storeu_pd(out + i * step, _mm256_add_pd(_mm256_cvtps_pd(r[i]), more));
#elif W >= 4 && !SINGLE
    __m256d r[4];
    (void)base; /* zero: offsets in doubles are not relative to it */
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_loadu_pd(columns + i * BLOCK);
        if (factors)
            r[i] = _mm256_mul_pd(r[i], _mm256_loadu_pd(factors));
    }
    const __m256d even = _mm256_unpacklo_pd(r[0], r[1]), even_2 = _mm256_unpacklo_pd(r[2], r[3]);
    const __m256d odd = _mm256_unpackhi_pd(r[0], r[1]), odd_2 = _mm256_unpackhi_pd(r[2], r[3]);
    _mm256_storeu_pd(out, _mm256_permute2f128_pd(even, even_2, 0x20));
    _mm256_storeu_pd(out + step, _mm256_permute2f128_pd(odd, odd_2, 0x20));
    _mm256_storeu_pd(out + 2 * step, _mm256_permute2f128_pd(even, even_2, 0x31));
    _mm256_storeu_pd(out + 3 * step, _mm256_permute2f128_pd(odd, odd_2, 0x31));
#else
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < 4; i++)
            out[row * step + i] = (double)(columns[i * BLOCK + row] * (factors ? factors[row] : 1)) + base;
#endif
}

/* Rows of M numbers each, from M columns, times their factors, plus the base. */
INLINE void FN(turn_back)(Long M, Long n, const REAL *columns, const REAL *factors, double base, double *out)
{
    Long b = 0;
    if (M >= 4)
        for (; b + 4 <= n; b += 4)
            for (Long m = 0; m < M; m += 4) {
                const Long at = m + 4 <= M ? m : M - 4; /* the last four may overlap the four before */
                FN(turn_four)(columns + at * BLOCK + b, factors ? factors + b : NULL, base, out + b * M + at, M);
            }
    for (; b < n; b++)
        for (Long m = 0; m < M; m++)
            out[b * M + m] = (double)(columns[m * BLOCK + b] * (factors ? factors[b] : 1)) + base;
}

/* n <= BLOCK rows from `first`, to `out`: (rows, M) for logarithms and probabilities, else (rows,). The largest
 * log-density of each row goes to `tops`. Returns 0 if a number is missing or infinite. */
static TARGET int FN(predict)(const Prediction *p, const GAUSS *g, const Rows *x, Long first, Long n, void *out,
                              REAL *tops, REAL *scratch)
{
    const Long d = g->d, C = g->n_components, M = p->n_classes, padded = (n + PANEL - 1) / PANEL * PANEL;
    REAL *panels = scratch, *joint = panels + BLOCK * (d > C ? d : C), *classes = joint + BLOCK * C;
    REAL *slopes = classes + BLOCK * M, *finite_tops = slopes + BLOCK, *room = finite_tops + BLOCK;
    FN(whole) *at = (FN(whole) *)slopes;
    const int alone = !p->mixing && p->per_class == 1; /* the clusters are the classes */
    const int by_logs = p->what == LOG_JOINT || p->inverse_temperature != 1.0;
    const double base = SINGLE ? p->base : 0.0;
    const REAL *safe = tops;
    FN(load)(x, first, n, padded, panels);
    if (p->n_compressed)
        FN(compress)(p, d, padded, panels, p->what == LOG_DENSITY || p->what == LOG_JOINT ? slopes : NULL);
    FN(log_joint)(g, panels, padded, joint, NULL, room);
    if (p->what == CLASSES && alone)
        FN(largest)(M, padded, joint, tops, at);
    else
        FN(tops)(joint, NULL, C, padded, tops);
    if (!FN(all_above)(tops, padded, -INFINITY)) { /* rows are far from everything, or no numbers */
        if (!FN(finite)(panels, padded * d))
            return 0;
        memcpy(finite_tops, tops, sizeof(REAL) * (size_t)padded);
        FN(make_finite)(finite_tops, padded);
        safe = finite_tops;
    }

    if (p->what == LOG_DENSITY) {
        FN(exp_sums)(joint, NULL, C, padded, safe, 1, NULL, classes);
        FN(logarithms)(padded, safe, classes);
    } else if (alone)
        classes = joint;
    else if (by_logs)
        FN(class_logs)(p, padded, safe, joint, panels, classes, room); /* the panels are free again */
    else
        FN(class_sums)(p, padded, safe, joint, classes, room);

    if (p->what == CLASSES) {
        long long *to = (long long *)out + first;
        if (!alone)
            FN(largest)(M, padded, classes, room, at);
        for (Long b = 0; b < n; b++)
            to[b] = at[b];
        return 1;
    }
    if (p->what == PROBABILITIES) {
        REAL *sums = slopes;
        if (by_logs && !alone) {
            FN(tops)(classes, NULL, M, padded, room);
            FN(make_finite)(room, padded);
            safe = room;
        }
        if (by_logs || alone)
            FN(exp_sums)(classes, NULL, M, padded, safe, (REAL)p->inverse_temperature, classes, sums);
        else {
            FN(fill)(sums, padded, 0);
            for (Long m = 0; m < M; m++)
                for (Long b = 0; b < padded; b += W)
                    STORE(sums + b, LOAD(sums + b) + LOAD(classes + m * BLOCK + b));
        }
        for (Long b = 0; b < padded; b += W)
            STORE(sums + b, 1 / CHOOSE((ivec)(LOAD(sums + b) > FN(all)(0)), LOAD(sums + b), FN(all)(1)));
        FN(turn_back)(M, n, classes, sums, 0.0, (double *)out + first * M);
        return 1;
    }
    const Long columns = p->what == LOG_JOINT ? M : 1;
    for (Long m = 0; m < columns && p->n_compressed; m++)
        for (Long b = 0; b < padded; b += W)
            STORE(classes + m * BLOCK + b, LOAD(classes + m * BLOCK + b) - LOAD(slopes + b));
    FN(turn_back)(columns, n, classes, NULL, base, (double *)out + first * columns);
    return 1;
}

#undef LARGE
#undef TINY
#undef EACH
#undef APART
