/* Long messages on a card with handlers (sPIN §5.1): a receive whose message is long fetches it without its CPU.
 *
 * A long message is a put of `struct announcement` and its first `part` bytes; the sender has exposed all of it to gets. The header
 * handler of the receive gets the rest, and the payload handler deposits the first part. */
#include "long.h"

#define PTL_USER_HEADER struct announcement
#define SPIN_NO_SHORT_NAMES
#include <spin.h>

/* Header handler: leaves a short message to the card, and gets the rest of a long one. The second piece of host memory is the
 * announcement's place, so that the host knows what was announced. */
__handler int ofi_header(const ptl_header_t h, void *state) {
    const struct receive_state *s = state;
    if (!(h.hdr_data & HEADER_IS_LONG))
        return PTL_HANDLER_PROCEED;
    uint64_t total = h.user_hdr.total < s->room ? h.user_hdr.total : s->room;
    uint64_t part = h.user_hdr.part < total ? h.user_hdr.part : total;
    ptl_dma_h written;
    if (PtlHandlerDMAToHostNB(&h.user_hdr, 0, sizeof h.user_hdr, PTL_HANDLER_HOST_MEM, &written))
        return PTL_HANDLER_FAIL;
    /* The get of no bytes tells the sender that its memory is free. */
    if (h.user_hdr.pt == s->pt && PtlHandlerGetToHost(part, total - part, 0, h.source_id, LONG_BITS(h.user_hdr.cookie),
                                                      part, (void *)(uintptr_t)s->index))
        return PTL_HANDLER_FAIL;
    return PtlHandlerDMAWait(written) == 0 ? PTL_HANDLER_PROCESS_DATA : PTL_HANDLER_FAIL;
}

/* Payload handler: writes the first part of a long message to the beginning of the receive's memory. */
__handler int ofi_payload(const ptl_payload_t p, void *state) {
    const struct receive_state *s = state;
    uint64_t left = s->room > p.offset ? s->room - p.offset : 0;
    uint64_t length = p.length < left ? p.length : left;
    return length == 0 || PtlHandlerDMAToHostB(p.base, p.offset, length, PTL_ME_HOST_MEM) == 0 ? PTL_HANDLER_SUCCESS
                                                                                               : PTL_HANDLER_FAIL;
}

const ptl_header_handler_t ofi_header_handler = ofi_header;
const ptl_payload_handler_t ofi_payload_handler = ofi_payload;
