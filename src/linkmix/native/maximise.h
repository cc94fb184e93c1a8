/* The M-step: new parameters of the components and of the classes, from the sums of the E-step.
 *
 * A step that needs care, because a covariance is singular, returns 0 and is made by Python.
 */

#define NO_SUPPORT (10 * 2.220446049250313e-16) /* as in densities/elliptical.py */
#define SMALLEST_WEIGHT 1e-12                   /* as in couplings/class_weights.py */
#define LEAST_DEGREES 0.5                       /* as in densities/student.py */
#define MOST_DEGREES 200.0
#define MAX_NEWTON_STEPS 100

typedef struct {
    double *means, *covariances, *whiteners, *class_weights, *cluster_weights, *degrees; /* degrees: Student-t only */
} Parameters;

/* Weights and moments of each component. Moments of Student-t components count each row with its expected precision:
 * `scaled` is the sum of these weights, and `gap` the sum of expected log u - u. Otherwise `scaled` is `weight`. */
typedef struct {
    double *scaled, *first, *second, *weight, *gap;
} Sums;

/* How the components are estimated. */
typedef struct {
    int form, tied, student, learns_degrees;
    Long C, d;
    double reg_covar;
    double prior;         /* pseudo-observations of the pooled covariance; 0 if there is no prior */
    const double *pooled; /* in the shape of one covariance */
} Estimate;

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

/* Half the log-determinant of the precision of a whitener, minus half the trace of the precision times the pooled
 * covariance: the log-prior for one pseudo-observation. */
static double log_prior_of(int form, Long d, const double *whitener, const double *pooled, double *row)
{
    double half_log_precision = 0.0, trace = 0.0;
    if (form == SPHERICAL)
        return (double)d * (log(*whitener) - 0.5 * *whitener * *whitener * *pooled);
    for (Long j = 0; j < d; j++)
        half_log_precision += log(form == FULL ? whitener[j * d + j] : whitener[j]);
    for (Long j = 0; j < d && form == DIAGONAL; j++)
        trace += whitener[j] * whitener[j] * pooled[j];
    return half_log_precision - 0.5 * (form == FULL ? level->trace(d, whitener, pooled, row) : trace);
}

static double log_prior(const Estimate *e, const Parameters *p, double *row)
{
    const Long size = second_size(e->form, 1, e->d);
    double total = 0.0;
    if (!(e->prior > 0.0))
        return 0.0;
    for (Long c = 0; c < e->C; c++)
        total += log_prior_of(e->form, e->d, p->whiteners + c * size, e->pooled, row);
    return e->prior * total;
}

static int maximise_tied(const Estimate *e, const Sums *sums, const Parameters *old, Parameters *new, double *scratch)
{
    const Long C = e->C, d = e->d, size = d * d;
    double support = 0.0, total = 0.0;
    for (Long c = 0; c < C; c++) {
        support += sums->weight[c];
        total += at_least(sums->scaled[c], NO_SUPPORT);
    }
    if (!(support > NO_SUPPORT)) {
        memcpy(new->covariances, old->covariances, sizeof(double) * (size_t)size);
        memcpy(new->whiteners, old->whiteners, sizeof(double) * (size_t)size);
        return 1;
    }
    if (e->student) /* moments weighted by wu, divided by the sums of w */
        total = support;
    for (Long i = 0; i < d; i++)
        for (Long j = 0; j < d; j++) {
            double s = 0.0, shift = 0.0;
            for (Long c = 0; c < C; c++) {
                const double w = at_least(sums->scaled[c], NO_SUPPORT);
                s += sums->second[c * size + i * d + j];
                shift += sums->first[c * d + i] / w * sums->first[c * d + j];
            }
            new->covariances[i * d + j] = (s - shift) / total + (i == j ? e->reg_covar : 0.0);
        }
    return level->whiten(d, new->covariances, new->whiteners, scratch);
}

/* New means, covariances and whiteners; returns 0 if Python must handle a covariance. */
static int maximise_components(const Estimate *e, const Sums *sums, const Parameters *old, Parameters *new,
                               double *scratch)
{
    const Long C = e->C, d = e->d, size = second_size(e->form, 1, d);
    for (Long c = 0; c < C; c++) {
        const double w = sums->scaled[c];
        for (Long j = 0; j < d; j++)
            new->means[c * d + j] =
                old->means[c * d + j] + (w > NO_SUPPORT ? sums->first[c * d + j] / w : 0.0);
    }
    if (e->tied)
        return maximise_tied(e, sums, old, new, scratch);
    for (Long c = 0; c < C; c++) {
        const double *first = sums->first + c * d, *second = sums->second + c * size;
        const double w = at_least(sums->scaled[c], NO_SUPPORT), support = sums->weight[c];
        double *covariance = new->covariances + c * size, *whitener = new->whiteners + c * size;
        if (!(support > NO_SUPPORT) && !(e->prior > 0.0)) {
            memcpy(covariance, old->covariances + c * size, sizeof(double) * (size_t)size);
            memcpy(whitener, old->whiteners + c * size, sizeof(double) * (size_t)size);
            continue;
        }
        /* Moments weighted by wu, divided by the sums of w; and the share of the data against the prior. */
        const double ratio = e->student ? w / at_least(support, NO_SUPPORT) : 1.0;
        const double seen = support > NO_SUPPORT ? support : 0.0;
        const double share = e->prior > 0.0 ? seen / (seen + e->prior) : 1.0;
        double *shift = scratch, squares = 0.0; /* unused until the covariance is complete */
        for (Long j = 0; j < d; j++) {
            shift[j] = first[j] / w;
            squares += shift[j] * shift[j];
        }
        if (e->form == FULL) {
            const double scale = share * ratio / w, shrink = share * ratio;
            for (Long i = 0; i < d; i++)
                for (Long j = 0; j <= i; j++) {
                    double value = scale * second[i * d + j] - shrink * (shift[i] * shift[j]);
                    if (e->prior > 0.0)
                        value += (1.0 - share) * e->pooled[i * d + j];
                    covariance[i * d + j] = covariance[j * d + i] = value + (i == j ? e->reg_covar : 0.0);
                }
            if (!level->whiten(d, covariance, whitener, scratch))
                return 0;
            continue;
        }
        for (Long j = 0; j < size; j++) {
            double value = second[j] / w - (e->form == DIAGONAL ? shift[j] * shift[j] : squares / (double)d);
            value = share * ratio * value + (e->prior > 0.0 ? (1.0 - share) * e->pooled[j] : 0.0);
            covariance[j] = at_least(value, 0.0) + e->reg_covar;
            if (!(covariance[j] > 0.0))
                return 0;
            whitener[j] = 1.0 / sqrt(covariance[j]);
        }
    }
    return 1;
}

/* ---- degrees of freedom -------------------------------------------------------------------------------------- */

/* The expected log-density of u as a function of nu has this slope, up to a positive factor. It decreases in nu. */
static double degrees_slope(double nu, double gap)
{
    return log(nu / 2) - digamma(nu / 2) + 1.0 + gap;
}

/* _degrees_with_gap of densities/student.py, by the secant method within a bracket (Illinois). */
static double degrees_with_gap(double gap)
{
    double low = LEAST_DEGREES, high = MOST_DEGREES;
    double above = degrees_slope(low, gap), below = degrees_slope(high, gap);
    if (above <= 0.0)
        return low;
    if (below >= 0.0)
        return high;
    for (int round = 0, side = 0; round < 200 && high - low > 1e-13 * high; round++) {
        double nu = (low * below - high * above) / (below - above);
        if (!(nu > low && nu < high))
            nu = 0.5 * (low + high);
        const double slope = degrees_slope(nu, gap);
        if (slope == 0.0)
            return nu;
        if (slope > 0.0) {
            below *= side > 0 ? 0.5 : 1.0;
            side = 1;
            low = nu;
            above = slope;
        } else {
            above *= side < 0 ? 0.5 : 1.0;
            side = -1;
            high = nu;
            below = slope;
        }
    }
    return 0.5 * (low + high);
}

static void maximise_degrees(const Estimate *e, const Sums *sums, const Parameters *old, Parameters *new)
{
    for (Long c = 0; c < e->C; c++) {
        const double w = sums->weight[c];
        new->degrees[c] = e->learns_degrees && w > NO_SUPPORT ? degrees_with_gap(sums->gap[c] / w) : old->degrees[c];
    }
}

/* ---- class weights ------------------------------------------------------------------------------------------- */

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
