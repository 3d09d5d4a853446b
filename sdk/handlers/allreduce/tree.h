/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce over a tree: partial sums go up to rank 0, and the total goes down. A rank's children are arity * rank + 1
 * and the following.
 *
 * The sum of a segment's other contributions is added to the packet of the last one, which goes up at once, so that the
 * slot is free for the next segment. Contributions are added as they arrive; floating-point sums may then differ from
 * run to run in their last bits. With `in_order` each waits in a separate place, and the last one adds them in the
 * order own, first child, second child: the same bits in every run. */
#ifndef HANDLERS_ALLREDUCE_TREE_H
#define HANDLERS_ALLREDUCE_TREE_H

#include <handlers/allreduce/allreduce.h>

enum { ALLREDUCE_DOWN = 0xff }; /* step of a packet with the total; packets going up have the place of their sender */
enum { ALLREDUCE_ARITY = 31 };  /* children at most */

/* Number of children of this rank; the first child; the parent. */
static inline uint32_t allreduce_child(const struct allreduce *a) { return a->rank * a->arity + 1; }
static inline uint32_t allreduce_children(const struct allreduce *a) {
    uint32_t first = allreduce_child(a);
    return first >= a->ranks ? 0 : a->ranks - first < a->arity ? a->ranks - first : a->arity;
}
static inline uint32_t allreduce_parent(const struct allreduce *a) { return (a->rank - 1) / a->arity; }

/* Contributes `packet`, of the sender in place `from` (0: this rank). Returns true for the last one, which then holds
 * the sum. */
static inline bool allreduce_contribute(struct allreduce *a, struct allreduce_packet *packet, uint32_t from) {
    struct allreduce_slot *slot = allreduce_slot(a, packet->operation, packet->segment);
    uint32_t bytes = allreduce_length(a, packet->segment), children = allreduce_children(a);
    lock_take(&slot->lock);
    uint32_t before = slot->arrived, all = (1u << (children + 1)) - 1;
    bool is_last = (before | 1u << from) == all;
    slot->arrived = is_last ? 0 : before | 1u << from;
    slot->segment = packet->segment;
    if (a->in_order) {
        if (!is_last || from != 0)
            memcpy(allreduce_place(a, slot, from) + 1, packet + 1, bytes);
        if (is_last && from != 0)
            memcpy(packet + 1, allreduce_place(a, slot, 0) + 1, bytes);
        for (uint32_t i = 1; is_last && i <= children; i++)
            allreduce_add(a, packet, allreduce_place(a, slot, i), bytes);
    } else if (is_last && children > 0) {
        allreduce_add(a, packet, allreduce_place(a, slot, 0), bytes);
    } else if (before == 0) {
        memcpy(allreduce_place(a, slot, 0) + 1, packet + 1, bytes);
    } else {
        allreduce_add(a, allreduce_place(a, slot, 0), packet, bytes);
    }
    lock_give(&slot->lock);
    return is_last;
}

/* Sends the total to the children and writes it to the host. */
static inline int allreduce_deliver(struct allreduce *a, struct allreduce_packet *sum) {
    uint32_t first = allreduce_child(a), children = allreduce_children(a);
    ptl_dma_h written;
    if (allreduce_write(a, sum, &written))
        return FAIL;
    for (uint32_t i = 0; i < children; i++)
        if (allreduce_send(a, sum, ALLREDUCE_DOWN, first + i))
            return FAIL;
    return allreduce_tell(a, written);
}

/* Sends the sum of this subtree up; the root delivers it. */
static inline int allreduce_up(struct allreduce *a, struct allreduce_packet *sum) {
    if (a->rank == 0)
        return allreduce_deliver(a, sum);
    return allreduce_send(a, sum, 1 + (a->rank - 1) % a->arity, allreduce_parent(a));
}

/* Contributes this rank's own segment, and at the root the segments unblocked by it. */
static inline int allreduce_tree_own(struct allreduce *a, uint32_t operation, uint32_t segment) {
    bool is_delivered = true;
    for (; segment < a->segments && is_delivered; segment += a->window) {
        uint32_t buffer;
        struct allreduce_packet *own = allreduce_take(a, segment, &buffer);
        int result = allreduce_fetch(a, operation, segment, own);
        is_delivered = false;
        if (result == 0 && allreduce_contribute(a, own, 0)) {
            result = allreduce_up(a, own);
            is_delivered = a->rank == 0;
        }
        allreduce_give(a, buffer);
        if (result)
            return FAIL;
    }
    return 0;
}

/* Payload handler: adds a child's packet to the partial sum, or passes the total on to the children and the host. */
__handler int allreduce_tree_packet(const ptl_payload_t p, void *state) {
    struct allreduce *a = state;
    struct allreduce_packet *packet = (void *)p.base;
    uint32_t operation = packet->operation, segment = packet->segment, step = packet->step;
    if (step != ALLREDUCE_DOWN) {
        if (!allreduce_contribute(a, packet, step))
            return SUCCESS;
        if (allreduce_up(a, packet))
            return FAIL;
        if (a->rank != 0)
            return SUCCESS;
    } else if (allreduce_deliver(a, packet)) {
        return FAIL;
    }
    return allreduce_tree_own(a, operation, segment + a->window) == 0 ? SUCCESS : FAIL;
}

/* Rank for which this one waits: a child whose packet is missing, or the parent. */
static inline uint32_t allreduce_tree_missing(struct allreduce *a) {
    for (uint32_t i = 0; i < a->slots; i++) {
        uint32_t arrived = allreduce_slot_number(a, i)->arrived;
        for (uint32_t from = 0; arrived != 0 && from <= allreduce_children(a); from++)
            if ((arrived & 1u << from) == 0)
                return from == 0 ? a->rank : allreduce_child(a) + from - 1;
    }
    return a->rank == 0 ? ALLREDUCE_NOBODY : allreduce_parent(a);
}

/* Header handler: contributes a segment, spreads the first ones over the HPUs, or answers for which rank the card
 * waits. */
__handler int allreduce_tree_start(const ptl_header_t h, void *state) {
    struct allreduce *a = state;
    uint32_t operation = (uint32_t)h.hdr_data, what = (uint32_t)(h.hdr_data >> 32);
    int result = what == ALLREDUCE_WHO          ? allreduce_answer(a, allreduce_tree_missing(a))
                 : what == 0 && a->segments > 1 ? allreduce_spread(a, operation, 0, 1)
                                                : allreduce_tree_own(a, operation, what == 0 ? 0 : what - 1);
    return result == 0 ? DROP_PENDING : FAIL;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Computes the state from bits, rank, ranks, type, bytes, arity (at most ALLREDUCE_ARITY) and in_order, for packets of
 * at most `packet` bytes. Returns the bytes of HPU memory. */
static inline uint32_t allreduce_plan_tree(struct allreduce *a, uint32_t packet) {
    return allreduce_divide(a, allreduce_piece(a->bytes, ALLREDUCE_PARTS, packet), a->in_order ? a->arity + 1 : 1, 1);
}

static const struct allreduce_algorithm allreduce_tree = {.start = allreduce_tree_start,
                                                          .packet = allreduce_tree_packet};

#endif
