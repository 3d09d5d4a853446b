/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that copies BYTES bytes from a memory: by loads into registers, or by the DMA engine of its cluster into L1.
 *
 * MODE_load_… and MODE_dma_… say how and from where: local (the L1 of its cluster), remote (that of the next cluster), packet or
 * handler (L2). */
#include <handler.h>

#if defined MODE_load_local || defined MODE_dma_local
#define SOURCE(task, cluster) ((task)->scratchpad[cluster])
#elif defined MODE_load_remote || defined MODE_dma_remote
#define SOURCE(task, cluster) ((task)->scratchpad[((cluster) + 1) % NB_CLUSTERS])
#elif defined MODE_load_packet || defined MODE_dma_packet
#define SOURCE(task, cluster) ((task)->l2_pkt_mem)
#else
#define SOURCE(task, cluster) ((task)->handler_mem)
#endif

#define WORDS(count) ".set .Lat, 0 \n .rept " count " \n lw a5, .Lat(%0) \n .set .Lat, .Lat + 4 \n .endr"
#define ROUND 128 /* bytes of 32 words */

__handler__ void memory_ph(handler_args_t *args) {
    uint8_t *source = SOURCE(args->task, args->cluster_id);
#if defined MODE_dma_local || defined MODE_dma_remote || defined MODE_dma_packet || defined MODE_dma_handler
    spin_dma_t transfer;
    spin_dma(source, (uint8_t *)args->task->scratchpad[args->cluster_id] + 8192, BYTES, SPIN_DMA_EXT2LOC, 0, &transfer);
    spin_dma_wait(transfer);
#else
#pragma nounroll
    for (uint32_t round = 0; round < BYTES / ROUND; round++, source += ROUND)
        __asm__ volatile(WORDS("32")::"r"(source) : "a5", "memory");
    __asm__ volatile(WORDS("(" STRINGIFY(BYTES) " & 127) / 4")::"r"(source) : "a5", "memory");
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = memory_ph;
    *th = NULL;
    *handler_mem = NULL;
}
