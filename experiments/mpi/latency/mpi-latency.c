/* SPDX-License-Identifier: Apache-2.0 */
/* Cost of messages in an MPI program, with any MPI and nothing of spinkit. Run it with spinrun --clock simulated, so that its clock and
 * nanosleep are in simulated time. It reads the clock itself: the doubles of MPI_Wtime may be seconds since 1970, whose last bit is 238 ns.
 *
 *   --test latency    half the round trip between ranks 0 and 1
 *   --test bandwidth  the time of a message of rank 0 in a window of 32 that are sent at once
 *   --test rate       the same from each of the first half of the ranks to its partner in the second half
 *   --test overlap    rank 1 posts a receive, computes for twice the time of the message, and waits: the time that the receive adds
 *   --test vector     the same with a receive of blocks (MPI_Type_vector): BLOCKS at most, with gaps of their size
 *   --test late       rank 1 computes while the message arrives, then receives: the time of the receive
 *   --bytes N[,N...]  sizes
 *
 * Several --test are made one after the other, each with all sizes. Prints one JSON object a line for each size: {"test", "bytes",
 * "time_ps", "data_ok"}. The CPU computes in its sleep: in simulated time the two are the same, as neither makes a call of MPI. */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum test { LATENCY, BANDWIDTH, RATE, OVERLAP, VECTOR, LATE, TESTS };
static const char *const tests[TESTS] = {"latency", "bandwidth", "rate", "overlap", "vector", "late"};
static const char usage[] =
    "usage: mpi-latency --test latency|bandwidth|rate|overlap|vector|late... --bytes N[,N...]\n";
enum { TAG = 7, ACKNOWLEDGEMENT = 8 };
enum { WINDOW = 32 };
enum { BLOCKS = 32 }; /* blocks of a vector: the most that MPICH leaves to libfabric */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 4 };

/* Data begins this many bytes behind a cache line, so that no block of a vector fills its lines. If it lay wherever the heap has room, the
 * lines that a CPU copies would depend on the names of folders. */
enum { PAGE = 4096, SKEW = 16 };

static int rank, size;
static bool is_wrong; /* set when this rank received wrong data */
static unsigned char *memory, *data;

static void fill(size_t bytes, unsigned round) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 31 + round * 7 + 1);
}

static bool correct(size_t bytes, unsigned round) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(i * 31 + round * 7 + 1))
            return false;
    return true;
}

/* Returns whether a vector with blocks of this length has been received, and its gaps are zeros. */
static bool correct_vector(size_t bytes, size_t block, unsigned round) {
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char *at = data + i / block * 2 * block + i % block;
        if (*at != (unsigned char)(i * 31 + round * 7 + 1) || at[block] != 0)
            return false;
    }
    return true;
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void compute(int64_t ns) {
    const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&time, NULL);
}

/* Half the round trip of the rounds after the first ones, in nanoseconds, as all times here. */
static double ping_pong(int bytes, bool *ok) {
    int64_t begin = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round == WARM_UP)
            begin = now_ns();
        if (rank == 0) {
            fill((size_t)bytes, round);
            MPI_Send(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            memset(data, 0, (size_t)bytes);
            MPI_Recv(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            *ok &= correct((size_t)bytes, round);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return (double)(now_ns() - begin) / (2 * (ROUNDS - WARM_UP));
}

/* The time of a message of one of `pairs` pairs that each send a window of them. */
static double window(int bytes, int pairs, bool *ok) {
    MPI_Request requests[WINDOW];
    int64_t begin = 0;
    bool sends = rank < pairs;
    int peer = sends ? rank + pairs : rank - pairs;
    fill((size_t)bytes, 0);
    if (!sends)
        memset(data, 0, (size_t)bytes);
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round == WARM_UP)
            begin = now_ns();
        for (int i = 0; i < WINDOW; i++) {
            if (sends)
                MPI_Isend(data, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(data, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (sends)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, ACKNOWLEDGEMENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, peer, ACKNOWLEDGEMENT, MPI_COMM_WORLD);
    }
    double time = (double)(now_ns() - begin) / ((ROUNDS - WARM_UP) * WINDOW);
    *ok &= correct((size_t)bytes, 0);
    return time;
}

/* Time that a receive adds to a computation, posted before it or called after it. */
static double receive(int bytes, enum test test, bool *ok) {
    const bool early = test != LATE;
    const int block = test == VECTOR && bytes > BLOCKS ? bytes / BLOCKS : 1;
    int count = bytes;
    MPI_Datatype type = MPI_BYTE;
    if (test == VECTOR) {
        count = 1;
        MPI_Type_vector(bytes / block, block, 2 * block, MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    const int64_t alone = 10000, computation = (int64_t)(2 * ping_pong(bytes, ok));
    int64_t total = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            fill((size_t)bytes, round);
            compute(alone); /* the receive is posted, or the computation has begun */
            MPI_Send(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            continue;
        }
        MPI_Request request = MPI_REQUEST_NULL;
        memset(data, 0, 2 * (size_t)bytes);
        int64_t begin = now_ns();
        if (early)
            MPI_Irecv(data, count, type, 0, TAG, MPI_COMM_WORLD, &request);
        int64_t before = now_ns();
        compute(alone + computation);
        int64_t after = now_ns();
        if (early)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        else
            MPI_Recv(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round >= WARM_UP)
            total += now_ns() - after + before - begin;
        *ok &= test == VECTOR ? correct_vector((size_t)bytes, (size_t)block, round) : correct((size_t)bytes, round);
    }
    if (test == VECTOR)
        MPI_Type_free(&type);
    return (double)total / (ROUNDS - WARM_UP);
}

static void run(enum test test, int bytes) {
    bool ok = true;
    double time = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (test == RATE)
        time = window(bytes, size / 2, &ok);
    else if (rank < 2)
        time = test == LATENCY     ? ping_pong(bytes, &ok)
               : test == BANDWIDTH ? window(bytes, 1, &ok)
                                   : receive(bytes, test, &ok);
    bool all;
    MPI_Reduce(&ok, &all, 1, MPI_C_BOOL, MPI_LAND, 0, MPI_COMM_WORLD);
    if (test == OVERLAP || test == VECTOR || test == LATE) {
        if (rank == 1)
            MPI_Send(&time, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Recv(&time, 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        printf("{\"test\": \"%s\", \"bytes\": %d, \"time_ps\": %.0f, \"data_ok\": %s}\n", tests[test], bytes,
               time * 1000, all ? "true" : "false");
    is_wrong = is_wrong || (rank == 0 && !all);
}

/* Makes a test with each size of a list; returns whether the list is valid. */
static bool run_sizes(enum test test, const char *sizes) {
    char *end;
    for (const char *text = sizes; *text; text = *end ? end + 1 : end) {
        long bytes = strtol(text, &end, 10);
        if (end == text || bytes < 0 || bytes > 1l << 30 || (*end && *end != ','))
            return false;
        free(memory);
        memory = aligned_alloc(PAGE, (SKEW + 2 * (size_t)bytes) / PAGE * PAGE + PAGE); /* a vector has gaps */
        if (!memory)
            MPI_Abort(MPI_COMM_WORLD, 1);
        data = memory + SKEW;
        run(test, (int)bytes);
    }
    return true;
}

int main(int argc, char **argv) {
    enum test chosen[TESTS];
    int count = 0;
    bool valid = argc % 2 == 1;
    const char *sizes = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--bytes") == 0) {
            sizes = argv[i + 1];
            continue;
        }
        enum test test = 0;
        while (test < TESTS && strcmp(argv[i + 1], tests[test]) != 0)
            test++;
        valid = valid && strcmp(argv[i], "--test") == 0 && test < TESTS && count < TESTS;
        if (valid)
            chosen[count++] = test;
    }
    if (!valid || !sizes || count == 0 || size < 2 || size % 2 != 0) {
        if (rank == 0)
            fputs(usage, stderr);
        MPI_Finalize();
        return 2;
    }
    for (int i = 0; i < count; i++) {
        if (!run_sizes(chosen[i], sizes)) {
            if (rank == 0)
                fprintf(stderr, "mpi-latency: --bytes %s: not a list of sizes up to 1 GiB\n", sizes);
            MPI_Finalize();
            return 2;
        }
    }
    free(memory);
    MPI_Finalize();
    return is_wrong;
}
