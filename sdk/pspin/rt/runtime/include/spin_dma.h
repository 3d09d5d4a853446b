/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between L1 and L2 by the DMA engine of the cluster. */
#ifndef SPIN_DMA_H
#define SPIN_DMA_H

#include <stdint.h>

#include "pspin.h"

/* Addresses determine source and destination; the direction is redundant. */
#define SPIN_DMA_LOC2EXT 0
#define SPIN_DMA_EXT2LOC 1

/* Copy in flight; those of an HPU end in the order of their numbers. */
typedef uint32_t spin_dma_t;

/* Starts a copy of `size` bytes. Returns SPIN_FAIL, without changing `transfer`, when there is nothing to copy. */
static inline int spin_dma(void *src, void *dst, uint32_t size, uint32_t direction, uint32_t options,
                           spin_dma_t *transfer) {
    (void)direction;
    (void)options;
    if (size == 0)
        return SPIN_FAIL;
    __asm__ volatile("" ::: "memory");
    MMIO_WRITE(DMA_SOURCE, (uintptr_t)src);
    MMIO_WRITE(DMA_DESTINATION, (uintptr_t)dst);
    MMIO_WRITE(DMA_BYTES, size);
    *transfer = MMIO_READ(DMA_LAUNCH);
    return SPIN_OK;
}

/* Sets `done` to 1 when a copy and all before it are done, else to 0. */
static inline int spin_dma_test(spin_dma_t transfer, uint32_t *done) {
    *done = (int32_t)(MMIO_READ(DMA_DONE) - transfer) >= 0;
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}

/* Waits until a copy and all before it are done. */
static inline int spin_dma_wait(spin_dma_t transfer) {
    uint32_t done = 0;
    while (!done)
        spin_dma_test(transfer, &done);
    return SPIN_OK;
}

#endif
