/* Ways for a run to end: `ends HOW`. */
#define _GNU_SOURCE
#include "../portals/harness.h"
#include <pthread.h>
#include <signal.h>
#include <spin.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int *volatile nowhere;
static volatile int never;

static void deadlock(void) {
    ptl_handle_ct_t ct;
    ptl_handle_eq_t eq;
    ptl_ct_event_t count;
    ptl_event_t event;
    spin_host_compute(1000);
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlEQAlloc(ni, 1, &eq));
    if (spin_rank() == 0)
        CHECK(PtlCTWait(ct, 5, &count));
    if (spin_rank() == 1)
        CHECK(PtlEQWait(eq, &event));
    if (spin_rank() == 2)
        CHECK(spin_barrier());
}

/* A refused put, unnoticed by the program. */
static void ignore(void) {
    static char data[8];
    ptl_handle_ct_t arrived;
    ptl_ct_event_t count;
    ptl_handle_md_t md = descriptor(data, sizeof data, 0, PTL_EQ_NONE, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &arrived));
    spin_host_compute(1000);
    for (int i = 0; i < 2; i++)
        (void)PtlPut(md, 1, sizeof data, PTL_NO_ACK_REQ, to_rank(0), 0, 0, 0, NULL, 0);
    CHECK(PtlCTWait(arrived, 1, &count));
}

/* The library prints a message, and standard error is a pipe without a reader. */
static void unheard(void) {
    int ends[2];
    ptl_handle_eq_t eq;
    signal(SIGPIPE, SIG_IGN);
    if (pipe(ends) || close(ends[0]) || dup2(ends[1], STDERR_FILENO) < 0)
        exit(3);
    CHECK(PtlNIFini(ni));
    PtlFini();
    exit(PtlEQAlloc(ni, 1, &eq) == PTL_NO_INIT ? 0 : 4);
}

/* Two messages arrive at an entry whose counter does not count them, and another rank's descriptor counts nothing. */
static void uncounted(void) {
    static char data[8];
    ptl_handle_ct_t arrived, sent;
    ptl_handle_me_t entry;
    ptl_ct_event_t count;
    CHECK(PtlCTAlloc(ni, &arrived));
    CHECK(PtlCTAlloc(ni, &sent));
    ptl_me_t me = {.start = data,
                   .length = sizeof data,
                   .ct_handle = arrived,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT,
                   .match_id.rank = PTL_RANK_ANY};
    CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_handle_md_t md = descriptor(data, sizeof data, 0, PTL_EQ_NONE, sent);
    CHECK(spin_barrier());
    for (int i = 0; i < 2 && spin_rank() == 1; i++)
        CHECK(PtlPut(md, 0, sizeof data, PTL_NO_ACK_REQ, to_rank(0), 0, 0, 0, NULL, 0));
    CHECK(PtlCTWait(spin_rank() == 0 ? arrived : sent, 2, &count));
}

/* A put to a rank that does not exist. */
static void ignore_refusal(void) {
    static char data[8];
    ptl_handle_md_t md = descriptor(data, sizeof data, 0, PTL_EQ_NONE, PTL_CT_NONE);
    (void)PtlPut(md, 0, sizeof data, PTL_NO_ACK_REQ, to_rank(7), 0, 0, 0, NULL, 0);
}

static void *wait_for_ever(void *unused) {
    ptl_handle_ct_t ct;
    ptl_ct_event_t count;
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlCTWait(ct, 1, &count));
    return unused;
}

/* Ends while a thread waits: at once, or after a sleep in real time. */
static void leave_later(long nanoseconds) {
    pthread_t thread;
    struct timespec moment = {.tv_nsec = nanoseconds};
    if (pthread_create(&thread, NULL, wait_for_ever, NULL))
        exit(2);
    nanosleep(&moment, NULL);
    exit(4);
}

static ptl_handle_ct_t waited_for;

static void call_in_handler(int signal) {
    ptl_ct_event_t count;
    (void)signal;
    (void)PtlCTGet(waited_for, &count);
}

/* A signal interrupts a thread that waits inside the library, and its handler calls the library, too. */
static void interrupt(void) {
    pthread_t thread;
    struct timespec moment = {.tv_nsec = 50000000};
    signal(SIGUSR1, call_in_handler);
    CHECK(PtlCTAlloc(ni, &waited_for));
    if (pthread_create(&thread, NULL, wait_for_ever, NULL))
        exit(2);
    nanosleep(&moment, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

/* A child made by a system call, not by the C library, calls the library. */
static void fork_by_system_call(void) {
    int status;
    long child = syscall(SYS_fork);
    if (child == 0) {
        ptl_handle_ct_t ct;
        _exit(PtlCTAlloc(ni, &ct) == PTL_FAIL ? 42 : 0);
    }
    EXPECT(waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    if (strcmp(how, "deadlock") == 0) {
        deadlock();
    } else if (strcmp(how, "ignore") == 0) {
        ignore();
    } else if (strcmp(how, "unheard") == 0) {
        unheard();
    } else if (strcmp(how, "uncounted") == 0) {
        CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &(ptl_pt_index_t){0}));
        uncounted();
    } else if (strcmp(how, "forever") == 0) {
        printf("rank %d runs\n", spin_rank());
        CHECK(spin_barrier());
        for (;;)
            spin_host_compute(1000000);
    } else if (strcmp(how, "hello") == 0) {
        printf("hello from %d of %d\n", spin_rank(), spin_size());
        fprintf(stderr, "warned by %d\n", spin_rank());
    } else if (strcmp(how, "handler") == 0) {
        interrupt();
    } else if (strcmp(how, "fork") == 0) {
        fork_by_system_call();
    } else if (strcmp(how, "closed") == 0) {
        ptl_handle_eq_t eq;
        PtlFini();
        (void)PtlEQAlloc(ni, 1, &eq);
        (void)PtlEQAlloc(ni, 1, &eq);
        exit(0);
    } else if (strcmp(how, "skip") == 0) {
        exit(77);
    } else if (strcmp(how, "poll") == 0) {
        while (never == spin_rank()) {
        }
    } else if (spin_rank() == 1) {
        spin_host_compute(2500);
        if (strcmp(how, "exit") == 0)
            exit(3);
        if (strcmp(how, "refused") == 0) {
            ignore_refusal();
            exit(3);
        }
        if (strcmp(how, "crash") == 0)
            *nowhere = 1;
        if (strcmp(how, "abort") == 0)
            abort();
        if (strcmp(how, "leave") == 0)
            leave_later(0);
        if (strcmp(how, "sleep") == 0)
            leave_later(20000000);
    }
    CHECK(spin_barrier());
    return close_interface();
}
