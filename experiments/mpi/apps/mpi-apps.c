/* SPDX-License-Identifier: Apache-2.0 */
/* Two applications in MPI, nothing of spinkit's: run them with spinrun --clock simulated, so that the clock and the sleeps in which they
 * compute are in simulated time. (They read the clock themselves: the last bit of MPI_Wtime's seconds may be 238 ns.)
 *
 *   cg      conjugate gradients for the five-point Laplacian on a square grid: halo exchanges of the search direction, which the interior's
 *           product overlaps, and two all-reduces in each iteration
 *   jacobi  Jacobi iterations for the seven-point Laplacian in three dimensions, with a face of 12.5 KiB for each of six neighbours, sent
 *           and received in place by MPI_Type_vector, while the interior is computed
 *
 *   --app NAME         which of them; several are made one after the other
 *   --ranks N[,N...]   on the first N ranks
 *   --ns-per-point N   time of the computation at a grid point (default 1): the arithmetic itself takes no simulated time
 *
 * Prints one JSON object a line: {"application", "ranks", "time_ps", "mpi_ps", "result", "data_ok"}: the time from the first iteration to
 * the last, how much of it rank 0 spends in MPI, and the squared residual (cg) or a weighted sum of all points (jacobi), which is compared
 * with that of the same iterations on one process. */
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CG_SIDE = 96, CG_ITERATIONS = 25 };         /* points on a side of a rank's square */
enum { JACOBI_SIDE = 40, JACOBI_ITERATIONS = 10 }; /* points on a side of a rank's cube */
static const char usage[] = "usage: mpi-apps --app cg|jacobi... --ranks N[,N...] [--ns-per-point N]\n";

static MPI_Comm group = MPI_COMM_NULL; /* the ranks that take part */
static int rank, size;
static bool is_wrong; /* a result */
static double ns_per_point = 1;
static int64_t in_mpi; /* nanoseconds, as all times here */

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* A call of MPI, with its time. */
#define MPI(call)                                                                                                      \
    do {                                                                                                               \
        int64_t begin_ = now_ns();                                                                                     \
        call;                                                                                                          \
        in_mpi += now_ns() - begin_;                                                                                   \
    } while (0)

static void compute(size_t points) {
    double ns = (double)points * ns_per_point;
    const struct timespec time = {.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)};
    nanosleep(&time, NULL);
}

static double *grid(size_t points) {
    double *values = calloc(points, sizeof *values);
    if (!values)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return values;
}

/* ---- Conjugate gradients ---------------------------------------------------------------------------------------------------- */

/* A part of the grid: `x` by `y` points with a border of one point. */
struct plane {
    int x, y, first_x, first_y;
};

static size_t at(const struct plane *p, int i, int j) { return (size_t)(i + 1) * (size_t)(p->y + 2) + (size_t)(j + 1); }

static double right_side(int i, int j) { return (i * 7 + j * 3) % 11 - 5.0; }

/* Computes out = A in for the points between these rows and columns; returns their part of in · out. */
static double product(const struct plane *p, const double *in, double *out, int i0, int i1, int j0, int j1) {
    double sum = 0;
    for (int i = i0; i < i1; i++) {
        for (int j = j0; j < j1; j++) {
            double value = 4 * in[at(p, i, j)] - in[at(p, i - 1, j)] - in[at(p, i + 1, j)] - in[at(p, i, j - 1)] -
                           in[at(p, i, j + 1)];
            out[at(p, i, j)] = value;
            sum += in[at(p, i, j)] * value;
        }
    }
    return sum;
}

struct exchange {
    MPI_Comm grid;
    int neighbours[4];
    MPI_Datatype column;
    MPI_Request requests[8];
};

static void exchange_begin(struct exchange *e, const struct plane *p, double *values) {
    double *const from[] = {&values[at(p, 0, 0)], &values[at(p, p->x - 1, 0)], &values[at(p, 0, 0)],
                            &values[at(p, 0, p->y - 1)]};
    double *const to[] = {&values[at(p, -1, 0)], &values[at(p, p->x, 0)], &values[at(p, 0, -1)],
                          &values[at(p, 0, p->y)]};
    for (int k = 0; k < 4; k++) {
        MPI_Datatype type = k < 2 ? MPI_DOUBLE : e->column;
        int count = k < 2 ? p->y : 1;
        MPI(MPI_Irecv(to[k], count, type, e->neighbours[k], k ^ 1, e->grid, &e->requests[k]));
        MPI(MPI_Isend(from[k], count, type, e->neighbours[k], k, e->grid, &e->requests[4 + k]));
    }
}

/* Returns the squared residual after the iterations, over all ranks or of this rank only. */
static double conjugate_gradients(bool alone, int64_t *time) {
    struct exchange e = {.grid = MPI_COMM_NULL};
    int dims[2] = {0, 0}, periods[2] = {0, 0}, place[2] = {0, 0};
    MPI_Dims_create(size, 2, dims);
    struct plane p = {.x = CG_SIDE, .y = CG_SIDE};
    if (alone) {
        p.x *= dims[0];
        p.y *= dims[1];
    } else {
        MPI_Cart_create(group, 2, dims, periods, 0, &e.grid);
        MPI_Cart_coords(e.grid, rank, 2, place);
        MPI_Cart_shift(e.grid, 0, 1, &e.neighbours[0], &e.neighbours[1]);
        MPI_Cart_shift(e.grid, 1, 1, &e.neighbours[2], &e.neighbours[3]);
        MPI_Type_vector(p.x, 1, p.y + 2, MPI_DOUBLE, &e.column);
        MPI_Type_commit(&e.column);
        p.first_x = place[0] * p.x;
        p.first_y = place[1] * p.y;
    }
    size_t points = (size_t)(p.x + 2) * (size_t)(p.y + 2), own = (size_t)p.x * (size_t)p.y;
    double *x = grid(points), *r = grid(points), *d = grid(points), *q = grid(points);
    double rho = 0;
    for (int i = 0; i < p.x; i++) {
        for (int j = 0; j < p.y; j++) {
            r[at(&p, i, j)] = d[at(&p, i, j)] = right_side(p.first_x + i, p.first_y + j);
            rho += r[at(&p, i, j)] * r[at(&p, i, j)];
        }
    }
    if (!alone) {
        MPI_Allreduce(MPI_IN_PLACE, &rho, 1, MPI_DOUBLE, MPI_SUM, e.grid);
        MPI_Barrier(e.grid);
    }
    int64_t begin = now_ns();
    in_mpi = 0;
    for (int iteration = 0; iteration < CG_ITERATIONS; iteration++) {
        double dq;
        if (alone) {
            dq = product(&p, d, q, 0, p.x, 0, p.y);
        } else {
            exchange_begin(&e, &p, d);
            dq = product(&p, d, q, 1, p.x - 1, 1, p.y - 1);
            compute((size_t)(p.x - 2) * (size_t)(p.y - 2));
            MPI(MPI_Waitall(8, e.requests, MPI_STATUSES_IGNORE));
            dq += product(&p, d, q, 0, 1, 0, p.y) + product(&p, d, q, p.x - 1, p.x, 0, p.y) +
                  product(&p, d, q, 1, p.x - 1, 0, 1) + product(&p, d, q, 1, p.x - 1, p.y - 1, p.y);
            compute(2 * (size_t)(p.x + p.y) - 4);
            MPI(MPI_Allreduce(MPI_IN_PLACE, &dq, 1, MPI_DOUBLE, MPI_SUM, e.grid));
        }
        double alpha = rho / dq, next = 0;
        for (size_t k = 0; k < points; k++) {
            x[k] += alpha * d[k];
            r[k] -= alpha * q[k];
            next += r[k] * r[k];
        }
        if (!alone) {
            compute(own);
            MPI(MPI_Allreduce(MPI_IN_PLACE, &next, 1, MPI_DOUBLE, MPI_SUM, e.grid));
        }
        for (int i = 0; i < p.x; i++)
            for (int j = 0; j < p.y; j++)
                d[at(&p, i, j)] = r[at(&p, i, j)] + next / rho * d[at(&p, i, j)];
        if (!alone)
            compute(own);
        rho = next;
    }
    *time = now_ns() - begin;
    if (!alone) {
        MPI_Type_free(&e.column);
        MPI_Comm_free(&e.grid);
    }
    free(x);
    free(r);
    free(d);
    free(q);
    return rho;
}

/* ---- Jacobi ------------------------------------------------------------------------------------------------------------------ */

struct box {
    int n[3], first[3];
};

static size_t inside(const struct box *b, int i, int j, int k) {
    return ((size_t)(i + 1) * (size_t)(b->n[1] + 2) + (size_t)(j + 1)) * (size_t)(b->n[2] + 2) + (size_t)(k + 1);
}

static void smooth(const struct box *b, const double *in, double *out, int from, int to) {
    for (int i = from; i < b->n[0] - from && i < to; i++)
        for (int j = from; j < b->n[1] - from; j++)
            for (int k = from; k < b->n[2] - from; k++)
                out[inside(b, i, j, k)] =
                    (in[inside(b, i - 1, j, k)] + in[inside(b, i + 1, j, k)] + in[inside(b, i, j - 1, k)] +
                     in[inside(b, i, j + 1, k)] + in[inside(b, i, j, k - 1)] + in[inside(b, i, j, k + 1)]) /
                    6;
}

/* Returns a sum over all points after the iterations, weighted so that each point counts. */
static double jacobi(bool alone, int64_t *time) {
    MPI_Comm cart = MPI_COMM_NULL;
    int dims[3] = {0, 0, 0}, periods[3] = {0, 0, 0}, place[3] = {0, 0, 0}, neighbours[6];
    struct box b = {.n = {JACOBI_SIDE, JACOBI_SIDE, JACOBI_SIDE}};
    MPI_Datatype face[3];
    MPI_Dims_create(size, 3, dims);
    if (alone) {
        for (int axis = 0; axis < 3; axis++)
            b.n[axis] *= dims[axis];
    } else {
        MPI_Cart_create(group, 3, dims, periods, 0, &cart);
        MPI_Cart_coords(cart, rank, 3, place);
        for (int axis = 0; axis < 3; axis++) {
            MPI_Cart_shift(cart, axis, 1, &neighbours[2 * axis], &neighbours[2 * axis + 1]);
            b.first[axis] = place[axis] * b.n[axis];
        }
        const int row = b.n[2] + 2, plane = row * (b.n[1] + 2);
        MPI_Type_vector(b.n[1], b.n[2], row, MPI_DOUBLE, &face[0]);
        MPI_Type_vector(b.n[0], b.n[2], plane, MPI_DOUBLE, &face[1]);
        MPI_Datatype line;
        MPI_Type_vector(b.n[1], 1, row, MPI_DOUBLE, &line);
        MPI_Type_create_hvector(b.n[0], 1, (MPI_Aint)plane * (MPI_Aint)sizeof(double), line, &face[2]);
        MPI_Type_free(&line);
        for (int axis = 0; axis < 3; axis++)
            MPI_Type_commit(&face[axis]);
    }
    size_t points = (size_t)(b.n[0] + 2) * (size_t)(b.n[1] + 2) * (size_t)(b.n[2] + 2);
    size_t own = (size_t)b.n[0] * (size_t)b.n[1] * (size_t)b.n[2];
    double *now = grid(points), *next = grid(points);
    for (int i = 0; i < b.n[0]; i++)
        for (int j = 0; j < b.n[1]; j++)
            for (int k = 0; k < b.n[2]; k++)
                now[inside(&b, i, j, k)] = (b.first[0] + i) * 3 + (b.first[1] + j) * 5 + (b.first[2] + k) * 7 % 13;
    if (!alone)
        MPI_Barrier(cart);
    int64_t begin = now_ns();
    in_mpi = 0;
    for (int iteration = 0; iteration < JACOBI_ITERATIONS; iteration++) {
        MPI_Request requests[12];
        for (int k = 0; !alone && k < 6; k++) {
            int axis = k / 2, edge[3] = {0, 0, 0}, border[3] = {0, 0, 0};
            edge[axis] = k % 2 ? b.n[axis] - 1 : 0;
            border[axis] = k % 2 ? b.n[axis] : -1;
            MPI(MPI_Irecv(&now[inside(&b, border[0], border[1], border[2])], 1, face[axis], neighbours[k], k ^ 1, cart,
                          &requests[k]));
            MPI(MPI_Isend(&now[inside(&b, edge[0], edge[1], edge[2])], 1, face[axis], neighbours[k], k, cart,
                          &requests[6 + k]));
        }
        if (!alone) {
            compute((size_t)(b.n[0] - 2) * (size_t)(b.n[1] - 2) * (size_t)(b.n[2] - 2));
            MPI(MPI_Waitall(12, requests, MPI_STATUSES_IGNORE));
            compute(own - (size_t)(b.n[0] - 2) * (size_t)(b.n[1] - 2) * (size_t)(b.n[2] - 2));
        }
        smooth(&b, now, next, 0, b.n[0]);
        double *swap = now;
        now = next;
        next = swap;
    }
    *time = now_ns() - begin;
    double sum = 0;
    for (int i = 0; i < b.n[0]; i++)
        for (int j = 0; j < b.n[1]; j++)
            for (int k = 0; k < b.n[2]; k++)
                sum += now[inside(&b, i, j, k)] *
                       (1 + ((b.first[0] + i) * 31 + (b.first[1] + j) * 17 + (b.first[2] + k)) % 101);
    if (!alone) {
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, cart);
        for (int axis = 0; axis < 3; axis++)
            MPI_Type_free(&face[axis]);
        MPI_Comm_free(&cart);
    }
    free(now);
    free(next);
    return sum;
}

/* -------------------------------------------------------------------------------------------------------------------------------- */

struct application {
    const char *name;
    double (*solve)(bool alone, int64_t *time);
};
static const struct application applications[] = {{"cg", conjugate_gradients}, {"jacobi", jacobi}};
enum { APPLICATIONS = sizeof applications / sizeof applications[0] };

static void run(const struct application *application) {
    int64_t time, unused;
    double value = application->solve(false, &time);
    const int64_t spent = in_mpi;
    if (rank > 0)
        return;
    /* Sums in another order differ in their last digits. */
    double expected = application->solve(true, &unused);
    bool is_right = fabs(value - expected) <= 1e-9 * fabs(expected);
    is_wrong = is_wrong || !is_right;
    printf("{\"application\": \"%s\", \"ranks\": %d, \"time_ps\": %.0f, \"mpi_ps\": %.0f, \"result\": %.17g, "
           "\"data_ok\": %s}\n",
           application->name, size, (double)time * 1000, (double)spent * 1000, value, is_right ? "true" : "false");
}

/* Runs an application on each number of ranks of a list; returns whether the list is valid. */
static bool run_on(const struct application *application, const char *list, int me, int ranks) {
    char *end;
    for (const char *text = list; *text; text = *end ? end + 1 : end) {
        long wanted = strtol(text, &end, 10);
        if (end == text || wanted < 1 || wanted > ranks || (*end && *end != ','))
            return false;
        size = (int)wanted;
        MPI_Comm_split(MPI_COMM_WORLD, me < size ? 0 : MPI_UNDEFINED, me, &group);
        if (group != MPI_COMM_NULL) {
            MPI_Comm_rank(group, &rank);
            run(application);
            MPI_Comm_free(&group);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return true;
}

int main(int argc, char **argv) {
    const struct application *chosen[APPLICATIONS];
    int me, ranks, count = 0;
    const char *list = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool valid = argc % 2 == 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        int number = 0;
        while (number < APPLICATIONS && strcmp(argv[i + 1], applications[number].name) != 0)
            number++;
        if (strcmp(argv[i], "--ranks") == 0)
            list = argv[i + 1];
        else if (strcmp(argv[i], "--ns-per-point") == 0)
            ns_per_point = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--app") == 0 && number < APPLICATIONS && count < APPLICATIONS)
            chosen[count++] = &applications[number];
        else
            valid = false;
    }
    valid = valid && list && count > 0 && ns_per_point >= 0;
    for (int i = 0; valid && i < count; i++)
        valid = run_on(chosen[i], list, me, ranks);
    if (!valid && me == 0)
        fputs(usage, stderr);
    MPI_Finalize();
    return valid ? is_wrong : 2;
}
