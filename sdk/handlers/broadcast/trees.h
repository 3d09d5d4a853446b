/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast over other trees than the binomial one (sPIN §4.4.3: "arbitrary algorithms (including pipeline and
 * double-tree)"): a chain, which pipelines the packets of a message; a binary tree; and two binary trees, each of which
 * carries half of the packets, so that every rank forwards as much as it receives (Sanders, Speck, Träff 2009).
 *
 * The root has place 0. A rule computes the children of a place, so that a card needs the same memory in a tree of any
 * size. Entries are set up as for streaming in broadcast.h, with `rank` the place. */
#ifndef HANDLERS_BROADCAST_TREES_H
#define HANDLERS_BROADCAST_TREES_H

#include <handlers/broadcast/broadcast.h>

enum { BROADCAST_NONE = -1 };

/* A rule returns the place of child number `i`, from 0, or BROADCAST_NONE if there are fewer children. */
typedef int32_t broadcast_rule(const struct broadcast *b, uint32_t i);

/* The child with the most descendants first, as in broadcast.h. */
static inline int32_t broadcast_binomial(const struct broadcast *b, uint32_t i) {
    uint32_t distance = b->reach >> i;
    return distance > 0 ? (int32_t)(b->rank + distance) : BROADCAST_NONE;
}

static inline int32_t broadcast_chain(const struct broadcast *b, uint32_t i) {
    return i == 0 && b->rank + 1 < b->ranks ? (int32_t)(b->rank + 1) : BROADCAST_NONE;
}

/* Places 1 … ranks-1 are numbered from left to right: odd places are leaves, and the lowest set bit of any other is twice
 * the distance of its left child. The right child is at the distance of a binomial tree's farthest child, which is also
 * where the root has its only child. */
static inline int32_t broadcast_binary(const struct broadcast *b, uint32_t i) {
    uint32_t left = (b->rank & -b->rank) / 2;
    if (left > 0 && i == 0)
        return (int32_t)(b->rank - left);
    return i == (left > 0) && b->reach > 0 ? (int32_t)(b->rank + b->reach) : BROADCAST_NONE;
}

/* Place of a rank, counted from the root, in tree 0 or 1. The second tree is shifted by one rank: an inner node of one
 * tree is a leaf in the other. */
static inline uint32_t broadcast_place(uint32_t rank, uint32_t ranks, uint32_t tree) {
    if (rank == 0)
        return 0;
    return rank > tree ? rank - tree : rank + ranks - 1 - tree;
}

/* Process at a place. */
static inline ptl_process_t broadcast_process(const struct broadcast *b, uint32_t place) {
    uint32_t rank = place + b->tree < b->ranks ? place + b->tree : place + b->tree + 1 - b->ranks;
    return broadcast_child(rank, b->ranks, b->root, 0);
}

/* Sends a packet to the children given by a rule, then writes it to host memory. */
SPIN_HANDLER_CALL int broadcast_forward(const struct broadcast *b, const ptl_payload_t *p, broadcast_rule *child) {
    int32_t place;
    for (uint32_t i = 0; (place = child(b, i)) != BROADCAST_NONE; i++)
        if (PtlHandlerPutFromDevice(p->base, p->length, 0, PTL_NO_ACK_REQ, broadcast_process(b, (uint32_t)place),
                                    b->bits + p->offset, 0, NULL, 0))
            return FAIL;
    return PtlHandlerDMAToHostB(p->base, p->offset, p->length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Payload handler: sends the packet to the next rank of a chain, then writes it to host memory. */
__handler int broadcast_chain_payload(const ptl_payload_t p, void *state) {
    return broadcast_forward(state, &p, broadcast_chain);
}

/* Payload handler: sends the packet to the two children in a binary tree, then writes it to host memory. */
__handler int broadcast_binary_payload(const ptl_payload_t p, void *state) {
    return broadcast_forward(state, &p, broadcast_binary);
}

#endif
