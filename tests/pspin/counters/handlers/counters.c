/* SPDX-License-Identifier: Apache-2.0 */
/* Counts packets in handler memory and in all scratchpads, with atomics, locks and copies. */
#include <handler.h>

typedef struct counters {
    int32_t packets, bytes, largest, locked;
    uint32_t copied;
    spin_lock_t lock;
} counters_t;

static counters_t counters __attribute__((section(".l2_handler_data")));

__handler__ void counters_ph(handler_args_t *args) {
    task_t *task = args->task;
    counters_t *all = (counters_t *)task->handler_mem;
    int32_t size = task->pkt_mem_size;
    amo_add(&all->packets, 1);
    amo_add(&all->bytes, size);
    amo_max(&all->largest, size);
    spin_lock_lock(&all->lock);
    all->locked++;
    spin_lock_unlock(&all->lock);
    for (uint32_t cluster = 0; cluster < NB_CLUSTERS; cluster++)
        amo_add((volatile int32_t *)task->scratchpad[cluster] + args->cluster_id, 1);
}

/* Every scratchpad has the packets of each cluster. The DMA engine copies the words of all to handler memory. */
__handler__ void counters_th(handler_args_t *args) {
    task_t *task = args->task;
    counters_t *all = (counters_t *)task->handler_mem;
    uint32_t *words = (uint32_t *)(all + 1), sum = 0;
    spin_dma_t copy;
    spin_cmd_t write;
    for (uint32_t cluster = 0; cluster < NB_CLUSTERS; cluster++)
        spin_dma(task->scratchpad[cluster], words + NB_CLUSTERS * cluster, 4 * NB_CLUSTERS, SPIN_DMA_LOC2EXT, 0, &copy);
    spin_dma_wait(copy);
    if (spin_dma(task->scratchpad[0], words, 0, SPIN_DMA_LOC2EXT, 0, &copy) != SPIN_FAIL)
        return;
    for (uint32_t index = 0; index < NB_CLUSTERS * NB_CLUSTERS; index++)
        sum += words[index];
    amo_maxu(&all->copied, sum);
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_write_to_host(host + 8 * task->flow_id, (uint64_t)task->flow_id << 32 | 0xC0DE, &write);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    spin_lock_init(&counters.lock);
    *hh = NULL;
    *ph = counters_ph;
    *th = counters_th;
    *handler_mem_ptr = &counters;
}
