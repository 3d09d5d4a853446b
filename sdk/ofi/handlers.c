/* Long messages on a card with handlers (sPIN §5.1): a receive whose message is long fetches it without its CPU.
 *
 * The paper's protocol sends the first part of a long message with its announcement. Ours does not: the get comes at the same time with
 * and without it, the part arrives before the rest either way, and a receive that is posted too late would have to copy it. */
#include "long.h"

#define PTL_USER_HEADER struct announcement
#define SPIN_NO_SHORT_NAMES
#include <spin.h>

/* Header handler: leaves a short message to the card, and gets a long one. The second piece of host memory is the announcement's place, so
 * that the host knows what was announced. */
__handler int ofi_header(const ptl_header_t h, void *state) {
    const struct receive_state *s = state;
    if (!(h.hdr_data & HEADER_IS_LONG))
        return PTL_HANDLER_PROCEED;
    uint64_t length = h.user_hdr.total < s->room ? h.user_hdr.total : s->room;
    /* A get goes to the portal table entry of the receive. An endpoint with another one is left to the CPU. */
    if (h.user_hdr.pt == s->pt &&
        PtlHandlerGetToHost(0, length, 0, h.source_id, LONG_BITS(h.user_hdr.cookie), 0, (void *)(uintptr_t)s->index))
        return PTL_HANDLER_FAIL;
    if (PtlHandlerDMAToHostB(&h.user_hdr, 0, sizeof h.user_hdr, PTL_HANDLER_HOST_MEM))
        return PTL_HANDLER_FAIL;
    return PTL_HANDLER_PROCESS_DATA;
}

/* Payload handler: an announcement has no data, and none may be written where the message will be. */
__handler int ofi_payload(const ptl_payload_t p, void *state) {
    (void)p, (void)state;
    return PTL_HANDLER_SUCCESS;
}

const ptl_header_handler_t ofi_header_handler = ofi_header;
const ptl_payload_handler_t ofi_payload_handler = ofi_payload;
