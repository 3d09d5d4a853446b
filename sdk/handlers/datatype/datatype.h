/* Vector datatype: unpacks an incoming message into blocks at a fixed distance in host memory, on the card (sPIN §5.2,
 * App. C.3.4).
 *
 *     struct datatype_vector state = {.offset = 0, .block = 1536, .stride = 2560};
 *     ptl_me_t me = {.start = memory, .length = bytes, .payload_handler = datatype_unpack, …};
 *     PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory);
 *     me.hpu_initial_state = &state, me.hpu_initial_state_length = sizeof state;
 *
 * Byte i of the message goes to offset + i / block * stride + i % block of the entry's memory. Packets are independent:
 * they may arrive in any order and be processed concurrently. The entry's event is posted when all data is in host
 * memory. A message that loses packets (flow control), or whose handler fails, is a failure in the event and in the
 * counter. Messages must be shorter than 4 GiB. */
#ifndef HANDLERS_DATATYPE_H
#define HANDLERS_DATATYPE_H

#include <spin.h>

/* HPU memory of the entry: MPI's vector type; set by the host, handlers only read it. */
struct datatype_vector {
    ptl_size_t offset; /* position of the first block in the entry's memory, bytes */
    uint32_t block;    /* bytes, at least 1 */
    uint32_t stride;   /* from the start of one block to that of the next, bytes */
};

/* Payload handler: writes each piece of a block in the packet by one DMA. The DMAs do not wait for each other; since
 * the card carries them out in order, waiting for the last one is enough. Fails when a block is outside the entry's
 * memory. */
__handler int datatype_unpack(const ptl_payload_t p, void *state) {
    const struct datatype_vector *v = state;
    uint32_t block = v->block, left = p.length;
    uint32_t number = (uint32_t)p.offset / block, within = (uint32_t)p.offset % block;
    ptl_size_t at = v->offset + (ptl_size_t)number * v->stride + within;
    const uint8_t *from = p.base;
    ptl_dma_h last;
    for (uint32_t piece = block - within; left > piece; piece = block) {
        if (PtlHandlerDMAToHostNB(from, at, piece, PTL_ME_HOST_MEM, &last))
            return FAIL;
        at += v->stride - within;
        from += piece;
        left -= piece;
        within = 0;
    }
    if (PtlHandlerDMAToHostNB(from, at, left, PTL_ME_HOST_MEM, &last))
        return FAIL;
    return PtlHandlerDMAWait(last) ? FAIL : SUCCESS;
}

#endif
