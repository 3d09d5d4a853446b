/* Every other rank puts a message to rank 0 at the same time: `incast BYTES`. Rank 0 prints how many picoseconds pass until
 * all messages are in its memory; the others print how many pass until the last byte of theirs has left. */
#include "../portals/harness.h"
#include <spin.h>

enum { DATA = 1 };

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    const ptl_size_t bytes = strtoul(argc > 1 ? argv[1] : "1", NULL, 10);
    unsigned char *data = malloc(bytes);
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    ptl_pt_index_t pt;
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, DATA, &pt));
    ptl_size_t expected = 1;
    if (spin_rank() == 0) {
        expected = (ptl_size_t)spin_size() - 1;
        ptl_me_t me = plain_entry(data, bytes, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
        me.ct_handle = ct;
        ptl_handle_me_t handle;
        CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    }
    ptl_handle_md_t md = descriptor(data, bytes, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, ct);
    CHECK(spin_barrier());
    const uint64_t start = spin_time_ps();
    if (spin_rank() != 0)
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, to_rank(0), pt, 0, 0, NULL, 0));
    ptl_ct_event_t count;
    CHECK(PtlCTWait(ct, expected, &count));
    EXPECT(count.success == expected && count.failure == 0);
    printf("rank %d: %llu\n", spin_rank(), (unsigned long long)(spin_time_ps() - start));
    CHECK(spin_barrier());
    return close_interface();
}
