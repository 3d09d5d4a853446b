/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the paper's listing for the accumulate (sPIN App. C.3.2), without its `pong`: a packet of complex numbers of
 * two floats, one blocking fetch before and one blocking write after the loop. Differences from the listing as printed:
 *
 *   - it takes the imaginary part from the real part that it has just overwritten, and subtracts; here the product is that of
 *     complex numbers, with the same number of operations;
 *   - it allocates its buffer from a heap, which cards do not have; here the buffer is on the stack. */
#ifndef EXPERIMENTS_LISTING_H
#define EXPERIMENTS_LISTING_H

#include <handlers/accumulate/accumulate.h>

struct listing {
    ptl_size_t offset;
    bool pong;
    ptl_process_t source;
};

__handler int listing_header(const ptl_header_t h, void *state) {
    struct listing *i = state;
    if (i->pong)
        i->source = h.source_id;
    return PROCESS_DATA;
}

__handler int listing_payload(const ptl_payload_t p, void *state) {
    const struct listing *i = state;
    const float *data = (const float *)p.base;
    float buf[ACCUMULATE_CHUNK / sizeof(float)];
    if (p.length > sizeof buf || PtlHandlerDMAFromHostB(i->offset + p.offset, buf, p.length, PTL_ME_HOST_MEM))
        return FAIL;
    for (uint32_t j = 0; j < p.length / sizeof(float); j += 2) {
        float re = buf[j], im = buf[j + 1];
        buf[j] = data[j] * re - data[j + 1] * im;
        buf[j + 1] = data[j] * im + data[j + 1] * re;
    }
    return PtlHandlerDMAToHostB(buf, i->offset + p.offset, p.length, PTL_ME_HOST_MEM) ? FAIL : SUCCESS;
}

#endif
