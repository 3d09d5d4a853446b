/* conformance: ranks=1,2,4
 * PtlGet: data, offsets, lengths, events of both sides, counters, failures. */
#include "ring.h"

enum { BYTES = 70000 };
static unsigned char source[BYTES], result[BYTES];

static void lengths(ptl_pt_index_t pt, ptl_handle_eq_t target, ptl_handle_eq_t eq, ptl_handle_md_t md) {
    static const ptl_size_t cases[][3] = {
        /* length, local offset, remote offset */
        {0, 0, 0}, {1, 5, 0}, {8, 0, 64}, {4096, 3, 9}, {4097, 0, 1}, {65536, 0, 0}, {1, BYTES - 1, BYTES - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptl_size_t length = cases[i][0], to = cases[i][1], from = cases[i][2];
        clear(result, BYTES);
        barrier();
        CHECK(PtlGet(md, to, length, next(), pt, 0, from, (void *)0x60));
        ptl_event_t reply = EVENT("get REPLY", eq, PTL_EVENT_REPLY);
        EQUAL("get REPLY mlength", reply.mlength, length);
        EQUAL("get REPLY remote_offset", reply.remote_offset, from);
        EQUAL("get REPLY user_ptr", (uintptr_t)reply.user_ptr, 0x60);
        EQUAL("get REPLY list", reply.ptl_list, PTL_PRIORITY_LIST);
        EQUAL("get REPLY fail", reply.ni_fail_type, PTL_NI_OK);
        INTACT("get before", result, to);
        EQUAL("get data", filled(result + to, 0, 0), 0);
        for (ptl_size_t k = 0; k < length; k++)
            if (result[to + k] != pattern(from + k, (unsigned int)next_rank())) {
                EQUAL("get data", result[to + k], pattern(from + k, (unsigned int)next_rank()));
                break;
            }
        INTACT("get behind", result + to + length, BYTES - to - length);
        ptl_event_t get = EVENT("get event", target, PTL_EVENT_GET);
        EQUAL("get rlength", get.rlength, length);
        EQUAL("get mlength", get.mlength, length);
        EQUAL("get remote_offset", get.remote_offset, from);
        EQUAL("get start", (uintptr_t)get.start, (uintptr_t)source + from);
        EQUAL("get user_ptr", (uintptr_t)get.user_ptr, 0x51);
        TRUE("get initiator", same_process(get.initiator, prev()));
        barrier();
        NO_MORE("get has no SEND", eq);
    }
}

static void counted(ptl_pt_index_t pt) {
    for (int bytes = 0; bytes < 2; bytes++) {
        ptl_handle_ct_t ct = counter();
        unsigned int options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_SEND | (bytes ? PTL_MD_EVENT_CT_BYTES : 0);
        ptl_handle_md_t md = descriptor(result, BYTES, options, PTL_EQ_NONE, ct);
        CHECK(PtlGet(md, 0, 5000, next(), pt, 0, 0, NULL));
        settle();
        COUNTS("get counted", ct, bytes ? 5000 : 1, 0);
        CHECK(PtlGet(md, 0, 5000, next(), pt, 0, BYTES - 7, NULL)); /* truncated */
        settle();
        COUNTS("get truncated counted", ct, bytes ? 5007 : 2, 0);
        CHECK(PtlGet(md, 0, 8, next(), (ptl_pt_index_t)limits.max_pt_index, 0, 0, NULL));
        settle();
        COUNTS("get dropped counted", ct, bytes ? 5007 : 2, 1);
        CHECK(PtlMDRelease(md));
        CHECK(PtlCTFree(ct));
    }
}

static void failures(ptl_handle_eq_t eq, ptl_handle_md_t md) {
    ptl_handle_eq_t target = queue(8);
    ptl_pt_index_t pt = portal(target, 0);
    clear(result, BYTES);
    append(pt, entry(source, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    barrier();
    CHECK(PtlGet(md, 0, 8, next(), pt, 0, 0, NULL));
    ptl_event_t reply = EVENT("get not permitted", eq, PTL_EVENT_REPLY);
    EQUAL("get not permitted", reply.ni_fail_type, PTL_NI_OP_VIOLATION);
    EQUAL("get not permitted mlength", reply.mlength, 0);
    INTACT("get not permitted data", result, BYTES);
    settle();
    NO_MORE("get not permitted, target", target);
    NO_MORE("get not permitted, initiator", eq);
}

int main(int argc, char **argv) {
    start(argc, argv);
    fill(source, BYTES, (unsigned int)me_);
    ptl_handle_eq_t eq = queue(16), target = queue(16);
    ptl_pt_index_t pt = portal(target, 0), quiet = portal(PTL_EQ_NONE, 0);
    ptl_handle_md_t md = descriptor(result, BYTES, 0, eq, PTL_CT_NONE);
    unsigned int options = PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    append(pt, entry(source, BYTES, options), PTL_PRIORITY_LIST, (void *)0x51);
    append(quiet, entry(source, BYTES, options), PTL_PRIORITY_LIST, NULL);
    lengths(pt, target, eq, md);
    counted(quiet);
    failures(eq, md);
    return finish();
}
