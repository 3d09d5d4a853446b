/* SPDX-License-Identifier: Apache-2.0 */
/* PsPIN's interface for handlers on this computer, to compare its cores with the card's: the parts used by the handlers
 * of these folders. Pointers are those of the computer, and a command copies at once. measure.c defines the
 * functions. */
#ifndef HANDLER_H
#define HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SPIN_OK 0
#define SPIN_FAIL 1
#define NB_CLUSTERS 4

#define __handler__ __attribute__((used))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define ALIGN_UP(a, power) (((a) + (power) - 1) & ~((power) - 1))
#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

typedef struct task {
    void *handler_mem;
    size_t handler_mem_size;
    void *pkt_mem;
    size_t pkt_mem_size;
    void *scratchpad[NB_CLUSTERS];
    size_t scratchpad_size[NB_CLUSTERS];
    uint32_t host_mem_high;
    uint32_t host_mem_low;
    size_t host_mem_size;
    void *l2_pkt_mem;
    uint32_t home_cluster_id;
    uint32_t flow_id;
} task_t;

/* All threads are HPUs of cluster 0 and share its memory, like that of the computer. */
typedef struct handler_args {
    task_t *task;
    uint32_t hpu_gid;
    uint32_t cluster_id;
    uint32_t hpu_id;
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);
typedef uint32_t spin_cmd_t;

typedef uint32_t spin_dma_t;
#define SPIN_DMA_LOC2EXT 0
#define SPIN_DMA_EXT2LOC 1

static inline int spin_dma(void *src, void *dst, uint32_t size, uint32_t direction, uint32_t options,
                           spin_dma_t *transfer) {
    (void)direction;
    (void)options;
    if (size == 0)
        return SPIN_FAIL;
    memmove(dst, src, size);
    *transfer = 0;
    return SPIN_OK;
}

static inline int spin_dma_wait(spin_dma_t transfer) {
    (void)transfer;
    return SPIN_OK;
}

static inline int spin_cmd_wait(spin_cmd_t handle) {
    (void)handle;
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}

int spin_send_packet(void *data, uint32_t length, spin_cmd_t *handle);
int spin_dma_to_host(uint64_t host, uintptr_t nic, uint32_t length, bool event, spin_cmd_t *handle);
int spin_dma_from_host(uint64_t host, uintptr_t nic, uint32_t length, bool event, spin_cmd_t *handle);
int spin_write_to_host(uint64_t host, uint64_t data, spin_cmd_t *handle);

static inline uint32_t amo_swap(volatile uint32_t *address, uint32_t value) {
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
}

static inline uint32_t amo_or(volatile uint32_t *address, uint32_t value) {
    return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);
}

#endif
