/* The native core of linkmix: passes over the rows of Gaussian mixtures.
 *
 * Arrays are passed through the buffer protocol, so that building needs only a C compiler. The Python side
 * (linkmix/native/__init__.py) hands over what fits; arguments.h refuses what does not, whoever calls.
 * The kernels are in density.h, kernels.h and prediction.h, compiled for each instruction set; the best one that the
 * processor supports is chosen when the module is imported.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef Py_ssize_t Long;

enum { FULL = 0, DIAGONAL = 1, SPHERICAL = 2 };
enum { JOINT, WEIGHTED, FUSED };
enum { LOG_JOINT = 0, PROBABILITIES = 1, CLASSES = 2, LOG_DENSITY = 3 };

#define BLOCK 240      /* rows; a multiple of 6 W for W = 2, 4 and 8 */
#define NARROW 16      /* up to this many columns, moments use vectors over rows; beyond, over columns */
#define COLLECT 64     /* rows processed at once by wide moments */
#define NEGLIGIBLE 1e-25 /* a row with a smaller share is ignored in moments, but never in the weights */
#define LOG_2_PI 1.8378770664093454836
#define PI 3.1415926535897932385

typedef struct {
    const char *data;
    Long n, d, row_stride, column_stride; /* strides in bytes */
    int single;
    const long long *columns; /* the d columns that are read; NULL for the first d */
} Rows;

/* Components with an elliptical density, in doubles or floats. */
#define ELLIPTICAL(REAL)                                                                                               \
    struct {                                                                                                           \
        int form;                                                                                                      \
        Long d, n_components;                                                                                          \
        const REAL *means, *low_means; /* floats: what the means lose by rounding */                                   \
        const REAL *whiteners;                                                                                         \
        const REAL *degrees; /* (C,) of freedom of Student-t densities; NULL for Gaussian ones */                      \
        int learns_degrees;  /* whether passes sum up what their estimation needs */                                   \
        Long whitener_step;  /* numbers from one whitener to the next; 0 if all components share one */                \
        REAL *offsets;       /* (C,) log-density at the mean, plus the logarithm of a weight */                        \
        REAL *packed;        /* full whiteners in the order in which the tiles read them */                            \
        Long packed_size;                                                                                              \
    }
typedef ELLIPTICAL(double) Gauss;
typedef ELLIPTICAL(float) GaussSingle;

/* What to tell about rows. */
typedef struct {
    int what;
    Long n_components, n_classes;
    Long per_class;           /* number of clusters of each class, which follow each other */
    const double *log_mixing; /* (M, C) if classes share all clusters, otherwise NULL */
    double *mixing;           /* (M, C) its exponential, at most 1 */
    double inverse_temperature;
    double base;   /* single precision: offsets are relative to this */
    double lowest; /* single precision: rows less likely than this, relative to the base, need doubles */
    Long n_compressed;
    const long long *compressed;    /* columns that are compressed by asinh */
    const double *middles, *widths; /* of these columns */
} Prediction;

static inline int contiguous(const Rows *x) /* each row by itself */
{
    return x->column_stride == (x->single ? 4 : 8) && !x->columns;
}

#include "arguments.h"

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
        return 1 + g->d + times(wide_stride(g->d), wide_stride(g->d));
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

/* lgamma without the sign, which that function leaves in a variable that all threads share. */
static double log_gamma(double x)
{
#ifdef __GLIBC__
    int sign;
    return lgamma_r(x, &sign);
#else
    return lgamma(x);
#endif
}

/* The derivative of log gamma at x > 0, otherwise not a number: by its recurrence to 16 and beyond, and there by its asymptotic series. */
static double digamma(double x)
{
    double sum = 0.0;
    if (!(x > 0.0))
        return NAN;
    for (; x < 16.0; x += 1.0)
        sum -= 1.0 / x;
    const double z = 1.0 / (x * x);
    const double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))));
    return sum + log(x) - 0.5 / x - series;
}

#define SINGLE 0
#define W 2
#define FN(name) name##_base
#define TARGET
#include "density.h"
#include "kernels.h"
#include "prediction.h"
#include "undefine.h"
#define SINGLE 1
#define W 4
#define FN(name) name##_base_single
#define TARGET
#include "density.h"
#include "prediction.h"
#include "undefine.h"

#if (defined(__x86_64__) || defined(__i386__)) && !defined(LINKMIX_BASE_ONLY)
#define HAS_X86
#include <cpuid.h>
#include <immintrin.h>
#define SINGLE 0
#define W 4
#define FN(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "density.h"
#include "kernels.h"
#include "prediction.h"
#include "undefine.h"
#define SINGLE 1
#define W 8
#define FN(name) name##_avx2_single
#define TARGET __attribute__((target("avx2,fma")))
#include "density.h"
#include "prediction.h"
#include "undefine.h"
#define SINGLE 0
#define W 8
#define FN(name) name##_avx512
#ifdef __clang__ /* drops the whole attribute if it does not know a word of it */
#define TARGET __attribute__((target("avx512f,avx512dq,fma,popcnt"), min_vector_width(512)))
#else
#define TARGET __attribute__((target("avx512f,avx512dq,fma,popcnt,prefer-vector-width=512")))
#endif
#include "density.h"
#include "kernels.h"
#include "prediction.h"
#include "undefine.h"
#endif

typedef double (*Pass)(int, const Gauss *, const Rows *, const double *, Long, Long, double *, double *, double *,
                       double *, double *);

typedef void (*Posteriors)(const Pairs *, double *, double *, double *);
typedef double (*PairSums)(const Pairs *, Long, Long, const double *, const double *, const double *, double *,
                           double *, double *, double *, double *, double *);
typedef void (*Exponentials)(double *, Long);
typedef void (*Messages)(Long, Long, Long, double *, double *, const double *, const double *, double *, double *);
typedef int (*Whiten)(Long, const double *, double *, double *);
typedef double (*Trace)(Long, const double *, const double *, double *);
typedef void (*PoolSizes)(Long, Long, const double *, const double *, double *);
typedef void (*PoolShares)(Long, Long, const double *, const double *, const double *, double *, double *);

typedef int (*Predict)(const Prediction *, const Gauss *, const Rows *, Long, Long, void *, double *, double *);
typedef int (*PredictSingle)(const Prediction *, const GaussSingle *, const Rows *, Long, Long, void *, float *, float *);

typedef struct {
    const char *name;
    Pass pass;
    Posteriors posteriors;
    PairSums pairs;
    Exponentials exponentials, logs;
    Messages messages;
    Whiten whiten;
    Trace trace;
    PoolSizes pool_sizes;
    PoolShares pool_shares;
    Predict predict;
    PredictSingle predict_single;
} Level;

#define LEVEL(name, single)                                                                                            \
    {#name, pass_##name, posteriors_##name, pairs_##name, exponentials_##name, logs_##name, messages_##name,           \
     whiten_##name, trace_##name, pool_sizes_##name, pool_shares_##name, predict_##name, single}

static const Level LEVELS[] = {
    LEVEL(base, predict_base_single),
#ifdef HAS_X86
    LEVEL(avx2, predict_avx2_single),
    LEVEL(avx512, predict_avx2_single),
#endif
};

/* The level in use, one for the whole process: all threads and interpreters read it, and it may change while they
 * compute, since all levels lay out their data in the same way. */
static const Level *chosen = NULL;
#define level __atomic_load_n(&chosen, __ATOMIC_RELAXED)

/* Asked of the processor itself: what compilers offer for this needs a library of their own. */
static int supported(int i)
{
#ifdef HAS_X86
    unsigned a, b, c, d, saved, above;
    if (i == 0)
        return 1;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    const unsigned fma = 1u << 12, popcnt = 1u << 23, osxsave = 1u << 27;
    if ((c & (fma | popcnt | osxsave)) != (fma | popcnt | osxsave))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(above) : "c"(0)); /* registers that the system keeps */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    const unsigned avx2 = 1u << 5, avx512f = 1u << 16, avx512dq = 1u << 17;
    if (i == 1)
        return (saved & 0x06) == 0x06 && (b & avx2);
    return (saved & 0xe6) == 0xe6 && (b & avx512f) && (b & avx512dq);
#else
    return i == 0;
#endif
}

#include "network.h"

/* ---- components ---------------------------------------------------------------------------------------------- */

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
        double height = -0.5 * ((double)d * LOG_2_PI);
        if (g->degrees) {
            const double nu = g->degrees[c];
            height = log_gamma(0.5 * (nu + (double)d)) - log_gamma(0.5 * nu) - 0.5 * (double)d * log(PI * nu);
        }
        g->offsets[c] = half_log_precision + height + (log_weights ? log_weights[c] : 0.0);
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

/* The next beginning of a cache line: vectors that reach across two lines take twice as long to load. */
static void *line(void *pointer)
{
    return (void *)(((size_t)pointer + 63) / 64 * 64);
}

static Long packed_size(int form, Long d)
{
    return form == FULL ? times(d, d + 4) / 2 + 8 : 0;
}

/* Allocates offsets, packed whiteners and the scratch of a pass; one free() releases everything. */
static double *allocate(Gauss *g, double **scratch)
{
    g->packed_size = packed_size(g->form, g->d);
    const Long C = g->n_components, fixed = times(C, 1 + g->packed_size);
    Long running = times(BLOCK, g->d + C + 2) + buffer_size(g->d) + times(C, accumulators(g, 8));
    if (g->degrees)
        running += times(C, BLOCK);
    double *room = room_for(fixed + running);
    if (!room)
        return NULL;
    g->offsets = room;
    g->packed = room + g->n_components;
    *scratch = line(room + fixed);
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
    if (!(r->room = room_for(M + stride + 3 * times(n, stride) + n + 2 * stride + 5 * M)))
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

/* ---- the functions that Python calls ------------------------------------------------------------------------- */

static const char SUMS_DOC[] =
    "sums(form, shared, X, means, whiteners, degrees, learns_degrees, log_weights, row_weights, first, stop, out)\n\n"
    "Log-likelihood, weight, first and second moments of rows first to stop of a mixture, one after the other, to out.\n"
    "With degrees of freedom (C,) the components are Student-t: weight and moments count each row with its expected\n"
    "precision, and the sums of the shares (C,) and of expected log u - u (C,) follow; the last are 0 unless\n"
    "learns_degrees.";

static PyObject *py_sums(PyObject *self, PyObject *args)
{
    PyObject *X, *means, *whiteners, *degrees, *log_weights, *row_weights, *out;
    Held held[7] = {{.held = 0}};
    PyObject *result = NULL;
    Gauss g;
    Rows x;
    int shared, learns_degrees;
    Long first, stop;
    double *nu, *logs, *weights, *to, *scratch, *room;
    if (!PyArg_ParseTuple(args, "ipOOOOpOOnnO", &g.form, &shared, &X, &means, &whiteners, &degrees, &learns_degrees,
                          &log_weights, &row_weights, &first, &stop, &out))
        return NULL;
    if (!rows(X, &held[0], &x) || !components(means, whiteners, &held[1], x.d, shared, &g))
        goto end;
    const Long C = g.n_components, d = g.d;
    if (!doubles(degrees, &held[3], 0, 1, C, &nu))
        goto end;
    g.degrees = nu;
    g.learns_degrees = learns_degrees;
    if (!doubles(log_weights, &held[4], 0, 0, C, &logs) || !doubles(row_weights, &held[5], 0, 1, x.n, &weights) ||
        !doubles(out, &held[6], 1, 0, 1 + C + times(C, d) + second_size(g.form, C, d) + (nu ? 2 * C : 0), &to))
        goto end;
    if (!check_range(&x, first, stop) || !apart(held, 7))
        goto end;
    if (!(room = allocate(&g, &scratch)))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    prepare(&g, logs);
    to[0] = level->pass(FUSED, &g, &x, weights, first, stop, NULL, to + 1, to + 1 + C, to + 1 + C + C * d, scratch);
    Py_END_ALLOW_THREADS
    free(room);
    result = Py_NewRef(Py_None);
end:
    release(held, 7);
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
        !doubles(out, &held[3], 1, 0, times(x.n, g.n_components), &to))
        goto end;
    if (!check_range(&x, first, stop) || !apart(held, 4))
        goto end;
    if (!(room = allocate(&g, &scratch)))
        goto end;
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

/* Components in floats; the room has 1 + 2 d + second_size + packed_size floats for each of them, and one more. */
static void to_single(const Gauss *g, double base, float *room, GaussSingle *s)
{
    const Long C = g->n_components, d = g->d, second = g->form == FULL ? 0 : second_size(g->form, C, d);
    float *means = room, *low = means + C * d, *whiteners = low + C * d, *degrees = whiteners + second;
    *s = (GaussSingle){.form = g->form, .d = d, .n_components = C, .packed_size = g->packed_size};
    s->offsets = degrees + C;
    s->packed = s->offsets + C;
    for (Long i = 0; i < C * d; i++) {
        means[i] = (float)g->means[i];
        low[i] = (float)(g->means[i] - (double)means[i]);
    }
    for (Long i = 0; i < second; i++)
        whiteners[i] = (float)g->whiteners[i];
    for (Long c = 0; c < C; c++) {
        degrees[c] = g->degrees ? (float)g->degrees[c] : 0.0f;
        s->offsets[c] = (float)(g->offsets[c] - base);
    }
    for (Long i = 0; i < C * g->packed_size; i++)
        s->packed[i] = (float)g->packed[i];
    s->means = means;
    s->low_means = low;
    s->whiteners = whiteners;
    s->degrees = g->degrees ? degrees : NULL;
}

/* A block in single precision, and its unlikely rows in double precision. Returns 0 if a number is not finite. */
static int predict_in_floats(const Prediction *p, const Gauss *g, const GaussSingle *s, const Rows *x, Long row, Long n,
                             void *to, float *tops, float *scratch_single, double *tops_double, double *scratch)
{
    Long n_unlikely = 0;
    if (!level->predict_single(p, s, x, row, n, to, tops, scratch_single))
        return 0;
    for (Long b = 0; b < n; b++)
        n_unlikely += !(tops[b] > p->lowest);
    if (n_unlikely > BLOCK / 16) /* about as many panels as there are in a block */
        return level->predict(p, g, x, row, n, to, tops_double, scratch);
    for (Long b = 0; b < n && n_unlikely; b++)
        if (!(tops[b] > p->lowest) && !level->predict(p, g, x, row + b, 1, to, tops_double, scratch))
            return 0;
    return 1;
}

static const char PREDICT_DOC[] =
    "predict(what, form, shared, X, columns, means, whiteners, degrees, log_weights, log_mixing, n_classes,\n"
    "        inverse_temperature, compressed, middles, widths, lowest, first, stop, out)\n\n"
    "Something about each of the rows first to stop to out: 0 the log-densities of the classes (n, M), 1 their\n"
    "probabilities (n, M), 2 the most probable class (n,), 3 the log-density (n,). Returns False, with out in any state,\n"
    "if a number is missing or infinite. Floats are computed in single precision if lowest is not None: rows whose\n"
    "log-density is so far below the largest possible one are computed in double precision.";

static PyObject *py_predict(PyObject *self, PyObject *args)
{
    PyObject *X, *columns, *means, *whiteners, *degrees, *log_weights, *log_mixing, *compressed, *middles, *widths, *out;
    PyObject *lowest, *result = NULL;
    Held held[11] = {{.held = 0}};
    Gauss g;
    GaussSingle s;
    Rows x;
    Prediction p;
    int shared, form, fine = 1;
    Long first, stop;
    long long *used = NULL, *at = NULL, *classes = NULL;
    double *logs, *nu, *mixing, *middle, *width, *table = NULL, *scratch, *room = NULL;
    memset(&p, 0, sizeof(p));
    if (!PyArg_ParseTuple(args, "iipOOOOOOOndOOOOnnO", &p.what, &form, &shared, &X, &columns, &means, &whiteners,
                          &degrees, &log_weights, &log_mixing, &p.n_classes, &p.inverse_temperature, &compressed,
                          &middles, &widths, &lowest, &first, &stop, &out))
        return NULL;
    g.form = form;
    if (p.what < LOG_JOINT || p.what > LOG_DENSITY) {
        PyErr_Format(PyExc_ValueError, "there is no prediction %d: it is from 0 to 3", p.what);
        return NULL;
    }
    if (!rows(X, &held[0], &x) || (columns != Py_None && !integers(columns, &held[1], 0, 0, &used)))
        goto end;
    if (used) {
        const Long n_used = held[1].view.len / 8;
        for (Long j = 0; j < n_used; j++)
            if (used[j] < 0 || used[j] >= x.d) {
                PyErr_Format(PyExc_ValueError, "column %lld of %zd", used[j], x.d);
                goto end;
            }
        x.d = n_used;
        x.columns = used;
    }
    if (!components(means, whiteners, &held[2], x.d, shared, &g) ||
        !doubles(degrees, &held[4], 0, 1, g.n_components, &nu) ||
        !doubles(log_weights, &held[5], 0, 0, g.n_components, &logs) ||
        !doubles(log_mixing, &held[6], 0, 1, times(p.n_classes, g.n_components), &mixing) ||
        !integers(compressed, &held[7], 0, 0, &at))
        goto end;
    const Long C = p.n_components = g.n_components, M = p.n_classes, d = g.d;
    const int single = lowest != Py_None && x.single, wide = p.what == LOG_JOINT || p.what == PROBABILITIES;
    p.n_compressed = held[7].view.len / 8;
    if (!doubles(middles, &held[8], 0, 0, p.n_compressed, &middle) ||
        !doubles(widths, &held[9], 0, 0, p.n_compressed, &width) ||
        (p.what == CLASSES ? !integers(out, &held[10], 1, x.n, &classes)
                           : !doubles(out, &held[10], 1, 0, times(x.n, wide ? M : 1), &table)))
        goto end;
    for (Long k = 0; k < p.n_compressed; k++)
        if (at[k] < 0 || at[k] >= d) {
            PyErr_Format(PyExc_ValueError, "column %lld of %zd", at[k], d);
            goto end;
        }
    p.per_class = mixing ? 0 : M > 0 ? C / M : 0;
    if (!check_range(&x, first, stop) || !apart(held, 11))
        goto end;
    if (M < 1 || (!mixing && p.per_class * M != C)) {
        PyErr_Format(PyExc_ValueError, "%zd classes do not share %zd components", M, C);
        goto end;
    }
    g.degrees = nu;
    p.log_mixing = mixing;
    p.compressed = at;
    p.middles = middle;
    p.widths = width;
    p.lowest = single ? PyFloat_AsDouble(lowest) : 0.0;
    if (p.lowest == -1.0 && PyErr_Occurred())
        goto end;
    g.packed_size = packed_size(g.form, d);
    const Long running = times(BLOCK, (d > C ? d : C) + C + M + 6) + 24 * d;
    const Long fixed = times(C, 1 + g.packed_size) + (mixing ? times(M, C) : 0);
    const Long small = times(C, 2 * d + 2 + g.packed_size) + (form == FULL ? 0 : second_size(form, C, d));
    if (!(room = room_for(fixed + running + (small + running) / 2 + 1)))
        goto end;
    g.offsets = room;
    g.packed = room + C;
    if (mixing)
        p.mixing = g.packed + C * g.packed_size;
    scratch = line(room + fixed);
    float *scratch_single = line(scratch + running), *singles = scratch_single + running;
    void *to = p.what == CLASSES ? (void *)classes : (void *)table;
    Py_BEGIN_ALLOW_THREADS
    prepare(&g, logs);
    for (Long i = 0; i < M * C && mixing; i++)
        p.mixing[i] = exp(mixing[i]);
    if (single) {
        p.base = -INFINITY;
        for (Long c = 0; c < C; c++)
            p.base = g.offsets[c] > p.base ? g.offsets[c] : p.base;
        to_single(&g, p.base, singles, &s);
    }
    for (Long row = first; row < stop && fine; row += BLOCK) {
        const Long n = stop - row < BLOCK ? stop - row : BLOCK;
        if (single)
            fine = predict_in_floats(&p, &g, &s, &x, row, n, to, scratch_single, scratch_single + BLOCK, scratch,
                                     scratch + BLOCK);
        else
            fine = level->predict(&p, &g, &x, row, n, to, scratch, scratch + BLOCK);
    }
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(fine);
end:
    free(room);
    release(held, 11);
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
    if (!check_form(g.form) || !rows(X, &held[0], &x) || !doubles(means, &held[1], 0, 0, x.d > 0 ? x.d : 1, &m))
        goto end;
    const Long d = g.d = x.d, C = g.n_components = d > 0 ? held[1].view.len / (Long)sizeof(double) / d : 0;
    if (d < 1) {
        PyErr_SetString(PyExc_ValueError, "the rows have no columns");
        goto end;
    }
    g.means = m;
    if (!doubles(shares, &held[2], 0, 0, times(x.n, C), &table) ||
        !doubles(out, &held[3], 1, 0, C + times(C, d) + second_size(g.form, C, d), &to))
        goto end;
    if (!check_range(&x, first, stop) || !apart(held, 4))
        goto end;
    if (!(room = allocate(&g, &scratch)))
        goto end;
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
        !doubles(same, &held[7], 1, 0, q.n_pairs, &to_same) || !check_pairs(&q) || !apart(held, 8))
        goto end;
    q.log_density = density;
    q.if_same = likely;
    q.if_apart = unlikely;
    if (!allocate_pairs(&q, &room))
        goto end;
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

static const char NETWORK_DOC[] =
    "network(plan, n_classes, node, log_same, log_different, marginals, edge_same, partition)\n\n"
    "Labels of a network: marginals (n_nodes, M), the probability of equal labels (n_edges,) and the log-partition of\n"
    "each component go to the last three. Returns the log-partition, NAN if no labelling is possible, and whether loopy\n"
    "messages converged.";

static PyObject *py_network(PyObject *self, PyObject *args)
{
    PyObject *o[7];
    Held held[7] = {{.held = 0}};
    PyObject *result = NULL;
    Network net;
    Long n_classes;
    long long *plan;
    double *node, *log_same, *log_different, *marginals, *edge_same, *partition, *room, total;
    int converged = 0;
    if (!PyArg_ParseTuple(args, "OnOOOOOO", &o[0], &n_classes, &o[1], &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    if (!integers(o[0], &held[0], 0, 0, &plan))
        goto end;
    if (network_open(plan, held[0].view.len / 8, n_classes, &net)) {
        PyErr_SetString(PyExc_ValueError, "this is no plan of a network with so many classes");
        goto end;
    }
    if (!doubles(o[1], &held[1], 0, 0, times(net.n_nodes, net.M), &node) ||
        !doubles(o[2], &held[2], 0, 0, net.n_edges, &log_same) ||
        !doubles(o[3], &held[3], 0, 0, net.n_edges, &log_different) ||
        !doubles(o[4], &held[4], 1, 0, times(net.n_nodes, net.M), &marginals) ||
        !doubles(o[5], &held[5], 1, 0, net.n_edges, &edge_same) ||
        !doubles(o[6], &held[6], 1, 0, net.n_components, &partition) || !apart(held, 7))
        goto end;
    if (!(room = room_for(network_room(&net))))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    total = infer_components(&net, node, log_same, log_different, marginals, edge_same, partition, 0, &converged,
                             room);
    Py_END_ALLOW_THREADS
    free(room);
    result = Py_BuildValue("dO", total, converged ? Py_True : Py_False);
end:
    release(held, 7);
    return result;
}

static const char COMPONENTS_DOC[] =
    "components(pairs, ids)\n\n"
    "Connected component of each node of a graph with the edges pairs (n_pairs, 2), numbered by first appearance, goes to\n"
    "ids (n_nodes,).";

static PyObject *py_components(PyObject *self, PyObject *args)
{
    PyObject *o[2], *result = NULL;
    Held held[2] = {{.held = 0}};
    long long *pairs, *ids;
    if (!PyArg_ParseTuple(args, "OO", &o[0], &o[1]))
        return NULL;
    if (!integers(o[0], &held[0], 0, 0, &pairs) || !integers(o[1], &held[1], 1, 0, &ids) ||
        !apart(held, 2))
        goto end;
    const Long n_pairs = held[0].view.len / 16, n_nodes = held[1].view.len / 8;
    if (!within(pairs, 2 * n_pairs, n_nodes)) {
        PyErr_Format(PyExc_ValueError, "a pair has a node that is none of %zd", n_nodes);
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    find_components(pairs, n_pairs, ids, n_nodes);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    release(held, 2);
    return result;
}

static const char SWEEP_DOC[] =
    "sweep(n_classes, costs, begin, other, rewards, order, labels)\n\n"
    "Each row of `order` takes the class, from 0 to n_classes - 1, in which it costs least: costs (n, M) minus the\n"
    "rewards of its edges begin[i] to begin[i + 1] that lead to rows of that class. It keeps its class if no other costs\n"
    "less. The labels (n,) change in place; n_classes stands for none.";

static PyObject *py_sweep(PyObject *self, PyObject *args)
{
    PyObject *o[6], *result = NULL;
    Held held[6] = {{.held = 0}};
    Long M;
    long long *begin, *other, *order, *labels;
    double *costs, *rewards, *total = NULL;
    if (!PyArg_ParseTuple(args, "nOOOOOO", &M, &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    if (!integers(o[5], &held[5], 1, 0, &labels))
        goto end;
    const Long n = held[5].view.len / 8;
    if (!doubles(o[0], &held[0], 0, 0, times(n, M), &costs) || !integers(o[1], &held[1], 0, n + 1, &begin) ||
        !integers(o[2], &held[2], 0, begin[n], &other) || !doubles(o[3], &held[3], 0, 0, begin[n], &rewards) ||
        !integers(o[4], &held[4], 0, 0, &order) || !apart(held, 6))
        goto end;
    const Long n_order = held[4].view.len / 8;
    if (M < 1 || M >= ENORMOUS || begin[0] != 0 || !within(begin, n + 1, begin[n] + 1) || !within(other, begin[n], n) ||
        !within(order, n_order, n) || !within(labels, n, M + 1)) {
        PyErr_SetString(PyExc_ValueError, "rows, edges or classes that do not exist");
        goto end;
    }
    if (!(total = room_for(M + 1)))
        goto end;
    total[M] = 0.0;
    for (Long k = 0; k < n_order; k++) {
        const long long i = order[k];
        Long best = 0;
        memcpy(total, costs + i * M, sizeof(double) * (size_t)M);
        for (long long e = begin[i]; e < begin[i + 1]; e++)
            total[labels[other[e]]] -= rewards[e];
        for (Long m = 1; m < M; m++)
            best = total[m] < total[best] ? m : best;
        if (labels[i] == M || total[best] < total[labels[i]])
            labels[i] = best;
    }
    result = Py_NewRef(Py_None);
end:
    free(total);
    release(held, 6);
    return result;
}

#include "loop.h"

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
            const Level *before = __atomic_exchange_n(&chosen, &LEVELS[i], __ATOMIC_RELAXED);
            return PyUnicode_FromString(before->name);
        }
    return PyErr_Format(PyExc_ValueError, "the processor has no instruction set %s: choose one of levels()", name);
}

static PyMethodDef METHODS[] = {
    {"sums", py_sums, METH_VARARGS, SUMS_DOC},
    {"log_density", py_log_density, METH_VARARGS, LOG_DENSITY_DOC},
    {"predict", py_predict, METH_VARARGS, PREDICT_DOC},
    {"moments", py_moments, METH_VARARGS, MOMENTS_DOC},
    {"pairs", py_pairs, METH_VARARGS, PAIRS_DOC},
    {"network", py_network, METH_VARARGS, NETWORK_DOC},
    {"components", py_components, METH_VARARGS, COMPONENTS_DOC},
    {"sweep", py_sweep, METH_VARARGS, SWEEP_DOC},
    {"run", py_run, METH_VARARGS, RUN_DOC},
    {"levels", py_levels, METH_NOARGS, "levels()\n\nInstruction sets that this processor has, the plainest first."},
    {"use", py_use, METH_VARARGS, "use(level)\n\nChoose an instruction set; returns the one that was in use."},
    {NULL},
};

/* Chooses the best level, if no other interpreter of this process has chosen one. */
static int begin(PyObject *module)
{
    if (level)
        return 0;
    for (int i = 0; i < (int)(sizeof(LEVELS) / sizeof(*LEVELS)); i++)
        if (supported(i))
            __atomic_store_n(&chosen, &LEVELS[i], __ATOMIC_RELAXED);
    return 0;
}

/* The functions keep nothing between calls, hold the arrays they read, and call Python only for signals: they need
 * neither the lock of the interpreter nor to be in the first interpreter. No threads are started here, so that nothing
 * is missing after a fork. The first two slots say so. One wheel serves every Python from 3.11 on, but a Python refuses
 * slots that it does not know, and older headers do not name them. So their numbers and values in the stable ABI are
 * written out, and PyInit__core begins at the first slot that the running Python knows. */
static PyModuleDef_Slot SLOTS[] = {
    {4, (void *)1}, /* Py_mod_gil: not used; since 3.13 */
    {3, (void *)2}, /* Py_mod_multiple_interpreters: each with a lock of its own; since 3.12 */
    {Py_mod_exec, begin},
    {0, NULL},
};

#define FROM_SLOT(first)                                                                                               \
    {                                                                                                                  \
        PyModuleDef_HEAD_INIT, .m_name = "linkmix.native._core", .m_methods = METHODS, .m_slots = SLOTS + (first)      \
    }
static struct PyModuleDef MODULES[] = {FROM_SLOT(0), FROM_SLOT(1), FROM_SLOT(2)};

PyMODINIT_FUNC PyInit__core(void)
{
    const long minor = strtol(Py_GetVersion() + 2, NULL, 10); /* of "3.13.0 (main, ..." */
    return PyModuleDef_Init(&MODULES[minor >= 13 ? 0 : minor == 12 ? 1 : 2]);
}
