/* SPDX-License-Identifier: Apache-2.0 */
/* Additions of FPsPIN, the network card, to PsPIN's interface: counters, and requests of handlers to their host. For
 * requests, each HPU has a page of host memory. It starts with a flag that announces a request, and the data of the
 * request starts DMA_ALIGN bytes after it. The host answers by writing the flag of the HPU in __host_data. */
#ifndef SPIN_HOST_H
#define SPIN_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "pspin.h"
#include "util.h"

#define PAGE_SIZE 4096
#define DMA_BUS_WIDTH 512
#define DMA_ALIGN (DMA_BUS_WIDTH / 8)

typedef struct {
    union {
        struct {
            uint8_t dma_id; /* number of the request; the answer has the same */
            uint32_t len;   /* bytes of data */
            uint16_t hpu_id;
        } __attribute__((__packed__));
        uint64_t data;
    };
} fpspin_flag_t;
_Static_assert(sizeof(fpspin_flag_t) == sizeof(uint64_t), "a flag is written at once");

#define MAX_COUNTERS 16

struct perf_counter {
    uint32_t sum;
    uint32_t count;
};

struct host_data {
    uint64_t flag[CORE_COUNT];
    struct perf_counter counters[MAX_COUNTERS];
};

/* Every source that includes this file defines them, and the linker keeps one. */
__attribute__((__weak__)) volatile struct host_data __host_data;
__attribute__((__weak__)) volatile uint8_t dma_idx[CORE_COUNT];

/* Returns the cycles counted by this HPU so far; on this computer, those of its time-stamp counter. */
static inline uint32_t cycles(void) {
#ifdef SPIN_NATIVE
    return (uint32_t)__builtin_ia32_rdtsc();
#else
    uint32_t now;
    __asm__ volatile("rdcycle %0" : "=r"(now));
    return now;
#endif
}

/* Adds a duration to a counter. */
static inline void push_counter(volatile struct perf_counter *counter, uint32_t duration) {
    amo_add((volatile int32_t *)&counter->count, 1);
    amo_add((volatile int32_t *)&counter->sum, (int32_t)duration);
}

#define HPU_ID(args) ((args)->hpu_gid)
#define HOST_ADDR(args) ((uint64_t)(args)->task->host_mem_high << 32 | (args)->task->host_mem_low)
#define HOST_ADDR_HPU(args) (HOST_ADDR(args) + HPU_ID(args) * PAGE_SIZE)
#define HOST_PLD_ADDR(args) (HOST_ADDR_HPU(args) + DMA_ALIGN)

/* Returns true if the host memory of the context has a page for each HPU. */
static inline bool fpspin_check_host_mem(handler_args_t *args) {
    return HOST_ADDR(args) != 0 && args->task->host_mem_size >= CORE_COUNT * PAGE_SIZE;
}

/* Sends a request with `len` bytes of data to the host, and returns its answer. If the host does not answer, the
 * watchdog ends the handler. */
static inline fpspin_flag_t fpspin_host_req(handler_args_t *args, uint32_t len) {
    uint32_t hpu = HPU_ID(args);
    fpspin_flag_t request = {.data = 0}, answer;
    spin_cmd_t write;
    request.dma_id = ++dma_idx[hpu];
    request.len = len;
    request.hpu_id = hpu;
    spin_write_to_host(HOST_ADDR_HPU(args), request.data, &write);
    spin_cmd_wait(write);
    do {
        answer.data = __host_data.flag[hpu];
    } while (answer.dma_id != request.dma_id);
    return answer;
}

#endif
