/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of handlers, and definitions required from a card's program. */
#ifndef PSPIN_H
#define PSPIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hwsched.h"
#include "pspin_rt.h"
#include "spin_conf.h"

#define SPIN_OK 0
#define SPIN_FAIL 1

/* Marks a handler: it stays in the program even without callers there. */
#define __handler__ __attribute__((used))

/* Task of a handler. It lies in registers of the HPU driver: its alignment makes compilers load whole words. */
typedef struct task {
    void *handler_mem; /* memory of the execution context in L2 */
    size_t handler_mem_size;
    void *pkt_mem; /* packet in L1, and number of its bytes copied there */
    size_t pkt_mem_size;
    void *scratchpad[4]; /* memory of the execution context in the L1 of each cluster */
    size_t scratchpad_size[4];
    uint32_t host_mem_high; /* memory of the execution context on the host */
    uint32_t host_mem_low;
    size_t host_mem_size;
    void *l2_pkt_mem; /* the whole packet in L2 */
    uint32_t home_cluster_id;
    uint32_t flow_id;
} __attribute__((__packed__, __aligned__(4))) task_t;

typedef struct handler_args {
    task_t *task;
    uint32_t hpu_gid; /* number among all HPUs, composed of cluster_id and hpu_id */
    uint32_t cluster_id;
    uint32_t hpu_id;
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);

/* Defined by the program. The runtime calls it once, on HPU 0 of cluster 0, before any packet. */
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem);

/* Command to the NIC or to the host. It is in flight until spin_cmd_wait, spin_cmd_test or the end of the handler; at
 * most four are, and the next call waits. Pass a null pointer to discard the handle. */
typedef uint32_t spin_cmd_t;

static inline int spin_cmd_issue(uint32_t info, spin_cmd_t *handle) {
    MMIO_WRITE(CMD_INFO, info);
    spin_cmd_t issued = MMIO_READ(CMD_ISSUE);
    if (handle)
        *handle = issued;
    return SPIN_OK;
}

/* Waits until a command is done: its source may be overwritten, or its data has arrived. */
static inline int spin_cmd_wait(spin_cmd_t handle) {
    MMIO_WRITE(CMD_WAIT, handle);
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}

/* Tests whether a command is done, without waiting. */
static inline int spin_cmd_test(spin_cmd_t handle, bool *completed) {
    MMIO_WRITE(CMD_TEST, handle);
    *completed = MMIO_READ(CMD_TEST) == 1;
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}

static inline int spin_nic_command(uint32_t node, uint32_t flow, void *data, uint32_t length, spin_cmd_t *handle) {
    __asm__ volatile("" ::: "memory");
    MMIO_WRITE(CMD_WORD0, node);
    MMIO_WRITE(CMD_WORD1, flow);
    MMIO_WRITE(CMD_WORD2, (uintptr_t)data);
    MMIO_WRITE(CMD_WORD3, 0);
    MMIO_WRITE(CMD_WORD4, length);
    return spin_cmd_issue(CMD_INFO_NIC, handle);
}

/* Sends `length` bytes at `data`, in L1 or L2, as one packet. */
static inline int spin_send_packet(void *data, uint32_t length, spin_cmd_t *handle) {
    return spin_nic_command(0, 0, data, length, handle);
}

/* Sends `length` bytes at `data` to node `dest` by RDMA, in as many packets as needed. */
static inline int spin_rdma_put(uint32_t dest, void *data, uint32_t length, spin_cmd_t *handle) {
    return spin_nic_command(dest, 1, data, length, handle);
}

static inline int spin_host_copy(uint64_t host, uint32_t nic, uint32_t length, bool to_host, bool event,
                                 spin_cmd_t *handle) {
    __asm__ volatile("" ::: "memory");
    MMIO_WRITE(CMD_WORD0, host);
    MMIO_WRITE(CMD_WORD1, host >> 32);
    MMIO_WRITE(CMD_WORD2, nic);
    MMIO_WRITE(CMD_WORD3, length);
    MMIO_WRITE(CMD_WORD4, to_host);
    return spin_cmd_issue(event ? CMD_INFO_HOST_DMA | CMD_INFO_EVENT : CMD_INFO_HOST_DMA, handle);
}

/* Copies `length` bytes from address `nic`, in L1 or L2, to the host; with an event, the host is notified on
 * completion. */
static inline int spin_dma_to_host(uint64_t host, uint32_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    return spin_host_copy(host, nic, length, true, event, handle);
}

/* Copies `length` bytes from the host to address `nic`. The bytes have arrived after spin_cmd_wait. */
static inline int spin_dma_from_host(uint64_t host, uint32_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    return spin_host_copy(host, nic, length, false, event, handle);
}

/* Older form of both, with the direction before the length and no event. */
#define HOST_TO_NIC 0
#define NIC_TO_HOST 1

static inline int spin_host_dma(uint64_t host, uint32_t nic, uint8_t direction, uint32_t length, spin_cmd_t *handle) {
    return spin_host_copy(host, nic, length, direction == NIC_TO_HOST, false, handle);
}

/* Writes eight bytes to the host, without a source in memory. */
static inline int spin_write_to_host(uint64_t host, uint64_t data, spin_cmd_t *handle) {
    MMIO_WRITE(CMD_WORD0, host);
    MMIO_WRITE(CMD_WORD1, host >> 32);
    MMIO_WRITE(CMD_WORD2, 8 << 1 | 1);
    MMIO_WRITE(CMD_WORD3, data);
    MMIO_WRITE(CMD_WORD4, data >> 32);
    return spin_cmd_issue(CMD_INFO_HOST_DIRECT, handle);
}

#define spin_host_write(host, data, handle) spin_write_to_host(host, data, handle)

#endif
