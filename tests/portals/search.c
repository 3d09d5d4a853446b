/* conformance: ranks=1,2,4
 * PtlMESearch and PtlLESearch: look or delete, once or persistent, events and counting. */
#include "ring.h"

enum { BYTES = 1024, HEADERS = 5 };
static unsigned char source[BYTES], pool[BYTES];
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;
static ptl_handle_md_t md;

/* HEADERS messages, 8, 16, ... bytes long, wait on the unexpected list. */
static void unexpected(unsigned int options) {
    settle();
    eq = queue(64);
    pt = portal(eq, 0);
    append(pt, entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | options),
           PTL_OVERFLOW_LIST, (void *)0x0F);
    barrier();
    for (ptl_hdr_data_t i = 0; i < HEADERS; i++)
        CHECK(PtlPut(md, 0, 8 * (i + 1), PTL_NO_ACK_REQ, next(), pt, 0x10 + i % 2, i, NULL, i));
    settle();
}

static ptl_me_t wanted(ptl_match_bits_t bits, ptl_match_bits_t ignore, unsigned int options, ptl_handle_ct_t ct) {
    ptl_me_t me = entry(NULL, 0, options | (ct == PTL_CT_NONE ? 0 : PTL_ME_EVENT_CT_OVERFLOW));
    me.match_bits = bits;
    me.ignore_bits = ignore;
    me.ct_handle = ct;
    return me;
}

static void found(const char *name, int kind, ptl_hdr_data_t which) {
    ptl_event_t event = EVENT(name, eq, kind);
    EQUAL(name, event.hdr_data, which);
    EQUAL(name, event.ni_fail_type, PTL_NI_OK);
    EQUAL(name, event.mlength, 8 * (which + 1));
    EQUAL(name, event.rlength, 8 * (which + 1));
    EQUAL(name, event.remote_offset, which);
    EQUAL(name, (uintptr_t)event.start, (uintptr_t)pool + which);
    EQUAL(name, event.ptl_list, PTL_OVERFLOW_LIST);
    EQUAL(name, (uintptr_t)event.user_ptr, 0x5E);
    EQUAL(name, event.pt_index, pt);
    TRUE(name, same_process(event.initiator, prev()));
    if (matching)
        EQUAL(name, event.match_bits, 0x10 + which % 2);
}

static void nothing(const char *name) {
    ptl_event_t event = EVENT(name, eq, PTL_EVENT_SEARCH);
    EQUAL(name, event.ni_fail_type, PTL_NI_NO_MATCH);
    EQUAL(name, (uintptr_t)event.user_ptr, 0x5E);
    EQUAL(name, event.pt_index, pt);
    NO_MORE(name, eq);
}

static void modes(int bytes) {
    unsigned int more = bytes ? PTL_ME_EVENT_CT_BYTES : 0;
    ptl_match_bits_t all = ~(ptl_match_bits_t)0;
    ptl_handle_ct_t ct;
    ptl_sr_value_t registers[3], again;
    unexpected(0);
    for (int i = 0; i < 3; i++)
        CHECK(PtlNIStatus(ni, (ptl_sr_index_t)i, &registers[i]));

    ct = counter();
    for (int i = 0; i < 2; i++) { /* the header stays: twice the same */
        CHECK(search(pt, wanted(0, all, PTL_ME_USE_ONCE | more, ct), PTL_SEARCH_ONLY, (void *)0x5E));
        COUNTS("search only, once: counted", ct, (i + 1) * (bytes ? 8 : 1), 0);
        found("search only, once", PTL_EVENT_SEARCH, 0);
        NO_MORE("search only, once", eq);
    }
    ct = counter();
    CHECK(search(pt, wanted(0, all, more, ct), PTL_SEARCH_ONLY, (void *)0x5E));
    COUNTS("search only, all: counted", ct, bytes ? 8 + 16 + 24 + 32 + 40 : HEADERS, 1);
    for (ptl_hdr_data_t i = 0; i < HEADERS; i++)
        found("search only, all", PTL_EVENT_SEARCH, i);
    NO_MORE("search only, all: no event behind", eq);
    if (matching) {
        ct = counter();
        CHECK(search(pt, wanted(0x11, 0, more, ct), PTL_SEARCH_ONLY, (void *)0x5E));
        COUNTS("search only, bits: counted", ct, bytes ? 16 + 32 : 2, 1);
        found("search only, bits", PTL_EVENT_SEARCH, 1);
        found("search only, bits", PTL_EVENT_SEARCH, 3);
        ct = counter();
        CHECK(search(pt, wanted(0x99, 0, PTL_ME_USE_ONCE | more, ct), PTL_SEARCH_ONLY, (void *)0x5E));
        nothing("search only, once, no match");
        COUNTS("search only, once, no match: counted", ct, 0, 1);
        CHECK(search(pt, wanted(0x99, 0, more, ct), PTL_SEARCH_DELETE, (void *)0x5E));
        nothing("search delete, all, no match");
        COUNTS("search delete, all, no match: counted", ct, 0, 2);
        CHECK(PtlCTFree(ct));
    }
    ct = counter();
    CHECK(search(pt, wanted(0x10, 0, PTL_ME_USE_ONCE | more, ct), PTL_SEARCH_DELETE, (void *)0x5E));
    COUNTS("search delete, once: counted", ct, bytes ? 8 : 1, 0);
    found("search delete, once", PTL_EVENT_PUT_OVERFLOW, 0);
    NO_MORE("search delete, once", eq);
    ct = counter();
    CHECK(search(pt, wanted(0x11, 0, PTL_ME_USE_ONCE | more, ct), PTL_SEARCH_DELETE, (void *)0x5E));
    found("search delete, once", PTL_EVENT_PUT_OVERFLOW, 1);
    CHECK(search(pt, wanted(0, all, more, ct), PTL_SEARCH_DELETE, (void *)0x5E));
    for (ptl_hdr_data_t i = 2; i < HEADERS; i++)
        found("search delete, all", PTL_EVENT_PUT_OVERFLOW, i);
    NO_MORE("search delete, all", eq);
    COUNTS("search delete, all: counted", ct, bytes ? 16 + 24 + 32 + 40 : HEADERS - 1, 1);
    CHECK(search(pt, wanted(0, all, PTL_ME_USE_ONCE, PTL_CT_NONE), PTL_SEARCH_DELETE, (void *)0x5E));
    nothing("search of an empty list");
    for (int i = 0; i < 3; i++) {
        CHECK(PtlNIStatus(ni, (ptl_sr_index_t)i, &again));
        EQUAL("search leaves the registers alone", again, registers[i]);
    }
    /* None of this linked an entry. */
    CODE("search links nothing", PtlPTFree(ni, pt), PTL_PT_IN_USE); /* the overflow entry */
}

/* Deleting the last header frees the overflow entry. */
static void frees(void) {
    settle();
    eq = queue(64);
    pt = portal(eq, 0);
    append(pt, entry(pool, BYTES, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST,
           (void *)0xF0);
    barrier();
    CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0x10, 0, NULL, 0));
    EVENT("search frees", eq, PTL_EVENT_PUT);
    EVENT("search frees", eq, PTL_EVENT_AUTO_UNLINK);
    CHECK(search(pt, wanted(0x10, 0, PTL_ME_USE_ONCE, PTL_CT_NONE), PTL_SEARCH_ONLY, (void *)0x5E));
    found("search frees, not yet", PTL_EVENT_SEARCH, 0);
    CHECK(search(pt, wanted(0x10, 0, PTL_ME_USE_ONCE, PTL_CT_NONE), PTL_SEARCH_DELETE, (void *)0x5E));
    found("search frees, deleted", PTL_EVENT_PUT_OVERFLOW, 0);
    EQUAL("search frees", (uintptr_t)EVENT("search frees", eq, PTL_EVENT_AUTO_FREE).user_ptr, 0xF0);
    NO_MORE("search frees", eq);
    CODE("search frees the portal", PtlPTFree(ni, pt), PTL_OK);
}

int main(int argc, char **argv) {
    start(argc, argv);
    md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    modes(0);
    modes(1);
    frees();
    CODE("search operation out of range", search(pt, wanted(0, 0, 0, PTL_CT_NONE), 2, NULL), PTL_ARG_INVALID);
    return finish();
}
