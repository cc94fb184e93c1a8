/* The loop of EM: both steps, as often as wanted, and the function that Python calls for it.
 *
 * A step that needs care (J plus log-prior would fall, a covariance is singular) is never made here: the loop ends
 * before it, and Python makes the step.
 */

#include "maximise.h"

#define SMALLEST_CLUSTER_WEIGHT 1e-300 /* as in engine/steps.py */
#define ROUNDING 1e-9                  /* as in engine/careful.py */
#define LEAST_SUM 1e-200               /* sums of exponentials below this are formed again from logarithms */

/* A network of chunklets whose points are drawn independently; links are observations of their labels. */
typedef struct {
    Network network;
    const long long *of_row;              /* (n,) chunklet of each linked row */
    const double *exponent;               /* (n_nodes,) weight of the points of each chunklet */
    const double *log_same, *log_different; /* (n_edges,) */
    double *node, *marginals, *edge_same, *room;
    int warm; /* whether the room holds loopy messages, from which the next step starts */
} Chunklets;

/* Rows whose labels follow from more than their own density, and space for what is known about them. */
typedef struct {
    Rows rows;
    const double *weights;  /* (n,) how often each row counts; NULL if all count once */
    const long long *known; /* (n,) class numbers, negative where not known; NULL if none is */
    double *table, *powers; /* (n, C); powers for a pool only */
    double *sizes;          /* (n, M) for a pool only */
    double *class_density, *labels; /* (n, M) */
} Group;

/* What stays the same during a fit, and space for what changes. */
typedef struct {
    Estimate estimate;
    int pool;     /* whether all classes mix one pool of components, rather than K of their own each */
    Long M, K;    /* classes, and cluster weights of each */
    Rows free;                  /* of unknown class */
    const double *free_weights; /* how often each row counts; NULL if all count once */
    Group told, linked;         /* free rows of known class, and linked rows */
    double constant, link_weight; /* the constant is added to the log-likelihood of the links */
    int networked;                /* whether the links are a network of chunklets, rather than pairs */
    Pairs pairs;
    PairRoom pair_room;
    Chunklets chunklets;
    Gauss gauss;
    double *scratch;
    Long n_sums;
    Sums sums, some;
    double *cluster_counts; /* (M, K); the weights of the components if each belongs to one class */
    double *log_classes, *log_clusters, *log_weights, *free_counts, *must_counts, *class_counts, *newton, *triangle;
    double *same; /* (n_pairs,) */
    double n_apart, log_likelihood;
} Run;

/* One pass of the kernels; the sums go to `to`. */
static double pass_over(Run *r, int what, const Rows *x, const double *row_weights, double *table, Sums *to)
{
    return level->pass(what, &r->gauss, x, row_weights, 0, x->n, table, to ? to->scaled : NULL, to ? to->first : NULL,
                       to ? to->second : NULL, r->scratch);
}

/* Free rows of unknown class: a plain mixture of components. Returns the log-likelihood. */
static double expect_free(Run *r)
{
    const Long C = r->estimate.C, M = r->M, K = r->K;
    double *shares = r->newton; /* unused between M-steps */
    for (Long c = 0; c < C && r->pool; c++) {
        for (Long m = 0; m < M; m++)
            shares[m] = r->log_classes[m] + r->log_clusters[m * K + c];
        r->log_weights[c] = shares_of(shares, M);
        for (Long m = 0; m < M; m++) /* the classes share a component in the same proportion for all rows */
            r->cluster_counts[m * K + c] = shares[m];
    }
    for (Long c = 0; c < C && !r->pool; c++)
        r->log_weights[c] = r->log_classes[c / K] + r->log_clusters[c];
    prepare(&r->gauss, r->log_weights);
    const double log_likelihood = pass_over(r, FUSED, &r->free, r->free_weights, NULL, &r->sums);
    for (Long k = 0; k < M * K; k++) {
        if (r->pool)
            r->cluster_counts[k] *= r->sums.weight[k % K];
        r->free_counts[k / K] += r->cluster_counts[k];
    }
    return log_likelihood;
}

/* Log-density of rows in each class (n, M), each class with components of its own. The table turns from log-densities
 * of the components into their shares within each class. */
static void expect_own(Run *r, Group *q)
{
    const Long K = r->K, n = q->rows.n * r->M;
    for (Long i = 0; i < n; i++) {
        double *within = q->table + i * K, top = -INFINITY;
        for (Long k = 0; k < K; k++)
            top = within[k] > top ? within[k] : top;
        q->class_density[i] = top;
        for (Long k = 0; k < K; k++)
            within[k] -= top > -INFINITY ? top : 0.0;
    }
    level->exponentials(q->table, n * K);
    if (K == 1)
        return;
    double *sums = q->labels; /* unused so far */
    for (Long i = 0; i < n; i++) {
        double *within = q->table + i * K, sum = 0.0;
        for (Long k = 0; k < K; k++)
            sum += within[k];
        for (Long k = 0; k < K && sum > 0.0; k++)
            within[k] /= sum;
        sums[i] = sum > 0.0 ? sum : 1.0;
    }
    level->logs(sums, n);
    for (Long i = 0; i < n; i++)
        q->class_density[i] += sums[i];
}

/* The same for a pool: `powers` (n, C) are exponentials of the table, relative to the largest in the row, and `sizes`
 * (n, M) their sums weighted by the weights of each class; 0 where they are too small to be trusted. */
static void expect_pool(Run *r, Group *q, const double *cluster_weights)
{
    const Long C = r->estimate.C, M = r->M;
    double *within = r->log_weights, *sums = q->labels; /* unused so far */
    for (Long i = 0; i < q->rows.n; i++) {
        const double *density = q->table + i * C;
        double *powers = q->powers + i * C, *sizes = q->sizes + i * M, top = -INFINITY;
        for (Long c = 0; c < C; c++)
            top = density[c] > top ? density[c] : top;
        for (Long c = 0; c < C; c++)
            powers[c] = density[c] - (top > -INFINITY ? top : 0.0);
        level->exponentials(powers, C);
        level->pool_sizes(C, M, cluster_weights, powers, sizes);
        for (Long m = 0; m < M; m++) {
            q->class_density[i * M + m] = top;
            sums[i * M + m] = sizes[m];
            if (sizes[m] > LEAST_SUM)
                continue;
            sizes[m] = 0.0;
            sums[i * M + m] = 1.0;
            for (Long c = 0; c < C; c++)
                within[c] = r->log_clusters[m * C + c] + density[c];
            q->class_density[i * M + m] = shares_of(within, C);
        }
    }
    level->logs(sums, q->rows.n * M);
    for (Long i = 0; i < q->rows.n * M; i++)
        q->class_density[i] += sums[i];
}

/* Turns labels (n, M) into shares of the components, in the table (n, C), and adds them to the cluster counts. */
static void share_pool(Run *r, Group *q, const double *cluster_weights)
{
    const Long C = r->estimate.C, M = r->M;
    double *within = r->log_weights, *shares = r->newton;
    for (Long i = 0; i < q->rows.n; i++) {
        double *density = q->table + i * C, *factors = q->sizes + i * M;
        const double *labels = q->labels + i * M;
        memset(shares, 0, sizeof(double) * (size_t)C);
        for (Long m = 0; m < M; m++) {
            const int trusted = factors[m] > 0.0;
            factors[m] = trusted ? labels[m] / factors[m] : 0.0;
            if (trusted || !(labels[m] > 0.0))
                continue;
            for (Long c = 0; c < C; c++)
                within[c] = r->log_clusters[m * C + c] + density[c];
            shares_of(within, C);
            for (Long c = 0; c < C; c++) {
                shares[c] += labels[m] * within[c];
                r->cluster_counts[m * C + c] += labels[m] * within[c];
            }
        }
        level->pool_shares(C, M, cluster_weights, q->powers + i * C, factors, r->cluster_counts, shares);
        memcpy(density, shares, sizeof(double) * (size_t)C);
    }
}

/* Log-densities of a group in each class. */
static void expect_classes(Run *r, Group *q, const Parameters *p)
{
    prepare(&r->gauss, r->pool ? NULL : r->log_clusters);
    pass_over(r, JOINT, &q->rows, NULL, q->table, NULL);
    if (r->pool)
        expect_pool(r, q, p->cluster_weights);
    else
        expect_own(r, q);
}

/* Adds the sums of a group whose labels are found, each row weighted by its label weights (n, M). */
static void add_sums(Run *r, Group *q, const Parameters *p)
{
    if (r->pool)
        share_pool(r, q, p->cluster_weights);
    else
        for (Long i = 0; i < q->rows.n * r->estimate.C; i++)
            q->table[i] *= q->labels[i / r->K];
    pass_over(r, WEIGHTED, &q->rows, NULL, q->table, &r->some);
    for (Long i = 0; i < r->n_sums; i++)
        r->sums.scaled[i] += r->some.scaled[i];
}

/* Free rows of known class. Returns the log-likelihood. */
static double expect_told(Run *r, const Parameters *p)
{
    const Long M = r->M;
    Group *q = &r->told;
    double log_likelihood = 0.0;
    expect_classes(r, q, p);
    memset(q->labels, 0, sizeof(double) * (size_t)(q->rows.n * M));
    for (Long i = 0; i < q->rows.n; i++) {
        const Long m = (Long)q->known[i];
        const double weight = q->weights ? q->weights[i] : 1.0, density = q->class_density[i * M + m];
        log_likelihood += weight * (r->log_classes[m] + density);
        if (!(density > -INFINITY))
            continue;
        q->labels[i * M + m] = weight;
        r->free_counts[m] += weight;
    }
    add_sums(r, q, p);
    return log_likelihood;
}

/* E-step of a network: label weights (n, M) and counts of labels. NAN if Python must explain why there is none. */
static double expect_network(Run *r)
{
    const Long M = r->M, n = r->linked.rows.n;
    Chunklets *q = &r->chunklets;
    for (Long j = 0; j < q->network.n_nodes * M; j++)
        q->node[j] = q->exponent[j / M] * r->log_classes[j % M];
    for (Long i = 0; i < n; i++)
        for (Long m = 0; m < M; m++)
            q->node[q->of_row[i] * M + m] += r->linked.class_density[i * M + m];
    const double log_partition = network_infer(&q->network, q->node, q->log_same, q->log_different, q->marginals,
                                               q->edge_same, q->warm, q->room);
    q->warm = 1;
    for (Long i = 0; i < n; i++)
        memcpy(r->linked.labels + i * M, q->marginals + q->of_row[i] * M, sizeof(double) * (size_t)M);
    memset(r->class_counts, 0, sizeof(double) * (size_t)M);
    for (Long j = 0; j < q->network.n_nodes * M; j++)
        r->class_counts[j % M] += q->exponent[j / M] * q->marginals[j];
    return log_partition;
}

/* Linked rows. The links see log-densities with weights and known labels applied. Returns the log-likelihood. */
static double expect_linked(Run *r, const Parameters *p)
{
    const Long M = r->M;
    Group *q = &r->linked;
    expect_classes(r, q, p);
    for (Long i = 0; i < q->rows.n; i++)
        for (Long m = 0; m < M; m++) {
            double *density = q->class_density + i * M + m;
            if (q->weights)
                *density *= q->weights[i];
            if (q->known && q->known[i] >= 0 && q->known[i] != m)
                *density = -INFINITY;
        }
    const double log_likelihood = r->networked ? expect_network(r)
                                               : expect_pairs(&r->pairs, &r->pair_room, p->class_weights, q->labels,
                                                              r->must_counts, r->class_counts, r->same, &r->n_apart);
    for (Long i = 0; i < q->rows.n * M; i++)
        q->labels[i] *= r->link_weight * (q->weights ? q->weights[i / M] : 1.0);
    add_sums(r, q, p);
    return r->link_weight * (r->constant + log_likelihood);
}

/* E-step: computes sums and counts, and returns the objective, which is J plus the log-prior. */
static double expect(Run *r, const Parameters *p)
{
    const Long M = r->M, K = r->K;
    r->gauss.means = p->means;
    r->gauss.whiteners = p->whiteners;
    r->gauss.degrees = p->degrees;
    for (Long m = 0; m < M; m++)
        r->log_classes[m] = log(p->class_weights[m]);
    for (Long k = 0; k < M * K; k++)
        r->log_clusters[k] = log(p->cluster_weights[k]);
    memset(r->sums.scaled, 0, sizeof(double) * (size_t)r->n_sums);
    memset(r->free_counts, 0, sizeof(double) * (size_t)M);
    if (r->pool)
        memset(r->cluster_counts, 0, sizeof(double) * (size_t)(M * K));
    r->log_likelihood = 0.0;
    if (r->free.n)
        r->log_likelihood += expect_free(r);
    if (r->told.rows.n)
        r->log_likelihood += expect_told(r, p);
    if (r->linked.rows.n)
        r->log_likelihood += expect_linked(r, p);
    return r->log_likelihood + log_prior(&r->estimate, p, r->triangle);
}

static int maximise(Run *r, const Parameters *old, Parameters *new)
{
    const Long M = r->M, K = r->K;
    for (Long m = 0; m < M; m++) {
        const double *counts = r->cluster_counts + m * K;
        double total = 0.0;
        for (Long k = 0; k < K; k++)
            total += counts[k];
        for (Long k = 0; k < K; k++) {
            const double share = total > 0.0 ? counts[k] / total : old->cluster_weights[m * K + k];
            new->cluster_weights[m * K + k] = at_least(share, SMALLEST_CLUSTER_WEIGHT);
        }
    }
    double *counts = r->log_classes; /* unused between E-steps */
    const double *linked_counts = M == 2 && !r->networked ? r->must_counts : r->class_counts;
    for (Long m = 0; m < M; m++)
        counts[m] = r->linked.rows.n ? r->free_counts[m] / r->link_weight + linked_counts[m] : r->free_counts[m];
    if (r->linked.rows.n && !r->networked && M > 2 && r->n_apart > 0.0) {
        if (!solve_class_weights(M, counts, r->n_apart, old->class_weights, new->class_weights, r->newton))
            return 0;
    } else
        normalise(M, counts, old->class_weights, new->class_weights);
    if (r->estimate.student)
        maximise_degrees(&r->estimate, &r->sums, old, new);
    return maximise_components(&r->estimate, &r->sums, old, new, r->triangle);
}

/* The parts of a flat array of parameters. */
static Parameters parts_of(const Run *r, Long size, double *state)
{
    const Estimate *e = &r->estimate;
    Parameters p;
    p.means = state;
    p.covariances = p.means + e->C * e->d;
    p.whiteners = p.covariances + size;
    p.class_weights = p.whiteners + size;
    p.cluster_weights = p.class_weights + r->M;
    p.degrees = e->student ? p.cluster_weights + r->M * r->K : NULL;
    return p;
}

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether a signal such as Ctrl-C raised an exception, which is then set. Called while the thread is detached. */
static int interrupted(PyThreadState **thread)
{
    PyEval_RestoreThread(*thread);
    const int raised = PyErr_CheckSignals();
    *thread = PyEval_SaveThread();
    return raised;
}

/* Makes up to `most` steps, and looks for signals from time to time. The state is changed in place; the trace gets the
 * objective before and after each step. Returns 0 if all steps were made, 1 if the last one gained at most least_gain
 * (0: never), 2 if the next step is not for the core to make, 3 if it was interrupted. */
static int steps(Run *r, Long size, Long n_state, double *state, double *other, double least_gain, double seconds,
                 Long most, double *trace, Long *made, double *log_likelihood, PyThreadState **thread)
{
    Parameters now = parts_of(r, size, state), next = parts_of(r, size, other);
    double looked = seconds_now();
    trace[0] = expect(r, &now);
    *made = 0;
    *log_likelihood = r->log_likelihood;
    if (isnan(trace[0]))
        return 2;
    while (*made < most) {
        if (seconds_now() - looked > seconds) {
            if (interrupted(thread))
                return 3;
            looked = seconds_now();
        }
        if (!maximise(r, &now, &next))
            return 2;
        const double before = trace[*made], after = expect(r, &next);
        if (!(after >= before - ROUNDING * fabs(before)))
            return 2;
        memcpy(state, other, sizeof(double) * (size_t)n_state);
        trace[++*made] = after;
        *log_likelihood = r->log_likelihood;
        if (least_gain > 0.0 && after - before <= least_gain)
            return 1;
    }
    return 0;
}

/* The links: (pairs, if_same, if_apart, constant), or (plan, chunklets, exponents, log_same, log_different, constant)
 * for a network. Holds five buffers at most. */
static int read_links(PyObject *links, Held *held, Run *r)
{
    const Long M = r->M, n = r->linked.rows.n;
    PyObject *o[5];
    double *numbers[3];
    r->networked = PyTuple_Check(links) && PyTuple_Size(links) == 6;
    if (!r->networked) {
        Pairs *q = &r->pairs;
        if (!PyArg_ParseTuple(links, "OOOd", &o[0], &o[1], &o[2], &r->constant) ||
            !doubles(o[1], &held[1], 0, 0, 0, &numbers[0]))
            return 0;
        q->n_pairs = held[1].view.len / (Long)sizeof(double);
        q->n_points = n;
        q->n_classes = M;
        if (!integers(o[0], &held[0], 0, 2 * q->n_pairs, &q->pairs) ||
            !doubles(o[2], &held[2], 0, 0, q->n_pairs, &numbers[1]) || !check_pairs(q))
            return 0;
        q->if_same = numbers[0];
        q->if_apart = numbers[1];
        return 1;
    }
    Chunklets *q = &r->chunklets;
    long long *plan, *of_row;
    if (!PyArg_ParseTuple(links, "OOOOOd", &o[0], &o[1], &o[2], &o[3], &o[4], &r->constant) ||
        !integers(o[0], &held[0], 0, 0, &plan) || !integers(o[1], &held[1], 0, n, &of_row))
        return 0;
    if (network_open(plan, held[0].view.len / 8, M, &q->network)) {
        PyErr_SetString(PyExc_ValueError, "this is no plan of a network with so many classes");
        return 0;
    }
    if (!doubles(o[2], &held[2], 0, 0, q->network.n_nodes, &numbers[0]) ||
        !doubles(o[3], &held[3], 0, 0, q->network.n_edges, &numbers[1]) ||
        !doubles(o[4], &held[4], 0, 0, q->network.n_edges, &numbers[2]))
        return 0;
    for (Long i = 0; i < n; i++)
        if (of_row[i] < 0 || of_row[i] >= q->network.n_nodes) {
            PyErr_Format(PyExc_ValueError, "row %zd is in chunklet %lld of %zd", i, of_row[i], q->network.n_nodes);
            return 0;
        }
    q->of_row = of_row;
    q->exponent = numbers[0];
    q->log_same = numbers[1];
    q->log_different = numbers[2];
    return 1;
}

/* Rows, their weights and known classes, of which the last two may be None. Holds three buffers. */
static int read_group(PyObject *group, Held *held, Group *q)
{
    PyObject *X, *weights, *known;
    double *numbers;
    long long *classes = NULL;
    if (!PyArg_ParseTuple(group, "OOO", &X, &weights, &known) || !rows(X, &held[0], &q->rows) ||
        !doubles(weights, &held[1], 0, 1, q->rows.n, &numbers) ||
        (known != Py_None && !integers(known, &held[2], 0, q->rows.n, &classes)))
        return 0;
    q->weights = numbers;
    q->known = classes;
    return 1;
}

static const char RUN_DOC[] =
    "run(form, tied, pool, student, learns_degrees, free, free_weights, told, linked, links, link_weight, reg_covar,\n"
    "    prior, pooled, least_gain, seconds, n_classes, n_components, state, trace)\n\n"
    "Repeat both steps of EM, len(trace) - 1 times at most, and look for signals every few seconds. The state holds means,\n"
    "covariances, whiteners, class weights, cluster weights and the degrees of freedom of Student-t components, and is\n"
    "changed in place. Free rows of known class and linked rows are (rows, weights, classes). The links are (pairs,\n"
    "if_same, if_apart, constant), or for a network (plan, chunklets, exponents, log_same, log_different, constant).\n"
    "Returns the number of steps; 1 if the last one gained at most least_gain (0: never), 2 if the next step is not for\n"
    "the core to make, otherwise 0; and J.";

static PyObject *py_run(PyObject *self, PyObject *args)
{
    PyObject *o[8];
    Held held[16]; /* three of each group, five of the links */
    PyObject *result = NULL;
    Run r;
    double least_gain, seconds, *trace, *state, *weights, *pooled, *room = NULL, *fixed = NULL, *own = NULL;
    memset(held, 0, sizeof(held));
    memset(&r, 0, sizeof(r));
    Estimate *e = &r.estimate;
    if (!PyArg_ParseTuple(args, "ippppOOOOOdddOddnnOO", &e->form, &e->tied, &r.pool, &e->student, &e->learns_degrees,
                          &o[0], &o[1], &o[2], &o[3], &o[4], &r.link_weight, &e->reg_covar, &e->prior, &o[5],
                          &least_gain, &seconds, &r.M, &e->C, &o[6], &o[7]))
        return NULL;
    if (!rows(o[0], &held[0], &r.free) || !doubles(o[1], &held[1], 0, 1, r.free.n, &weights) ||
        !read_group(o[2], held + 5, &r.told) || !read_group(o[3], held + 8, &r.linked))
        goto end;
    const Long C = e->C, d = e->d = r.free.d, M = r.M;
    if (!check_form(e->form))
        goto end;
    if (M < 1 || C < 1 || (!r.pool && C % M) || r.linked.rows.d != d || r.told.rows.d != d || d < 1 ||
        (e->tied && e->form != FULL) || C >= ENORMOUS || M >= ENORMOUS || d >= ENORMOUS) {
        PyErr_SetString(PyExc_ValueError, "shapes do not fit together");
        goto end;
    }
    for (Long i = 0; i < r.told.rows.n; i++)
        if (!r.told.known || r.told.known[i] < 0 || r.told.known[i] >= M) {
            PyErr_Format(PyExc_ValueError, "row %zd of those of known class has none of %zd classes", i, M);
            goto end;
        }
    const Long K = r.K = r.pool ? C : C / M;
    r.free_weights = weights;
    const Long second = second_size(e->form, C, d), size = e->tied ? times(d, d) : second;
    const Long n_state = times(C, d) + 2 * size + M + times(M, K) + (e->student ? C : 0);
    if (!read_links(o[4], held + 11, &r) ||
        !doubles(o[5], &held[2], 0, 1, e->prior > 0.0 ? second_size(e->form, 1, d) : 0, &pooled) ||
        !doubles(o[6], &held[3], 1, 0, n_state, &state) || !doubles(o[7], &held[4], 1, 0, 1, &trace) ||
        !apart(held, 16))
        goto end;
    if (e->prior > 0.0 && (e->tied || !pooled)) {
        PyErr_SetString(PyExc_ValueError, "a prior needs a pooled covariance, and covariances that are not tied");
        goto end;
    }
    e->pooled = pooled;
    r.gauss = (Gauss){.form = e->form, .d = d, .n_components = C};
    r.gauss.whitener_step = e->tied ? 0 : second_size(e->form, 1, d);
    r.gauss.learns_degrees = e->learns_degrees;
    r.gauss.degrees = e->student ? state : NULL; /* says how much space a pass needs */
    if (!(fixed = allocate(&r.gauss, &r.scratch)))
        goto end;
    r.n_sums = C * (1 + d) + second + (e->student ? 2 * C : 0);
    Group *groups[2] = {&r.told, &r.linked};
    const Long n = r.told.rows.n + r.linked.rows.n, n_newton = times(M, M + 7) > C ? times(M, M + 7) : C;
    const Network *net = &r.chunklets.network;
    const Long n_nodes = times(net->n_nodes, M), n_same = r.networked ? net->n_edges : r.pairs.n_pairs;
    const Long n_network = r.networked ? network_room(net) : 0;
    Long numbers = 2 * r.n_sums + n_state + 2 * times(M, K) + C + 4 * M + n_newton + times(d, d) + n_same + n_network;
    numbers += times(n, (r.pool ? 2 : 1) * C + (r.pool ? 3 : 2) * M) + 2 * n_nodes;
    if (!(room = room_for(numbers)) || (!r.networked && !allocate_pairs(&r.pairs, &r.pair_room)))
        goto end;
    own = r.pair_room.room;
    double *at = room;
#define TAKE(count) (at += (count), at - (count))
    for (Sums *sums = &r.sums; sums; sums = sums == &r.sums ? &r.some : NULL) {
        sums->scaled = TAKE(r.n_sums);
        sums->first = sums->scaled + C;
        sums->second = sums->first + C * d;
        sums->weight = e->student ? sums->second + second : sums->scaled;
        sums->gap = e->student ? sums->weight + C : NULL;
    }
    double *other = TAKE(n_state);
    r.log_clusters = TAKE(M * K);
    r.cluster_counts = r.pool ? TAKE(M * K) : r.sums.weight;
    r.log_weights = TAKE(C);
    r.log_classes = TAKE(M);
    r.free_counts = TAKE(M);
    r.must_counts = TAKE(M);
    r.class_counts = TAKE(M);
    r.newton = TAKE(n_newton);
    r.triangle = TAKE(d * d);
    for (int k = 0; k < 2; k++) {
        Group *q = groups[k];
        q->table = TAKE(q->rows.n * C);
        q->class_density = TAKE(q->rows.n * M);
        q->labels = TAKE(q->rows.n * M);
        if (r.pool) {
            q->powers = TAKE(q->rows.n * C);
            q->sizes = TAKE(q->rows.n * M);
        }
    }
    r.same = r.chunklets.edge_same = TAKE(n_same);
    r.chunklets.node = TAKE(n_nodes);
    r.chunklets.marginals = TAKE(n_nodes);
    r.chunklets.room = TAKE(n_network);
#undef TAKE
    r.pairs.log_density = r.linked.class_density;
    const Long most = held[4].view.len / (Long)sizeof(double) - 1;
    Long made = 0;
    int how = 0;
    double log_likelihood = 0.0;
    PyThreadState *thread = PyEval_SaveThread();
    how = steps(&r, size, n_state, state, other, least_gain, seconds, most, trace, &made, &log_likelihood, &thread);
    PyEval_RestoreThread(thread);
    if (how != 3)
        result = Py_BuildValue("nid", made, how, log_likelihood);
end:
    free(fixed);
    free(room);
    free(own);
    release(held, 16);
    return result;
}
