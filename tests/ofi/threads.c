/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads use one endpoint at the same time (FI_THREAD_SAFE). */
#include "transfers.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, TIMES = 30, LONG = 30000, KEY = 1 };

struct job {
    size_t length;
    unsigned char *from, *to;
    atomic_int done; /* completions */
    atomic_bool wrong;
};
static struct job jobs[THREADS][TIMES];
static _Alignas(8) uint64_t sum;

/* Takes completions of any thread, and reports them to their jobs. */
static void take(struct fid_cq *cq) {
    struct fi_cq_tagged_entry entries[4];
    ssize_t count = ON(cq, ops, read, entries, 4);
    if (count < 0 && count != -EAGAIN) {
        fprintf(stderr, "rank %d: fi_cq_read returned %zd\n", rank, count);
        exit(1);
    }
    for (ssize_t i = 0; i < count; i++) {
        struct job *job = entries[i].op_context;
        if (entries[i].flags & FI_RECV && entries[i].len != job->length)
            job->wrong = true;
        job->done++;
    }
}

static void retry(ssize_t rc, bool *again) {
    *again = rc == -EAGAIN;
    if (rc != 0 && rc != -EAGAIN) {
        fprintf(stderr, "rank %d: a call returned %zd\n", rank, rc);
        exit(1);
    }
}

static void *work(void *argument) {
    const int thread = (int)(intptr_t)argument;
    const uint64_t one = 1;
    bool again;
    for (int i = 0; i < TIMES; i++) {
        struct job *job = &jobs[thread][i];
        const uint64_t tag = (uint64_t)(thread * TIMES + i);
        do
            retry(ON(net.ep, tagged, recv, job->to, job->length, NULL, net.peers[previous_rank()], tag, 0, job),
                  &again);
        while (again);
        do
            retry(ON(net.ep, tagged, send, job->from, job->length, NULL, net.peers[next_rank()], tag, job), &again);
        while (again);
        do
            retry(ON(net.ep, atomic, write, &one, 1, NULL, net.peers[next_rank()], 0, KEY, FI_UINT64, FI_SUM, job),
                  &again);
        while (again);
        /* Every other message is waited for; the rest stay open. */
        while (i % 2 && job->done < 3) {
            take(net.tx);
            take(net.rx);
        }
    }
    for (int i = 0; i < TIMES; i++)
        while (jobs[thread][i].done < 3) {
            take(net.tx);
            take(net.rx);
        }
    return NULL;
}

GROUP(threads) {
    pthread_t threads[THREADS];
    struct fid_mr *mr;
    open_net(&(struct wish){0});
    EXPECT(net.domain->mr->reg(&net.domain->fid, &sum, sizeof sum, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
                               NULL) == 0);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < TIMES; i++) {
            struct job *job = &jobs[t][i];
            job->length = i % 5 == t ? LONG : (size_t)(i * 13);
            job->from = malloc(LONG);
            job->to = malloc(LONG);
            EXPECT(job->from && job->to);
            fill(job->from, job->length, (unsigned)(t * TIMES + i + 1000 * rank));
            memset(job->to, UNTOUCHED, LONG);
        }
    }
    barrier();
    for (int t = 0; t < THREADS; t++)
        EXPECT(pthread_create(&threads[t], NULL, work, (void *)(intptr_t)t) == 0);
    for (int t = 0; t < THREADS; t++)
        EXPECT(pthread_join(threads[t], NULL) == 0);
    barrier();
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < TIMES; i++) {
            struct job *job = &jobs[t][i];
            TRUE("length", !job->wrong);
            EQUAL("completions", job->done, 3);
            TRUE("data", is_filled(job->to, job->length, (unsigned)(t * TIMES + i + 1000 * previous_rank())));
            TRUE("data", is_untouched(job->to + job->length, LONG - job->length));
            free(job->from);
            free(job->to);
        }
    }
    EQUAL("sum", sum, THREADS * TIMES);
    TRUE("nothing is left", is_empty(net.tx) && is_empty(net.rx));
    EQUAL("close", mr->fid.ops->close(&mr->fid), 0);
    close_net();
}
