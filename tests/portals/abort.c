/* conformance: ranks=1,2
 * PtlAbort: threads in waits and polls return PTL_ABORTED, later ones at once; objects can be freed then.
 * Several threads in waits: one event wakes one; what goes away ends its waits; threads that sleep are waited for. */
#define _POSIX_C_SOURCE 200809L
#include "ring.h"
#include <pthread.h>
#include <time.h>

enum { WAITERS = 4 };
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static int codes[WAITERS];

static void *wait_for(void *which) {
    int w = (int)(intptr_t)which;
    ptl_event_t event;
    ptl_ct_event_t count;
    ptl_size_t test = 5;
    unsigned int at;
    switch (w) {
    case 0: codes[w] = PtlEQWait(eq, &event); break;
    case 1: codes[w] = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &at); break;
    case 2: codes[w] = PtlCTWait(ct, 5, &count); break;
    default: codes[w] = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &at);
    }
    return NULL;
}

/* Two threads wait for one event: one of them gets it. Then the queue is freed under the other. */
static void shared_queue(void) {
    pthread_t threads[2];
    static unsigned char memory[8];
    eq = queue(4);
    codes[0] = codes[1] = -1;
    for (int w = 0; w < 2; w++)
        if (pthread_create(&threads[w], NULL, wait_for, (void *)(intptr_t)w))
            exit(2);
    spin_host_compute(1000000);
    ptl_pt_index_t pt = portal(eq, 0);
    append(pt, entry(memory, 8, PTL_ME_OP_PUT), PTL_PRIORITY_LIST, NULL); /* LINK */
    spin_host_compute(1000000);
    EQUAL("one event wakes one waiter", (codes[0] == PTL_OK) + (codes[1] == PTL_OK), 1);
    CHECK(PtlEQFree(eq));
    for (int w = 0; w < 2; w++)
        pthread_join(threads[w], NULL);
    EQUAL("a queue that goes away ends a wait", (codes[0] == PTL_INTERRUPTED) + (codes[1] == PTL_INTERRUPTED), 1);
}

static void *sleep_and_count(void *by) {
    struct timespec moment = {.tv_nsec = 20000000};
    ptl_ct_event_t amount = {.success = (ptl_size_t)(intptr_t)by};
    nanosleep(&moment, NULL);
    CHECK(PtlCTInc(ct, amount));
    return NULL;
}

/* Only a thread that sleeps in real time is active: neither a deadlock nor a time-out occurs before it wakes. */
static void sleeper(void) {
    pthread_t thread;
    ptl_ct_event_t count;
    ptl_size_t test = 7;
    unsigned int at;
    ct = counter();
    if (pthread_create(&thread, NULL, sleep_and_count, (void *)5))
        exit(2);
    CODE("a wait outlasts a sleep", PtlCTWait(ct, 5, &count), PTL_OK);
    pthread_join(thread, NULL);
    if (pthread_create(&thread, NULL, sleep_and_count, (void *)2))
        exit(2);
    CODE("a time-out outlasts a sleep", PtlCTPoll(&ct, &test, 1, 60000, &count, &at), PTL_OK);
    EQUAL("a time-out outlasts a sleep", count.success, 7);
    pthread_join(thread, NULL);
    CHECK(PtlCTFree(ct));
}

int main(int argc, char **argv) {
    pthread_t threads[WAITERS];
    ptl_event_t event;
    ptl_ct_event_t count;
    ptl_size_t test = 1;
    unsigned int at;
    arguments(argc, argv);
    PtlAbort(); /* before PtlInit: nothing to end */
    start(argc, argv);
    if (keeps_time("one event wakes one waiter"))
        shared_queue();
    sleeper();
    eq = queue(4);
    ct = counter();
    for (int w = 0; w < WAITERS; w++)
        if (pthread_create(&threads[w], NULL, wait_for, (void *)(intptr_t)w))
            return 2;
    spin_host_compute(1000000); /* they wait by now */
    PtlAbort();
    for (int w = 0; w < WAITERS; w++) {
        pthread_join(threads[w], NULL);
        EQUAL("abort ends a wait", codes[w], PTL_ABORTED);
    }
    CODE("abort: later PtlEQWait", PtlEQWait(eq, &event), PTL_ABORTED);
    CODE("abort: later PtlEQPoll", PtlEQPoll(&eq, 1, 0, &event, &at), PTL_ABORTED);
    CODE("abort: later PtlCTWait", PtlCTWait(ct, 1, &count), PTL_ABORTED);
    CODE("abort: later PtlCTPoll", PtlCTPoll(&ct, &test, 1, 0, &count, &at), PTL_ABORTED);
    CODE("abort comes before the handle", PtlEQWait(PTL_INVALID_HANDLE, &event), PTL_ABORTED);
    CODE("abort: gets go on", PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    COUNTS("abort: counters go on", ct, 0, 0);
    CODE("abort: free the queue", PtlEQFree(eq), PTL_OK);
    CODE("abort: free the counter", PtlCTFree(ct), PTL_OK);
    barrier();
    CHECK(PtlNIFini(ni));
    PtlFini();
    /* A new start waits again. */
    start(argc, argv);
    ct = counter();
    CODE("abort is over after PtlFini", PtlCTPoll(&ct, &test, 1, 1, &count, &at), PTL_CT_NONE_REACHED);
    return finish();
}
