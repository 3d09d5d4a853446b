/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching atomics of a handler that fail: no entry at the target, two items for a conditional swap, no such rank, and
 * a result outside the handler's memory. */
#include <spin/paper.h>

#include "job.h"

__handler int fetching_header(const ptl_header_t h, void *state) {
    uint64_t one[2] = {1, 1}, two = 2, result[2] = {7, 7};
    (void)state;
    int no_entry =
        PtlHandlerFetchAtomicFromDevice(one, result, 8, 0, h.source_id, 99, 0, NULL, 0, PTL_SUM, PTL_UINT64_T);
    int items =
        PtlHandlerSwapFromDevice(one, result, &two, 16, 0, h.source_id, 99, 0, NULL, 0, PTL_CSWAP, PTL_UINT64_T);
    int no_rank = PtlHandlerSwapFromDevice(one, result, &two, 8, 0, 55, 99, 0, NULL, 0, PTL_CSWAP, PTL_UINT64_T);
    spin_printf("results %d %d %d, %d %d\n", no_entry, items, no_rank, (int)result[0], (int)result[1]);
    PtlHandlerFetchAtomicFromDevice(one, (void *)4, 8, 0, h.source_id, 99, 0, NULL, 0, PTL_SUM, PTL_UINT64_T);
    return PROCEED;
}

int main(void) {
    char memory[32] = "x";
    begin();
    ptl_me_t me = entry(1, memory, sizeof memory);
    me.header_handler = fetching_header;
    append(me, memory, sizeof memory);
    send_to(0, 1, memory, 8, 0);
    (void)await;
    ptl_event_t event;
    REQUIRE(PtlEQWait(eq, &event) == PTL_OK && event.ni_fail_type == PTL_NI_SEGV);
    return end();
}
