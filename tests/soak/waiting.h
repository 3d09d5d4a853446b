/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the generated programs that wait (waiting_loops.py): `program THREADS`.
 *
 * Rank 0 has THREADS threads that wait, each by `await`; rank 1 sends the data they wait for, or communicates with the
 * main thread of rank 0, which then calls `release`. A program prints the result of each thread, and ends with 0.
 *
 * Before this file, a program defines PORTALS or includes <mpi.h>, and defines KIND. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#ifdef PORTALS
#include <portals4.h>
#include <spin.h>
#endif

/* Events that a program waits for: the card's writes to memory, Portals events and counters, messages of MPI, puts to a
 * window of MPI, or its own main thread. EVERY is MEMORY with writes to all places. */
enum kind { MEMORY, EVERY, EVENT, MESSAGE, WINDOW, SHARED };
enum { PLACES = 4, MOST = 8, ROUNDS = 5 };

static volatile long flags[PLACES];
static int rank, threads;
static long results[MOST];

static void prepare(void);
static long await(int id);
static void release(void);

static inline void check(int code, const char *call) {
    if (code == 0)
        return;
    fprintf(stderr, "rank %d: %s returns %d\n", rank, call, code);
    exit(9);
}

#define CHECK(call) check((call), #call)

/* Makes the compiler read memory again. */
#define FRESH() __asm__ volatile("" ::: "memory")

static inline double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline double cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
}

#ifdef PORTALS
/* Entry k < MOST is for the k-th waiting thread, entry MOST for `exchange`. */
static ptl_handle_ni_t ni;
static ptl_pt_index_t entries[MOST + 1];
static ptl_handle_eq_t queues[MOST];
static ptl_handle_ct_t counters[MOST + 1];
static ptl_handle_md_t source;
static const long one = 1;

static void put(int entry, int place) {
    ptl_process_t target = {.rank = rank == 0 ? 1 : 0};
    CHECK(PtlPut(source, 0, sizeof one, PTL_NO_ACK_REQ, target, entries[entry], 0, (ptl_size_t)place * sizeof one, NULL,
                 0));
}

static void start(void) {
    CHECK(PtlInit());
    rank = spin_rank();
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    for (int i = 0; i <= MOST; i++) {
        ptl_handle_le_t handle;
        ptl_handle_eq_t queue = PTL_EQ_NONE;
        if (i < MOST) {
            CHECK(PtlEQAlloc(ni, 16, &queues[i]));
            queue = queues[i];
        }
        CHECK(PtlCTAlloc(ni, &counters[i]));
        CHECK(PtlPTAlloc(ni, 0, queue, (ptl_pt_index_t)i, &entries[i]));
        ptl_le_t entry = {.start = (void *)flags,
                          .length = sizeof flags,
                          .ct_handle = counters[i],
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_LINK_DISABLE};
        CHECK(PtlLEAppend(ni, entries[i], &entry, PTL_PRIORITY_LIST, NULL, &handle));
    }
    ptl_md_t data = {.start = (void *)&one, .length = sizeof one, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    CHECK(PtlMDBind(ni, &data, &source));
    CHECK(spin_barrier());
}

static void exchange(int round) {
    ptl_ct_event_t count;
    if (rank == 0)
        put(MOST, 0);
    CHECK(PtlCTWait(counters[MOST], (ptl_size_t)round + 1, &count));
    if (rank == 1)
        put(MOST, 0);
}

/* Sends the data awaited by the threads of rank 0, one after the other. */
static void bring(void) {
    for (int i = KIND == MEMORY ? PLACES - 1 : 0; i < (KIND == EVENT ? threads : PLACES); i++) {
        spin_host_compute(3000);
        put(KIND == EVENT ? i : MOST, i % PLACES);
    }
}

static void finish(void) {
    CHECK(spin_barrier());
    CHECK(PtlNIFini(ni));
    PtlFini();
}
#else
static MPI_Win window;

static void start(void) {
    int level, wanted = threads > 1 || KIND == SHARED ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    CHECK(MPI_Init_thread(NULL, NULL, wanted, &level));
    CHECK(level < wanted);
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (KIND == WINDOW) {
        CHECK(MPI_Win_create((void *)flags, sizeof flags, sizeof *flags, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
        CHECK(MPI_Win_lock_all(0, window));
        CHECK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void exchange(int round) {
    int got = -1;
    if (rank == 0)
        CHECK(MPI_Send(&round, 1, MPI_INT, 1, MOST, MPI_COMM_WORLD));
    CHECK(MPI_Recv(&got, 1, MPI_INT, 1 - rank, MOST, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got != round);
    if (rank == 1)
        CHECK(MPI_Send(&round, 1, MPI_INT, 0, MOST, MPI_COMM_WORLD));
}

/* Sends the message of each thread of rank 0, whose tag is the thread's number, or puts into the window's last place. */
static void bring(void) {
    static const long one = 1;
    if (KIND == WINDOW) {
        CHECK(MPI_Put(&one, 1, MPI_LONG, 0, PLACES - 1, 1, MPI_LONG, window));
        CHECK(MPI_Win_flush(0, window));
        return;
    }
    for (int i = 0; i < threads; i++) {
        int value = 100 + i;
        CHECK(MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
    }
}

static void finish(void) {
    if (KIND == WINDOW) {
        CHECK(MPI_Win_unlock_all(window));
        CHECK(MPI_Win_free(&window));
    }
    CHECK(MPI_Finalize());
}
#endif

static void *run(void *id) {
    results[(long)id] = await((int)(long)id);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > MOST)
        return 2;
    start();
    prepare();
    if (rank == 0) {
        pthread_t others[MOST];
        int first = KIND == SHARED ? 0 : 1;
        for (long i = first; i < threads; i++)
            CHECK(pthread_create(&others[i], NULL, run, (void *)i));
        if (KIND == SHARED) {
            for (int round = 0; round < ROUNDS; round++)
                exchange(round);
            release();
        } else {
            run(NULL);
        }
        for (int i = first; i < threads; i++)
            CHECK(pthread_join(others[i], NULL));
        for (int i = 0; i < threads; i++)
            printf("thread %d found %ld\n", i, results[i]);
        fflush(stdout);
    } else if (KIND == SHARED) {
        for (int round = 0; round < ROUNDS; round++)
            exchange(round);
    } else {
        bring();
    }
    finish();
    return 0;
}
