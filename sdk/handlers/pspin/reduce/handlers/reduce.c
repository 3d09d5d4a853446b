/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of the words at the same place of all packets (PsPIN §IV-C, "data reduction"): one array in the L1 of each
 * cluster. The completion handler of the last message copies the arrays to the host, which adds the four, and notifies
 * it. */
#include <card.h>
#include <corev.h>

#include "../reduce.h"

static inline void add_words(uint32_t *sums, const uint32_t *words, uint32_t count) {
#if COREV
    /* Four cycles per word: each iteration adds the word loaded by the one before. */
    uint32_t word = *words++;
    CV_LOOP(count - 1, "amoadd.w zero, %[word], (%[sums]) \n cv.lw %[word], (%[words]), 4 \n addi %[sums], %[sums], 4",
            [word] "+r"(word), [words] "+r"(words), [sums] "+r"(sums));
    shared_add(sums, word);
#else
    for (; count >= 8; count -= 8, sums += 8, words += 8) {
        uint32_t loaded[8];
        for (int i = 0; i < 8; i++)
            loaded[i] = words[i];
        for (int i = 0; i < 8; i++)
            shared_add(&sums[i], loaded[i]);
    }
    for (; count > 0; count--)
        shared_add(sums++, *words++);
#endif
}

__handler__ void reduce_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t count = MIN(packet_words(task), REDUCE_WORDS);
    if (count > 0)
        add_words(scratchpad(task, args->cluster_id), packet_data(task), count);
}

__handler__ void reduce_th(handler_args_t *args) {
    task_t *task = args->task;
    struct reduce *reduce = task->handler_mem;
    if (shared_add(&reduce->messages_left, -1) != 1)
        return;
    spin_cmd_t copies[NB_CLUSTERS];
    uint32_t clusters = 0;
    /* Short code, because of instruction cache misses. */
#pragma GCC unroll 1
    for (; has_scratchpad(task, clusters); clusters++)
        spin_dma_to_host(host_address(task, REDUCE_PART(clusters)), (uintptr_t)scratchpad(task, clusters),
                         reduce->words * 4, false, &copies[clusters]);
#pragma GCC unroll 1
    for (uint32_t cluster = 0; cluster < clusters; cluster++)
        spin_cmd_wait(copies[cluster]);
    spin_write_to_host(host_address(task, 0), HOST_DONE | reduce->words, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = reduce_ph;
    *th = reduce_th;
    *handler_mem = NULL;
}
