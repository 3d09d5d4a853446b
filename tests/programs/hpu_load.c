// SPDX-License-Identifier: Apache-2.0
/* Load of a card's HPUs: `hpu_load ITERATIONS END_NS [SIZE]`. Rank 1 sends messages of SIZE bytes (default 64) to a
 * payload handler of rank 0, which counts to ITERATIONS (0: for ever), and keeps 64 of them under way. At END_NS of
 * simulated time both ranks close their interfaces, and so end their use of HPUs. Rank 1 prints the numbers of messages
 * that succeeded, and of those that the watchdog ended. */
#include "../portals/harness.h"
#include <spin.h>

enum { BITS = 5, WINDOW = 64, LARGEST = 4096 };

__handler int work(const ptl_payload_t p, void *state) {
    const uint32_t iterations = *(const uint32_t *)state;
    (void)p;
    for (uint32_t i = 0; iterations == 0 || i < iterations; i++)
        __asm__ volatile("");
    return SUCCESS;
}

static uint8_t bytes[LARGEST];

static void receive(ptl_pt_index_t pt, uint32_t iterations) {
    ptl_hpu_md_h memory;
    ptl_handle_me_t entry;
    ptl_me_t me =
        plain_entry(bytes, sizeof bytes, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
    CHECK(PtlHPUAllocMem(sizeof iterations, ni, &memory));
    me.hpu_memory = memory;
    me.payload_handler = work;
    me.hpu_initial_state = &iterations;
    me.hpu_initial_state_length = sizeof iterations;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

static void load(ptl_pt_index_t pt, ptl_handle_eq_t eq, uint64_t end_ps, size_t size) {
    unsigned int sent = 0, succeeded = 0, timeouts = 0;
    ptl_handle_md_t md = descriptor(bytes, size, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    while (spin_time_ps() < end_ps) {
        ptl_event_t event;
        unsigned int which;
        if (sent - succeeded - timeouts < WINDOW) {
            CHECK(PtlPut(md, 0, size, PTL_ACK_REQ, to_rank(0), pt, BITS, 0, NULL, 0));
            sent++;
        } else if (PtlEQPoll(&eq, 1, 1, &event, &which) == PTL_OK) {
            EXPECT(event.type == PTL_EVENT_ACK);
            succeeded += event.ni_fail_type == PTL_NI_OK;
            timeouts += event.ni_fail_type == PTL_NI_HANDLER_TIMEOUT;
        }
    }
    printf("%u messages, %u ended by the watchdog\n", succeeded, timeouts);
}

int main(int argc, char **argv) {
    ptl_pt_index_t pt;
    ptl_handle_eq_t eq;
    EXPECT(argc >= 3);
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlEQAlloc(ni, 2 * WINDOW, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
    if (spin_rank() == 0)
        receive(pt, (uint32_t)strtoul(argv[1], NULL, 10));
    CHECK(spin_barrier());
    const uint64_t end_ps = strtoull(argv[2], NULL, 10) * 1000;
    const size_t size = argc > 3 ? strtoul(argv[3], NULL, 10) : 64;
    EXPECT(size <= LARGEST);
    if (spin_rank() == 1)
        load(pt, eq, end_ps, size);
    else if (spin_time_ps() < end_ps)
        spin_host_compute((end_ps - spin_time_ps()) / 1000);
    return close_interface();
}
