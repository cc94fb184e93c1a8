/* The native core of linkmix: passes over rows of Gaussian mixtures.
 *
 * Arrays come through the buffer protocol, so that building needs a C compiler and nothing else. The Python side
 * (linkmix/native/__init__.py) checks shapes and types before it calls; here they are trusted, apart from sizes.
 * The kernels are in kernels.h, compiled for each instruction set; the best one that the processor has is chosen when
 * the module is imported.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

typedef Py_ssize_t Long;

enum { FULL = 0, DIAGONAL = 1, SPHERICAL = 2 };
enum { JOINT, WEIGHTED, FUSED };

#define BLOCK 240      /* rows; a multiple of 6 W for every W, 2, 4 and 8 */
#define NARROW 16      /* up to so many columns, moments are vectors over rows; beyond, over columns */
#define COLLECT 64     /* rows that wide moments take at once */
#define NEGLIGIBLE 1e-25 /* a row with a smaller share leaves no trace in moments; in the weights it always counts */
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
    Long whitener_step; /* numbers from one whitener to the next; 0 where all components share one */
    double *offsets;    /* (C,) what is added to minus half the squared distance */
    double *packed;     /* full whiteners in the order in which the tiles read them */
    Long packed_size;
} Gauss;

static Long wide_stride(Long d)
{
    return (d + 7) / 8 * 8;
}

/* Numbers that the running sums of one component take. */
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

/* Pairs of linked points, and what is known of the points. */
typedef struct {
    Long n_points, n_classes, stride; /* of rows of posteriors; a multiple of every W */
    const double *log_density;        /* (n_points, n_classes) */
    double *log_weights;              /* (n_classes,) logarithm of the class weights */
    double *inverse_weights;          /* (stride,) */
    double log_apart, inverse_apart;  /* of the probability that two independent labels differ */
    Long n_pairs;
    const long long *pairs;                /* (n_pairs, 2) */
    const double *if_same, *if_apart; /* (n_pairs,) how likely a statement is if labels agree, or differ */
} Pairs;

static double log_add(double a, double b)
{
    double top = a > b ? a : b, low = a > b ? b : a;
    return top > -INFINITY ? top + log1p(exp(low - top)) : -INFINITY;
}

/* Turns logarithms into shares of their sum, which is one to the last digit, and returns the logarithm of the sum. */
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

/* One pair in the log domain; scratch has room for five times the classes. Returns its log-likelihood. */
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
#define W 4
#define FN(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "kernels.h"
#define W 8
#define FN(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,fma,prefer-vector-width=512")))
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

/* Offsets of the log-densities, log-weights included, and the whiteners in the order of the tiles. */
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

/* Room for offsets, packed whiteners and the scratch of a pass; one free() ends it. */
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

/* Room for the weights and everything that pairs need; one free() ends it. */
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

/* E-step of all pairs: label weights (n, M), counts of labels (M,) and the probability that each pair is together. */
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

/* A contiguous array of doubles with at least `size` of them; None is NULL where that is allowed. */
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
static int integers(PyObject *object, Held *held, Long size, const long long **out)
{
    if (PyObject_GetBuffer(object, &held->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT))
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

/* Reads means (C, d) and whiteners; shared is whether all components have the same whitener. */
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

/* ---- the functions that Python sees -------------------------------------------------------------------------- */

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
    if (!integers(pairs, &held[2], 2 * q.n_pairs, &q.pairs) ||
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
    {"moments", py_moments, METH_VARARGS, MOMENTS_DOC},
    {"pairs", py_pairs, METH_VARARGS, PAIRS_DOC},
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
