/* The native core of linkmix: passes over the rows of Gaussian mixtures.
 *
 * Arrays are passed through the buffer protocol, so that building needs only a C compiler. The Python side
 * (linkmix/native/__init__.py) checks shapes and types before it calls; here only sizes are checked.
 * The kernels are in kernels.h and compiled for each instruction set; the best one that the processor supports is
 * chosen when the module is imported.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

typedef Py_ssize_t Long;

enum { FULL = 0, DIAGONAL = 1, SPHERICAL = 2 };
enum { JOINT, WEIGHTED, FUSED };

#define BLOCK 240      /* rows; a multiple of 6 W for W = 2, 4 and 8 */
#define NARROW 16      /* up to this many columns, moments use vectors over rows; beyond, over columns */
#define COLLECT 64     /* rows processed at once by wide moments */
#define NEGLIGIBLE 1e-25 /* a row with a smaller share is ignored in moments, but never in the weights */
#define LOG_2_PI 1.8378770664093454836

typedef struct {
    const char *data;
    Long n, d, row_stride, column_stride; /* strides in bytes */
    int single;
} Rows;

typedef struct {
    int form;
    Long d, n_components;
    const double *means, *whiteners;
    Long whitener_step; /* numbers from one whitener to the next; 0 if all components share one */
    double *offsets;    /* (C,) added to minus half the squared distance */
    double *packed;     /* full whiteners in the order in which the tiles read them */
    Long packed_size;
} Gauss;

static inline int contiguous(const Rows *x) /* each row by itself */
{
    return x->column_stride == (x->single ? 4 : 8);
}

static Long wide_stride(Long d)
{
    return (d + 7) / 8 * 8;
}

/* Size of the running sums of one component. */
static Long accumulators(const Gauss *g, Long width)
{
    if (g->form != FULL)
        return (1 + 2 * g->d) * width;
    if (g->d > NARROW)
        return 1 + g->d + wide_stride(g->d) * wide_stride(g->d);
    return (1 + g->d + g->d * (g->d + 1) / 2) * width;
}

static Long buffer_size(Long d)
{
    Long collected = 2 * COLLECT * wide_stride(d);
    Long narrow = (2 * d + 1) * 48;
    return collected > narrow ? collected : narrow;
}

/* Pairs of linked points, and what is known about the points. */
typedef struct {
    Long n_points, n_classes, stride; /* of rows of posteriors; a multiple of every W */
    const double *log_density;        /* (n_points, n_classes) */
    double *log_weights;              /* (n_classes,) logarithm of the class weights */
    double *inverse_weights;          /* (stride,) */
    double log_apart, inverse_apart;  /* of the probability that two independent labels differ */
    Long n_pairs;
    long long *pairs;                 /* (n_pairs, 2) */
    const double *if_same, *if_apart; /* (n_pairs,) how likely a statement is if labels agree, or differ */
} Pairs;

static double log_add(double a, double b)
{
    double top = a > b ? a : b, low = a > b ? b : a;
    return top > -INFINITY ? top + log1p(exp(low - top)) : -INFINITY;
}

/* Turns logarithms into shares that sum to one to the last digit, and returns the logarithm of their sum. */
static double shares_of(double *values, Long n)
{
    double top = -INFINITY, sum = 0.0;
    for (Long m = 0; m < n; m++)
        top = values[m] > top ? values[m] : top;
    for (Long m = 0; m < n; m++)
        sum += values[m] = top > -INFINITY ? exp(values[m] - top) : 0.0;
    for (Long m = 0; m < n && sum > 0.0; m++)
        values[m] /= sum;
    return log(sum) + (top > -INFINITY ? top : 0.0);
}

/* Log-sum-exp over all entries but one, for each entry, by running sums from both ends. */
static void leave_one_out(const double *values, Long n, double *out)
{
    double running = -INFINITY;
    for (Long m = 0; m < n; m++) {
        out[m] = running;
        running = log_add(running, values[m]);
    }
    running = -INFINITY;
    for (Long m = n - 1; m >= 0; m--) {
        out[m] = log_add(out[m], running);
        running = log_add(running, values[m]);
    }
}

/* One pair in the log domain; scratch has room for 5 M numbers. Returns the log-likelihood of the pair. */
static double pair_by_logarithms(const Pairs *q, Long k, double *to_i, double *to_j, double *together, double *apart,
                                 double *same, double *n_apart, double *scratch)
{
    const Long M = q->n_classes;
    const double *di = q->log_density + q->pairs[2 * k] * M, *dj = q->log_density + q->pairs[2 * k + 1] * M;
    double *both = scratch, *one = both + M, *other = one + M, *rest = other + M, *joint = rest + M;
    double hypotheses[2] = {-INFINITY, -INFINITY};
    if (q->if_same[k] > 0.0) {
        for (Long m = 0; m < M; m++)
            both[m] = q->log_weights[m] + di[m] + dj[m];
        hypotheses[0] = log(q->if_same[k]) + shares_of(both, M);
    }
    if (q->if_apart[k] > 0.0) {
        for (Long m = 0; m < M; m++) {
            other[m] = q->log_weights[m] + dj[m];
            joint[m] = q->log_weights[m] + di[m];
        }
        leave_one_out(other, M, rest);
        for (Long m = 0; m < M; m++)
            one[m] = joint[m] + rest[m];
        leave_one_out(joint, M, rest);
        for (Long m = 0; m < M; m++)
            other[m] += rest[m];
        hypotheses[1] = log(q->if_apart[k]) + shares_of(one, M) - q->log_apart;
        shares_of(other, M);
    }
    const double log_likelihood = shares_of(hypotheses, 2);
    *same = hypotheses[0];
    *n_apart += hypotheses[1];
    for (Long m = 0; m < M && hypotheses[0] > 0.0; m++) {
        double share = hypotheses[0] * both[m];
        to_i[m] += share;
        to_j[m] += share;
        together[m] += share;
    }
    for (Long m = 0; m < M && hypotheses[1] > 0.0; m++) {
        double a = hypotheses[1] * one[m], b = hypotheses[1] * other[m];
        to_i[m] += a;
        to_j[m] += b;
        apart[m] += a + b;
    }
    return log_likelihood;
}

#define W 2
#define FN(name) name##_base
#define TARGET
#include "kernels.h"

#if (defined(__x86_64__) || defined(__i386__)) && !defined(LINKMIX_BASE_ONLY)
#define HAS_X86
#include <immintrin.h>
#define W 4
#define FN(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "kernels.h"
#define W 8
#define FN(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,fma,popcnt,prefer-vector-width=512")))
#include "kernels.h"
#endif

typedef double (*Pass)(int, const Gauss *, const Rows *, const double *, Long, Long, double *, double *, double *,
                       double *, double *);

typedef void (*Posteriors)(const Pairs *, double *, double *, double *);
typedef double (*PairSums)(const Pairs *, Long, Long, const double *, const double *, const double *, double *,
                           double *, double *, double *, double *, double *);

typedef struct {
    const char *name;
    Pass pass;
    Posteriors posteriors;
    PairSums pairs;
} Level;

static const Level LEVELS[] = {
    {"base", pass_base, posteriors_base, pairs_base},
#ifdef HAS_X86
    {"avx2", pass_avx2, posteriors_avx2, pairs_avx2},
    {"avx512", pass_avx512, posteriors_avx512, pairs_avx512},
#endif
};

static const Level *level = &LEVELS[0];

static int supported(int i)
{
#ifdef HAS_X86
    __builtin_cpu_init();
    if (i == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (i == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma");
#endif
    return i == 0;
}

/* ---- components ---------------------------------------------------------------------------------------------- */

static Long second_size(int form, Long n_components, Long d)
{
    return form == FULL ? n_components * d * d : form == DIAGONAL ? n_components * d : n_components;
}

/* Offsets of the log-densities, including log-weights, and the whiteners in the order of the tiles. */
static void prepare(Gauss *g, const double *log_weights)
{
    const Long d = g->d;
    for (Long c = 0; c < g->n_components; c++) {
        const double *whitener = g->whiteners + c * g->whitener_step;
        double half_log_precision = 0.0;
        if (g->form == SPHERICAL)
            half_log_precision = (double)d * log(*whitener);
        else
            for (Long j = 0; j < d; j++)
                half_log_precision += log(g->form == FULL ? whitener[j * d + j] : whitener[j]);
        g->offsets[c] = half_log_precision - 0.5 * ((double)d * LOG_2_PI) + (log_weights ? log_weights[c] : 0.0);
        if (g->form != FULL)
            continue;
        double *to = g->packed + c * g->packed_size;
        for (Long i = 0; i < d; i += 4) {
            Long height = d - i < 4 ? d - i : 4;
            for (Long j = 0; j < i + height; j++)
                for (Long a = 0; a < height; a++)
                    *to++ = j <= i + a ? whitener[j * d + i + a] : 0.0;
        }
    }
}

static Long packed_size(int form, Long d)
{
    return form == FULL ? d * (d + 4) / 2 + 8 : 0;
}

/* Allocates offsets, packed whiteners and the scratch of a pass; one free() releases everything. */
static double *allocate(Gauss *g, double **scratch)
{
    g->packed_size = packed_size(g->form, g->d);
    size_t fixed = (size_t)(g->n_components * (1 + g->packed_size));
    size_t running = (size_t)(BLOCK * (g->d + g->n_components + 2) + buffer_size(g->d));
    running += (size_t)(g->n_components * accumulators(g, 8));
    double *room = malloc((fixed + running + 8) * sizeof(double));
    if (!room)
        return NULL;
    g->offsets = room;
    g->packed = room + g->n_components;
    *scratch = room + fixed;
    *scratch = (double *)(((size_t)*scratch + 63) / 64 * 64);
    return room;
}

/* ---- links --------------------------------------------------------------------------------------------------- */

/* Allocates the weights and everything that pairs need; one free() releases everything. */
typedef struct {
    double *room, *posterior, *complement, *log_sums, *points, *together, *apart, *scratch;
} PairRoom;

static int allocate_pairs(Pairs *q, PairRoom *r)
{
    const Long M = q->n_classes, n = q->n_points;
    const Long stride = q->stride = M <= 2 ? 2 : M <= 4 ? 4 : (M + 7) / 8 * 8;
    size_t size = (size_t)(M + stride + 3 * n * stride + n + 2 * stride + 5 * M + 8);
    if (!(r->room = malloc(size * sizeof(double))))
        return 0;
    q->log_weights = r->room;
    q->inverse_weights = q->log_weights + M;
    r->posterior = q->inverse_weights + stride;
    r->complement = r->posterior + n * stride;
    r->points = r->complement + n * stride;
    r->log_sums = r->points + n * stride;
    r->together = r->log_sums + n;
    r->apart = r->together + stride;
    r->scratch = r->apart + stride;
    return 1;
}

/* E-step of all pairs: label weights (n, M), counts of labels (M,) and the probability that each pair agrees. */
static double expect_pairs(Pairs *q, PairRoom *r, const double *class_weights, double *labels, double *must_counts,
                           double *class_counts, double *same, double *n_apart)
{
    const Long M = q->n_classes, stride = q->stride;
    const Level *by = stride % 8 == 0 ? level : stride == 4 && level != &LEVELS[0] ? &LEVELS[1] : &LEVELS[0];
    double differ = 0.0;
    for (Long m = 0; m < M; m++) {
        double others = 0.0;
        for (Long k = 0; k < M; k++)
            others += k == m ? 0.0 : class_weights[k];
        differ += class_weights[m] * others;
        q->log_weights[m] = log(class_weights[m]);
    }
    for (Long m = 0; m < stride; m++)
        q->inverse_weights[m] = m < M ? 1.0 / class_weights[m] : 0.0;
    q->log_apart = log(differ);
    q->inverse_apart = differ > 0.0 ? 1.0 / differ : 0.0;
    memset(r->points, 0, sizeof(double) * (size_t)(q->n_points * stride));
    memset(r->together, 0, sizeof(double) * (size_t)(2 * stride));
    *n_apart = 0.0;
    by->posteriors(q, r->posterior, r->complement, r->log_sums);
    double log_likelihood = by->pairs(q, 0, q->n_pairs, r->posterior, r->complement, r->log_sums, r->points,
                                      r->together, r->apart, same, n_apart, r->scratch);
    for (Long i = 0; i < q->n_points; i++)
        for (Long m = 0; m < M; m++)
            labels[i * M + m] = r->points[i * stride + m];
    for (Long m = 0; m < M; m++) {
        must_counts[m] = r->together[m];
        class_counts[m] = r->together[m] + r->apart[m];
    }
    return log_likelihood;
}

/* ---- the M-step ---------------------------------------------------------------------------------------------- */

#define NO_SUPPORT (10 * 2.220446049250313e-16) /* as in densities/elliptical.py */
#define SMALLEST_WEIGHT 1e-12                   /* as in couplings/class_weights.py */
#define SMALLEST_CLUSTER_WEIGHT 1e-300          /* as in engine/steps.py */
#define ROUNDING 1e-9                           /* as in engine/loop.py */
#define MAX_NEWTON_STEPS 100

/* The upper triangular whitener W of a covariance, W W' = covariance^-1; returns 0 if it is not positive definite. */
static int whiten(Long d, const double *covariance, double *whitener, double *lower)
{
    for (Long i = 0; i < d; i++)
        for (Long j = 0; j <= i; j++) {
            double s = covariance[i * d + j];
            for (Long k = 0; k < j; k++)
                s -= lower[i * d + k] * lower[j * d + k];
            if (i > j)
                lower[i * d + j] = s / lower[j * d + j];
            else if (s > 0.0 && s < INFINITY)
                lower[i * d + i] = sqrt(s);
            else
                return 0;
        }
    for (Long j = 0; j < d; j++) /* column j of the inverse of the lower triangle is row j of the whitener */
        for (Long i = 0; i < d; i++) {
            double s = i == j ? 1.0 : 0.0;
            for (Long k = j; k < i; k++)
                s -= lower[i * d + k] * whitener[j * d + k];
            whitener[j * d + i] = i < j ? 0.0 : s / lower[i * d + i];
        }
    return 1;
}

typedef struct {
    double *means, *covariances, *whiteners, *class_weights, *cluster_weights;
} Parameters;

typedef struct {
    double *weight, *first, *second;
} Sums;

/* New means, covariances and whiteners; returns 0 if Python must handle a covariance. */
static int maximise_components(int form, int shared, Long C, Long d, const Sums *sums, double reg_covar,
                               const Parameters *old, Parameters *new, double *lower)
{
    double total = 0.0, unscaled = 0.0;
    for (Long c = 0; c < C; c++) {
        const double w = sums->weight[c];
        unscaled += w;
        total += w > NO_SUPPORT ? w : NO_SUPPORT;
        for (Long j = 0; j < d; j++)
            new->means[c * d + j] =
                old->means[c * d + j] + (w > NO_SUPPORT ? sums->first[c * d + j] / w : 0.0);
    }
    if (shared) {
        const Long size = d * d;
        if (!(unscaled > NO_SUPPORT)) {
            memcpy(new->covariances, old->covariances, sizeof(double) * (size_t)size);
            memcpy(new->whiteners, old->whiteners, sizeof(double) * (size_t)size);
            return 1;
        }
        for (Long i = 0; i < d; i++)
            for (Long j = 0; j < d; j++) {
                double s = 0.0, shift = 0.0;
                for (Long c = 0; c < C; c++) {
                    const double w = sums->weight[c] > NO_SUPPORT ? sums->weight[c] : NO_SUPPORT;
                    s += sums->second[c * size + i * d + j];
                    shift += sums->first[c * d + i] / w * sums->first[c * d + j];
                }
                new->covariances[i * d + j] = (s - shift) / total + (i == j ? reg_covar : 0.0);
            }
        return whiten(d, new->covariances, new->whiteners, lower);
    }
    const Long size = second_size(form, 1, d);
    for (Long c = 0; c < C; c++) {
        const double w = sums->weight[c], *first = sums->first + c * d, *second = sums->second + c * size;
        double *covariance = new->covariances + c * size, *whitener = new->whiteners + c * size;
        if (!(w > NO_SUPPORT)) {
            memcpy(covariance, old->covariances + c * size, sizeof(double) * (size_t)size);
            memcpy(whitener, old->whiteners + c * size, sizeof(double) * (size_t)size);
            continue;
        }
        if (form == FULL) {
            for (Long i = 0; i < d; i++)
                for (Long j = 0; j < d; j++)
                    covariance[i * d + j] =
                        second[i * d + j] / w - first[i] / w * (first[j] / w) + (i == j ? reg_covar : 0.0);
            if (!whiten(d, covariance, whitener, lower))
                return 0;
            continue;
        }
        double squares = 0.0;
        for (Long j = 0; j < d; j++)
            squares += first[j] / w * (first[j] / w);
        for (Long j = 0; j < size; j++) {
            double shift = form == DIAGONAL ? first[j] / w * (first[j] / w) : squares / (double)d;
            double variance = second[j] / w - shift;
            covariance[j] = (variance > 0.0 ? variance : 0.0) + reg_covar;
            if (!(covariance[j] > 0.0))
                return 0;
            whitener[j] = 1.0 / sqrt(covariance[j]);
        }
    }
    return 1;
}

/* Shares of the counts, at least SMALLEST_WEIGHT each; without counts the previous weights. */
static void normalise(Long M, const double *counts, const double *previous, double *out)
{
    double total = 0.0, sum = 0.0;
    for (Long m = 0; m < M; m++)
        total += counts[m];
    if (!(total > 0.0)) {
        memmove(out, previous, sizeof(double) * (size_t)M);
        return;
    }
    for (Long m = 0; m < M; m++) {
        out[m] = counts[m] / total > SMALLEST_WEIGHT ? counts[m] / total : SMALLEST_WEIGHT;
        sum += out[m];
    }
    for (Long m = 0; m < M; m++)
        out[m] /= sum;
}

/* Shares of exp(theta), the logarithm of their sum, and for each label the probability that another one differs. */
static double weights_of(Long M, const double *theta, double *a, double *others, double *apart)
{
    double top = theta[0], sum = 0.0;
    for (Long m = 1; m < M; m++)
        top = theta[m] > top ? theta[m] : top;
    for (Long m = 0; m < M; m++)
        sum += a[m] = exp(theta[m] - top);
    for (Long m = 0; m < M; m++)
        a[m] /= sum;
    *apart = 0.0;
    for (Long m = 0; m < M; m++) {
        others[m] = 0.0;
        for (Long k = 0; k < M; k++)
            others[m] += k == m ? 0.0 : a[k];
        *apart += a[m] * others[m];
    }
    return log(sum) + top;
}

/* Solves a system of n equations in place, by elimination with row exchanges; returns 0 if it is singular. */
static int solve(Long n, double *matrix, double *b)
{
    for (Long k = 0; k < n; k++) {
        Long pivot = k;
        for (Long i = k + 1; i < n; i++)
            if (fabs(matrix[i * n + k]) > fabs(matrix[pivot * n + k]))
                pivot = i;
        if (!(fabs(matrix[pivot * n + k]) > 0.0))
            return 0;
        for (Long j = 0; j < n && pivot != k; j++) {
            double swap = matrix[k * n + j];
            matrix[k * n + j] = matrix[pivot * n + j];
            matrix[pivot * n + j] = swap;
        }
        double swap = b[k];
        b[k] = b[pivot];
        b[pivot] = swap;
        for (Long i = k + 1; i < n; i++) {
            double factor = matrix[i * n + k] / matrix[k * n + k];
            for (Long j = k + 1; j < n; j++)
                matrix[i * n + j] -= factor * matrix[k * n + j];
            b[i] -= factor * b[k];
        }
    }
    for (Long i = n - 1; i >= 0; i--) {
        for (Long j = i + 1; j < n; j++)
            b[i] -= matrix[i * n + j] * b[j];
        b[i] /= matrix[i * n + i];
    }
    return 1;
}

/* _newton of couplings/class_weights.py. Scratch has room for M * (M + 7). Returns 0 if the system is singular. */
static int solve_class_weights(Long M, const double *c, double n_cannot, const double *previous, double *out,
                               double *scratch)
{
    double *theta = scratch, *a = theta + M, *others = a + M, *q = others + M, *gradient = q + M, *step = gradient + M;
    double *trial = step + M, *hessian = trial + M;
    const double lowest = log(SMALLEST_WEIGHT);
    double total = 0.0, apart, value = 0.0;
    for (Long m = 0; m < M; m++) {
        total += c[m];
        theta[m] = log(previous[m]);
    }
    const double n1 = total - 2 * n_cannot;
    value = weights_of(M, theta, a, others, &apart) * total + n_cannot * log(apart);
    for (Long m = 0; m < M; m++)
        value -= c[m] * theta[m];
    for (int round = 0; round < MAX_NEWTON_STEPS; round++) {
        double largest = 0.0, slope = 0.0, size = 1.0;
        weights_of(M, theta, a, others, &apart);
        for (Long m = 0; m < M; m++) {
            q[m] = a[m] * others[m] / apart;
            gradient[m] = n1 * a[m] + 2 * n_cannot * q[m] - c[m];
            if (theta[m] <= lowest && gradient[m] > 0.0)
                gradient[m] = 0.0;
            largest = fabs(gradient[m]) > largest ? fabs(gradient[m]) : largest;
        }
        if (largest <= 1e-13 * total)
            break;
        for (Long i = 0; i < M; i++)
            for (Long j = 0; j < M; j++) {
                double pair = i == j ? 0.0 : a[i] * a[j] / apart;
                double h = n_cannot * (2 * (i == j ? q[i] : 0.0) + 2 * pair - 4 * q[i] * q[j]);
                h += n1 * ((i == j ? a[i] : 0.0) - a[i] * a[j]);
                h += total / (double)M * (1.0 / (double)M + (i == j ? 1e-14 : 0.0));
                hessian[i * M + j] = h;
            }
        for (Long m = 0; m < M; m++) {
            step[m] = -gradient[m];
            if (theta[m] <= lowest && gradient[m] == 0.0 && n1 * a[m] + 2 * n_cannot * q[m] - c[m] > 0.0) {
                for (Long k = 0; k < M; k++)
                    hessian[m * M + k] = hessian[k * M + m] = 0.0;
                hessian[m * M + m] = 1.0;
            }
        }
        if (!solve(M, hessian, step))
            return 0;
        for (Long m = 0; m < M; m++) {
            step[m] = step[m] > 5.0 ? 5.0 : step[m] < -5.0 ? -5.0 : step[m];
            slope += gradient[m] * step[m];
        }
        double found = value;
        for (; size > 1e-10; size /= 2) {
            for (Long m = 0; m < M; m++)
                trial[m] = theta[m] + size * step[m];
            double shift = weights_of(M, trial, a, others, &apart);
            for (Long m = 0; m < M; m++)
                trial[m] = trial[m] - shift > lowest ? trial[m] - shift : lowest;
            found = weights_of(M, trial, a, others, &apart) * total + n_cannot * log(apart);
            for (Long m = 0; m < M; m++)
                found -= c[m] * trial[m];
            if (found <= value + 1e-4 * size * (slope < 0.0 ? slope : 0.0) + 1e-13 * (fabs(value) + total))
                break;
        }
        if (!(size > 1e-10))
            break;
        memcpy(theta, trial, sizeof(double) * (size_t)M);
        value = found;
    }
    weights_of(M, theta, a, others, &apart);
    normalise(M, a, previous, out);
    return 1;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

/* What stays the same during a fit, and space for what changes. */
typedef struct {
    int form, shared;
    Long C, M, K, d;
    Rows free, linked;
    const double *free_weights;
    Pairs pairs;
    double constant, link_weight, reg_covar; /* the constant is added to the log-likelihood of the pairs */
    Gauss gauss;
    PairRoom pair_room;
    double *scratch;
    Sums sums, linked_sums;
    double *log_weights, *table, *class_density, *labels, *same, *free_counts, *must_counts, *class_counts, *newton;
    double n_apart;
} Run;

/* E-step: computes sums and counts, and returns J. */
static double expect(Run *r, const Parameters *p)
{
    const Long C = r->C, M = r->M, K = r->K, d = r->d, n = r->linked.n;
    const Long size = C * (1 + d) + second_size(r->form, C, d);
    Gauss *g = &r->gauss;
    double log_likelihood = 0.0;
    g->means = p->means;
    g->whiteners = p->whiteners;
    memset(r->sums.weight, 0, sizeof(double) * (size_t)size);
    memset(r->free_counts, 0, sizeof(double) * (size_t)M);
    if (r->free.n) {
        for (Long c = 0; c < C; c++)
            r->log_weights[c] = log(p->class_weights[c / K]) + log(p->cluster_weights[c]);
        prepare(g, r->log_weights);
        log_likelihood = level->pass(FUSED, g, &r->free, r->free_weights, 0, r->free.n, NULL, r->sums.weight,
                                     r->sums.first, r->sums.second, r->scratch);
        for (Long c = 0; c < C; c++)
            r->free_counts[c / K] += r->sums.weight[c];
    }
    if (!n)
        return log_likelihood;
    for (Long c = 0; c < C; c++)
        r->log_weights[c] = log(p->cluster_weights[c]);
    prepare(g, r->log_weights);
    level->pass(JOINT, g, &r->linked, NULL, 0, n, r->table, NULL, NULL, NULL, r->scratch);
    for (Long i = 0; i < n * M; i++)
        r->class_density[i] = K > 1 ? shares_of(r->table + i * K, K) : r->table[i];
    log_likelihood += r->link_weight * (r->constant + expect_pairs(&r->pairs, &r->pair_room, p->class_weights,
                                                                    r->labels, r->must_counts, r->class_counts,
                                                                    r->same, &r->n_apart));
    for (Long i = 0; i < n * M; i++)
        for (Long k = 0; k < K; k++)
            r->table[i * K + k] = r->link_weight * r->labels[i] * (K > 1 ? r->table[i * K + k] : 1.0);
    level->pass(WEIGHTED, g, &r->linked, NULL, 0, n, r->table, r->linked_sums.weight, r->linked_sums.first,
                r->linked_sums.second, r->scratch);
    for (Long i = 0; i < size; i++)
        r->sums.weight[i] += r->linked_sums.weight[i];
    return log_likelihood;
}

static int maximise(Run *r, const Parameters *old, Parameters *new, double *lower)
{
    const Long M = r->M, K = r->K;
    for (Long m = 0; m < M; m++) {
        const double *counts = r->sums.weight + m * K;
        double total = 0.0;
        for (Long k = 0; k < K; k++)
            total += counts[k];
        for (Long k = 0; k < K; k++) {
            double share = total > 0.0 ? counts[k] / total : old->cluster_weights[m * K + k];
            new->cluster_weights[m * K + k] = share > SMALLEST_CLUSTER_WEIGHT ? share : SMALLEST_CLUSTER_WEIGHT;
        }
    }
    double *counts = r->log_weights; /* unused between E-steps */
    for (Long m = 0; m < M; m++)
        counts[m] = r->linked.n ? r->free_counts[m] / r->link_weight + (M == 2 ? r->must_counts : r->class_counts)[m]
                                : r->free_counts[m];
    if (r->linked.n && M > 2 && r->n_apart > 0.0) {
        if (!solve_class_weights(M, counts, r->n_apart, old->class_weights, new->class_weights, r->newton))
            return 0;
    } else
        normalise(M, counts, old->class_weights, new->class_weights);
    return maximise_components(r->form, r->shared, r->C, r->d, &r->sums, r->reg_covar, old, new, lower);
}

/* ---- arguments ----------------------------------------------------------------------------------------------- */

typedef struct {
    Py_buffer view;
    int held;
} Held;

static void release(Held *held, int n)
{
    for (int i = 0; i < n; i++)
        if (held[i].held)
            PyBuffer_Release(&held[i].view);
}

/* A contiguous array of at least `size` doubles; None becomes NULL where it is allowed. */
static int doubles(PyObject *object, Held *held, int writable, int optional, Long size, double **out)
{
    *out = NULL;
    if (optional && object == Py_None)
        return 1;
    if (PyObject_GetBuffer(object, &held->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
        return 0;
    held->held = 1;
    if (strcmp(held->view.format, "d") || held->view.len < size * (Long)sizeof(double)) {
        PyErr_Format(PyExc_ValueError, "expected at least %zd doubles, got %zd bytes of format %s", size,
                     held->view.len, held->view.format);
        return 0;
    }
    *out = held->view.buf;
    return 1;
}

/* A contiguous array of 64-bit integers. */
static int integers(PyObject *object, Held *held, int writable, Long size, long long **out)
{
    if (PyObject_GetBuffer(object, &held->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
        return 0;
    held->held = 1;
    if (held->view.itemsize != 8 || !strchr("lq", held->view.format[0]) || held->view.len < size * 8) {
        PyErr_Format(PyExc_ValueError, "expected at least %zd 64-bit integers", size);
        return 0;
    }
    *out = held->view.buf;
    return 1;
}

static int rows(PyObject *object, Held *held, Rows *x)
{
    if (PyObject_GetBuffer(object, &held->view, PyBUF_STRIDED_RO | PyBUF_FORMAT))
        return 0;
    held->held = 1;
    const Py_buffer *view = &held->view;
    x->single = !strcmp(view->format, "f");
    if (view->ndim != 2 || (strcmp(view->format, "d") && !x->single)) {
        PyErr_Format(PyExc_ValueError, "expected rows of doubles or floats, got %d axes of format %s", view->ndim,
                     view->format);
        return 0;
    }
    *x = (Rows){view->buf, view->shape[0], view->shape[1], view->strides[0], view->strides[1], x->single};
    return 1;
}

/* Reads means (C, d) and whiteners; `shared` says whether all components have the same whitener. */
static int components(PyObject *means, PyObject *whiteners, Held *held, Long d, int shared, Gauss *g)
{
    double *m, *w;
    if (!doubles(means, &held[0], 0, 0, 0, &m))
        return 0;
    g->d = d;
    g->n_components = d > 0 ? held[0].view.len / (Long)sizeof(double) / d : 0;
    if (g->n_components * d * (Long)sizeof(double) != held[0].view.len || g->n_components == 0) {
        PyErr_Format(PyExc_ValueError, "means do not have %zd columns", d);
        return 0;
    }
    g->whitener_step = shared ? 0 : second_size(g->form, 1, d);
    if (!doubles(whiteners, &held[1], 0, 0, second_size(g->form, shared ? 1 : g->n_components, d), &w))
        return 0;
    g->means = m;
    g->whiteners = w;
    return 1;
}

/* ---- the functions that Python calls ------------------------------------------------------------------------- */

static const char SUMS_DOC[] =
    "sums(form, shared, X, means, whiteners, log_weights, row_weights, first, stop, out)\n\n"
    "Log-likelihood, weight, first and second moments of rows first to stop of a mixture, one after the other, to out.";

static PyObject *py_sums(PyObject *self, PyObject *args)
{
    PyObject *X, *means, *whiteners, *log_weights, *row_weights, *out;
    Held held[6] = {{.held = 0}};
    PyObject *result = NULL;
    Gauss g;
    Rows x;
    int shared;
    Long first, stop;
    double *logs, *weights, *to, *scratch, *room;
    if (!PyArg_ParseTuple(args, "ipOOOOOnnO", &g.form, &shared, &X, &means, &whiteners, &log_weights, &row_weights,
                          &first, &stop, &out))
        return NULL;
    if (!rows(X, &held[0], &x) || !components(means, whiteners, &held[1], x.d, shared, &g))
        goto end;
    const Long C = g.n_components, d = g.d;
    if (!doubles(log_weights, &held[3], 0, 0, C, &logs) || !doubles(row_weights, &held[4], 0, 1, x.n, &weights) ||
        !doubles(out, &held[5], 1, 0, 1 + C * (1 + d) + second_size(g.form, C, d), &to))
        goto end;
    if (first < 0 || stop > x.n) {
        PyErr_SetString(PyExc_ValueError, "rows out of range");
        goto end;
    }
    if (!(room = allocate(&g, &scratch))) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    prepare(&g, logs);
    to[0] = level->pass(FUSED, &g, &x, weights, first, stop, NULL, to + 1, to + 1 + C, to + 1 + C + C * d, scratch);
    Py_END_ALLOW_THREADS
    free(room);
    result = Py_NewRef(Py_None);
end:
    release(held, 6);
    return result;
}

static const char LOG_DENSITY_DOC[] =
    "log_density(form, shared, X, means, whiteners, first, stop, out)\n\n"
    "Log-densities of rows first to stop under each component to out (n, C).";

static PyObject *py_log_density(PyObject *self, PyObject *args)
{
    PyObject *X, *means, *whiteners, *out;
    Held held[4] = {{.held = 0}};
    PyObject *result = NULL;
    Gauss g;
    Rows x;
    int shared;
    Long first, stop;
    double *to, *scratch, *room;
    if (!PyArg_ParseTuple(args, "ipOOOnnO", &g.form, &shared, &X, &means, &whiteners, &first, &stop, &out))
        return NULL;
    if (!rows(X, &held[0], &x) || !components(means, whiteners, &held[1], x.d, shared, &g) ||
        !doubles(out, &held[3], 1, 0, x.n * g.n_components, &to))
        goto end;
    if (first < 0 || stop > x.n) {
        PyErr_SetString(PyExc_ValueError, "rows out of range");
        goto end;
    }
    if (!(room = allocate(&g, &scratch))) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    prepare(&g, NULL);
    level->pass(JOINT, &g, &x, NULL, first, stop, to, NULL, NULL, NULL, scratch);
    Py_END_ALLOW_THREADS
    free(room);
    result = Py_NewRef(Py_None);
end:
    release(held, 4);
    return result;
}

static const char CLASSES_DOC[] =
    "classes(form, shared, X, means, whiteners, log_weights, n_classes, first, stop, out)\n\n"
    "Most probable class of rows first to stop; the components of a class follow each other.";

static PyObject *py_classes(PyObject *self, PyObject *args)
{
    PyObject *X, *means, *whiteners, *log_weights, *out;
    Held held[5] = {{.held = 0}};
    PyObject *result = NULL;
    Gauss g;
    Rows x;
    int shared;
    Long first, stop, n_classes;
    long long *to;
    double *logs, *scratch, *room = NULL, *table = NULL;
    if (!PyArg_ParseTuple(args, "ipOOOOnnnO", &g.form, &shared, &X, &means, &whiteners, &log_weights, &n_classes,
                          &first, &stop, &out))
        return NULL;
    if (!rows(X, &held[0], &x) || !components(means, whiteners, &held[1], x.d, shared, &g) ||
        !doubles(log_weights, &held[3], 0, 0, g.n_components, &logs) || !integers(out, &held[4], 1, x.n, &to))
        goto end;
    const Long C = g.n_components, K = n_classes > 0 ? C / n_classes : 0;
    if (first < 0 || stop > x.n || K * n_classes != C) {
        PyErr_SetString(PyExc_ValueError, "rows out of range, or classes that do not share the components");
        goto end;
    }
    room = allocate(&g, &scratch);
    table = malloc(sizeof(double) * (size_t)(BLOCK * C));
    if (!room || !table) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    prepare(&g, logs);
    for (Long row = first; row < stop; row += BLOCK) {
        const Long n = stop - row < BLOCK ? stop - row : BLOCK;
        Rows some = x;
        some.data += row * x.row_stride;
        level->pass(JOINT, &g, &some, NULL, 0, n, table, NULL, NULL, NULL, scratch);
        for (Long b = 0; b < n; b++) {
            double best = -INFINITY;
            to[row + b] = 0;
            for (Long m = 0; m < n_classes; m++) {
                double *joint = table + b * C + m * K, value = K > 1 ? shares_of(joint, K) : *joint;
                if (value > best) {
                    best = value;
                    to[row + b] = m;
                }
            }
        }
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    free(room);
    free(table);
    release(held, 5);
    return result;
}

static const char MOMENTS_DOC[] =
    "moments(form, X, means, shares, first, stop, out)\n\n"
    "Weight, first and second moments about the means of rows first to stop that have the given shares (n, C).";

static PyObject *py_moments(PyObject *self, PyObject *args)
{
    PyObject *X, *means, *shares, *out;
    Held held[4] = {{.held = 0}};
    PyObject *result = NULL;
    Gauss g = {0};
    Rows x;
    Long first, stop;
    double *m, *table, *to, *scratch, *room;
    if (!PyArg_ParseTuple(args, "iOOOnnO", &g.form, &X, &means, &shares, &first, &stop, &out))
        return NULL;
    if (!rows(X, &held[0], &x) || !doubles(means, &held[1], 0, 0, x.d, &m))
        goto end;
    const Long d = g.d = x.d, C = g.n_components = d > 0 ? held[1].view.len / (Long)sizeof(double) / d : 0;
    g.means = m;
    if (!doubles(shares, &held[2], 0, 0, x.n * C, &table) ||
        !doubles(out, &held[3], 1, 0, C * (1 + d) + second_size(g.form, C, d), &to))
        goto end;
    if (first < 0 || stop > x.n) {
        PyErr_SetString(PyExc_ValueError, "rows out of range");
        goto end;
    }
    if (!(room = allocate(&g, &scratch))) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    level->pass(WEIGHTED, &g, &x, NULL, first, stop, table, to, to + C, to + C + C * d, scratch);
    Py_END_ALLOW_THREADS
    free(room);
    result = Py_NewRef(Py_None);
end:
    release(held, 4);
    return result;
}

/* Whether both ends of all pairs are points. */
static int check_pairs(const Pairs *q)
{
    for (Long k = 0; k < 2 * q->n_pairs; k++)
        if (q->pairs[k] < 0 || q->pairs[k] >= q->n_points) {
            PyErr_Format(PyExc_ValueError, "a pair names point %lld of %zd", q->pairs[k], q->n_points);
            return 0;
        }
    return 1;
}

static const char PAIRS_DOC[] =
    "pairs(log_density, class_weights, pairs, if_same, if_apart, labels, counts, same)\n\n"
    "E-step of pairs: label weights (n, M), counts (2 M: together, all) and the probability of each pair to be together "
    "go to the last three; returns the log-likelihood and the number of pairs that are apart.";

static PyObject *py_pairs(PyObject *self, PyObject *args)
{
    PyObject *log_density, *class_weights, *pairs, *if_same, *if_apart, *labels, *counts, *same;
    Held held[8] = {{.held = 0}};
    PyObject *result = NULL;
    Pairs q;
    PairRoom room;
    double *density, *weights, *likely, *unlikely, *to_labels, *to_counts, *to_same, log_likelihood, n_apart;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &log_density, &class_weights, &pairs, &if_same, &if_apart, &labels, &counts,
                          &same))
        return NULL;
    if (!doubles(class_weights, &held[1], 0, 0, 1, &weights))
        goto end;
    q.n_classes = held[1].view.len / (Long)sizeof(double);
    if (!doubles(log_density, &held[0], 0, 0, 0, &density) || !doubles(if_same, &held[3], 0, 0, 0, &likely))
        goto end;
    q.n_points = held[0].view.len / (Long)sizeof(double) / q.n_classes;
    q.n_pairs = held[3].view.len / (Long)sizeof(double);
    if (!integers(pairs, &held[2], 0, 2 * q.n_pairs, &q.pairs) ||
        !doubles(if_apart, &held[4], 0, 0, q.n_pairs, &unlikely) ||
        !doubles(labels, &held[5], 1, 0, q.n_points * q.n_classes, &to_labels) ||
        !doubles(counts, &held[6], 1, 0, 2 * q.n_classes, &to_counts) ||
        !doubles(same, &held[7], 1, 0, q.n_pairs, &to_same) || !check_pairs(&q))
        goto end;
    q.log_density = density;
    q.if_same = likely;
    q.if_apart = unlikely;
    if (!allocate_pairs(&q, &room)) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    log_likelihood =
        expect_pairs(&q, &room, weights, to_labels, to_counts, to_counts + q.n_classes, to_same, &n_apart);
    Py_END_ALLOW_THREADS
    free(room.room);
    result = Py_BuildValue("dd", log_likelihood, n_apart);
end:
    release(held, 8);
    return result;
}

static const char RUN_DOC[] =
    "run(form, shared, free, free_weights, linked, pairs, if_same, if_apart, constant, link_weight, reg_covar, tol,\n"
    "    means, covariances, whiteners, class_weights, cluster_weights, n_classes, trace)\n\n"
    "Repeat both steps of EM, len(trace) - 1 times at most. The parameters are changed in place. Returns the number of\n"
    "steps, and 0 if all were made, 1 if the tolerance was met, 2 if the next step is not for the core to make.";

static PyObject *py_run(PyObject *self, PyObject *args)
{
    PyObject *o[13];
    Held held[13];
    PyObject *result = NULL;
    Run r;
    Parameters now, next;
    double tol, *trace, *weights, *if_same, *if_apart, *room = NULL, *fixed = NULL, *own = NULL;
    memset(held, 0, sizeof(held));
    memset(&r, 0, sizeof(r));
    if (!PyArg_ParseTuple(args, "ipOOOOOOddddOOOOOnO", &r.form, &r.shared, &o[0], &o[1], &o[2], &o[3], &o[4], &o[5],
                          &r.constant, &r.link_weight, &r.reg_covar, &tol, &o[6], &o[7], &o[8], &o[9], &o[10], &r.M,
                          &o[11]))
        return NULL;
    if (!rows(o[0], &held[0], &r.free) || !rows(o[2], &held[2], &r.linked) ||
        !doubles(o[1], &held[1], 0, 1, r.free.n, &weights) || !doubles(o[10], &held[10], 1, 0, 1, &now.cluster_weights))
        goto end;
    const Long C = r.C = held[10].view.len / (Long)sizeof(double), d = r.d = r.free.d, M = r.M, n = r.linked.n;
    if (M < 1 || C % M || r.linked.d != d || d < 1) {
        PyErr_SetString(PyExc_ValueError, "shapes do not fit together");
        goto end;
    }
    r.K = C / M;
    r.free_weights = weights;
    const Long second = second_size(r.form, C, d), size = r.shared ? d * d : second, all = C * (1 + d) + second;
    if (!doubles(o[4], &held[4], 0, 0, 0, &if_same) || !doubles(o[6], &held[6], 1, 0, C * d, &now.means) ||
        !doubles(o[7], &held[7], 1, 0, size, &now.covariances) ||
        !doubles(o[8], &held[8], 1, 0, size, &now.whiteners) ||
        !doubles(o[9], &held[9], 1, 0, M, &now.class_weights) || !doubles(o[11], &held[11], 1, 0, 1, &trace))
        goto end;
    r.pairs.n_pairs = held[4].view.len / (Long)sizeof(double);
    r.pairs.n_points = n;
    r.pairs.n_classes = M;
    if (!integers(o[3], &held[3], 0, 2 * r.pairs.n_pairs, &r.pairs.pairs) ||
        !doubles(o[5], &held[5], 0, 0, r.pairs.n_pairs, &if_apart) || !check_pairs(&r.pairs))
        goto end;
    r.pairs.if_same = if_same;
    r.pairs.if_apart = if_apart;
    r.gauss = (Gauss){.form = r.form, .d = d, .n_components = C, .whitener_step = r.shared ? 0 : second_size(r.form, 1, d)};
    fixed = allocate(&r.gauss, &r.scratch);
    size_t numbers = (size_t)(2 * all + C * d + 2 * size + M + 2 * C + n * (C + 2 * M) + r.pairs.n_pairs + 3 * M);
    numbers += (size_t)(M * (M + 7) + d * d + M);
    room = malloc(numbers * sizeof(double));
    if (!fixed || !room || !allocate_pairs(&r.pairs, &r.pair_room)) {
        PyErr_NoMemory();
        goto end;
    }
    own = r.pair_room.room;
    double *at = room;
#define TAKE(count) (at += (count), at - (count))
    r.sums.weight = TAKE(all);
    r.sums.first = r.sums.weight + C;
    r.sums.second = r.sums.first + C * d;
    r.linked_sums.weight = TAKE(all);
    r.linked_sums.first = r.linked_sums.weight + C;
    r.linked_sums.second = r.linked_sums.first + C * d;
    next.means = TAKE(C * d);
    next.covariances = TAKE(size);
    next.whiteners = TAKE(size);
    next.class_weights = TAKE(M);
    next.cluster_weights = TAKE(C);
    r.log_weights = TAKE(C);
    r.table = TAKE(n * C);
    r.class_density = TAKE(n * M);
    r.labels = TAKE(n * M);
    r.same = TAKE(r.pairs.n_pairs);
    r.free_counts = TAKE(M);
    r.must_counts = TAKE(M);
    r.class_counts = TAKE(M);
    r.newton = TAKE(M * (M + 7));
    double *lower = TAKE(d * d);
    r.pairs.log_density = r.class_density;
    const Long most = held[11].view.len / (Long)sizeof(double) - 1;
    Long step = 0;
    int how = 0;
    Py_BEGIN_ALLOW_THREADS
    trace[0] = expect(&r, &now);
    while (step < most && !how) {
        if (!maximise(&r, &now, &next, lower)) {
            how = 2;
            break;
        }
        const double before = trace[step], after = expect(&r, &next);
        if (after < before - ROUNDING * fabs(before)) {
            how = 2;
            break;
        }
        memcpy(now.means, next.means, sizeof(double) * (size_t)(C * d));
        memcpy(now.covariances, next.covariances, sizeof(double) * (size_t)size);
        memcpy(now.whiteners, next.whiteners, sizeof(double) * (size_t)size);
        memcpy(now.class_weights, next.class_weights, sizeof(double) * (size_t)M);
        memcpy(now.cluster_weights, next.cluster_weights, sizeof(double) * (size_t)C);
        trace[++step] = after;
        if (tol > 0.0 && fabs(after - before) <= tol * fabs(after))
            how = 1;
    }
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("ni", step, how);
end:
    free(fixed);
    free(room);
    free(own);
    release(held, 13);
    return result;
}

static PyObject *py_levels(PyObject *self, PyObject *none)
{
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < (int)(sizeof(LEVELS) / sizeof(*LEVELS)); i++) {
        if (!supported(i))
            continue;
        PyObject *name = PyUnicode_FromString(LEVELS[i].name);
        if (!name || PyList_Append(names, name))
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *py_use(PyObject *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    for (int i = 0; i < (int)(sizeof(LEVELS) / sizeof(*LEVELS)); i++)
        if (!strcmp(LEVELS[i].name, name) && supported(i)) {
            const char *before = level->name;
            level = &LEVELS[i];
            return PyUnicode_FromString(before);
        }
    return PyErr_Format(PyExc_ValueError, "the processor has no instruction set %s: choose one of levels()", name);
}

static PyMethodDef METHODS[] = {
    {"sums", py_sums, METH_VARARGS, SUMS_DOC},
    {"log_density", py_log_density, METH_VARARGS, LOG_DENSITY_DOC},
    {"classes", py_classes, METH_VARARGS, CLASSES_DOC},
    {"moments", py_moments, METH_VARARGS, MOMENTS_DOC},
    {"pairs", py_pairs, METH_VARARGS, PAIRS_DOC},
    {"run", py_run, METH_VARARGS, RUN_DOC},
    {"levels", py_levels, METH_NOARGS, "levels()\n\nInstruction sets that this processor has, the plainest first."},
    {"use", py_use, METH_VARARGS, "use(level)\n\nChoose an instruction set; returns the one that was in use."},
    {NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "linkmix.native._core", NULL, -1, METHODS};

PyMODINIT_FUNC PyInit__core(void)
{
    for (int i = 0; i < (int)(sizeof(LEVELS) / sizeof(*LEVELS)); i++)
        if (supported(i))
            level = &LEVELS[i];
    return PyModule_Create(&MODULE);
}
