/* SPDX-License-Identifier: Apache-2.0 */
/* A queue from handlers to the CPU: a ring of records in host memory.
 *
 * Handlers append from any HPU: one compare-and-swap on the card, one DMA write. The CPU takes records in order. It
 * publishes the number taken; a handler reads that only when the queue seems full, so that a well-served queue costs no
 * DMA read. A full queue refuses the record: nothing is lost silently.
 *
 * A record starts with a uint32_t, its number from 1 on, by which the CPU detects its arrival: a DMA write of one
 * record becomes visible as a whole (all bytes at the same time). The entry's counting event tells the CPU when to
 * look. */
#ifndef HANDLERS_COMMON_HOST_QUEUE_H
#define HANDLERS_COMMON_HOST_QUEUE_H

#include <spin.h>
#include <string.h>

/* Queue state in HPU memory. */
struct host_queue {
    ptl_size_t offset; /* offset of the ring in the host memory of its handlers (`options`) */
    uint32_t options;  /* PTL_ME_HOST_MEM or PTL_HANDLER_HOST_MEM */
    uint32_t bytes;    /* bytes of a record, its number included: a multiple of 8 */
    uint32_t capacity; /* number of records, a power of two */
    uint32_t appended; /* counts records; wraps around */
    uint32_t taken;    /* records taken by the CPU, as last read by the card */
    uint32_t refused;  /* records refused because the queue was full */
};

/* Ring in host memory; the records follow. */
struct host_queue_ring {
    uint32_t taken; /* records taken by the CPU */
    uint32_t unused;
    uint8_t records[];
};

/* Bytes of host memory for a queue. */
static inline size_t host_queue_bytes(uint32_t capacity, uint32_t bytes) {
    return sizeof(struct host_queue_ring) + (size_t)capacity * bytes;
}

/* Appends a record, whose first word belongs to the queue. `record` must not change until the DMA `*written` is
 * complete. Returns false, and counts a refusal, if the queue is full. */
static inline bool host_queue_append(struct host_queue *queue, void *record, ptl_dma_h *written) {
    uint32_t number = __atomic_load_n(&queue->appended, __ATOMIC_RELAXED);
    for (;;) {
        if (number - __atomic_load_n(&queue->taken, __ATOMIC_RELAXED) >= queue->capacity) {
            uint32_t taken;
            if (PtlHandlerDMAFromHostB(queue->offset, &taken, sizeof taken, queue->options))
                break;
            __atomic_store_n(&queue->taken, taken, __ATOMIC_RELAXED);
            number = __atomic_load_n(&queue->appended, __ATOMIC_RELAXED);
            if (number - taken >= queue->capacity)
                break;
        }
        if (!__atomic_compare_exchange_n(&queue->appended, &number, number + 1, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        ptl_size_t place = (number & (queue->capacity - 1)) * queue->bytes;
        *(uint32_t *)record = number + 1;
        if (PtlHandlerDMAToHostNB(record, queue->offset + sizeof(struct host_queue_ring) + place, queue->bytes,
                                  queue->options, written))
            return false;
        return true;
    }
    __atomic_fetch_add(&queue->refused, 1, __ATOMIC_RELAXED);
    return false;
}

/* On the host: copies the next record to `record`. Returns false if the queue is empty. `capacity` and `bytes` are the
 * queue's. */
static inline bool host_queue_take(struct host_queue_ring *ring, uint32_t capacity, uint32_t bytes, void *record) {
    const uint8_t *place = ring->records + (size_t)(ring->taken & (capacity - 1)) * bytes;
    if (__atomic_load_n((const uint32_t *)place, __ATOMIC_ACQUIRE) != ring->taken + 1)
        return false;
    memcpy(record, place, bytes);
    __atomic_store_n(&ring->taken, ring->taken + 1, __ATOMIC_RELEASE);
    return true;
}

#endif
