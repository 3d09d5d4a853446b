/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier among cards, by dissemination: in round n each rank's card sends a message to the rank 2^n ahead, and waits
 * for the rank 2^n behind. Any number of ranks meets in ceil(log2 ranks) rounds; the CPUs only start it and are
 * notified of its end.
 *
 * Messages are empty; their header data has the number of the barrier and the round. After barrier n all ranks have
 * entered it, so messages of at most two barriers are in flight, and two sets of flags are enough. Setup: README.md. */
#ifndef HANDLERS_BARRIER_H
#define HANDLERS_BARRIER_H

#include <handlers/common/lock.h>
#include <spin.h>

/* Kind of a message, in the upper half of its header data; the lower half is the number of the barrier. Other values
 * are rounds. The host enters, or queries the rank for which the card waits. */
enum { BARRIER_ENTER = 1 << 8, BARRIER_WHO };

/* Match bits of messages of a card to its host, added to `bits`: end of the barrier; the answer, in the header data. (A
 * count by PtlHandlerCTInc is visible at once, as if there were no PCI Express between card and CPU: we do not rely on
 * that.) */
enum { BARRIER_LEFT = 1, BARRIER_ANSWER };

/* State in HPU memory; the host sets the first four. Number, rounds and counts wrap around. */
struct barrier {
    ptl_match_bits_t bits; /* match bits of messages between cards */
    uint32_t rank, ranks;
    uint32_t lock;
    uint32_t entered; /* barriers entered by this rank */
    struct {
        uint32_t arrived; /* bit n: the message of round n has arrived */
        uint32_t round;   /* current round of this rank */
    } flags[2];
};

/* Rank that sends to this one in a round. */
static inline uint32_t barrier_behind(const struct barrier *b, uint32_t round) {
    uint32_t distance = 1u << round;
    return b->rank >= distance ? b->rank - distance : b->rank + b->ranks - distance;
}

/* Sends this rank's message of a round to the rank ahead. */
static inline int barrier_tell(const struct barrier *b, uint32_t number, uint32_t round) {
    uint32_t ahead = b->rank + (1u << round);
    const ptl_process_t target = {.rank = ahead < b->ranks ? ahead : ahead - b->ranks};
    return PtlHandlerPutFromDevice(b, 0, 0, PTL_NO_ACK_REQ, target, b->bits, 0, NULL,
                                   (ptl_hdr_data_t)round << 32 | number);
}

/* Records a message, given its header data, and proceeds through all arrived messages. Returns 1 if this rank leaves
 * the barrier now, 0 if not, or a negative number if a message could not be sent. */
static inline int barrier_message(struct barrier *b, ptl_hdr_data_t data) {
    uint32_t number = (uint32_t)data, what = (uint32_t)(data >> 32), *arrived = &b->flags[number & 1].arrived;
    uint32_t *round = &b->flags[number & 1].round;
    int result = 0;
    lock_take(&b->lock);
    if (what != BARRIER_ENTER)
        *arrived |= 1u << what;
    else if (b->ranks == 1)
        result = 1;
    else {
        b->entered = number + 1;
        result = barrier_tell(b, number, 0);
    }
    while (result == 0 && b->ranks > 1 && b->entered == number + 1 && (*arrived & 1u << *round) != 0) {
        if (1u << ++*round < b->ranks) {
            result = barrier_tell(b, number, *round);
        } else {
            *arrived = *round = 0;
            result = 1;
            break;
        }
    }
    lock_give(&b->lock);
    return result;
}

/* Header handler: records a message, and notifies the host when the barrier ends, or answers for which rank the card
 * waits. */
__handler int barrier_header(const ptl_header_t h, void *state) {
    struct barrier *b = state;
    bool asks = h.hdr_data >> 32 == BARRIER_WHO;
    int left = asks ? 1 : barrier_message(b, h.hdr_data);
    if (left > 0)
        left = PtlHandlerPutFromDevice(b, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = b->rank},
                                       b->bits + (asks ? BARRIER_ANSWER : BARRIER_LEFT), 0, NULL,
                                       barrier_behind(b, b->flags[h.hdr_data & 1].round));
    return left < 0 ? FAIL : DROP_PENDING;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Appends the entries of this rank. `ct` counts barriers left. Returns PTL_OK, or the error of PtlHPUAllocMem or
 * PtlMEAppend. */
static inline int barrier_attach(ptl_handle_ni_t ni, ptl_pt_index_t pt, struct barrier state, ptl_handle_ct_t ct) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = state.bits,
                   .header_handler = barrier_header,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    ptl_me_t over = {.ct_handle = ct,
                     .uid = PTL_UID_ANY,
                     .options = me.options | PTL_ME_EVENT_CT_COMM,
                     .match_id.rank = state.rank,
                     .match_bits = state.bits + BARRIER_LEFT,
                     .hpu_memory = PTL_INVALID_HANDLE};
    int rc = PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory);
    if (rc == PTL_OK)
        rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &over, PTL_PRIORITY_LIST, NULL, &handle);
}

/* Header data of the empty message by which a rank's host enters a barrier; it goes to the rank's own card. */
static inline ptl_hdr_data_t barrier_enter(uint32_t number) { return (ptl_hdr_data_t)BARRIER_ENTER << 32 | number; }

#endif
