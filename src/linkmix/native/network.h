/* Labels of a network of chunklets: marginals and the logarithm of the partition function.
 *
 * A network is opened from one array of integers, the plan (linkmix/couplings/network/plan.py), and computes in room
 * that the caller provides. It uses the same methods as the Python classes: two labellings for two classes and hard
 * links, messages along trees, tables over cliques, and loopy messages where these would be too large. Everything is in
 * logarithms, because the log-densities of a chunklet easily differ by thousands.
 *
 * Leaving out one class of a sum is the heart of it: a message about label m is what the sender believes of m, times
 * the potential of equal labels, plus what it believes of all others, times that of different ones. This takes M steps
 * instead of M * M.
 */

#define LOWEST_LOG -1e300   /* as LOWEST in forest.py */
#define LOWEST_EXPONENT -746.0 /* the exponential of less is zero */
#define UNDERFLOW_NEAR 1e-280
#define PLAIN_NEAR 1e-100 /* quotients of numbers above this are as good as differences of their logarithms */
#define AT_ONCE 64        /* messages computed together */

#include "plan.h"

/* Potentials of a pair of nodes: logarithms, and relative to the larger of both. */
typedef struct {
    double log_same, log_different, top, same, different;
} Edge;

static double largest(const double *values, Long n)
{
    double top = -INFINITY;
    for (Long m = 0; m < n; m++)
        top = values[m] > top ? values[m] : top;
    return top;
}

/* Subtracts the largest value, or a finite low one if all are impossible; returns it. */
static double rescale(double *values, Long n)
{
    double top = largest(values, n);
    top = top > LOWEST_LOG ? top : LOWEST_LOG;
    for (Long m = 0; m < n; m++)
        values[m] -= top;
    return top;
}

static double log_sum(const double *values, Long n)
{
    double top = largest(values, n), sum = 0.0;
    if (!(top > LOWEST_LOG))
        return -INFINITY;
    for (Long m = 0; m < n; m++)
        sum += values[m] - top > LOWEST_EXPONENT ? exp(values[m] - top) : 0.0;
    return log(sum) + top;
}

/* Log-sum of all values but one. */
static double log_sum_but(const double *values, Long n, Long but)
{
    double top = -INFINITY, sum = 0.0;
    for (Long m = 0; m < n; m++)
        top = m != but && values[m] > top ? values[m] : top;
    if (!(top > LOWEST_LOG))
        return -INFINITY;
    for (Long m = 0; m < n; m++)
        sum += m != but && values[m] - top > LOWEST_EXPONENT ? exp(values[m] - top) : 0.0;
    return log(sum) + top;
}

/* What beliefs (M,) about one end of an edge say about each label of the other end. `terms` is scratch (M,). */
static void pass_on(const double *belief, Long M, const Edge *edge, double *out, double *terms)
{
    double top = -INFINITY, rest = 0.0;
    Long at = 0;
    for (Long m = 0; m < M; m++)
        if (belief[m] > top)
            top = belief[m], at = m;
    if (!(top > -INFINITY && edge->top > -INFINITY)) {
        for (Long m = 0; m < M; m++)
            out[m] = top == top && edge->top == edge->top ? -INFINITY : NAN;
        return;
    }
    for (Long m = 0; m < M; m++) {
        const double low = belief[m] - top;
        terms[m] = low > LOWEST_EXPONENT ? exp(low) : 0.0;
        rest += m == at ? 0.0 : terms[m];
    }
    const double shift = top + edge->top;
    for (Long m = 0; m < M; m++) {
        const double others = m == at ? rest : 1.0 + (rest > terms[m] ? rest - terms[m] : 0.0);
        const double value = edge->same * terms[m] + edge->different * others;
        if (value >= UNDERFLOW_NEAR) {
            out[m] = shift + (value == 1.0 ? 0.0 : log(value));
            continue;
        }
        const double unequal = m == at ? log_sum_but(belief, M, at) : log(others) + top;
        out[m] = log_add(edge->log_same + belief[m], edge->log_different + unequal);
    }
}

/* Messages that are computed together. */
typedef struct {
    double *x, *y;                             /* (M, AT_ONCE) beliefs of the senders; then logarithms, and as they are */
    double *same, *different, *least, *scales; /* (AT_ONCE,) potentials; smallest entry, and what was taken off */
} Batch;

/* Computes n messages. Their largest entry is 1; where `least` is below UNDERFLOW_NEAR they are not to be used. */
static void compute(Long M, Long n, Batch *b)
{
    const Long all = (n + 7) / 8 * 8; /* whole vectors */
    for (Long j = n; j < all; j++) {
        b->same[j] = b->different[j] = 1.0;
        for (Long m = 0; m < M; m++)
            b->x[m * AT_ONCE + j] = 0.0;
    }
    level->messages(M, all, AT_ONCE, b->x, b->y, b->same, b->different, b->least, b->scales);
}

/* ---- two classes and hard links ------------------------------------------------------------------------------ */

static void infer_colourings(const Network *net, const double *node, double *marginals, double *partition, double *room)
{
    double *first = room, *second = first + net->n_colourings, *scale = second + net->n_colourings;
    memset(room, 0, sizeof(double) * (size_t)(3 * net->n_colourings));
    for (Long i = 0; i < net->n_coloured; i++) {
        const double *here = node + 2 * net->coloured[i];
        const Long c = (Long)net->colouring[i];
        double top = here[0] > here[1] ? here[0] : here[1];
        top = isfinite(top) ? top : 0.0;
        first[c] += here[net->colour[i]] - top;
        second[c] += here[1 - net->colour[i]] - top;
        scale[c] += top;
    }
    for (Long c = 0; c < net->n_colourings; c++) {
        const double both = log_add(first[c], second[c]);
        partition[net->colour_component[c]] += both + scale[c];
        first[c] = exp(first[c] - both);
        second[c] = exp(second[c] - both);
    }
    for (Long i = 0; i < net->n_coloured; i++) {
        double *here = marginals + 2 * net->coloured[i];
        here[net->colour[i]] = first[net->colouring[i]];
        here[1 - net->colour[i]] = second[net->colouring[i]];
    }
}

/* ---- cores with cycles: tables over cliques ------------------------------------------------------------------ */

/* Adds a message over some axes of a table to the table, whose first axis has the number `axis`. */
static void spread(double *table, Long size, Long axis, const double *message, Long message_size, const long long *axes,
                   Long M)
{
    if (message_size == size) {
        for (Long i = 0; i < size; i++)
            table[i] += message[i];
        return;
    }
    if (message_size == 1) {
        for (Long i = 0; i < size; i++)
            table[i] += message[0];
        return;
    }
    const Long below = size / M;
    for (Long x = 0; x < M; x++)
        if (axes[0] == axis)
            spread(table + x * below, below, axis + 1, message + x * (message_size / M), message_size / M, axes + 1, M);
        else
            spread(table + x * below, below, axis + 1, message, message_size, axes, M);
}

/* The reverse: adds up a table over all other axes. */
static void gather(const double *table, Long size, Long axis, double *sums, Long n_sums, const long long *axes, Long M)
{
    if (n_sums == size) {
        for (Long i = 0; i < size; i++)
            sums[i] += table[i];
        return;
    }
    if (n_sums == 1) {
        double sum = 0.0;
        for (Long i = 0; i < size; i++)
            sum += table[i];
        sums[0] += sum;
        return;
    }
    const Long below = size / M;
    for (Long x = 0; x < M; x++)
        if (axes[0] == axis)
            gather(table + x * below, below, axis + 1, sums + x * (n_sums / M), n_sums / M, axes + 1, M);
        else
            gather(table + x * below, below, axis + 1, sums, n_sums, axes, M);
}

/* Log-potentials of a clique. It grows by its leading axes, so that most terms are added to a part of the table. */
static void fill_table(const Network *net, const Clique *c, const double *beliefs, const Edge *edges, double *tables,
                       const double *messages)
{
    const Long M = net->M;
    double *table = tables + c->table;
    Long size = 1, factor = (Long)c->n_factors - 1;
    table[0] = 0.0;
    for (Long axis = (Long)c->n_nodes - 1; axis >= 0; axis--) {
        const Long last = factor;
        while (factor >= 0 && c->factors[3 * factor] == axis)
            factor--;
        for (Long x = M - 1; x >= 0; x--) {
            double *out = table + x * size, add = axis < c->n_residual ? beliefs[c->nodes[axis] * M + x] : 0.0;
            for (Long f = factor + 1; f <= last; f++) {
                const Edge *edge = edges + c->factors[3 * f + 2];
                add += edge->log_different > -INFINITY ? edge->log_different : 0.0;
            }
            for (Long i = 0; i < size; i++)
                out[i] = table[i] + add;
            for (Long f = factor + 1; f <= last; f++) {
                const Edge *edge = edges + c->factors[3 * f + 2];
                const Long step = power(M, (Long)c->n_nodes - 1 - (Long)c->factors[3 * f + 1]);
                const int never_apart = !(edge->log_different > -INFINITY);
                const double equal = edge->log_same - (never_apart ? 0.0 : edge->log_different);
                for (Long start = 0; start < size; start += step * M) {
                    for (Long i = start + x * step; i < start + (x + 1) * step; i++)
                        out[i] += equal;
                    for (Long y = 0; never_apart && y < M; y++)
                        for (Long i = start + y * step; y != x && i < start + (y + 1) * step; i++)
                            out[i] = -INFINITY;
                }
            }
        }
        size *= M;
        for (long long child = c->first_child; child >= 0;) {
            const Clique below = clique_of(net, (Long)child);
            const Long n_axes = (Long)(below.n_nodes - below.n_residual);
            if (below.axes[0] == axis)
                spread(table, size, axis, messages + below.message, power(M, n_axes), below.axes, M);
            child = below.next_sibling;
        }
    }
}

/* Sum of the entries of a table over k nodes in which two axes, a before b, are equal. */
static double equal_sum(const double *table, Long k, Long a, Long b, Long M)
{
    const Long step_a = power(M, k - 1 - a), step_b = power(M, k - 1 - b), size = step_a * M * power(M, a);
    double sum = 0.0;
    for (Long start = 0; start < size; start += step_a * M)
        for (Long x = 0; x < M; x++)
            for (Long at = start + x * step_a; at < start + (x + 1) * step_a; at += step_b * M)
                for (Long i = at + x * step_b; i < at + (x + 1) * step_b; i++)
                    sum += table[i];
    return sum;
}

/* Marginals of the nodes of all cores, by their positions, and the probability of equal labels of their pairs. */
static void infer_cliques(const Network *net, const double *beliefs, const Edge *edges, double *marginals,
                          double *pair_same, double *partition, double *room)
{
    const Long M = net->M;
    double *tables = room, *messages = tables + net->n_table, *here = messages + net->n_message;
    double *top = here + net->largest_residual, *total = top + net->largest_separator;
    for (Long number = net->n_cliques - 1; number >= 0; number--) {
        const Clique c = clique_of(net, number);
        const Long R = power(M, (Long)c.n_residual), S = power(M, (Long)(c.n_nodes - c.n_residual));
        double *table = tables + c.table, *message = messages + c.message;
        fill_table(net, &c, beliefs, edges, tables, messages);
        for (Long s = 0; s < S; s++)
            top[s] = LOWEST_LOG, total[s] = 0.0;
        for (Long r = 0; r < R; r++)
            for (Long s = 0; s < S; s++)
                top[s] = table[r * S + s] > top[s] ? table[r * S + s] : top[s];
        for (Long r = 0; r < R; r++)
            for (Long s = 0; s < S; s++)
                table[r * S + s] -= top[s];
        level->exponentials(table, R * S);
        for (Long r = 0; r < R; r++)
            for (Long s = 0; s < S; s++)
                total[s] += table[r * S + s];
        for (Long s = 0; s < S; s++) {
            message[s] = log(total[s]) + top[s];
            total[s] = total[s] > 0.0 ? 1.0 / total[s] : 1.0;
        }
        for (Long r = 0; r < R; r++)
            for (Long s = 0; s < S; s++)
                table[r * S + s] *= total[s];
        partition[c.component] += rescale(message, S);
    }
    for (Long number = 0; number < net->n_cliques; number++) {
        const Clique c = clique_of(net, number);
        const Long k = (Long)c.n_nodes, r = (Long)c.n_residual, R = power(M, r), S = power(M, k - r);
        double *table = tables + c.table, *above = messages + c.message;
        if (c.parent >= 0) {
            const Clique p = clique_of(net, (Long)c.parent);
            memset(above, 0, sizeof(double) * (size_t)S);
            gather(tables + p.table, power(M, (Long)p.n_nodes), 0, above, S, c.axes, M);
            for (Long i = 0; i < R; i++)
                for (Long s = 0; s < S; s++)
                    table[i * S + s] *= above[s];
        }
        for (Long i = 0; i < R; i++) {
            here[i] = 0.0;
            for (Long s = 0; s < S; s++)
                here[i] += table[i * S + s];
        }
        for (Long axis = 0; axis < r; axis++) {
            double *out = marginals + c.nodes[axis] * M;
            const long long only[1] = {axis};
            memset(out, 0, sizeof(double) * (size_t)M);
            gather(here, R, 0, out, M, only, M);
        }
        for (Long f = 0; f < c.n_factors; f++) {
            const long long *factor = c.factors + 3 * f;
            const int inside = factor[1] < r;
            pair_same[factor[2]] =
                equal_sum(inside ? here : table, inside ? r : k, (Long)factor[0], (Long)factor[1], M);
        }
    }
}

/* ---- cores too wide for tables: loopy messages --------------------------------------------------------------- */

/* Beliefs of a node from its own potentials and all messages to it. */
static void hear(const Network *net, Long i, const double *own, const double *messages, double *belief)
{
    const Long M = net->M;
    memcpy(belief, own + net->wide[i] * M, sizeof(double) * (size_t)M);
    for (long long e = net->wide_starts[i]; e < net->wide_starts[i + 1]; e++)
        for (Long m = 0; m < M; m++)
            belief[m] += messages[e * M + m];
}

/* Beliefs without one of the messages; what forbids a label need not be told about it. */
static inline double forget(double belief, double message)
{
    return message > -INFINITY ? belief - message : -INFINITY;
}

typedef struct {
    double *messages, *shares; /* (2 n_wide_pairs, M) in logarithms, and as they are */
    double *beliefs, *sums;    /* (n_wide, M), (n_wide,) */
    double *powers;            /* (n_wide, M) exponentials of the beliefs */
    double *waiting;           /* (n_wide,) whether a node has heard something new */
    Batch *batch;
    Long slots[AT_ONCE], senders[AT_ONCE]; /* of the messages to be computed */
    double *cavity, *other, *told, *terms; /* (M,) */
    double damping, change;
    Long n; /* messages to be computed */
} Loopy;

/* Computes the messages that have been collected and delivers them. */
static void deliver(const Network *net, const Edge *edges, Loopy *l)
{
    const Long M = net->M, n = l->n;
    double *x = l->batch->x, *y = l->batch->y;
    compute(M, n, l->batch);
    for (Long j = 0; j < n; j++) {
        const Long slot = l->slots[j], sender = l->senders[j];
        double *message = l->messages + net->wide_back[slot] * M, *share = l->shares + net->wide_back[slot] * M;
        double by = 0.0;
        if (!(l->batch->least[j] >= UNDERFLOW_NEAR)) { /* everything in logarithms */
            for (Long m = 0; m < M; m++)
                l->cavity[m] = forget(l->beliefs[sender * M + m], l->messages[slot * M + m]);
            rescale(l->cavity, M);
            pass_on(l->cavity, M, edges + net->wide_pair[slot], l->told, l->terms);
            rescale(l->told, M);
            for (Long m = 0; m < M; m++) {
                x[m * AT_ONCE + j] = l->told[m];
                y[m * AT_ONCE + j] = l->told[m] > LOWEST_EXPONENT ? exp(l->told[m]) : 0.0;
            }
        }
        for (Long m = 0; m < M; m++) {
            const double log_new = x[m * AT_ONCE + j], new = y[m * AT_ONCE + j], moved = fabs(new - share[m]);
            by = moved > by ? moved : by;
            if (l->damping > 0.0 && log_new != message[m]) { /* both may be minus infinity */
                message[m] = (1.0 - l->damping) * log_new + l->damping * message[m];
                share[m] = exp(message[m]);
            } else {
                message[m] = log_new;
                share[m] = new;
            }
        }
        l->change = by > l->change ? by : l->change;
        if (by > net->loopy_tol) {
            l->waiting[net->wide_source[slot]] = 1.0;
            if (l->damping > 0.0) /* the rest of the way */
                l->waiting[sender] = 1.0;
        }
    }
    l->n = 0;
}

/* All nodes that wait send their messages, colour after colour. */
static void make_round(const Network *net, const double *own, const Edge *edges, Loopy *l)
{
    const Long M = net->M;
    for (Long colour = 0; colour < net->n_colours; colour++) {
        for (Long i = (Long)net->wide_blocks[colour]; i < (Long)net->wide_blocks[colour + 1]; i++) {
            if (l->waiting[i] == 0.0)
                continue;
            l->waiting[i] = 0.0;
            double *belief = l->beliefs + i * M;
            hear(net, i, own, l->messages, belief);
            for (long long e = net->wide_starts[i]; e < net->wide_starts[i + 1]; e++) {
                const Edge *edge = edges + net->wide_pair[e];
                const Long j = l->n++;
                for (Long m = 0; m < M; m++)
                    l->batch->x[m * AT_ONCE + j] = forget(belief[m], l->messages[e * M + m]);
                l->batch->same[j] = edge->same;
                l->batch->different[j] = edge->different;
                l->slots[j] = (Long)e;
                l->senders[j] = i;
                if (l->n == AT_ONCE)
                    deliver(net, edges, l);
            }
        }
        if (l->n)
            deliver(net, edges, l);
    }
}

/* Log-partition of a pair relative to those of its nodes, and the probability of equal labels, all in logarithms. */
static double read_off_pair(Long M, const Edge *edge, double *cavity, double *other, double *told, double *terms,
                            double *same)
{
    const Edge plain = {-INFINITY, 0.0, 0.0, 0.0, 1.0};
    const double scale = rescale(cavity, M) + rescale(other, M);
    for (Long m = 0; m < M; m++)
        told[m] = cavity[m] + other[m];
    const double equal = log_sum(told, M) + edge->log_same;
    pass_on(other, M, &plain, told, terms);
    for (Long m = 0; m < M; m++)
        told[m] += cavity[m];
    const double joint = log_add(equal, log_sum(told, M) + edge->log_different);
    *same = exp(equal - (joint > LOWEST_LOG ? joint : LOWEST_LOG));
    return joint + scale;
}

/* Marginals and the Bethe approximation of the log-partition. */
static void read_off(const Network *net, const double *own, const Edge *edges, Loopy *l, double *marginals,
                     double *pair_same, double *partition)
{
    const Long M = net->M;
    double *sums = l->sums;
    for (Long i = 0; i < net->n_wide; i++) {
        double *belief = l->beliefs + i * M;
        hear(net, i, own, l->messages, belief);
        sums[i] = rescale(belief, M);
    }
    memcpy(l->powers, l->beliefs, sizeof(double) * (size_t)(net->n_wide * M));
    level->exponentials(l->powers, net->n_wide * M);
    for (Long i = 0; i < net->n_wide; i++) {
        const Long position = (Long)net->wide[i];
        double *power = l->powers + i * M, sum = 0.0;
        for (Long m = 0; m < M; m++)
            sum += power[m];
        for (Long m = 0; m < M; m++)
            marginals[position * M + m] = power[m] /= sum;
        partition[net->components[net->order[position]]] += sums[i] + log(sum);
        sums[i] = log(sum); /* of the rescaled beliefs */
    }
    for (Long i = 0; i < net->n_wide; i++)
        for (long long e = net->wide_starts[i]; e < net->wide_starts[i + 1]; e++) {
            const long long back = net->wide_back[e];
            if (back < e)
                continue;
            const Edge *edge = edges + net->wide_pair[e];
            const Long second = (Long)net->wide_source[e];
            /* What each end believes without the other: its marginals without the message from there. Each message is
             * counted at its node and taken away here, so its scale does not matter. */
            double equal = 0.0, unequal = 0.0, before = 0.0, total = 0.0, least = INFINITY;
            for (Long m = 0; m < M; m++) {
                const double told = l->shares[e * M + m], answer = l->shares[back * M + m];
                const double a = l->powers[i * M + m] / told, b = l->powers[second * M + m] / answer;
                least = told < least ? told : least;
                least = answer < least ? answer : least;
                equal += a * b;
                unequal += a * before + b * total; /* pairs of different labels, by which of both is smaller */
                before += b;
                total += a;
            }
            const double value = edge->same * equal + edge->different * unequal;
            double joint, same;
            if (least >= PLAIN_NEAR && value >= PLAIN_NEAR * before * total) {
                joint = log(value) + edge->top;
                same = edge->same * equal / value;
            } else {
                for (Long m = 0; m < M; m++) {
                    l->cavity[m] = forget(l->beliefs[i * M + m], l->messages[e * M + m]);
                    l->other[m] = forget(l->beliefs[second * M + m], l->messages[back * M + m]);
                }
                joint = read_off_pair(M, edge, l->cavity, l->other, l->told, l->terms, &same) - sums[i] - sums[second];
            }
            partition[net->components[net->order[net->wide[i]]]] += joint;
            pair_same[net->wide_pair[e]] = same;
        }
}

/* A node sends again if a message to it has changed. Returns whether all are at rest in the end. With `warm`, messages
 * start from those of the last time. */
static int infer_wide(const Network *net, const double *own, const Edge *edges, double *marginals, double *pair_same,
                      double *partition, Batch *batch, int warm, double *room)
{
    const Long M = net->M, n = 2 * net->n_wide_pairs;
    double *at = room, earlier = INFINITY;
    int waiting = 1;
    Loopy l = {.damping = net->damping, .batch = batch};
#define TAKE(name, count) (l.name = at, at += (count))
    TAKE(messages, n * M);
    TAKE(shares, n * M);
    TAKE(beliefs, net->n_wide * M);
    TAKE(powers, net->n_wide * M);
    TAKE(sums, net->n_wide);
    TAKE(waiting, net->n_wide);
    TAKE(cavity, M);
    TAKE(other, M);
    TAKE(told, M);
    TAKE(terms, M);
#undef TAKE
    for (Long i = 0; i < n * M && !warm; i++)
        l.messages[i] = 0.0, l.shares[i] = 1.0;
    for (Long i = 0; i < net->n_wide; i++)
        l.waiting[i] = 1.0;
    for (Long iteration = 1; waiting && iteration <= net->max_iter; iteration++) {
        l.change = 0.0;
        make_round(net, own, edges, &l);
        waiting = 0;
        for (Long i = 0; i < net->n_wide; i++)
            waiting = waiting || l.waiting[i] != 0.0;
        if (iteration % 20 == 0) {
            if (l.change > earlier / 2) {
                l.damping = (1.0 + l.damping) / 2;
                l.damping = l.damping < 0.9 ? l.damping : 0.9;
            }
            earlier = l.change;
        }
    }
    read_off(net, own, edges, &l, marginals, pair_same, partition);
    return !waiting;
}

/* ---- trees --------------------------------------------------------------------------------------------------- */

/* Messages from the leaves to the roots, which are added to the beliefs of the receivers. */
static void collect(const Network *net, const Edge *edges, double *beliefs, double *messages, double *partition,
                    Batch *b, double *terms)
{
    const Long M = net->M, n_roots = net->n_roots;
    for (Long last = net->n_positions - 1, first; last >= n_roots; last = first - 1) {
        /* Nodes send together if none of them is the parent of another; parents come first. */
        Long parent = (Long)net->parents[last - n_roots];
        for (first = last; first - 1 > parent && first - 1 >= n_roots && last - first + 1 < AT_ONCE; first--) {
            const Long other = (Long)net->parents[first - 1 - n_roots];
            parent = other > parent ? other : parent;
        }
        for (Long i = first; i <= last; i++) {
            const Edge *edge = edges + net->parent_pairs[i - n_roots];
            double *here = beliefs + i * M;
            partition[net->components[net->order[i]]] += rescale(here, M);
            for (Long m = 0; m < M; m++)
                b->x[m * AT_ONCE + i - first] = here[m];
            b->same[i - first] = edge->same;
            b->different[i - first] = edge->different;
        }
        compute(M, last - first + 1, b);
        for (Long i = first; i <= last; i++) {
            const Edge *edge = edges + net->parent_pairs[i - n_roots];
            double *message = messages + (i - n_roots) * M, *above = beliefs + net->parents[i - n_roots] * M;
            if (b->least[i - first] >= UNDERFLOW_NEAR) {
                for (Long m = 0; m < M; m++)
                    message[m] = b->x[m * AT_ONCE + i - first];
                partition[net->components[net->order[i]]] += b->scales[i - first] + edge->top;
            } else
                pass_on(beliefs + i * M, M, edge, message, terms);
            for (Long m = 0; m < M; m++)
                above[m] += message[m];
        }
    }
    for (Long i = 0; i < n_roots; i++)
        partition[net->components[net->order[i]]] += rescale(beliefs + i * M, M);
}

/* Log-marginals from the roots to the leaves. */
static void distribute(const Network *net, const Edge *edges, const double *beliefs, const double *messages,
                       double *logs, double *marginals, double *pair_same, Batch *b, double *told, double *terms)
{
    const Long M = net->M, n = net->n_positions, n_roots = net->n_roots;
    for (Long first = n_roots, next; first < n; first = next) {
        for (next = first; next < n && next - first < AT_ONCE && net->parents[next - n_roots] < first; next++) {
            const Edge *edge = edges + net->parent_pairs[next - n_roots];
            const double *above = logs + net->parents[next - n_roots] * M, *message = messages + (next - n_roots) * M;
            for (Long m = 0; m < M; m++)
                b->x[m * AT_ONCE + next - first] = forget(above[m], message[m]);
            b->same[next - first] = edge->same;
            b->different[next - first] = edge->different;
        }
        compute(M, next - first, b);
        for (Long i = first; i < next; i++) {
            const Edge *edge = edges + net->parent_pairs[i - n_roots];
            const double *above = logs + net->parents[i - n_roots] * M, *message = messages + (i - n_roots) * M;
            double *here = logs + i * M;
            const double scale = b->scales[i - first] + edge->top;
            for (Long m = 0; m < M; m++)
                told[m] = forget(above[m], message[m]);
            if (b->least[i - first] >= UNDERFLOW_NEAR)
                for (Long m = 0; m < M; m++)
                    here[m] = b->x[m * AT_ONCE + i - first] + scale;
            else
                pass_on(told, M, edge, here, terms);
            double same = 0.0;
            for (Long m = 0; m < M; m++) {
                here[m] += beliefs[i * M + m];
                same += edge->log_same > -INFINITY ? exp(beliefs[i * M + m] + edge->log_same + told[m]) : 0.0;
            }
            pair_same[net->parent_pairs[i - n_roots]] = same;
        }
        double *powers = b->x; /* as large as the batch */
        memcpy(powers, logs + first * M, sizeof(double) * (size_t)((next - first) * M));
        level->exponentials(powers, (next - first) * M);
        for (Long i = first; i < next; i++) {
            const double *power = powers + (i - first) * M;
            double *out = marginals + net->order[i] * M, sum = 0.0;
            for (Long m = 0; m < M; m++)
                sum += power[m];
            for (Long m = 0; m < M; m++)
                out[m] = power[m] / sum;
            pair_same[net->parent_pairs[i - n_roots]] /= sum;
        }
    }
}

/* ---- connected components ------------------------------------------------------------------------------------ */

/* The first node that is known to be connected to a node. Paths to it are halved on the way. */
static long long first_of(long long *earlier, long long i)
{
    while (earlier[i] != i)
        i = earlier[i] = earlier[earlier[i]];
    return i;
}

/* Component of each node (n_nodes,), numbered by first appearance, from edges (n_pairs, 2). */
static void find_components(const long long *pairs, Long n_pairs, long long *ids, Long n_nodes)
{
    long long n_found = 0;
    for (Long i = 0; i < n_nodes; i++)
        ids[i] = i;
    for (Long p = 0; p < n_pairs; p++) {
        const long long a = first_of(ids, pairs[2 * p]), b = first_of(ids, pairs[2 * p + 1]);
        ids[a > b ? a : b] = a > b ? b : a;
    }
    for (Long i = 0; i < n_nodes; i++) /* what a node points to comes before it, and has its number already */
        ids[i] = ids[i] == i ? n_found++ : ids[ids[i]];
}

/* ---- all together -------------------------------------------------------------------------------------------- */

/* As network_infer; also the log-partition of each component (n_components,), and whether loopy messages converged. */
static double infer_components(const Network *net, const double *node, const double *log_same,
                               const double *log_different, double *marginals, double *edge_same, double *partition,
                               int warm, int *converged, double *room)
{
    const Long M = net->M, n = net->n_positions, n_roots = net->n_roots;
    Edge *edges = (Edge *)room;
    double *pair_same = room + 5 * net->n_pairs, *beliefs = pair_same + net->n_pairs, *logs = beliefs + n * M;
    double *messages = logs + n * M, *colours = messages + (n - n_roots) * M, *terms = colours + 3 * net->n_colourings;
    double *told = terms + M, *x = told + M, *y = x + M * AT_ONCE, *same = y + M * AT_ONCE, *rest = same + 4 * AT_ONCE;
    Batch batch = {x, y, same, same + AT_ONCE, same + 2 * AT_ONCE, same + 3 * AT_ONCE};
    *converged = 1;
    memset(partition, 0, sizeof(double) * (size_t)net->n_components);
    for (Long p = 0; p < net->n_pairs; p++) {
        edges[p].log_same = edges[p].log_different = 0.0;
        pair_same[p] = 0.0;
    }
    for (Long e = 0; e < net->n_edges; e++) {
        if (net->edge_adds[e])
            partition[net->components[net->edge_node[e]]] += net->edge_adds[e] == 1 ? log_same[e] : log_different[e];
        if (net->edge_pair[e] < 0)
            continue;
        Edge *edge = edges + net->edge_pair[e];
        edge->log_same += log_same[e];
        edge->log_different += log_different[e];
    }
    for (Long p = 0; p < net->n_pairs; p++) {
        Edge *edge = edges + p;
        edge->top = edge->log_same > edge->log_different ? edge->log_same : edge->log_different;
        edge->same = edge->log_same == edge->top ? 1.0 : exp(edge->log_same - edge->top);
        edge->different = edge->log_different == edge->top ? 1.0 : exp(edge->log_different - edge->top);
    }
    infer_colourings(net, node, marginals, partition, colours);

    for (Long i = 0; i < n; i++)
        memcpy(beliefs + i * M, node + net->order[i] * M, sizeof(double) * (size_t)M);
    collect(net, edges, beliefs, messages, partition, &batch, terms);
    memcpy(logs, beliefs, sizeof(double) * (size_t)(net->n_alone * M));
    level->exponentials(logs, net->n_alone * M);
    for (Long i = 0; i < net->n_alone; i++) {
        double *here = logs + i * M, *out = marginals + net->order[i] * M, sum = 0.0;
        for (Long m = 0; m < M; m++)
            sum += here[m];
        const double log_total = log(sum);
        partition[net->components[net->order[i]]] += log_total;
        for (Long m = 0; m < M; m++) {
            out[m] = here[m] / sum;
            here[m] = beliefs[i * M + m] - log_total;
        }
    }
    if (net->n_cliques)
        infer_cliques(net, beliefs, edges, logs, pair_same, partition, rest);
    rest += net->n_table + net->n_message + net->largest_residual + 2 * net->largest_separator;
    if (net->n_wide)
        *converged = infer_wide(net, beliefs, edges, logs, pair_same, partition, &batch, warm, rest);
    for (Long i = net->n_alone; i < n_roots; i++)
        memcpy(marginals + net->order[i] * M, logs + i * M, sizeof(double) * (size_t)M);
    level->logs(logs + net->n_alone * M, (n_roots - net->n_alone) * M);
    distribute(net, edges, beliefs, messages, logs, marginals, pair_same, &batch, told, terms);
    for (Long e = 0; e < net->n_edges; e++)
        edge_same[e] = net->edge_pair[e] < 0 ? 1.0 : pair_same[net->edge_pair[e]];
    double total = 0.0;
    for (Long c = 0; c < net->n_components; c++) {
        if (!(partition[c] > LOWEST_LOG / 2))
            return NAN;
        total += partition[c];
    }
    return total;
}

/* Logarithm of the partition function; NAN if there is no possible labelling, which Python explains.
 *
 * `node` (n_nodes, M) has the log-potentials of the nodes, `log_same` and `log_different` (n_edges,) those of equal and
 * different labels. `marginals` (n_nodes, M) and the probability of equal labels `edge_same` (n_edges,) are filled in.
 * With `warm`, loopy messages start from those that the last inference with the same room ended with.
 */
static double network_infer(const Network *net, const double *node, const double *log_same, const double *log_different,
                            double *marginals, double *edge_same, int warm, double *room)
{
    int converged;
    return infer_components(net, node, log_same, log_different, marginals, edge_same, room, warm, &converged,
                            room + net->n_components);
}
