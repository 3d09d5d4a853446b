/* conformance: ranks=1,2,4
 * The portal table: allocating, freeing, disabling and enabling, hints. */
#include "ring.h"

enum { BYTES = 1 << 17 };
static unsigned char source[BYTES], target[BYTES];

/* Disabling waits until a message in progress is complete and reported. */
static void disable_during_a_message(ptl_pt_index_t pt, ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_handle_eq_t acks) {
    CHECK(PtlPut(md, 0, BYTES, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 1));
    spin_host_compute(5000); /* its first packets have arrived */
    CHECK(PtlPTDisable(ni, pt));
    ptl_event_t event;
    CODE("disable waits", PtlEQGet(eq, &event), PTL_OK);
    EQUAL("disable waits", event.mlength, BYTES);
    FILLED("disable waits, data", target, BYTES, 1);
    settle();
    EQUAL("disable waits, ACK", EVENT("disable waits, ACK", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
}

int main(int argc, char **argv) {
    ptl_pt_index_t index, i;
    start(argc, argv);
    ptl_handle_eq_t eq = queue(16), acks = queue(16);
    ptl_handle_md_t md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, acks, PTL_CT_NONE);
    ptl_pt_index_t last = (ptl_pt_index_t)limits.max_pt_index;
    fill(source, BYTES, 1);
    TRUE("table has at least 64 entries", last >= 63);
    for (i = 0; i < 3; i++) {
        CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &index));
        EQUAL("table: lowest first", index, i);
    }
    CODE("table: a certain index", PtlPTAlloc(ni, 0, eq, 10, &index), PTL_OK);
    EQUAL("table: a certain index", index, 10);
    index = 1234;
    CODE("table: in use", PtlPTAlloc(ni, 0, eq, 10, &index), PTL_PT_IN_USE);
    CODE("table: the last", PtlPTAlloc(ni, 0, eq, last, &index), PTL_OK);
    CODE("table: beyond", PtlPTAlloc(ni, 0, eq, last + 1, &index), PTL_ARG_INVALID);
    CODE("table: unknown option", PtlPTAlloc(ni, PTL_PT_ALLOC_OPTIONS_MASK + 1, eq, PTL_PT_ANY, &index),
         PTL_ARG_INVALID);
    CHECK(PtlPTFree(ni, 1));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &index));
    EQUAL("table: lowest free", index, 1);
    CODE("table: free a free one", PtlPTFree(ni, 5), PTL_ARG_INVALID);
    CODE("table: free beyond", PtlPTFree(ni, last + 1), PTL_ARG_INVALID);
    for (i = 3; i < last; i++)
        if (i != 10) {
            CHECK(PtlPTAlloc(ni, PTL_PT_ONLY_USE_ONCE, eq, PTL_PT_ANY, &index));
            EQUAL("table: fills up", index, i);
        }
    index = 1234;
    CODE("table: full", PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &index), PTL_PT_FULL);
    EQUAL("table: full, nothing written", index, 1234);
    for (i = 0; i <= last; i++)
        CODE("table: free", PtlPTFree(ni, i), PTL_OK);

    /* Hints have no visible effect. */
    unsigned int hints = PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED;
    ptl_pt_index_t pt = portal(eq, hints);
    ptl_handle_me_t handle =
        append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_IS_ACCESSIBLE),
               PTL_PRIORITY_LIST, NULL);
    CODE("table: has an entry", PtlPTFree(ni, pt), PTL_PT_IN_USE);
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    EQUAL("enabled", EVENT("enabled", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
    EVENT("enabled", eq, PTL_EVENT_PUT);
    settle();

    CODE("disable", PtlPTDisable(ni, pt), PTL_OK);
    CODE("disable twice", PtlPTDisable(ni, pt), PTL_OK);
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    EQUAL("disabled", EVENT("disabled", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_PT_DISABLED);
    settle();
    NO_MORE("disabled has no event", eq);
    CODE("enable", PtlPTEnable(ni, pt), PTL_OK);
    CODE("enable twice", PtlPTEnable(ni, pt), PTL_OK);
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    EQUAL("enabled again", EVENT("enabled again", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
    EVENT("enabled again", eq, PTL_EVENT_PUT);

    settle();
    if (keeps_time("disable waits"))
        disable_during_a_message(pt, md, eq, acks);
    CHECK(PtlPTDisable(ni, pt));
    CHECK(unlink_entry(handle));
    CODE("free a disabled one", PtlPTFree(ni, pt), PTL_OK);

    /* Initially disabled. */
    pt = portal(eq, PTL_PT_ALLOC_DISABLED);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    EQUAL("born disabled", EVENT("born disabled", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_PT_DISABLED);
    settle();
    CHECK(PtlPTEnable(ni, pt));
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    EQUAL("born disabled, enabled", EVENT("born disabled, enabled", acks, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
    EVENT("born disabled, enabled", eq, PTL_EVENT_PUT);
    CODE("disable a free one", PtlPTDisable(ni, 33), PTL_ARG_INVALID);
    CODE("enable a free one", PtlPTEnable(ni, 33), PTL_ARG_INVALID);
    return finish();
}
