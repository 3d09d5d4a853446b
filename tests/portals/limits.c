/* conformance: ranks=1,2
 * Limits: wishes are clipped, smaller ones honoured exactly, and each is kept. */
#include "ring.h"

enum { FEW = 6 };
static unsigned char memory[64];

static int make_md(void) {
    ptl_md_t md = {.start = memory, .length = 8, .options = 0, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    return PtlMDBind(ni, &md, &handle);
}

int main(int argc, char **argv) {
    ptl_ni_limits_t desired, again;
    ptl_handle_ni_t same;
    memset(&desired, 0, sizeof desired);
    desired.max_entries = 2 * FEW;
    desired.max_unexpected_headers = 1;
    desired.max_mds = FEW;
    desired.max_cts = FEW + 1;
    desired.max_eqs = FEW + 2;
    desired.max_pt_index = 100;
    desired.max_iovecs = 3;
    desired.max_list_size = FEW;
    desired.max_triggered_ops = 2;
    desired.max_msg_size = 1000;
    desired.max_atomic_size = 64;
    desired.max_fetch_atomic_size = 32;
    desired.max_waw_ordered_size = 16;
    desired.max_war_ordered_size = 4;
    desired.max_volatile_size = 8;
    open_with(argc, argv, &desired);
    EQUAL("limit max_entries", limits.max_entries, 2 * FEW);
    EQUAL("limit max_unexpected_headers", limits.max_unexpected_headers, 1);
    EQUAL("limit max_mds", limits.max_mds, FEW);
    EQUAL("limit max_cts", limits.max_cts, FEW + 1);
    EQUAL("limit max_eqs", limits.max_eqs, FEW + 2);
    EQUAL("limit max_pt_index", limits.max_pt_index, 100);
    EQUAL("limit max_iovecs", limits.max_iovecs, 3);
    EQUAL("limit max_list_size", limits.max_list_size, FEW);
    EQUAL("limit max_triggered_ops", limits.max_triggered_ops, 2);
    EQUAL("limit max_msg_size", limits.max_msg_size, 1000);
    EQUAL("limit max_atomic_size", limits.max_atomic_size, 64);
    EQUAL("limit max_fetch_atomic_size", limits.max_fetch_atomic_size, 32);
    EQUAL("limit max_waw_ordered_size", limits.max_waw_ordered_size, 16);
    EQUAL("limit max_war_ordered_size", limits.max_war_ordered_size, 4);
    EQUAL("limit max_volatile_size", limits.max_volatile_size, 8);
    EQUAL("limit features are known ones",
          limits.features & ~(PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS), 0);

    /* The second opening does not change them. */
    memset(&desired, 0x7f, sizeof desired);
    CODE("limits: open again", PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, &desired, &again, &same), PTL_OK);
    EQUAL("limits: open again", same, ni);
    SAME_BYTES("limits: as before", &again, &limits, sizeof again);
    CHECK(PtlNIFini(same));

    /* Objects. */
    for (int i = 0; i < FEW; i++)
        CODE("limit of MDs", make_md(), PTL_OK);
    CODE("limit of MDs", make_md(), PTL_NO_SPACE);
    ptl_handle_ct_t ct = PTL_CT_NONE, last_ct = PTL_CT_NONE;
    for (int i = 0; i < FEW + 1; i++)
        CODE("limit of CTs", PtlCTAlloc(ni, &last_ct), PTL_OK);
    CODE("limit of CTs", PtlCTAlloc(ni, &ct), PTL_NO_SPACE);
    EQUAL("limit of CTs, nothing written", ct, PTL_CT_NONE);
    CHECK(PtlCTFree(last_ct));
    CODE("limit of CTs, one freed", PtlCTAlloc(ni, &ct), PTL_OK);
    TRUE("limit of CTs, a new handle", !PtlHandleIsEqual(ct, last_ct));
    ptl_handle_eq_t eq = PTL_EQ_NONE;
    for (int i = 0; i < FEW + 2; i++)
        CODE("limit of EQs", PtlEQAlloc(ni, 4, &eq), PTL_OK);
    ptl_handle_eq_t no_eq = PTL_EQ_NONE;
    CODE("limit of EQs", PtlEQAlloc(ni, 4, &no_eq), PTL_NO_SPACE);
    EQUAL("limit of EQs, nothing written", no_eq, PTL_EQ_NONE);

    /* Lists and entries. */
    ptl_pt_index_t pt = portal(PTL_EQ_NONE, 0), other = portal(PTL_EQ_NONE, 0);
    ptl_me_t me = entry(memory, sizeof memory, PTL_ME_OP_PUT);
    ptl_handle_me_t handles[2 * FEW], handle = PTL_INVALID_HANDLE;
    for (int i = 0; i < FEW; i++)
        CODE("limit of a list", append_code(pt, &me, PTL_PRIORITY_LIST, NULL, &handles[i]), PTL_OK);
    CODE("limit of a list", append_code(pt, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_LIST_TOO_LONG);
    for (int i = FEW; i < 2 * FEW - 1; i++)
        CODE("limit of the other list", append_code(pt, &me, PTL_OVERFLOW_LIST, NULL, &handles[i]), PTL_OK);
    CODE("limit of entries, the last", append_code(other, &me, PTL_PRIORITY_LIST, NULL, &handles[2 * FEW - 1]), PTL_OK);
    CODE("limit of entries", append_code(other, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_SPACE);
    EQUAL("limit of entries, nothing written", handle, PTL_INVALID_HANDLE);
    CHECK(unlink_entry(handles[0]));
    CODE("limit of entries, one unlinked", append_code(pt, &me, PTL_PRIORITY_LIST, NULL, &handles[0]), PTL_OK);

    /* Segments and sizes. Every operation supports the largest message. */
    ptl_iovec_t segments[4] = {{memory, 8}, {memory + 8, 8}, {memory + 16, 8}, {memory + 24, 8}};
    ptl_me_t pieces = entry(segments, 4, PTL_ME_OP_PUT | PTL_IOVEC);
    CHECK(unlink_entry(handles[1]));
    CODE("limit of segments", append_code(pt, &pieces, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
    pieces.length = 3;
    CODE("limit of segments", append_code(pt, &pieces, PTL_PRIORITY_LIST, NULL, &handle), PTL_OK);
    CHECK(PtlNIFini(ni));
    desired = limits;
    desired.max_mds = FEW;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, &desired, &limits, &ni));
    if (logical)
        CHECK(PtlSetMap(ni, (ptl_size_t)size_, table));
    ptl_handle_md_t md = descriptor(NULL, PTL_SIZE_MAX, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_size_t at = (uintptr_t)memory;
    CODE("limit of a put", PtlPut(md, at, 1001, PTL_NO_ACK_REQ, next(), 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("limit of a get", PtlGet(md, at, 1001, next(), 0, 0, 0, NULL), PTL_ARG_INVALID);
    CODE("limit of an atomic", PtlAtomic(md, at, 72, PTL_NO_ACK_REQ, next(), 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
         PTL_ARG_INVALID);
    CODE("limit of a fetch", PtlFetchAtomic(md, at, md, at, 40, next(), 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
         PTL_ARG_INVALID);
    CODE("limit of a swap", PtlSwap(md, at, md, at, 40, next(), 0, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT64_T),
         PTL_ARG_INVALID);
    CODE("limit of indices", PtlPut(md, at, 8, PTL_NO_ACK_REQ, next(), 101, 0, 0, NULL, 0), PTL_ARG_INVALID);

    /* Requests out of range are clipped. */
    static const int rubbish[] = {0x00, 0xff, 0x80, 0x7f};
    for (int i = 0; i < 4; i++) {
        ptl_handle_ni_t fresh;
        unsigned int other_kind = (matching ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) | PTL_NI_PHYSICAL;
        memset(&desired, rubbish[i], sizeof desired);
        CODE("limits: rubbish", PtlNIInit(PTL_IFACE_DEFAULT, other_kind, PTL_PID_ANY, &desired, &again, &fresh),
             PTL_OK);
        TRUE("limits: rubbish clipped", again.max_entries > 0 && again.max_mds > 0 && again.max_cts > 0 &&
                                            again.max_eqs > 0 && again.max_pt_index >= 63 && again.max_list_size > 0 &&
                                            again.max_msg_size > 0 && again.max_atomic_size >= 8);
        CHECK(PtlNIFini(fresh));
    }
    /* Without a wish the default applies; limits below a word are kept, and hold. */
    ptl_ni_limits_t offered;
    ptl_handle_ni_t fresh;
    unsigned int other_kind = (matching ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) | PTL_NI_PHYSICAL;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, other_kind, PTL_PID_ANY, NULL, &offered, &fresh));
    CHECK(PtlNIFini(fresh));
    memset(&desired, 0, sizeof desired);
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, other_kind, PTL_PID_ANY, &desired, &again, &fresh));
    SAME_BYTES("limits: zeros are the defaults", &again, &offered, sizeof again);
    CHECK(PtlNIFini(fresh));
    TRUE("limits: defaults are useful", offered.max_waw_ordered_size >= 64 && offered.max_war_ordered_size >= 8 &&
                                            offered.max_volatile_size >= 8 && offered.max_atomic_size >= 8);
    desired = offered;
    desired.max_atomic_size = 4;
    desired.max_fetch_atomic_size = 1;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, other_kind, PTL_PID_ANY, &desired, &again, &fresh));
    EQUAL("limit of a small atomic", again.max_atomic_size, 4);
    EQUAL("limit of a small fetch", again.max_fetch_atomic_size, 1);
    ptl_process_t self;
    CHECK(PtlGetPhysId(fresh, &self));
    ptl_md_t all = {.start = memory, .length = sizeof memory, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    CHECK(PtlMDBind(fresh, &all, &md));
    CODE("limit of a small atomic", PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
         PTL_ARG_INVALID);
    CODE("limit of a small atomic", PtlAtomic(md, 0, 4, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT32_T),
         PTL_OK);
    CODE("limit of a small fetch", PtlFetchAtomic(md, 0, md, 0, 4, self, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT32_T),
         PTL_ARG_INVALID);
    CHECK(PtlNIFini(fresh));
    return finish();
}
