/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of the words of a message (PsPIN §IV-C, "data aggregation"), modulo 2^32: each packet adds its sum to a word in
 * the L1 of its cluster; the completion handler adds these up and writes the result to the host. */
#include <card.h>
#include <corev.h>

#include "../aggregate.h"

static inline uint32_t sum_of(const uint32_t *words, uint32_t count) {
    uint32_t sum = 0;
#if COREV
    /* Two cycles per word: no load is used by the next instruction. */
    uint32_t other = 0, word, next;
    CV_LOOP(count / 2,
            "cv.lw %[word], (%[words]), 4 \n cv.lw %[next], (%[words]), 4 \n"
            "add %[sum], %[sum], %[word] \n add %[other], %[other], %[next]",
            [word] "=&r"(word), [next] "=&r"(next), [words] "+r"(words), [sum] "+r"(sum), [other] "+r"(other));
    sum += other;
    count %= 2;
#else
    for (; count >= 8; count -= 8, words += 8) {
        for (int i = 0; i < 8; i++)
            sum += words[i];
    }
#endif
    for (; count > 0; count--)
        sum += *words++;
    return sum;
}

static inline uint32_t *message_sum(const task_t *task, uint32_t cluster) {
    return (uint32_t *)scratchpad(task, cluster) + task->flow_id % AGGREGATE_MESSAGES;
}

__handler__ void aggregate_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t count = packet_words(task);
    shared_add(message_sum(task, args->cluster_id), sum_of(packet_data(task), count));
}

__handler__ void aggregate_th(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t sum = 0;
    /* Short code, because of instruction cache misses. */
#pragma GCC unroll 1
    for (uint32_t cluster = 0; has_scratchpad(task, cluster); cluster++)
        sum += amo_swap(message_sum(task, cluster), 0);
    spin_write_to_host(host_address(task, AGGREGATE_RESULT(task->flow_id)), HOST_DONE | sum, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = aggregate_ph;
    *th = aggregate_th;
    *handler_mem = NULL;
}
