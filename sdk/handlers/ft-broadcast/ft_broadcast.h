/* SPDX-License-Identifier: Apache-2.0 */
/* Fault-tolerant broadcast over a binomial graph (sPIN §5.4). Rank r sends to the ranks r + 1, r + 2, r + 4, … modulo
 * P, so that log2 P copies of a packet arrive everywhere on different paths: every survivor gets it if fewer than log2
 * P ranks die. A card forwards and delivers the first copy of a packet, and drops the others before it touches their
 * data.
 *
 * Setup: README.md. A packet is a separate message and carries a tag, because payload handlers of several packets run
 * concurrently and have only the data of their message. */
#ifndef HANDLERS_FT_BROADCAST_H
#define HANDLERS_FT_BROADCAST_H

#include <spin.h>

/* Packets whose copies a card can distinguish. A root must not send packet n + FT_BROADCAST_WINDOW while copies of
 * packet n are in flight: they would be dropped as old, or, on a card without n yet, n would be. */
enum { FT_BROADCAST_WINDOW = 1024 };

/* First bytes of each packet. */
struct ft_broadcast_tag {
    ptl_hdr_data_t id; /* ft_broadcast_id(); hdr_data of the packet too */
    ptl_size_t offset; /* offset of its data in the memory of the receivers' entries */
};

/* Returns the id of a packet: the root rank, and its number, from 1. All roots that use an entry number their packets
 * together. */
static inline ptl_hdr_data_t ft_broadcast_id(uint32_t root, uint32_t number) {
    return (ptl_hdr_data_t)root << 32 | number;
}

/* HPU memory of an entry; the host sets the first part. */
struct ft_broadcast {
    ptl_match_bits_t bits; /* match bits of the entry, the same on all ranks */
    uint32_t rank;         /* rank of this process in the graph */
    uint32_t ranks;        /* number of ranks of the graph: processes 0 to ranks - 1 */
    uint32_t farthest;     /* ft_broadcast_farthest(ranks) */
    uint32_t both;         /* send to r - 1, r - 2, r - 4, … too: twice the copies, for twice the failures */
    uint32_t copies;       /* copies that were dropped */
    uint32_t seen[FT_BROADCAST_WINDOW]; /* newest number received at each place of the window; 0 for none */
};

/* The largest power of two below `ranks`. */
static inline uint32_t ft_broadcast_farthest(uint32_t ranks) {
    uint32_t farthest = 1;
    while (farthest * 2 < ranks)
        farthest *= 2;
    return farthest;
}

/* Returns the distance of a rank's farthest child in the binomial tree of the root, 0 for a leaf. A rank sends to its
 * children first, at this distance, half of it and so on, so that without failures the message is as fast as over the
 * tree; then from the largest distance down to this one. */
static inline uint32_t ft_broadcast_child(uint32_t rank, uint32_t ranks, uint32_t root, uint32_t farthest) {
    uint32_t place = rank >= root ? rank - root : rank + ranks - root;
    return place == 0 ? farthest : (place & -place) / 2;
}

/* The process at a distance from a rank. */
static inline ptl_process_t ft_broadcast_neighbour(uint32_t rank, uint32_t ranks, uint32_t distance) {
    uint32_t to = rank + distance;
    return (ptl_process_t){.rank = to < ranks ? to : to - ranks};
}

/* Returns true to one caller if packet `number` has not arrived before. */
static inline bool ft_broadcast_is_first(struct ft_broadcast *b, uint32_t number) {
    uint32_t *place = &b->seen[number % FT_BROADCAST_WINDOW], seen = __atomic_load_n(place, __ATOMIC_RELAXED);
    while ((int32_t)(number - seen) > 0)
        if (__atomic_compare_exchange_n(place, &seen, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* Header handler: passes the first copy of a packet, and drops the others without an event. The root drops all
 * copies. */
__handler int ft_broadcast_header(const ptl_header_t h, void *state) {
    struct ft_broadcast *b = state;
    if (h.hdr_data >> 32 != b->rank && ft_broadcast_is_first(b, (uint32_t)h.hdr_data))
        return PROCESS_DATA;
    __atomic_fetch_add(&b->copies, 1, __ATOMIC_RELAXED);
    return DROP_PENDING;
}

/* Sends a packet to the ranks at distance `from`, half of it and so on, down to above `to`. An unreachable rank does
 * not affect the others. */
SPIN_HANDLER_CALL int ft_broadcast_forward(const struct ft_broadcast *b, const ptl_payload_t *p, uint32_t from,
                                           uint32_t to, bool backwards) {
    const struct ft_broadcast_tag *tag = (const struct ft_broadcast_tag *)p->base;
    int failures = 0;
    for (; from > to; from /= 2)
        failures |= PtlHandlerPutFromDevice(
            p->base, p->length, 0, PTL_NO_ACK_REQ,
            ft_broadcast_neighbour(b->rank, b->ranks, backwards ? b->ranks - from : from), b->bits, 0, NULL, tag->id);
    return failures;
}

/* Payload handler: sends the packet to the children, then writes its data to host memory, then sends the copies. */
__handler int ft_broadcast_payload(const ptl_payload_t p, void *state) {
    const struct ft_broadcast *b = state;
    const struct ft_broadcast_tag *tag = (const struct ft_broadcast_tag *)p.base;
    uint32_t child = ft_broadcast_child(b->rank, b->ranks, (uint32_t)(tag->id >> 32), b->farthest);
    ptl_dma_h written;
    int failures = ft_broadcast_forward(b, &p, child, 0, false);
    failures |=
        PtlHandlerDMAToHostNB(p.base + sizeof *tag, tag->offset, p.length - sizeof *tag, PTL_ME_HOST_MEM, &written);
    failures |= ft_broadcast_forward(b, &p, b->farthest, child, false);
    if (b->both)
        failures |= ft_broadcast_forward(b, &p, b->farthest, 0, true);
    failures |= PtlHandlerDMAWait(written);
    return failures == 0 ? SUCCESS : FAIL;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Gives the entry `me` the handlers and separate HPU memory with the initial part of `state`, which PtlMEAppend reads.
 * Returns PTL_OK, or the error of PtlHPUAllocMem. */
static inline int ft_broadcast_attach(ptl_handle_ni_t ni, ptl_me_t *me, const struct ft_broadcast *state) {
    me->header_handler = ft_broadcast_header;
    me->payload_handler = ft_broadcast_payload;
    me->hpu_initial_state = state;
    me->hpu_initial_state_length = offsetof(struct ft_broadcast, seen);
    return PtlHPUAllocMem(sizeof *state, ni, &me->hpu_memory);
}

/* The number of packets for a message. `most` is max_payload_size of the interface. */
static inline uint32_t ft_broadcast_packets(ptl_size_t bytes, ptl_size_t most) {
    ptl_size_t each = most - sizeof(struct ft_broadcast_tag);
    return (uint32_t)((bytes + each - 1) / each);
}

/* Message of a root: its packets, each after its tag. */
struct ft_broadcast_message {
    ptl_handle_md_t md;
    ptl_size_t bytes, most; /* bytes of the data; limit of a packet with its tag */
    struct ft_broadcast_tag *tags;
};

/* Prepares the broadcast of `bytes` bytes at `data` by `rank` to `offset` in the receivers' entries, in packets of at most
 * `most` bytes with the numbers from `number` on. Nothing is copied: `tags` and `parts`, with room for one and two elements
 * for each packet, and the data belong to the card until the message is sent. `md` has the event queue, counter and options of
 * the caller. Returns as PtlMDBind, whose descriptor the caller releases. */
static inline int ft_broadcast_prepare(struct ft_broadcast_message *message, ptl_handle_ni_t ni, ptl_md_t md,
                                       void *data, ptl_size_t bytes, ptl_size_t most, ptl_size_t offset, uint32_t rank,
                                       uint32_t number, struct ft_broadcast_tag *tags, ptl_iovec_t *parts) {
    ptl_size_t each = most - sizeof *tags, at = 0;
    uint32_t packets = 0;
    for (; at < bytes; at += each, packets++) {
        tags[packets] = (struct ft_broadcast_tag){.id = ft_broadcast_id(rank, number + packets), .offset = offset + at};
        parts[2 * packets] = (ptl_iovec_t){&tags[packets], sizeof *tags};
        parts[2 * packets + 1] = (ptl_iovec_t){(char *)data + at, bytes - at < each ? bytes - at : each};
    }
    *message = (struct ft_broadcast_message){.bytes = bytes, .most = most, .tags = tags};
    md.start = parts;
    md.length = 2 * packets;
    md.options |= PTL_IOVEC;
    return PtlMDBind(ni, &md, &message->md);
}

/* Sends a prepared message to the neighbours of the root, packet by packet. `b` is the state of this rank's own entry. Returns
 * as PtlPut. */
static inline int ft_broadcast_send(const struct ft_broadcast_message *message, const struct ft_broadcast *b,
                                    ptl_pt_index_t pt) {
    ptl_size_t left = message->bytes + ft_broadcast_packets(message->bytes, message->most) * sizeof *message->tags,
               at = 0;
    for (uint32_t i = 0; left > 0; i++) {
        ptl_size_t length = left < message->most ? left : message->most;
        for (uint32_t backwards = 0; backwards <= b->both; backwards++)
            for (uint32_t distance = b->farthest; distance > 0; distance /= 2) {
                ptl_process_t to =
                    ft_broadcast_neighbour(b->rank, b->ranks, backwards ? b->ranks - distance : distance);
                int rc = PtlPut(message->md, at, length, PTL_NO_ACK_REQ, to, pt, b->bits, 0, NULL, message->tags[i].id);
                if (rc != PTL_OK)
                    return rc;
            }
        at += length;
        left -= length;
    }
    return PTL_OK;
}

#endif
