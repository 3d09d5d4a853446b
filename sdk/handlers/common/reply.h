/* Answers of handlers to requests: one packet with a status, and a little data or none. */
#ifndef HANDLERS_COMMON_REPLY_H
#define HANDLERS_COMMON_REPLY_H

#include <spin.h>

/* What a client receives. */
struct reply {
    uint32_t request; /* as in the request: tells requests of a client apart */
    int32_t status;   /* what the handler's protocol says */
    uint64_t value;
};

/* Sends a reply to the client's entry for `bits`, to the place of its request. Returns as PtlHandlerPutFromDevice. */
static inline int reply_send(ptl_process_t client, ptl_match_bits_t bits, struct reply reply) {
    return PtlHandlerPutFromDevice(&reply, sizeof reply, 0, PTL_NO_ACK_REQ, client, bits,
                                   (ptl_size_t)reply.request * sizeof reply, NULL, 0);
}

#endif
