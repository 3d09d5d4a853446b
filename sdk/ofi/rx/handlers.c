/* Long messages on a card with handlers (sPIN §5.1): a receive whose message is long gets it without its CPU.
 *
 * The paper's protocol sends the first part of a long message with its announcement. Ours does not: the get leaves at the same time with
 * and without it, the part arrives before the rest either way, and a receive that is posted too late would have to copy it. */
#include "../base/wire.h"

#define SPIN_NO_SHORT_NAMES
#include <spin.h>

/* Header handler: gets a long message; its announcement and short messages are the card's. */
__handler int ofi_header(const ptl_header_t h, void *state) {
    const struct receive_state *s = state;
    /* A get goes to the portal table entry of the receive. An endpoint with another one is left to the CPU. */
    if (!(h.hdr_data & HEADER_IS_LONG) || LONG_PT(h.offset) != s->pt)
        return PTL_HANDLER_PROCEED;
    uint64_t total = LONG_TOTAL(h.offset), length = total < s->room ? total : s->room;
    int failed = PtlHandlerGetToHost(0, length, 0, h.source_id, LONG_BITS(LONG_COOKIE(h.hdr_data)), 0,
                                     (void *)(uintptr_t)s->index);
    return failed ? PTL_HANDLER_FAIL : PTL_HANDLER_PROCEED;
}

const ptl_header_handler_t ofi_header_handler = ofi_header;
