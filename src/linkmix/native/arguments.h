/* What Python hands over: arrays through the buffer protocol, checked for type, size, place and overlap.
 *
 * Whatever the arguments are, no function of the core reads or writes outside of them: sizes are multiplied without
 * overflow, numbers of rows, columns and nodes are compared with what there is, and an array that is written to must
 * not overlap another one, since that could be where the checked numbers are. What is left to the caller is not to
 * change, from another thread, arrays of whole numbers while a function reads them.
 */

#define ENORMOUS (PY_SSIZE_T_MAX / 1024) /* more numbers than there can be; some of these add up without overflow */

/* Sizes are products of what the caller says: too large a product becomes ENORMOUS, which no array has. */
static Long times(Long a, Long b)
{
    Long product;
    return __builtin_mul_overflow(a, b, &product) || product > ENORMOUS ? ENORMOUS : product;
}

static Long second_size(int form, Long n_components, Long d)
{
    return form == SPHERICAL ? n_components : times(n_components, form == FULL ? times(d, d) : d);
}

/* Space for some numbers, or a MemoryError that says how much was asked for. */
static void *room_for(Long numbers)
{
    numbers = numbers < ENORMOUS ? numbers : ENORMOUS;
    void *room = malloc(sizeof(double) * (size_t)numbers + 128);
    if (!room)
        PyErr_Format(PyExc_MemoryError,
                     "the native core needs %zd more megabytes, which it did not get: allow this process more memory "
                     "(ulimit -v), end others, or fit fewer rows, columns, classes or links at once",
                     numbers / (1 << 17) + 1);
    return room;
}

typedef struct {
    Py_buffer view;
    int held, written;
} Held;

static void release(Held *held, int n)
{
    for (int i = 0; i < n; i++)
        if (held[i].held)
            PyBuffer_Release(&held[i].view);
}

/* The first byte of an array, and the one after the last; both are the same if it is empty. */
static void extent(const Py_buffer *view, const char **begin, const char **end)
{
    *begin = *end = view->buf;
    if (view->len == 0)
        return;
    if (!view->strides) {
        *end += view->len;
        return;
    }
    for (int axis = 0; axis < view->ndim; axis++) {
        const Long reach = (view->shape[axis] - 1) * view->strides[axis];
        *(reach < 0 ? begin : end) += reach;
    }
    *end += view->itemsize;
}

/* Whether no array that is written to overlaps another one. */
static int apart(const Held *held, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; held[i].held && held[i].written && j < n; j++) {
            const char *begin, *end, *other, *other_end;
            if (i == j || !held[j].held)
                continue;
            extent(&held[i].view, &begin, &end);
            extent(&held[j].view, &other, &other_end);
            if (begin < other_end && other < end) {
                PyErr_SetString(PyExc_ValueError, "an array that is written to overlaps another one: pass a copy");
                return 0;
            }
        }
    return 1;
}

/* A contiguous array of at least `size` numbers of 8 bytes, with one of the given formats. */
static int numbers_of(PyObject *object, Held *held, int writable, const char *formats, const char *name, Long size)
{
    if (PyObject_GetBuffer(object, &held->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
        return 0;
    const Py_buffer *view = &held->view;
    const char *format = view->format ? view->format : "B";
    held->held = 1;
    held->written = writable;
    if (view->itemsize != 8 || !format[0] || format[1] || !strchr(formats, format[0]) || view->len / 8 < size) {
        PyErr_Format(PyExc_ValueError, "expected at least %zd %s, got %zd bytes of format %s", size, name, view->len,
                     format);
        return 0;
    }
    if (view->len && (size_t)view->buf % 8) {
        PyErr_Format(PyExc_ValueError, "expected %s at an address that is a multiple of 8: pass a copy", name);
        return 0;
    }
    return 1;
}

/* A contiguous array of at least `size` doubles; None becomes NULL where it is allowed. */
static int doubles(PyObject *object, Held *held, int writable, int optional, Long size, double **out)
{
    *out = NULL;
    if (optional && object == Py_None)
        return 1;
    if (!numbers_of(object, held, writable, "d", "doubles", size))
        return 0;
    *out = held->view.buf;
    return 1;
}

/* A contiguous array of 64-bit integers. */
static int integers(PyObject *object, Held *held, int writable, Long size, long long **out)
{
    if (!numbers_of(object, held, writable, "lq", "64-bit integers", size))
        return 0;
    *out = held->view.buf;
    return 1;
}

static int rows(PyObject *object, Held *held, Rows *x)
{
    if (PyObject_GetBuffer(object, &held->view, PyBUF_STRIDED_RO | PyBUF_FORMAT))
        return 0;
    held->held = 1;
    const Py_buffer *view = &held->view;
    const char *format = view->format ? view->format : "B";
    const int single = !strcmp(format, "f");
    if (view->ndim != 2 || (strcmp(format, "d") && !single)) {
        PyErr_Format(PyExc_ValueError, "expected rows of doubles or floats, got %d axes of format %s", view->ndim,
                     format);
        return 0;
    }
    int aligned = (size_t)view->buf % (size_t)view->itemsize == 0;
    for (int axis = 0; axis < 2; axis++)
        aligned = aligned && (view->shape[axis] < 2 || view->strides[axis] % view->itemsize == 0);
    if (view->len && !aligned) {
        PyErr_SetString(PyExc_ValueError, "expected rows whose numbers are aligned: pass a copy");
        return 0;
    }
    *x = (Rows){view->buf, view->shape[0], view->shape[1], view->strides[0], view->strides[1], single, NULL};
    return 1;
}

static int check_form(int form)
{
    if (form == FULL || form == DIAGONAL || form == SPHERICAL)
        return 1;
    PyErr_Format(PyExc_ValueError, "there is no form %d of covariances: 0 is full, 1 diagonal, 2 spherical", form);
    return 0;
}

/* Whether first <= stop are rows. */
static int check_range(const Rows *x, Long first, Long stop)
{
    if (first >= 0 && first <= stop && stop <= x->n)
        return 1;
    PyErr_Format(PyExc_ValueError, "rows %zd to %zd of %zd", first, stop, x->n);
    return 0;
}

/* Reads means (C, d) and whiteners; `shared` says whether all components have the same whitener. */
static int components(PyObject *means, PyObject *whiteners, Held *held, Long d, int shared, Gauss *g)
{
    double *m, *w;
    if (!check_form(g->form) || !doubles(means, &held[0], 0, 0, 0, &m))
        return 0;
    *g = (Gauss){.form = g->form, .d = d};
    const Long n_numbers = held[0].view.len / (Long)sizeof(double);
    g->n_components = d > 0 ? n_numbers / d : 0;
    if (g->n_components < 1 || g->n_components * d != n_numbers) {
        PyErr_Format(PyExc_ValueError, "means do not have %zd columns", d);
        return 0;
    }
    if (shared && g->form != FULL) {
        PyErr_SetString(PyExc_ValueError, "only full whiteners are shared by all components");
        return 0;
    }
    g->whitener_step = shared ? 0 : second_size(g->form, 1, d);
    if (!doubles(whiteners, &held[1], 0, 0, second_size(g->form, shared ? 1 : g->n_components, d), &w))
        return 0;
    g->means = m;
    g->whiteners = w;
    return 1;
}

/* Whether all numbers are from 0 to end - 1. */
static int within(const long long *numbers, Long n, long long end)
{
    for (Long i = 0; i < n; i++)
        if (numbers[i] < 0 || numbers[i] >= end)
            return 0;
    return 1;
}
