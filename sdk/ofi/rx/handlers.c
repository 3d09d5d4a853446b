/* SPDX-License-Identifier: Apache-2.0 */
/* Long messages on a card with handlers (sPIN §5.1): the card gets the long message of a receive without the CPU.
 *
 * The paper's protocol sends the first part of a long message with its announcement. Ours does not: the get leaves
 * at the same time either way, the part arrives before the rest, and a receive that is posted too late would have to
 * copy it. */
#include "handlers.h"

#define SPIN_NO_SHORT_NAMES
#include <spin.h>

/* Gets a long message. The card delivers short messages and the announcement itself. */
__handler int spin_ofi_header(const ptl_header_t h, void *state) {
    const struct receive_state *s = state;
    /* The handler's get uses the portal table entry of the receive. The CPU fetches from another one. */
    if (!(h.hdr_data & HEADER_IS_LONG) || LONG_PT(h.offset) != s->pt)
        return PTL_HANDLER_PROCEED;
    uint64_t total = LONG_TOTAL(h.offset), length = total < s->room ? total : s->room;
    int failed = PtlHandlerGetToHost(0, length, 0, h.source_id, LONG_BITS(LONG_COOKIE(h.hdr_data)), 0,
                                     (void *)(uintptr_t)s->index);
    return failed ? PTL_HANDLER_FAIL : PTL_HANDLER_PROCEED;
}

const ptl_header_handler_t spin_ofi_header_handler = spin_ofi_header;
