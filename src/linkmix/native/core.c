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

typedef struct {
    const char *name;
    Pass pass;
} Level;

static const Level LEVELS[] = {
    {"base", pass_base},
#ifdef HAS_X86
    {"avx2", pass_avx2},
    {"avx512", pass_avx512},
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
