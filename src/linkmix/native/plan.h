/* The plan of a network: one array of integers (linkmix/couplings/network/plan.py), opened and checked.
 *
 * A plan whose numbers lead outside of it, or would let an inference go round in circles, is refused. */

#define NETWORK_VERSION 1
#define CLIQUE 9  /* numbers before the nodes of a clique */

typedef struct {
    long long component, n_residual, n_nodes, parent, first_child, next_sibling, table, message, n_factors;
    const long long *nodes;   /* (n_nodes,) positions; residual nodes first */
    const long long *axes;    /* (n_nodes - n_residual,) of the separator in the parent's table, increasing */
    const long long *factors; /* (n_factors, 3): two axes, the first residual, and a pair; sorted by the first axis */
} Clique;

typedef struct {
    Long M, n_nodes, n_edges, n_pairs, n_components;
    const long long *edge_pair;  /* (n_edges,) -1 for an edge from a node to itself */
    const long long *edge_adds;  /* (n_edges,) 0, or which potential is a constant of its component: 1 same, 2 different */
    const long long *components; /* (n_nodes,) */
    const long long *edge_node;  /* (n_edges,) one end */
    Long n_coloured, n_colourings;
    const long long *coloured;         /* (n_coloured,) nodes */
    const long long *colouring;        /* (n_coloured,) number of the component among the coloured ones */
    const long long *colour;           /* (n_coloured,) label in the first of both labellings */
    const long long *colour_component; /* (n_colourings,) */
    Long n_positions, n_alone, n_roots;
    const long long *order;        /* (n_positions,) nodes: roots alone, roots in cores, then by depth */
    const long long *parents;      /* (n_positions - n_roots,) positions */
    const long long *parent_pairs; /* (n_positions - n_roots,) */
    Long n_cliques, n_table, n_message, largest_residual, largest_separator;
    const long long *clique_starts; /* (n_cliques,) where each begins in `cliques` */
    const long long *cliques;
    Long n_wide, n_wide_pairs, n_colours, max_iter;
    double loopy_tol, damping;
    const long long *wide;        /* (n_wide,) positions, in the order in which they send */
    const long long *wide_blocks; /* (n_colours + 1,) where the nodes of each colour begin; they are no neighbours */
    const long long *wide_starts; /* (n_wide + 1,) where the messages to each node begin */
    const long long *wide_pair;   /* (2 n_wide_pairs,) pair of each message */
    const long long *wide_source; /* (2 n_wide_pairs,) number of its sender */
    const long long *wide_back;   /* (2 n_wide_pairs,) message in the other direction */
} Network;

static double double_of(long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static Long power(Long base, Long exponent)
{
    Long value = 1;
    while (exponent-- > 0 && value > 0 && (value > 1 || base != 1))
        value = times(value, base);
    return value;
}

static Clique clique_of(const Network *net, Long number)
{
    const long long *at = net->cliques + net->clique_starts[number];
    Clique c = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at + CLIQUE, NULL, NULL};
    c.axes = c.nodes + c.n_nodes;
    c.factors = c.axes + (c.n_nodes - c.n_residual);
    return c;
}

/* Whether a clique stays within `room` integers of the plan, and its numbers within the network. */
static int clique_fits(const Network *net, Long number, Long room)
{
    const Long M = net->M;
    if (room < CLIQUE)
        return 0;
    const Clique c = clique_of(net, number);
    room -= CLIQUE;
    if (c.n_nodes < 1 || c.n_nodes > room || c.n_residual < 0 || c.n_residual > c.n_nodes || c.n_factors < 0 ||
        c.n_factors > room / 3 || 2 * c.n_nodes - c.n_residual + 3 * c.n_factors > room)
        return 0;
    const Long k = (Long)c.n_nodes, n_axes = k - (Long)c.n_residual;
    const Long table = power(M, k), message = power(M, n_axes), residual = power(M, (Long)c.n_residual);
    if (c.component < 0 || c.component >= net->n_components || c.table < 0 || c.table > net->n_table - table ||
        c.message < 0 || c.message > net->n_message - message || residual > net->largest_residual ||
        message > net->largest_separator || !within(c.nodes, k, net->n_positions))
        return 0;
    for (Long f = 0; f < c.n_factors; f++) {
        const long long *factor = c.factors + 3 * f;
        if (factor[0] < 0 || factor[0] >= factor[1] || factor[1] >= k || !within(factor + 2, 1, net->n_pairs))
            return 0;
    }
    return 1;
}

/* Whether the cliques, each of which fits, are trees: parents come before their children, the last child first. */
static int cliques_fit(const Network *net)
{
    for (Long number = 0; number < net->n_cliques; number++) {
        const Clique c = clique_of(net, number);
        const Long n_axes = (Long)(c.n_nodes - c.n_residual);
        if (c.parent < -1 || c.parent >= number || c.next_sibling < -1 || c.next_sibling >= number ||
            c.first_child < -1 || c.first_child >= net->n_cliques)
            return 0;
        if (c.first_child >= 0 && clique_of(net, (Long)c.first_child).parent != number)
            return 0;
        if (c.next_sibling >= 0 && clique_of(net, (Long)c.next_sibling).parent != c.parent)
            return 0;
        if (c.parent < 0)
            continue;
        const Clique above = clique_of(net, (Long)c.parent);
        if (n_axes < 1 || !within(c.axes, n_axes, above.n_nodes))
            return 0;
        for (Long i = 1; i < n_axes; i++)
            if (c.axes[i - 1] >= c.axes[i])
                return 0;
    }
    return 1;
}

/* Whether all numbers in the sections of a plan are those of something that exists. */
static int network_fits(const Network *net, Long n_flat)
{
    const Long n = net->n_positions, n_roots = net->n_roots, n_messages = 2 * net->n_wide_pairs;
    if (net->M < 1 || net->M >= ENORMOUS || (net->n_coloured && net->M != 2) || net->n_pairs < 0 ||
        net->n_pairs > net->n_edges || net->n_components < 0 || net->n_components > net->n_nodes ||
        net->n_alone < 0 || net->n_alone > n_roots || net->n_table < 0 || net->n_message < 0 ||
        net->largest_residual < 0 || net->largest_separator < 0)
        return 0;
    for (Long e = 0; e < net->n_edges; e++)
        if (net->edge_pair[e] < -1 || net->edge_pair[e] >= net->n_pairs)
            return 0;
    for (Long i = 0; i < n - n_roots; i++)
        if (net->parents[i] < 0 || net->parents[i] >= n_roots + i)
            return 0;
    for (Long i = 0; i < net->n_cliques; i++)
        if (net->clique_starts[i] < 0 || net->clique_starts[i] > n_flat ||
            !clique_fits(net, i, n_flat - (Long)net->clique_starts[i]))
            return 0;
    return within(net->edge_node, net->n_edges, net->n_nodes) &&
           within(net->components, net->n_nodes, net->n_components) &&
           within(net->coloured, net->n_coloured, net->n_nodes) &&
           within(net->colouring, net->n_coloured, net->n_colourings) && within(net->colour, net->n_coloured, 2) &&
           within(net->colour_component, net->n_colourings, net->n_components) &&
           within(net->order, n, net->n_nodes) && within(net->parent_pairs, n - n_roots, net->n_pairs) &&
           cliques_fit(net) && within(net->wide, net->n_wide, n) &&
           within(net->wide_blocks, net->n_colours + 1, net->n_wide + 1) &&
           within(net->wide_starts, net->n_wide + 1, n_messages + 1) &&
           within(net->wide_pair, n_messages, net->n_pairs) && within(net->wide_source, n_messages, net->n_wide) &&
           within(net->wide_back, n_messages, n_messages);
}

/* Reads a plan; 0 if it is complete, sound, and for this number of classes. */
static int network_open(const long long *plan, Long size, Long n_classes, Network *net)
{
    enum { HEADER = 24 };
    if (size < HEADER || plan[0] != NETWORK_VERSION || plan[1] != n_classes)
        return 1;
    memset(net, 0, sizeof(*net));
    net->M = (Long)plan[1], net->n_nodes = (Long)plan[2], net->n_edges = (Long)plan[3], net->n_pairs = (Long)plan[4];
    net->n_components = (Long)plan[5], net->n_coloured = (Long)plan[6], net->n_colourings = (Long)plan[7];
    net->n_positions = (Long)plan[8], net->n_alone = (Long)plan[9], net->n_roots = (Long)plan[10];
    net->n_cliques = (Long)plan[11], net->n_table = (Long)plan[13], net->n_message = (Long)plan[14];
    net->largest_residual = (Long)plan[15], net->largest_separator = (Long)plan[16];
    net->n_wide = (Long)plan[17], net->n_wide_pairs = (Long)plan[18], net->max_iter = (Long)plan[19];
    net->n_colours = (Long)plan[22], net->loopy_tol = double_of(plan[20]), net->damping = double_of(plan[21]);
    const Long n_flat = (Long)plan[12];
    Long at = HEADER;
    if (net->n_roots < 0 || net->n_roots > net->n_positions || net->n_colours < 0 || net->n_colours > size ||
        net->n_wide < 0 || net->n_wide > size || net->n_wide_pairs < 0 || net->n_wide_pairs > size)
        return 1;
#define SECTION(name, count)                                                                                           \
    if ((count) < 0 || (count) > size - at)                                                                            \
        return 1;                                                                                                      \
    net->name = plan + at;                                                                                             \
    at += (count)
    SECTION(edge_pair, net->n_edges);
    SECTION(edge_adds, net->n_edges);
    SECTION(edge_node, net->n_edges);
    SECTION(components, net->n_nodes);
    SECTION(coloured, net->n_coloured);
    SECTION(colouring, net->n_coloured);
    SECTION(colour, net->n_coloured);
    SECTION(colour_component, net->n_colourings);
    SECTION(order, net->n_positions);
    SECTION(parents, net->n_positions - net->n_roots);
    SECTION(parent_pairs, net->n_positions - net->n_roots);
    SECTION(clique_starts, net->n_cliques);
    SECTION(cliques, n_flat);
    SECTION(wide, net->n_wide);
    SECTION(wide_blocks, net->n_colours + 1);
    SECTION(wide_starts, net->n_wide + 1);
    SECTION(wide_pair, 2 * net->n_wide_pairs);
    SECTION(wide_source, 2 * net->n_wide_pairs);
    SECTION(wide_back, 2 * net->n_wide_pairs);
#undef SECTION
    return at != size || !network_fits(net, n_flat);
}

/* Doubles of scratch space that an inference needs. */
static Long network_room(const Network *net)
{
    const Long M = net->M, n = net->n_positions, below = n - net->n_roots;
    const Long parts[] = {net->n_components, 6 * net->n_pairs, 3 * net->n_colourings, times(2 * n + below, M),
                          net->n_table, net->n_message, net->largest_residual, times(2, net->largest_separator),
                          times(4 * net->n_wide_pairs, M), times(net->n_wide, 2 * M + 2), times(AT_ONCE, 2 * M + 6),
                          times(8, M)};
    Long sum = 0;
    for (int i = 0; i < (int)(sizeof(parts) / sizeof(*parts)); i++)
        sum += parts[i] < ENORMOUS ? parts[i] : ENORMOUS;
    return sum;
}
