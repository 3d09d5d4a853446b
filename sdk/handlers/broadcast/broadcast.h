/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast: a binomial tree whose inner nodes are cards (sPIN §4.4.3, App. C.3.3). A rank's card forwards received
 * data to the rank's children without the CPU: when streaming, packet by packet out of the packet buffer; when
 * streaming is off and the message has more than one packet, out of host memory after the last packet.
 *
 * Setup: README.md. Streamed packets are separate messages, and many of them are in flight at a time, so they cannot
 * keep their offsets in the shared state. Their match bits encode the offsets: the packet with the data from `offset`
 * on goes to the entry with the match bits `bits + offset`, whose memory starts there. */
#ifndef HANDLERS_BROADCAST_H
#define HANDLERS_BROADCAST_H

#include <spin.h>

/* HPU memory of an entry; set by the host. */
struct broadcast {
    ptl_match_bits_t bits; /* match bits of the entry */
    uint32_t rank;         /* rank of this process in the tree, counted from the root */
    uint32_t ranks;        /* number of ranks in the tree */
    uint32_t reach;        /* distance of the farthest child: broadcast_reach() */
    uint32_t root;         /* process of the tree's first rank; ranks wrap around at `ranks` */
    uint32_t max_packet;   /* max_payload_size of the interface */
    uint8_t streaming;     /* forward packets, not messages */
    uint8_t stream;        /* decision of the header handler */
    uint8_t tree;          /* number of the tree if there are two (trees.h), else 0 */
    uint8_t unused;
    ptl_size_t length; /* bytes of the message */
};

/* The distance from `rank` in a tree of `ranks` ranks to its farthest child, 0 for a leaf. The other children are at
 * half of it, a quarter, and so on to 1: a child's distance is a power of two below the lowest set bit of its parent's
 * rank. */
static inline uint32_t broadcast_reach(uint32_t rank, uint32_t ranks) {
    uint32_t reach = rank == 0 ? 1 : rank & -rank;
    while (rank == 0 && reach < ranks)
        reach *= 2;
    for (reach /= 2; reach > 0 && rank + reach >= ranks;)
        reach /= 2;
    return reach;
}

/* Process of the child at a distance. */
static inline ptl_process_t broadcast_child(uint32_t rank, uint32_t ranks, uint32_t root, uint32_t distance) {
    uint32_t process = rank + distance + root;
    return (ptl_process_t){.rank = process < ranks ? process : process - ranks};
}

/* Header handler: decides the source of forwarding: the card if the message is one packet or streamed, else host
 * memory. */
__handler int broadcast_header(const ptl_header_t h, void *state) {
    struct broadcast *b = state;
    b->stream = b->streaming || h.length <= b->max_packet;
    b->length = h.length;
    return b->stream ? PROCESS_DATA : PROCEED;
}

/* Payload handler: sends the packet to the children, the one with the most descendants first, then writes it to host
 * memory. Fails when it does not fit there. */
__handler int broadcast_payload(const ptl_payload_t p, void *state) {
    const struct broadcast *b = state;
    for (uint32_t distance = b->reach; distance > 0; distance /= 2)
        if (PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ,
                                    broadcast_child(b->rank, b->ranks, b->root, distance), b->bits + p.offset, 0, NULL,
                                    0))
            return FAIL;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Completion handler: sends a stored message to the children. */
__handler int broadcast_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    const struct broadcast *b = state;
    if (dropped_bytes > 0 || flow_control_triggered)
        return FAIL;
    if (!b->stream)
        for (uint32_t distance = b->reach; distance > 0; distance /= 2)
            if (PtlHandlerPutFromHost(0, b->length, 0, PTL_NO_ACK_REQ,
                                      broadcast_child(b->rank, b->ranks, b->root, distance), b->bits, 0, NULL, 0))
                return FAIL;
    return SUCCESS;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Gives the entry `me` the handlers, and separate HPU memory with this initial state, which PtlMEAppend reads.
 * `payload` is broadcast_payload, or that of another tree (trees.h). Returns PTL_OK, or the error of PtlHPUAllocMem. */
static inline int broadcast_attach(ptl_handle_ni_t ni, ptl_me_t *me, const struct broadcast *state,
                                   ptl_payload_handler_t payload) {
    me->header_handler = broadcast_header;
    me->payload_handler = payload;
    me->completion_handler = broadcast_completion;
    me->hpu_initial_state = state;
    me->hpu_initial_state_length = sizeof *state;
    return PtlHPUAllocMem(sizeof *state, ni, &me->hpu_memory);
}

#endif
