/* SPDX-License-Identifier: Apache-2.0 */
/* Message matching with rendezvous on the card (sPIN §5.1, Fig. 5b): receives complete without the receiver's CPU,
 * although it knows neither their length nor their source.
 *
 * A short message is a put of its data. A long one is a put of `struct matching_long` and the first `eager` bytes, so
 * it is longer than any short one; the sender exposes the whole data to gets. The receiver's header handler
 * distinguishes the two by their length and gets the rest. Include this file before <spin.h>; setup: README.md. */
#ifndef HANDLERS_MATCHING_H
#define HANDLERS_MATCHING_H

#ifdef SPIN_H
#error "include handlers/matching/matching.h before spin.h: it defines the user header"
#endif

#include <stdint.h>

/* The user header of a long message. */
struct matching_long {
    uint64_t total;       /* bytes of the whole data */
    uint64_t source_bits; /* match bits under which the sender exposes it */
};

#define PTL_USER_HEADER struct matching_long
#include <spin.h>

/* HPU memory of a receive; set by the host, handlers only read it. */
struct matching {
    ptl_size_t eager; /* longest short message, the same at sender and receiver */
    ptl_size_t room;  /* bytes of the receive's memory */
};

/* Increase of the entry's counter when a receive is complete, for short and long messages alike. A receive that loses
 * packets (flow control) or whose handler fails counts a failure. */
enum { MATCHING_COMPLETE = 2 };

/* Header handler: lets the card deposit a short message, and gets the rest of a long one. A long message counts twice:
 * when its first part has arrived, and when the get's reply has. A short one would count once, so the handler adds the
 * other. */
__handler int matching_header(const ptl_header_t h, void *state) {
    const struct matching *m = state;
    ptl_size_t total = h.user_hdr.total < m->room ? h.user_hdr.total : m->room;
    bool is_long = h.length > m->eager;
    if (is_long && total > m->eager)
        return PtlHandlerGetToHost(m->eager, total - m->eager, PTL_LOCAL_ME_CT, h.source_id, h.user_hdr.source_bits,
                                   m->eager, NULL) == 0
                   ? PROCESS_DATA
                   : FAIL;
    if (PtlHandlerCTInc((ptl_ct_event_t){.success = 1}))
        return FAIL;
    return is_long ? PROCESS_DATA : PROCEED;
}

/* Payload handler: writes the first part of a long message to the beginning of the receive's memory. */
__handler int matching_payload(const ptl_payload_t p, void *state) {
    const struct matching *m = state;
    ptl_size_t left = m->room > p.offset ? m->room - p.offset : 0;
    ptl_size_t length = p.length < left ? p.length : left;
    return length == 0 || PtlHandlerDMAToHostB(p.base, p.offset, length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

#endif
