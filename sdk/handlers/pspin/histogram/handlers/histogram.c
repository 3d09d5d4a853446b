/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the occurrences of each value in all packets (PsPIN §IV-C, "histogram"): a table in the L1 of each cluster.
 * The completion handler of the last message copies the tables to the host, which adds the four, and notifies it. */
#include <card.h>
#include <corev.h>

#include "../histogram.h"

/* The address of a counter is that of the table, which is a multiple of the table's size, with the value in its middle bits. */
static inline uint32_t *table_of(const task_t *task, uint32_t cluster) {
    return (uint32_t *)ALIGN_UP((uintptr_t)scratchpad(task, cluster), (uintptr_t)HISTOGRAM_TABLE_BYTES);
}

static inline void count_words(uint32_t *table, const uint32_t *words, uint32_t count) {
#if COREV
    /* Four cycles per word: each iteration counts the word loaded by the one before. */
    uint32_t word = *words++, one = 1;
    CV_LOOP(count - 1,
            "cv.insert %[counter], %[word], " STRINGIFY(HISTOGRAM_BITS) " - 1, 2 \n cv.lw %[word], (%[words]), 4 \n"
                                                                        "amoadd.w zero, %[one], (%[counter])",
            [word] "+r"(word), [words] "+r"(words), [counter] "+r"(table), [one] "+r"(one));
    shared_add((uint32_t *)cv_insert((uintptr_t)table, word, HISTOGRAM_BITS, 2), 1);
#else
    const uint32_t mask = (1 << HISTOGRAM_BITS) - 1;
    for (; count >= 8; count -= 8, words += 8) {
        uint32_t loaded[8];
        for (int i = 0; i < 8; i++)
            loaded[i] = words[i] & mask;
        for (int i = 0; i < 8; i++)
            shared_add(&table[loaded[i]], 1);
    }
    for (; count > 0; count--)
        shared_add(&table[*words++ & mask], 1);
#endif
}

__handler__ void histogram_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t count = packet_words(task);
    if (count > 0)
        count_words(table_of(task, args->cluster_id), packet_data(task), count);
}

__handler__ void histogram_th(handler_args_t *args) {
    task_t *task = args->task;
    struct histogram *histogram = task->handler_mem;
    if (shared_add(&histogram->messages_left, -1) != 1)
        return;
    spin_cmd_t copies[NB_CLUSTERS];
    uint32_t clusters = 0;
    /* Short code, because of instruction cache misses. */
#pragma GCC unroll 1
    for (; has_scratchpad(task, clusters); clusters++)
        spin_dma_to_host(host_address(task, HISTOGRAM_PART(clusters)), (uintptr_t)table_of(task, clusters),
                         HISTOGRAM_VALUES * 4, false, &copies[clusters]);
#pragma GCC unroll 1
    for (uint32_t cluster = 0; cluster < clusters; cluster++)
        spin_cmd_wait(copies[cluster]);
    spin_write_to_host(host_address(task, 0), HOST_DONE | HISTOGRAM_VALUES, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = histogram_ph;
    *th = histogram_th;
    *handler_mem = NULL;
}
