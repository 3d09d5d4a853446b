/* Every rank sends a different message to every other one and checks all that it gets: `alltoall BYTES`. Prints when
 * each rank was done. */
#include "../portals/harness.h"
#include <spin.h>
#undef PtlMEAppend /* a plain program */

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    ptl_handle_ct_t arrived;
    ptl_handle_me_t handle;
    ptl_ct_event_t counted;
    ptl_pt_index_t pt;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    unsigned int own = (unsigned int)spin_rank(), ranks = (unsigned int)spin_size();
    unsigned char *out = malloc(ranks * bytes), *in = calloc(ranks, bytes);
    EXPECT(out != NULL && in != NULL);
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    CHECK(PtlCTAlloc(ni, &arrived));

    ptl_me_t me;
    memset(&me, 0xFF, sizeof me); /* fields not defined by Portals 4 may be anything */
    me.start = in;
    me.length = ranks * bytes;
    me.ct_handle = arrived;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = 0;
    me.ignore_bits = ~(ptl_match_bits_t)0;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_handle_md_t md = descriptor(out, ranks * bytes, 0, PTL_EQ_NONE, PTL_CT_NONE);
    for (unsigned int to = 0; to < ranks; to++)
        fill(out + to * bytes, bytes, own * ranks + to);
    CHECK(spin_barrier());
    for (unsigned int k = 0; k < ranks; k++) {
        unsigned int to = (own + k) % ranks;
        CHECK(PtlPut(md, to * bytes, bytes, PTL_NO_ACK_REQ, to_rank(to), pt, own, own * bytes, NULL, 0));
    }
    CHECK(PtlCTWait(arrived, ranks, &counted));
    EXPECT(counted.success == ranks && counted.failure == 0);
    for (unsigned int from = 0; from < ranks; from++)
        EXPECT(is_filled(in + from * bytes, bytes, from * ranks + own));
    printf("rank %u: done at %llu ps\n", own, (unsigned long long)spin_time_ps());
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(handle));
    CHECK(PtlPTFree(ni, pt));
    free(out);
    free(in);
    return close_interface();
}
