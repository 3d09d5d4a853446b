/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of these folders' handlers. Packets have no IP options: the rules of their contexts match no others. */
#ifndef CARD_H
#define CARD_H

#include <handler.h>
#include <packets.h>

/* Host memory for a packet, by its IP identification. Drivers send no larger packets. */
#define HOST_SLOT 4096

/* Completion notice of a handler: eight bytes, this plus a number. */
#define HOST_DONE ((uint64_t)1 << 32)

/* Task's packet in L1, which starts with a pkt_hdr_t at a multiple of four bytes. */
static inline void *packet_of(const task_t *task) { return __builtin_assume_aligned(task->pkt_mem, 4); }

/* Words after the header. */
static inline uint32_t *packet_data(const task_t *task) { return (uint32_t *)packet_of(task) + sizeof(pkt_hdr_t) / 4; }

/* Number of these words, limited to those copied to L1, whatever the packet claims. */
static inline uint32_t packet_words(const task_t *task) {
    const pkt_hdr_t *header = packet_of(task);
    uint32_t length = header->ip_hdr.length, copied = task->pkt_mem_size;
    uint32_t bytes = MIN(length, copied);
    return bytes > sizeof(*header) ? (bytes - sizeof(*header)) / 4 : 0;
}

/* The address of a byte of the context's host memory. */
static inline uint64_t host_address(const task_t *task, uint32_t offset) {
    return ((uint64_t)task->host_mem_high << 32 | task->host_mem_low) + offset;
}

/* The host's place for a packet. */
static inline uint64_t host_slot(const task_t *task, const pkt_hdr_t *header) {
    return host_address(task, header->ip_hdr.identification * HOST_SLOT);
}

/* The context's memory in the L1 of a cluster. A task names those of four clusters; further ones share them. */
static inline void *scratchpad(const task_t *task, uint32_t cluster) { return task->scratchpad[cluster % NB_CLUSTERS]; }

/* True if a task has memory in a cluster: a machine may have fewer. */
static inline bool has_scratchpad(const task_t *task, uint32_t cluster) {
    return cluster < NB_CLUSTERS && task->scratchpad_size[cluster] != 0;
}

/* Adds to a word shared with other HPUs, in any order. */
static inline uint32_t shared_add(uint32_t *word, uint32_t value) {
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

/* Writes the exchanged addresses and ports of a packet to `answer`, which may be the same. Both checksums stay
 * correct. */
static inline void swap_ends(const pkt_hdr_t *header, pkt_hdr_t *answer) {
    uint32_t source = header->ip_hdr.source_id, destination = header->ip_hdr.dest_id;
    uint16_t from = header->udp_hdr.src_port, to = header->udp_hdr.dst_port;
    answer->ip_hdr.source_id = destination;
    answer->ip_hdr.dest_id = source;
    answer->udp_hdr.src_port = to;
    answer->udp_hdr.dst_port = from;
}

#endif
