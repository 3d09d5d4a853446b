/* conformance: ranks=1,2,4
 * Unlinking: by the program, in use, after automatic unlinking, at once after the last event. */
#include "ring.h"

enum { BYTES = 1 << 18 };
static unsigned char source[BYTES], target[BYTES];
static const unsigned int options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;

/* While a long message arrives the entry is in use; it stays and the message is complete. */
static void during_a_message(ptl_handle_eq_t eq, ptl_pt_index_t pt, ptl_handle_md_t md) {
    ptl_handle_me_t handle = append(pt, entry(target, BYTES, options), PTL_PRIORITY_LIST, NULL);
    int busy = 0;
    barrier();
    CHECK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
    spin_host_compute(5000);
    for (;;) {
        ptl_event_t event;
        if (PtlEQGet(eq, &event) == PTL_OK) {
            EQUAL("unlink during a message", event.type, PTL_EVENT_PUT);
            break;
        }
        int rc = unlink_entry(handle);
        TRUE("unlink during a message", rc == PTL_IN_USE);
        if (rc != PTL_IN_USE)
            break;
        busy++;
        spin_host_compute(500);
    }
    TRUE("unlink was tried during the message", busy > 0);
    FILLED("unlink leaves the message whole", target, BYTES, 4);
    CODE("unlink after the last event", unlink_entry(handle), PTL_OK);
}

int main(int argc, char **argv) {
    start(argc, argv);
    ptl_handle_eq_t eq = queue(64);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    fill(source, BYTES, 4);

    ptl_handle_me_t handle = append(pt, entry(target, BYTES, options), PTL_PRIORITY_LIST, NULL);
    CODE("unlink idle", unlink_entry(handle), PTL_OK);
    CODE("unlink twice", unlink_entry(handle), PTL_ARG_INVALID);
    CODE("unlink no handle", unlink_entry(PTL_INVALID_HANDLE), PTL_ARG_INVALID);
    CODE("unlink a descriptor", unlink_entry(md), PTL_ARG_INVALID);
    NO_MORE("unlink is silent", eq);

    if (keeps_time("unlink during a message"))
        during_a_message(eq, pt, md);

    /* At once after each event, many times. */
    for (int i = 0; i < 20; i++) {
        handle = append(pt, entry(target, BYTES, options), PTL_PRIORITY_LIST, NULL);
        barrier();
        CHECK(PtlPut(md, 0, 64, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
        EVENT("unlink after an event", eq, PTL_EVENT_PUT);
        CODE("unlink after an event", unlink_entry(handle), PTL_OK);
        barrier();
    }
    /* As above, after a number of operations. */
    ptl_me_t me = entry(target, BYTES, options | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
    ptl_ct_event_t now;
    me.ct_handle = counter();
    for (ptl_size_t i = 1; i <= 5; i++) {
        handle = append(pt, me, PTL_PRIORITY_LIST, NULL);
        barrier();
        CHECK(PtlPut(md, 0, 64, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
        CHECK(PtlCTWait(me.ct_handle, i, &now));
        CODE("unlink after a count", unlink_entry(handle), PTL_OK);
        barrier();
    }
    /* A use-once entry is unlinked at its match: the next message does not find it. */
    handle = append(pt, entry(target, BYTES, options | PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, NULL);
    barrier();
    CHECK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 1));
    CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 2));
    settle();
    EQUAL("unlink use-once", EVENT("unlink use-once", eq, PTL_EVENT_PUT).hdr_data, 1);
    EVENT("unlink use-once", eq, PTL_EVENT_AUTO_UNLINK);
    NO_MORE("unlink use-once takes one", eq);
    CODE("unlink after automatic unlinking", unlink_entry(handle), PTL_ARG_INVALID);
    ptl_sr_value_t drops;
    CHECK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
    EQUAL("unlink use-once drops the second", drops, 1);
    return finish();
}
