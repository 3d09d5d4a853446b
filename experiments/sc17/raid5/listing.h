/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the paper's listing for RAID-5 (sPIN App. C.3.5): whole packets, one blocking fetch before and one
 * blocking write after the loop. Where the listing as printed gives wrong data, these differ from it:
 *
 *   - its data node writes old ^ new to its memory; here it writes the new data;
 *   - it ignores the message's remote offset and sends none with the difference, so that every packet changes the same
 *     parity; here both are places in the node's memory;
 *   - it keeps the sender in the state of an entry that takes all messages; here each message has an entry, as in the
 *     library (sdk/handlers/raid5);
 *   - nothing keeps two data nodes from changing the same parity at once; here a lock for each packet does;
 *   - it allocates its buffer from a heap, which cards do not have; here the buffer is on the stack. */
#ifndef EXPERIMENTS_LISTING_H
#define EXPERIMENTS_LISTING_H

#include <handlers/raid5/raid5.h>

enum { LISTING_LOCKS = RAID5_LOCKS };

struct listing {
    ptl_process_t source, parity;
    ptl_hdr_data_t client;
    ptl_size_t offset;
};

__handler int listing_write_header(const ptl_header_t h, void *state) {
    struct listing *i = state;
    i->source = h.source_id;
    i->offset = h.offset;
    return PROCESS_DATA;
}

__handler int listing_write_payload(const ptl_payload_t p, void *state) {
    const struct listing *i = state;
    uint32_t buf[RAID5_PACKET / sizeof(uint32_t)];
    ptl_size_t at = i->offset + p.offset;
    if (p.length > sizeof buf || PtlHandlerDMAFromHostB(at, buf, p.length, PTL_ME_HOST_MEM))
        return FAIL;
    raid5_xor(buf, p.base, p.length);
    if (PtlHandlerDMAToHostB(p.base, at, p.length, PTL_ME_HOST_MEM))
        return FAIL;
    return PtlHandlerPutFromDevice(buf, p.length, 0, PTL_NO_ACK_REQ, i->parity, RAID5_DIFF, at, NULL, i->source.rank)
               ? FAIL
               : SUCCESS;
}

__handler int listing_diff_header(const ptl_header_t h, void *state) {
    struct listing *i = state;
    i->source = h.source_id;
    i->client = h.hdr_data;
    i->offset = h.offset;
    return PROCESS_DATA;
}

/* Element n is 1 while a handler changes a packet of parity whose number modulo LISTING_LOCKS is n. */
static uint64_t listing_locks[LISTING_LOCKS];

__handler int listing_diff_payload(const ptl_payload_t p, void *state) {
    const struct listing *i = state;
    uint32_t buf[RAID5_PACKET / sizeof(uint32_t)];
    ptl_size_t at = i->offset + p.offset;
    uint64_t *lock = &listing_locks[at / RAID5_PACKET % LISTING_LOCKS];
    int failed = at % RAID5_PACKET + p.length > RAID5_PACKET; /* two locks would be needed */
    while (!PtlHandlerCAS(lock, 0, 1))
        PtlHandlerYield();
    if (!failed && PtlHandlerDMAFromHostB(at, buf, p.length, PTL_ME_HOST_MEM) == 0) {
        raid5_xor(buf, p.base, p.length);
        failed = PtlHandlerDMAToHostB(buf, at, p.length, PTL_ME_HOST_MEM);
    } else {
        failed = 1;
    }
    PtlHandlerCAS(lock, 1, 0);
    return failed ? FAIL : SUCCESS;
}

__handler int listing_diff_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    const struct listing *i = state;
    const uint8_t reply = SUCCESS;
    if (dropped_bytes > 0 || flow_control_triggered)
        return FAIL;
    if (PtlHandlerPutFromDevice(&reply, sizeof reply, 0, PTL_NO_ACK_REQ, i->source, RAID5_ACK, 0, NULL, i->client))
        return FAIL;
    return SUCCESS_PENDING;
}

/* Appends `count` entries for WRITE or DIFF, as raid5_serve does. */
static inline int listing_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, enum raid5_message message, void *memory,
                                ptl_size_t bytes, ptl_process_t parity, int count) {
    struct listing state = {.parity = parity};
    ptl_me_t me = {.header_handler = message == RAID5_DIFF ? listing_diff_header : listing_write_header,
                   .payload_handler = message == RAID5_DIFF ? listing_diff_payload : listing_write_payload,
                   .completion_handler = message == RAID5_DIFF ? listing_diff_completion : raid5_write_completion,
                   .hpu_initial_state = &state,
                   .hpu_initial_state_length = sizeof state};
    return raid5_append(ni, pt, message, memory, bytes, me, count);
}

#endif
