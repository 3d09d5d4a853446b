/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce by recursive doubling: in step n ranks whose numbers differ in bit n - 1 exchange and add their sums. The
 * result is identical, bit by bit, on all ranks and in each run, because a + b = b + a.
 *
 * With ranks beyond a power of two, each of the first such ranks is folded into its neighbour: rank 0 into 1, 2 into 3,
 * and so on. Step 0 is its contribution, and the last step returns the sum. An early packet waits in its place of the
 * slot. A rank may be one segment ahead of another in each slot, so there are two slots for each segment in flight. */
#ifndef HANDLERS_ALLREDUCE_DOUBLING_H
#define HANDLERS_ALLREDUCE_DOUBLING_H

#include <handlers/allreduce/allreduce.h>

/* True if this rank is folded into its neighbour; true if its neighbour is folded into it. */
static inline bool allreduce_is_folded(const struct allreduce *a) {
    return a->rank < 2 * a->folded && a->rank % 2 == 0;
}
static inline bool allreduce_has_folded(const struct allreduce *a) {
    return a->rank < 2 * a->folded && a->rank % 2 == 1;
}

/* Rank with which this one exchanges packets in a step. */
static inline uint32_t allreduce_partner(const struct allreduce *a, uint32_t step) {
    if (step == 0 || step > a->twos)
        return a->rank ^ 1;
    uint32_t other = (a->rank < 2 * a->folded ? a->rank / 2 : a->rank - a->folded) ^ 1u << (step - 1);
    return other < a->folded ? 2 * other + 1 : other + a->folded;
}

/* Proceeds after the awaited packet is added, through all packets that have arrived. The caller holds the slot's lock.
 * Returns 1 when the slot's own place has the sum, 0 if not, and a negative number if a packet could not be sent. */
static inline int allreduce_go_on(struct allreduce *a, struct allreduce_slot *slot) {
    struct allreduce_packet *own = allreduce_place(a, slot, 0);
    for (;;) {
        uint32_t step = slot->awaited++;
        if (step > a->twos)
            return 1;
        if (allreduce_send(a, own, step, allreduce_partner(a, step)))
            return -1;
        if ((slot->arrived & 1u << step) == 0)
            return 0;
        allreduce_add(a, own, allreduce_place(a, slot, 1 + step), allreduce_length(a, slot->segment));
        slot->arrived &= ~(1u << step);
    }
}

/* Writes a sum to the host, sends it to the rank folded into this one, and frees the slot. */
static inline int allreduce_finish(struct allreduce *a, struct allreduce_slot *slot, struct allreduce_packet *sum) {
    ptl_dma_h written;
    if (allreduce_write(a, sum, &written) ||
        (allreduce_has_folded(a) && allreduce_send(a, sum, a->twos + 1, a->rank - 1)) || allreduce_tell(a, written))
        return FAIL;
    slot->awaited = 0;
    return 0;
}

/* Contributes this rank's own segment, and the segments unblocked by it. */
static inline int allreduce_double_own(struct allreduce *a, uint32_t operation, uint32_t segment) {
    int result = 1;
    for (; segment < a->segments && result > 0; segment += a->window) {
        struct allreduce_slot *slot = allreduce_slot(a, operation, segment);
        struct allreduce_packet *own = allreduce_place(a, slot, 0);
        uint32_t first = a->rank < 2 * a->folded ? 0 : 1;
        if (allreduce_fetch(a, operation, segment, own))
            return FAIL;
        lock_take(&slot->lock);
        slot->segment = segment;
        slot->awaited = 1 + (allreduce_is_folded(a) ? a->twos + 1 : first);
        result = allreduce_has_folded(a) ? 0 : allreduce_send(a, own, first, allreduce_partner(a, first));
        if (result == 0 && (slot->arrived & 1u << first) != 0) {
            allreduce_add(a, own, allreduce_place(a, slot, 1 + first), allreduce_length(a, segment));
            slot->arrived &= ~(1u << first);
            result = allreduce_go_on(a, slot);
        }
        if (result > 0 && allreduce_finish(a, slot, own))
            result = -1;
        lock_give(&slot->lock);
    }
    return result < 0 ? FAIL : 0;
}

/* Payload handler: adds the partner's packet in its step, and sends the sum to the next partner. */
__handler int allreduce_double_packet(const ptl_payload_t p, void *state) {
    struct allreduce *a = state;
    struct allreduce_packet *packet = (void *)p.base;
    uint32_t operation = packet->operation, segment = packet->segment, step = packet->step;
    struct allreduce_slot *slot = allreduce_slot(a, operation, segment);
    int result = 0;
    lock_take(&slot->lock);
    if (step > a->twos) {
        result = allreduce_finish(a, slot, packet) ? -1 : 1;
    } else if (slot->awaited != step + 1) {
        memcpy(allreduce_place(a, slot, 1 + step), packet, p.length);
        slot->arrived |= 1u << step;
    } else {
        struct allreduce_packet *own = allreduce_place(a, slot, 0);
        allreduce_add(a, own, packet, p.length - (uint32_t)sizeof *packet);
        result = allreduce_go_on(a, slot);
        if (result > 0 && allreduce_finish(a, slot, own))
            result = -1;
    }
    lock_give(&slot->lock);
    if (result > 0)
        result = allreduce_double_own(a, operation, segment + a->window);
    return result == 0 ? SUCCESS : FAIL;
}

/* Header handler: contributes a segment, spreads the first ones over the HPUs, or answers for which rank the card
 * waits. */
__handler int allreduce_double_start(const ptl_header_t h, void *state) {
    struct allreduce *a = state;
    uint32_t operation = (uint32_t)h.hdr_data, what = (uint32_t)(h.hdr_data >> 32);
    int result = 0;
    if (what == ALLREDUCE_WHO) {
        uint32_t rank = ALLREDUCE_NOBODY;
        for (uint32_t i = 0; i < a->slots && rank == ALLREDUCE_NOBODY; i++) {
            const struct allreduce_slot *slot = allreduce_slot_number(a, i);
            if (slot->awaited != 0)
                rank = allreduce_partner(a, slot->awaited - 1);
        }
        result = allreduce_answer(a, rank);
    } else if (what == 0 && a->segments > 1) {
        result = allreduce_spread(a, operation, 0, 1);
    } else {
        result = allreduce_double_own(a, operation, what == 0 ? 0 : what - 1);
    }
    return result == 0 ? DROP_PENDING : FAIL;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Computes the state from bits, rank, ranks, type and bytes, for packets of at most `packet` bytes. Returns the bytes
 * of HPU memory. */
static inline uint32_t allreduce_plan_doubling(struct allreduce *a, uint32_t packet) {
    for (a->twos = 0; 2u << a->twos <= a->ranks;)
        a->twos++;
    a->folded = a->ranks - (1u << a->twos);
    return allreduce_divide(a, allreduce_piece(a->bytes, ALLREDUCE_PARTS, packet), a->twos + 2, 2);
}

static const struct allreduce_algorithm allreduce_doubling = {.start = allreduce_double_start,
                                                              .packet = allreduce_double_packet};

#endif
