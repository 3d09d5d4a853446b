/* Two applications in MPI, nothing of spinkit's: run them with spinrun --clock simulated.
 *
 *   1  conjugate gradients for the five-point Laplacian on a square grid: halo exchanges of the search direction, which the interior's
 *      product overlaps, and two all-reduces in each iteration
 *   2  Jacobi iterations for the seven-point Laplacian in three dimensions, with a face of 8 KiB for each of six neighbours, sent and
 *      received in place by MPI_Type_vector, while the interior is computed
 *
 *   --apps N[,N...]   which of them
 *   --ns-per-point N  time of the computation at a grid point (default 4): the arithmetic itself takes no simulated time
 *
 * Prints one JSON object a line: {"application", "time_ps", "mpi_ps", "data_ok"}: the time from the first iteration to the last, and how much of
 * it rank 0 spends in MPI. Every result is compared with that of the same iterations on one process. */
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum application { CG = 1, JACOBI = 2 };
enum { CG_SIDE = 48, CG_ITERATIONS = 25 };         /* points of a rank on a side of its square */
enum { JACOBI_SIDE = 32, JACOBI_ITERATIONS = 10 }; /* and of its cube */
static const char usage[] = "usage: mpi-apps --apps N[,N...] [--ns-per-point N]\n";

static int rank, size;
static double ns_per_point = 4;
static double in_mpi; /* seconds */

/* A call of MPI, with its time. */
#define MPI(call)                                                                                                      \
    do {                                                                                                               \
        double begin_ = MPI_Wtime();                                                                                   \
        call;                                                                                                          \
        in_mpi += MPI_Wtime() - begin_;                                                                                \
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

/* out = A in, for the points between these rows and columns; returns the part of in · out that they are. */
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

/* Returns the squared residual after the iterations, of all ranks together or of this one alone. */
static double conjugate_gradients(bool alone, double *seconds) {
    struct exchange e = {.grid = MPI_COMM_NULL};
    int dims[2] = {0, 0}, periods[2] = {0, 0}, place[2] = {0, 0};
    MPI_Dims_create(size, 2, dims);
    struct plane p = {.x = CG_SIDE, .y = CG_SIDE};
    if (alone) {
        p.x *= dims[0];
        p.y *= dims[1];
    } else {
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &e.grid);
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
    double begin = MPI_Wtime();
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
    *seconds = MPI_Wtime() - begin;
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
static double jacobi(bool alone, double *seconds) {
    MPI_Comm cart = MPI_COMM_NULL;
    int dims[3] = {0, 0, 0}, periods[3] = {0, 0, 0}, place[3] = {0, 0, 0}, neighbours[6];
    struct box b = {.n = {JACOBI_SIDE, JACOBI_SIDE, JACOBI_SIDE}};
    MPI_Datatype face[3];
    MPI_Dims_create(size, 3, dims);
    if (alone) {
        for (int axis = 0; axis < 3; axis++)
            b.n[axis] *= dims[axis];
    } else {
        MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart);
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
    double begin = MPI_Wtime();
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
    *seconds = MPI_Wtime() - begin;
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

static void run(enum application application) {
    double (*const solve)(bool, double *) = application == CG ? conjugate_gradients : jacobi;
    double seconds, unused, value = solve(false, &seconds), spent = in_mpi;
    if (rank == 0) {
        /* Sums in another order differ in their last digits. */
        double expected = solve(true, &unused);
        printf("{\"application\": %d, \"time_ps\": %.0f, \"mpi_ps\": %.0f, \"data_ok\": %s}\n", application,
               seconds * 1e12, spent * 1e12, fabs(value - expected) <= 1e-9 * fabs(expected) ? "true" : "false");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    char *applications = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--apps") == 0)
            applications = argv[i + 1];
        else if (strcmp(argv[i], "--ns-per-point") == 0)
            ns_per_point = atof(argv[i + 1]);
    }
    bool valid = applications && argc % 2 == 1 && ns_per_point >= 0;
    for (char *text = applications; valid && *text; text++)
        valid = strchr("12,", *text) != NULL;
    if (!valid) {
        if (rank == 0)
            fputs(usage, stderr);
        MPI_Finalize();
        return 2;
    }
    for (char *name = strtok(applications, ","); name; name = strtok(NULL, ","))
        run((enum application)atoi(name));
    MPI_Finalize();
    return 0;
}
