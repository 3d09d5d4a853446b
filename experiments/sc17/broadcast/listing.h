/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the paper's listing for the broadcast (sPIN App. C.3.3), streaming. A rank tries each of the log2 P
 * distances of the tree, and finds its children by the remainder of a division. Differences from the listing as printed:
 *
 *   - its payload handler only forwards; here it also writes the packet to host memory;
 *   - it streams only a message of one packet; here each packet of a longer one has an entry, as in the library
 *     (sdk/handlers/broadcast), so the match bits of a packet are those of its entry instead of 10. */
#ifndef EXPERIMENTS_LISTING_H
#define EXPERIMENTS_LISTING_H

#include <spin.h>

struct listing {
    ptl_match_bits_t bits; /* match bits of the entry */
    uint32_t my_rank;
    uint32_t p; /* total number of ranks */
    bool stream;
    ptl_size_t length;
};

__handler int listing_header(const ptl_header_t h, void *state) {
    struct listing *i = state;
    i->stream = true;
    i->length = h.length;
    return PROCESS_DATA;
}

__handler int listing_payload(const ptl_payload_t p, void *state) {
    const struct listing *i = state;
    for (uint32_t half = i->p / 2; half >= 1; half /= 2)
        if (i->my_rank % (half * 2) == 0)
            if (PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = i->my_rank + half},
                                        i->bits + p.offset, 0, NULL, 0))
                return FAIL;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Gives the entry `me` the listing's handlers and this initial state, which PtlMEAppend reads. */
static inline int listing_attach(ptl_handle_ni_t ni, ptl_me_t *me, const struct listing *state) {
    me->header_handler = listing_header;
    me->payload_handler = listing_payload;
    me->hpu_initial_state = state;
    me->hpu_initial_state_length = sizeof *state;
    return PtlHPUAllocMem(sizeof *state, ni, &me->hpu_memory);
}

#endif
