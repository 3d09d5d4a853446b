/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of handlers to requests: one packet with a status, and optionally a little data. */
#ifndef HANDLERS_COMMON_REPLY_H
#define HANDLERS_COMMON_REPLY_H

#include <spin.h>

/* Reply received by a client. */
struct reply {
    uint32_t request; /* as in the request: distinguishes requests of a client */
    int32_t status;   /* status defined by the handler's protocol */
    uint64_t value;
};

/* Sends a reply to the client's entry for `bits`, at the offset of its request. Returns as PtlHandlerPutFromDevice. */
static inline int reply_send(ptl_process_t client, ptl_match_bits_t bits, struct reply reply) {
    return PtlHandlerPutFromDevice(&reply, sizeof reply, 0, PTL_NO_ACK_REQ, client, bits,
                                   (ptl_size_t)reply.request * sizeof reply, NULL, 0);
}

#endif
