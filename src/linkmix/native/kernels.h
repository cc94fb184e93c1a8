/* The kernels of EM in double precision, compiled for each instruction set after density.h. */

#define PAIR (2 * PANEL) /* rows processed at once by second moments */

/* Replaces numbers that are not positive by their exponentials. */
static TARGET void FN(exponentials)(double *x, Long n)
{
    Long i = 0;
    for (; i + W <= n; i += W)
        STORE(x + i, FN(exp)(LOAD(x + i)));
    if (i < n) {
        double some[W] = {0};
        memcpy(some, x + i, sizeof(double) * (size_t)(n - i));
        STORE(some, FN(exp)(LOAD(some)));
        memcpy(x + i, some, sizeof(double) * (size_t)(n - i));
    }
}

/* Replaces numbers by their logarithms; minus infinity for those below the smallest normal one. */
static TARGET void FN(logs)(double *x, Long n)
{
    for (Long i = 0; i < n; i += W) {
        const size_t size = sizeof(double) * (size_t)(n - i < W ? n - i : W);
        double some[W] = {0};
        memcpy(some, x + i, size);
        vec value = LOAD(some);
        STORE(some, CHOOSE((ivec)(value < FN(all)(DBL_MIN)), FN(all)(-INFINITY), FN(log)(value)));
        memcpy(x + i, some, size);
    }
}

/* Messages along n edges, a multiple of W, from the beliefs of their senders.
 *
 * x (M, step) has log-beliefs and becomes the logarithms of the messages, `shares` (M, step) the messages, with largest
 * entry 1; `scales` (n,) are the logarithms of what they were divided by. `same` and `different` (n,) are the potentials
 * of the edges. Where `least` (n,) falls below 1e-280, entries have been lost to underflow. */
static TARGET void FN(messages)(Long M, Long n, Long step, double *x, double *shares, const double *same,
                                const double *different, double *least, double *scales)
{
    for (Long j = 0; j < n; j += W) {
        vec top = LOAD(x + j), after = FN(all)(0.0), before = after, most = after, fewest = FN(all)(1e300);
        for (Long m = 1; m < M; m++)
            top = MAXIMUM(LOAD(x + m * step + j), top);
        top = MAXIMUM(top, FN(all)(-1e300));
        for (Long m = M - 1; m >= 0; m--) {
            vec term = FN(exp)(LOAD(x + m * step + j) - top);
            STORE(x + m * step + j, term);
            STORE(shares + m * step + j, after);
            after = after + term;
        }
        for (Long m = 0; m < M; m++) {
            vec term = LOAD(x + m * step + j), others = before + LOAD(shares + m * step + j);
            vec value = LOAD(same + j) * term + LOAD(different + j) * others;
            before = before + term;
            most = MAXIMUM(most, value);
            fewest = CHOOSE((ivec)(value < fewest), value, fewest);
            STORE(shares + m * step + j, value);
        }
        STORE(least + j, fewest);
        STORE(scales + j, top + FN(log)(most));
        for (Long m = 0; m < M; m++) {
            vec share = LOAD(shares + m * step + j) / most;
            STORE(shares + m * step + j, share);
            STORE(x + m * step + j, FN(log)(share));
        }
    }
}

/* ---- responsibilities ---------------------------------------------------------------------------------------- */

/* Turns log-densities into responsibilities and returns the log-likelihood of n rows. Padding rows get zeros. */
static TARGET double FN(softmax)(Long n_components, Long n, Long padded, const double *row_weights, double *joint,
                                 double *tops)
{
    /* The sums lie between 1 and the number of components, so this many can be multiplied before one logarithm. */
    const int most = (int)(900.0 / W / (1.0 + log2((double)n_components))); /* vectors */
    double log_likelihood = 0.0;
    double *sums = tops + BLOCK;
    for (Long b = 0; b < padded; b += W) {
        vec top = LOAD(joint + b);
        for (Long c = 1; c < n_components; c++) {
            vec v = LOAD(joint + c * BLOCK + b);
            top = MAXIMUM(v, top);
        }
        top = CHOOSE((ivec)(top > FN(all)(-INFINITY)), top, FN(all)(0.0));
        vec sum = FN(all)(0.0);
        for (Long c = 0; c < n_components; c++) {
            vec e = FN(exp)(LOAD(joint + c * BLOCK + b) - top);
            STORE(joint + c * BLOCK + b, e);
            sum += e;
        }
        vec inverse = 1.0 / CHOOSE((ivec)(sum > FN(all)(0.0)), sum, FN(all)(1.0));
        for (Long c = 0; c < n_components; c++)
            STORE(joint + c * BLOCK + b, LOAD(joint + c * BLOCK + b) * inverse);
        STORE(tops + b, top);
        STORE(sums + b, sum);
    }
    for (Long b = n; b < padded; b++) {
        tops[b] = 0.0;
        sums[b] = 1.0;
        for (Long c = 0; c < n_components; c++)
            joint[c * BLOCK + b] = 0.0;
    }
    if (row_weights) {
        for (Long b = 0; b < n; b++) {
            log_likelihood += row_weights[b] * (tops[b] + log(sums[b]));
            for (Long c = 0; c < n_components; c++)
                joint[c * BLOCK + b] *= row_weights[b];
        }
        return log_likelihood;
    }
    vec total = FN(all)(0.0);
    for (Long b = 0; b < padded;) {
        vec product = FN(all)(1.0);
        for (int k = 0; k < most && b < padded; k++, b += W) {
            product *= LOAD(sums + b);
            total += LOAD(tops + b);
        }
        double all = 1.0;
        for (int i = 0; i < W; i++)
            all *= product[i];
        log_likelihood += log(all);
    }
    return log_likelihood + FN(sum)(total);
}

/* ---- moments ------------------------------------------------------------------------------------------------- */

/* Up to four columns: all sums of a block stay in registers. */
INLINE void FN(few_moments)(const int d, const double *mean, const double *panels, const double *shares, Long padded,
                            vec *acc)
{
    vec weight = FN(all)(0.0), first[4], second[10];
    for (int j = 0; j < d; j++)
        first[j] = FN(all)(0.0);
    for (int j = 0; j < d * (d + 1) / 2; j++)
        second[j] = FN(all)(0.0);
    for (Long start = 0; start < padded; start += PANEL) {
        const double *panel = panels + start * d;
#pragma GCC unroll 3
        for (int v = 0; v < 3; v++) {
            vec share = LOAD(shares + start + v * W), x[4];
            weight += share;
#pragma GCC unroll 4
            for (int i = 0; i < d; i++) {
                x[i] = LOAD(panel + i * PANEL + v * W) - mean[i];
                vec weighted = share * x[i];
                first[i] += weighted;
#pragma GCC unroll 4
                for (int j = 0; j <= i; j++)
                    second[i * (i + 1) / 2 + j] += weighted * x[j];
            }
        }
    }
    acc[0] += weight;
    for (int j = 0; j < d; j++)
        acc[1 + j] += first[j];
    for (int j = 0; j < d * (d + 1) / 2; j++)
        acc[1 + d + j] += second[j];
}

INLINE vec FN(add_six)(vec sum, const vec w[6], const vec x[6])
{
    vec s = sum + w[0] * x[0], t = w[3] * x[3];
    s += w[1] * x[1];
    t += w[4] * x[4];
    s += w[2] * x[2];
    t += w[5] * x[5];
    return s + t;
}

/* Row i of the second moment, or rows i and i + 1, with each column loaded only once. */
INLINE void FN(add_rows)(const int n_rows, Long i, const double *x, const double *weighted, vec *first, vec *second)
{
    vec w[2][6], column[6];
    for (int r = 0; r < n_rows; r++) {
        for (int v = 0; v < 6; v++)
            w[r][v] = LOAD(weighted + (i + r) * PAIR + v * W);
        first[i + r] += (w[r][0] + w[r][1]) + (w[r][2] + w[r][3]) + (w[r][4] + w[r][5]);
    }
    vec *row = second + i * (i + 1) / 2, *next = row + i + 1;
    for (Long j = 0; j < i + n_rows; j++) {
        for (int v = 0; v < 6; v++)
            column[v] = LOAD(x + j * PAIR + v * W);
        if (j <= i)
            row[j] = FN(add_six)(row[j], w[0], column);
        if (n_rows == 2)
            next[j] = FN(add_six)(next[j], w[1], column);
    }
}

/* Adds six vectors of rows, given as differences and weighted differences, to the vectors of all moments; two moment
 * rows at once if there are thirty-two registers. */
static TARGET void FN(add_pair)(Long d, const double *x, const double *weighted, vec *first, vec *second)
{
    Long i = 0;
#if W == 8
    for (; i + 2 <= d; i += 2)
        FN(add_rows)(2, i, x, weighted, first, second);
#endif
    for (; i < d; i++)
        FN(add_rows)(1, i, x, weighted, first, second);
}

/* Appends the shares of a vector that are not negligible, and the positions of their rows, to those found before.
 * Branch-free: a misprediction costs more than the work. */
INLINE Long FN(collect)(vec share, Long first, Long n, Long *place, double *found)
{
#if W == 8
    __mmask8 some = _mm512_cmp_pd_mask((__m512d)share, _mm512_set1_pd(NEGLIGIBLE), _CMP_GT_OQ);
    __m512i lanes = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    _mm512_storeu_si512(place + n, _mm512_maskz_compress_epi64(some, lanes));
    _mm512_storeu_pd(found + n, _mm512_maskz_compress_pd(some, (__m512d)share));
    return n + __builtin_popcount(some);
#else
    for (int lane = 0; lane < W; lane++) {
        place[n] = first + lane;
        found[n] = share[lane];
        n += share[lane] > NEGLIGIBLE;
    }
    return n;
#endif
}

/* The columns of PAIR rows of a block. */
INLINE void FN(pick)(const Rows *rows, Long first_row, const double *panels, const Long *place, double *x)
{
    const Long d = rows->d;
#if W == 8
    if (contiguous(rows)) {
        for (int v = 0; v < PAIR; v += W) {
            const char *at[W];
            for (int k = 0; k < W; k++)
                at[k] = rows->data + (first_row + place[v + k]) * rows->row_stride;
            FN(turn_rows)(rows, at, x + v, PAIR);
        }
        return;
    }
#endif
    for (int k = 0; k < PAIR; k++) {
        const double *from = panels + place[k] / PANEL * PANEL * d + place[k] % PANEL;
        for (Long j = 0; j < d; j++)
            x[j * PAIR + k] = from[j * PANEL];
    }
}

/* Five to NARROW columns: vectors over rows. Rows without a share are skipped if that pays for gathering the others. */
static TARGET void FN(narrow_moments)(const Rows *rows, Long first_row, const double *mean, const double *panels,
                                      const double *shares, Long padded, double *buffer, vec *acc)
{
    const Long d = rows->d;
    double *x = buffer, *weighted = buffer + d * PAIR;
    Long place[BLOCK + PAIR], n_active = 0; /* of the active rows */
    double share[BLOCK + PAIR];
    vec weight = FN(all)(0.0);
    for (Long start = 0; start < padded; start += PANEL)
        for (Long v = 0; v < PANEL; v += W) {
            vec some = LOAD(shares + start + v);
            weight += some;
            n_active = FN(collect)(some, start + v, n_active, place, share);
        }
    acc[0] += weight;
    if (2 * n_active < padded) {
        for (Long k = 0; k < PAIR && n_active; k++) { /* pads the last rows with the first one, with share zero */
            place[n_active + k] = place[0];
            share[n_active + k] = 0.0;
        }
        for (Long start = 0; start < n_active; start += PAIR) {
            FN(pick)(rows, first_row, panels, place + start, x);
            for (Long j = 0; j < d; j++) {
                for (int v = 0; v < PAIR; v += W) {
                    vec difference = LOAD(x + j * PAIR + v) - mean[j];
                    STORE(x + j * PAIR + v, difference);
                    STORE(weighted + j * PAIR + v, difference * LOAD(share + start + v));
                }
            }
            FN(add_pair)(d, x, weighted, acc + 1, acc + 1 + d);
        }
        return;
    }
    for (Long start = 0; start < padded; start += PAIR) {
        for (Long j = 0; j < d; j++)
            for (int half = 0; half < 2; half++)
                for (int v = 0; v < PANEL; v += W) {
                    Long at = j * PAIR + half * PANEL + v, row = start + half * PANEL;
                    vec difference = LOAD(panels + row * d + j * PANEL + v) - mean[j];
                    STORE(x + at, difference);
                    STORE(weighted + at, difference * LOAD(shares + row + v));
                }
        FN(add_pair)(d, x, weighted, acc + 1, acc + 1 + d);
    }
}

/* A tile of I rows times V vectors of columns of the second moment. */
INLINE void FN(outer)(const int I, const int V, Long n, Long stride, const double *x, const double *weighted, Long i,
                      Long j, double *second)
{
    vec s[4][3];
    for (int a = 0; a < I; a++)
        for (int v = 0; v < V; v++)
            s[a][v] = LOAD(second + (i + a) * stride + j + v * W);
    for (Long k = 0; k < n; k++) {
        const double *row = x + k * stride + j, *factor = weighted + k * stride + i;
        vec x0 = LOAD(row), x1 = V > 1 ? LOAD(row + W) : x0, x2 = V > 2 ? LOAD(row + 2 * W) : x0;
#pragma GCC unroll 4
        for (int a = 0; a < I; a++) {
            vec f = FN(all)(factor[a]);
            s[a][0] += f * x0;
            if (V > 1)
                s[a][1] += f * x1;
            if (V > 2)
                s[a][2] += f * x2;
        }
    }
    for (int a = 0; a < I; a++)
        for (int v = 0; v < V; v++)
            STORE(second + (i + a) * stride + j + v * W, s[a][v]);
}

/* More columns than that: vectors over columns; rows with a share are gathered one by one. */
static TARGET void FN(wide_moments)(const Rows *rows, Long first_row, Long n, const double *mean, const double *shares,
                                    double *buffer, double *weight, double *first, double *second)
{
    const Long d = rows->d, stride = wide_stride(d);
    double *x = buffer, *weighted = buffer + COLLECT * stride;
    Long k = 0;
    for (Long b = 0; b <= n; b++) {
        if (b < n) {
            double share = shares[b];
            *weight += share;
            if (!(share > NEGLIGIBLE))
                continue;
            const char *at = rows->data + (first_row + b) * rows->row_stride;
            double *to = x + k * stride, *weighted_to = weighted + k * stride;
            for (Long j = 0; j < d; j++)
                to[j] = rows->single ? (double)*(const float *)(at + j * rows->column_stride)
                                     : *(const double *)(at + j * rows->column_stride);
            for (Long j = 0; j < d; j++) {
                to[j] -= mean[j];
                weighted_to[j] = share * to[j];
                first[j] += weighted_to[j];
            }
            for (Long j = d; j < stride; j++)
                to[j] = weighted_to[j] = 0.0;
            k++;
        }
        if (k < COLLECT && b < n)
            continue;
        for (Long i = 0; i < stride; i += 4) { /* columns j >= i, rounded down to a whole vector */
            Long j = i / W * W;
            for (; j + 3 * W <= stride; j += 3 * W)
                FN(outer)(4, 3, k, stride, x, weighted, i, j, second);
            if (j + 2 * W <= stride)
                FN(outer)(4, 2, k, stride, x, weighted, i, j, second);
            else if (j + W <= stride)
                FN(outer)(4, 1, k, stride, x, weighted, i, j, second);
        }
        k = 0;
    }
}

/* Independent columns. */
static TARGET void FN(column_moments)(Long d, const double *mean, const double *panels, const double *shares,
                                      Long padded, vec *acc)
{
    for (Long start = 0; start < padded; start += PANEL) {
        const double *panel = panels + start * d;
        vec w0 = LOAD(shares + start), w1 = LOAD(shares + start + W), w2 = LOAD(shares + start + 2 * W);
        acc[0] += w0 + w1 + w2;
        for (Long j = 0; j < d; j++) {
            vec x0 = LOAD(panel + j * PANEL) - mean[j], x1 = LOAD(panel + j * PANEL + W) - mean[j];
            vec x2 = LOAD(panel + j * PANEL + 2 * W) - mean[j];
            vec y0 = w0 * x0, y1 = w1 * x1, y2 = w2 * x2;
            acc[1 + j] += y0 + y1 + y2;
            acc[1 + d + j] += y0 * x0 + y1 * x1 + y2 * x2;
        }
    }
}

static TARGET void FN(moments)(const Gauss *g, const Rows *x, Long first_row, Long n, Long padded, const double *panels,
                               const double *shares, double *buffer, double *acc)
{
    const Long d = g->d;
    for (Long c = 0; c < g->n_components; c++) {
        const double *mean = g->means + c * d, *share = shares + c * BLOCK;
        double *sums = acc + c * accumulators(g, W);
        vec *vectors = (vec *)sums;
        if (g->form != FULL)
            FN(column_moments)(d, mean, panels, share, padded, vectors);
        else if (d == 1)
            FN(few_moments)(1, mean, panels, share, padded, vectors);
        else if (d == 2)
            FN(few_moments)(2, mean, panels, share, padded, vectors);
        else if (d == 3)
            FN(few_moments)(3, mean, panels, share, padded, vectors);
        else if (d == 4)
            FN(few_moments)(4, mean, panels, share, padded, vectors);
        else if (d <= NARROW)
            FN(narrow_moments)(x, first_row, mean, panels, share, padded, buffer, vectors);
        else
            FN(wide_moments)(x, first_row, n, mean, share, buffer, sums, sums + 1, sums + 1 + d);
    }
}

/* Sums of the lanes, in the layout that Python expects: weight (C,), first (C, d), second (C, d, d), (C, d) or (C,). */
static TARGET void FN(finish)(const Gauss *g, const double *acc, double *weight, double *first, double *second)
{
    const Long d = g->d;
    for (Long c = 0; c < g->n_components; c++) {
        const double *sums = acc + c * accumulators(g, W);
        const vec *vectors = (const vec *)sums;
        if (g->form == FULL && d > NARROW) {
            const Long stride = wide_stride(d);
            weight[c] = sums[0];
            for (Long i = 0; i < d; i++) {
                first[c * d + i] = sums[1 + i];
                for (Long j = i; j < d; j++)
                    second[(c * d + i) * d + j] = second[(c * d + j) * d + i] = sums[1 + d + i * stride + j];
            }
            continue;
        }
        weight[c] = FN(sum)(vectors[0]);
        for (Long j = 0; j < d; j++)
            first[c * d + j] = FN(sum)(vectors[1 + j]);
        vectors += 1 + d;
        if (g->form == FULL)
            for (Long i = 0; i < d; i++)
                for (Long j = 0; j <= i; j++)
                    second[(c * d + i) * d + j] = second[(c * d + j) * d + i] = FN(sum)(*vectors++);
        else if (g->form == DIAGONAL)
            for (Long j = 0; j < d; j++)
                second[c * d + j] = FN(sum)(vectors[j]);
        else {
            double total = 0.0;
            for (Long j = 0; j < d; j++)
                total += FN(sum)(vectors[j]);
            second[c] = total / (double)d;
        }
    }
}

/* ---- tails --------------------------------------------------------------------------------------------------- */

/* Student-t components: shares become shares times the expected precision u of each row, which weights its moments.
 * The sums of the shares are added to `weight` (C,), those of shares times expected log u - u to `gap` (C,). */
static TARGET void FN(weigh)(const Gauss *g, Long padded, const double *distances, double *shares, double *weight,
                             double *gap)
{
    const vec zero = FN(all)(0.0);
    for (Long c = 0; c < g->n_components; c++) {
        const double nu = g->degrees[c], half = 0.5 * (nu + (double)g->d);
        const double constant = g->learns_degrees ? digamma(half) - log(half) : 0.0;
        vec sum = zero, sum_gap = zero;
        for (Long b = c * BLOCK; b < c * BLOCK + padded; b += W) {
            vec share = LOAD(shares + b), u = 2 * half / (LOAD(distances + b) + nu);
            sum += share;
            if (g->learns_degrees) /* a row without a share may be infinitely far away */
                sum_gap += CHOOSE((ivec)(share > zero), share * (FN(log)(u) - u + constant), zero);
            STORE(shares + b, share * u);
        }
        weight[c] += FN(sum)(sum);
        gap[c] += FN(sum)(sum_gap);
    }
}

/* ---- covariances --------------------------------------------------------------------------------------------- */

/* y += a x */
INLINE void FN(add)(Long n, double a, const double *x, double *y)
{
    const vec factor = FN(all)(a);
    Long j = 0;
    for (; j + W <= n; j += W)
        STORE(y + j, LOAD(y + j) + factor * LOAD(x + j));
    for (; j < n; j++)
        y[j] += a * x[j];
}

/* The upper triangular whitener of a covariance, W W' = covariance^-1; returns 0 if it is not positive definite. */
static TARGET int FN(whiten)(Long d, const double *covariance, double *whitener, double *upper)
{
    for (Long i = 0; i < d; i++)
        memcpy(upper + i * d + i, covariance + i * d + i, sizeof(double) * (size_t)(d - i));
    for (Long i = 0; i < d; i++) { /* covariance = upper' upper */
        double *row = upper + i * d, pivot = row[i];
        if (!(pivot > 0.0 && pivot < INFINITY))
            return 0;
        pivot = 1.0 / sqrt(pivot);
        for (Long j = i + 1; j < d; j++)
            row[j] *= pivot;
        row[i] = pivot; /* the inverse of the diagonal, which is all that is needed of it */
        for (Long k = i + 1; k < d; k++)
            FN(add)(d - k, -row[k], row + k, upper + k * d + k);
    }
    for (Long i = d - 1; i >= 0; i--) { /* the whitener is the inverse of `upper` */
        double *row = whitener + i * d;
        const double pivot = upper[i * d + i];
        memset(row, 0, sizeof(double) * (size_t)d);
        for (Long k = i + 1; k < d; k++)
            FN(add)(d - k, -upper[i * d + k] * pivot, whitener + k * d + k, row + k);
        row[i] = pivot;
    }
    return 1;
}

/* Trace of the precision times a covariance. */
static TARGET double FN(trace)(Long d, const double *whitener, const double *covariance, double *row)
{
    double trace = 0.0;
    for (Long i = 0; i < d; i++) {
        vec sum = FN(all)(0.0);
        Long j = i;
        memset(row, 0, sizeof(double) * (size_t)d);
        for (Long k = 0; k < d; k++) { /* row i of covariance times whitener, which has no entries before the diagonal */
            const Long first = k > i ? k : i;
            FN(add)(d - first, covariance[i * d + k], whitener + k * d + first, row + first);
        }
        for (; j + W <= d; j += W)
            sum += LOAD(row + j) * LOAD(whitener + i * d + j);
        for (; j < d; j++)
            trace += row[j] * whitener[i * d + j];
        trace += FN(sum)(sum);
    }
    return trace;
}

/* ---- pools of components ------------------------------------------------------------------------------------- */

/* Densities of one row: sums over the components of the weights (M, C) in each class times the powers (C,). */
static TARGET void FN(pool_sizes)(Long C, Long M, const double *weights, const double *powers, double *sizes)
{
    for (Long m = 0; m < M; m++, weights += C) {
        vec one = FN(all)(0.0), other = one;
        double rest = 0.0;
        Long c = 0;
        for (; c + 2 * W <= C; c += 2 * W) {
            one += LOAD(weights + c) * LOAD(powers + c);
            other += LOAD(weights + c + W) * LOAD(powers + c + W);
        }
        for (; c < C; c++)
            rest += weights[c] * powers[c];
        sizes[m] = FN(sum)(one + other) + rest;
    }
}

/* Adds one row to the counts (M, C): its factor for each class (M,), times the weights, times the powers. The shares
 * (C,) get the sums over the classes. */
static TARGET void FN(pool_shares)(Long C, Long M, const double *weights, const double *powers, const double *factors,
                                   double *counts, double *shares)
{
    for (Long m = 0; m < M; m++, weights += C, counts += C) {
        const vec factor = FN(all)(factors[m]);
        Long c = 0;
        if (!(factors[m] > 0.0))
            continue;
        for (; c + W <= C; c += W) {
            vec share = factor * LOAD(weights + c) * LOAD(powers + c);
            STORE(counts + c, LOAD(counts + c) + share);
            STORE(shares + c, LOAD(shares + c) + share);
        }
        for (; c < C; c++) {
            const double share = factors[m] * weights[c] * powers[c];
            counts[c] += share;
            shares[c] += share;
        }
    }
}

/* ---- passes over rows ---------------------------------------------------------------------------------------- */

/* One pass over rows first <= row < stop:
 *   JOINT     log-densities plus offsets go to `table` (n, C),
 *   WEIGHTED  shares come from `table`; their sums are returned,
 *   FUSED     shares are those of the mixture; their sums and the log-likelihood are returned.
 * For Student-t components `weight` and the moments count each row with its expected precision; the sums of the shares
 * (C,) and what the degrees of freedom are estimated from (C,) follow the second moments in memory. */
static TARGET double FN(pass)(int what, const Gauss *g, const Rows *x, const double *row_weights, Long first, Long stop,
                              double *table, double *weight, double *first_moment, double *second, double *scratch)
{
    const Long d = g->d, n_components = g->n_components;
    double *panels = scratch, *joint = panels + BLOCK * d, *tops = joint + BLOCK * n_components;
    double *buffer = tops + 2 * BLOCK, *acc = buffer + buffer_size(d);
    double *distances = g->degrees && what != JOINT ? acc + n_components * accumulators(g, W) : NULL;
    double *tails = second + (distances ? second_size(g->form, n_components, d) : 0);
    double log_likelihood = 0.0;
    if (what != JOINT)
        memset(acc, 0, sizeof(double) * (size_t)(n_components * accumulators(g, W)));
    if (distances)
        memset(tails, 0, sizeof(double) * (size_t)(2 * n_components));
    for (Long row = first; row < stop; row += BLOCK) {
        const Long n = stop - row < BLOCK ? stop - row : BLOCK, padded = (n + PAIR - 1) / PAIR * PAIR;
        FN(load)(x, row, n, padded, panels);
        if (what != WEIGHTED || distances)
            FN(log_joint)(g, panels, padded, joint, distances, buffer);
        if (what == WEIGHTED)
            for (Long c = 0; c < n_components; c++)
                for (Long b = 0; b < padded; b++)
                    joint[c * BLOCK + b] = b < n ? table[(row + b) * n_components + c] : 0.0;
        if (what == JOINT) {
            for (Long b = 0; b < n; b++)
                for (Long c = 0; c < n_components; c++)
                    table[(row + b) * n_components + c] = joint[c * BLOCK + b];
            continue;
        }
        if (what == FUSED)
            log_likelihood +=
                FN(softmax)(n_components, n, padded, row_weights ? row_weights + row : NULL, joint, tops);
        if (distances)
            FN(weigh)(g, padded, distances, joint, tails, tails + n_components);
        FN(moments)(g, x, row, n, padded, panels, joint, buffer, acc);
    }
    if (what != JOINT)
        FN(finish)(g, acc, weight, first_moment, second);
    return log_likelihood;
}

/* ---- pairs of linked points ---------------------------------------------------------------------------------- */

/* Posteriors of single points (n, stride), their complements, and the logarithms of the sums they were divided by.
 * The complement of the largest entry is the sum of the others: 1 - P would cancel. */
static TARGET void FN(posteriors)(const Pairs *q, double *posterior, double *complement, double *log_sums)
{
    const Long M = q->n_classes, stride = q->stride;
    for (Long i = 0; i < q->n_points; i++) {
        const double *density = q->log_density + i * M;
        double *p = posterior + i * stride, *rest = complement + i * stride;
        double top = -INFINITY, sum = 0.0, others = 0.0;
        Long largest = 0;
        for (Long m = 0; m < M; m++) {
            p[m] = density[m] + q->log_weights[m];
            if (p[m] > top) {
                top = p[m];
                largest = m;
            }
        }
        if (!(top > -INFINITY))
            top = 0.0;
        for (Long m = 0; m < M; m++)
            p[m] -= top;
        for (Long m = M; m < stride; m++)
            p[m] = -INFINITY;
        for (Long m = 0; m < stride; m += W)
            STORE(p + m, FN(exp)(LOAD(p + m)));
        for (Long m = 0; m < M; m++)
            sum += p[m];
        log_sums[i] = log(sum) + top;
        const double inverse = sum > 0.0 ? 1.0 / sum : 0.0;
        for (Long m = 0; m < M; m++) {
            p[m] *= inverse;
            rest[m] = 1.0 - p[m];
            if (m != largest)
                others += p[m];
        }
        for (Long m = M; m < stride; m++)
            rest[m] = 0.0;
        rest[largest] = others;
    }
}

/* Pairs first <= k < stop: adds to `points` (n, stride), `together` and `apart` (stride), writes `same`, and returns
 * the log-likelihood. The number of pairs that are apart is added to *n_apart. */
static TARGET double FN(pairs)(const Pairs *q, Long first, Long stop, const double *posterior, const double *complement,
                               const double *log_sums, double *points, double *together, double *apart, double *same,
                               double *n_apart, double *scratch)
{
    const Long stride = q->stride;
    double log_likelihood = 0.0, mantissa = 1.0, some = 0.0;
    long long exponent = 0;
    for (Long k = first; k < stop; k++) {
        const Long i = q->pairs[2 * k], j = q->pairs[2 * k + 1];
        const double *pi = posterior + i * stride, *pj = posterior + j * stride;
        const double *qi = complement + i * stride, *qj = complement + j * stride;
        const double if_same = q->if_same[k], if_apart = q->if_apart[k] * q->inverse_apart;
        double *to_i = points + i * stride, *to_j = points + j * stride;
        double sum_same = 0.0, sum_apart = 0.0;
        if (if_same > 0.0) {
            vec sum = FN(all)(0.0);
            for (Long m = 0; m < stride; m += W)
                sum += LOAD(pi + m) * LOAD(pj + m) * LOAD(q->inverse_weights + m);
            sum_same = if_same * FN(sum)(sum);
        }
        if (if_apart > 0.0) {
            vec sum = FN(all)(0.0);
            for (Long m = 0; m < stride; m += W)
                sum += LOAD(pi + m) * LOAD(qj + m);
            sum_apart = if_apart * FN(sum)(sum);
        }
        const double total = sum_same + sum_apart;
        if (!(total > 1e-280)) { /* close to underflow: use logarithms */
            some += pair_by_logarithms(q, k, to_i, to_j, together, apart, same + k, n_apart, scratch);
            continue;
        }
        const double inverse = 1.0 / total;
        same[k] = sum_same * inverse;
        *n_apart += sum_apart * inverse;
        if (if_same > 0.0) {
            const vec factor = FN(all)(if_same * inverse);
            for (Long m = 0; m < stride; m += W) {
                vec both = LOAD(pi + m) * LOAD(pj + m) * LOAD(q->inverse_weights + m) * factor;
                STORE(to_i + m, LOAD(to_i + m) + both);
                STORE(to_j + m, LOAD(to_j + m) + both);
                STORE(together + m, LOAD(together + m) + both);
            }
        }
        if (if_apart > 0.0) {
            const vec factor = FN(all)(if_apart * inverse);
            for (Long m = 0; m < stride; m += W) {
                vec one = LOAD(pi + m) * LOAD(qj + m) * factor, other = LOAD(pj + m) * LOAD(qi + m) * factor;
                STORE(to_i + m, LOAD(to_i + m) + one);
                STORE(to_j + m, LOAD(to_j + m) + other);
                STORE(apart + m, LOAD(apart + m) + (one + other));
            }
        }
        /* One logarithm for many pairs: mantissas are multiplied, exponents added. */
        union {
            double number;
            long long bits;
        } u = {total};
        exponent += (u.bits >> 52) - 1023;
        u.bits = (u.bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
        mantissa *= u.number;
        if (mantissa > 1e300) {
            log_likelihood += log(mantissa) + some; /* sums of sums lose fewer digits */
            mantissa = 1.0;
            some = 0.0;
        }
        some += log_sums[i] + log_sums[j];
    }
    return log_likelihood + some + log(mantissa) + (double)exponent * 0.693147180559945309417;
}

#undef PAIR
