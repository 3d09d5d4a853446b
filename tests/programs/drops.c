/* Messages without a matching entry: `drops CASE`. Rank 2 sends three to rank 1, which has no entry for them. */
#include "../portals/harness.h"
#include <spin.h>

enum { PORTAL = 4, BITS = 0x10, BYTES = 8, MESSAGES = 3 };

static unsigned char data[BYTES];

/* Sends the messages and waits until they are acknowledged. */
static void send(unsigned options) {
    ptl_handle_ct_t acks;
    ptl_ct_event_t counted;
    CHECK(PtlCTAlloc(ni, &acks));
    ptl_handle_md_t md = descriptor(data, BYTES, PTL_MD_EVENT_CT_ACK | options, PTL_EQ_NONE, acks);
    for (unsigned int i = 0; i < MESSAGES; i++)
        CHECK(PtlPut(md, 0, BYTES, PTL_CT_ACK_REQ, to_rank(1), PORTAL, BITS + i, 0, NULL, 0));
    do
        CHECK(PtlCTGet(acks, &counted));
    while (counted.failure < MESSAGES && PtlCTWait(acks, MESSAGES, &counted) == PTL_OK);
    EXPECT(counted.failure == MESSAGES && counted.success == 0);
}

int main(int argc, char **argv) {
    ptl_pt_index_t pt;
    ptl_handle_ct_t arrived;
    ptl_ct_event_t counted;
    if (argc != 2)
        return 2;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlCTAlloc(ni, &arrived));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PORTAL, &pt));
    CHECK(spin_barrier());
    if (spin_rank() == 2)
        send(strcmp(argv[1], "permitted") == 0 ? PTL_MD_UNRELIABLE : 0);
    if (spin_rank() == 1 && strcmp(argv[1], "deadlock") == 0)
        CHECK(PtlCTWait(arrived, 1, &counted));
    CHECK(spin_barrier());
    PtlFini();
    return 0;
}
