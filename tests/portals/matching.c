/* conformance: ranks=1,2,4
 * Which entry takes a message: bits, ids, order of the lists; on non-matching interfaces always the first. */
#include "ring.h"

enum { BYTES = 256 };
static unsigned char source[BYTES], target[BYTES];
static ptl_handle_eq_t eq, acks;
static ptl_pt_index_t pt;
static ptl_handle_md_t md;

static ptl_handle_me_t add(ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_list_t list, uintptr_t user) {
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_UNEXPECTED_HDR_DISABLE);
    me.match_bits = bits;
    me.ignore_bits = ignore;
    return append(pt, me, list, (void *)user);
}

/* The user_ptr of the entry that takes a message with these bits; 0 when it is dropped. */
static uintptr_t taker(ptl_match_bits_t bits) {
    settle();
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, bits, 0, NULL, 0));
    int fail = EVENT("matching ACK", acks, PTL_EVENT_ACK).ni_fail_type;
    settle();
    if (fail != PTL_NI_OK) {
        EQUAL("matching nothing is a drop", fail, PTL_NI_DROPPED);
        NO_MORE("matching nothing has no event", eq);
        return 0;
    }
    ptl_event_t event = EVENT("matching PUT", eq, PTL_EVENT_PUT);
    EQUAL("matching event bits", event.match_bits, matching ? bits : event.match_bits);
    return (uintptr_t)event.user_ptr;
}

static void bits(void) {
    ptl_handle_me_t handles[6];
    handles[0] = add(0x1111222233334444u, 0, PTL_PRIORITY_LIST, 1);
    handles[1] = add(0xff00, 0x00ff, PTL_PRIORITY_LIST, 2);
    handles[2] = add(0xff42, 0, PTL_PRIORITY_LIST, 3); /* hidden by the second */
    handles[3] = add(0x8000000000000000u, ~0x8000000000000000u, PTL_PRIORITY_LIST, 4);
    handles[4] = add(0x5, 0, PTL_OVERFLOW_LIST, 5);
    handles[5] = add(0xffff, 0xff00, PTL_OVERFLOW_LIST, 6);
    EQUAL("matching exact", taker(0x1111222233334444u), 1);
    EQUAL("matching exact, other", taker(0x1111222233334445u), matching ? 0 : 1);
    EQUAL("matching ignored bits", taker(0xff42), matching ? 2 : 1);
    EQUAL("matching ignored bits", taker(0xffff), matching ? 2 : 1);
    EQUAL("matching top bit", taker(0x8000000000000001u), matching ? 4 : 1);
    EQUAL("matching overflow last", taker(0x5), matching ? 5 : 1);
    EQUAL("matching overflow ignored bits", taker(0x12ff), matching ? 6 : 1);
    EQUAL("matching nothing", taker(0x6), matching ? 0 : 1);
    CHECK(unlink_entry(handles[1]));
    EQUAL("matching after unlink", taker(0xff42), matching ? 3 : 1);
    EQUAL("matching after unlink, overflow", taker(0xffff), matching ? 6 : 1);
    CHECK(unlink_entry(handles[0]));
    EQUAL("matching first of the rest", taker(0xff42), 3);
    for (int i = 2; i < 6; i++)
        CHECK(unlink_entry(handles[i]));
    EQUAL("matching an empty list", taker(0xff42), 0);
}

static void ids(void) {
    if (!matching)
        return;
    /* From prev, from a rank that does not exist, from any rank. */
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t handles[5];
    me.match_id = prev();
    if (logical)
        me.match_id.rank = 1000;
    else
        me.match_id.phys.nid += 1000;
    handles[0] = append(pt, me, PTL_PRIORITY_LIST, (void *)1);
    me.match_id = prev();
    if (!logical)
        me.match_id.phys.pid += 1;
    else
        me.match_id.rank = 1001;
    handles[1] = append(pt, me, PTL_PRIORITY_LIST, (void *)2);
    me.match_id = prev();
    handles[2] = append(pt, me, PTL_PRIORITY_LIST, (void *)3);
    if (!logical) {
        me.match_id.phys.nid = PTL_NID_ANY;
        handles[3] = append(pt, me, PTL_PRIORITY_LIST, (void *)4);
        me.match_id = prev();
        me.match_id.phys.pid = PTL_PID_ANY;
        handles[4] = append(pt, me, PTL_PRIORITY_LIST, (void *)5);
    } else {
        me.match_id.rank = PTL_RANK_ANY;
        handles[3] = append(pt, me, PTL_PRIORITY_LIST, (void *)4);
        handles[4] = append(pt, me, PTL_PRIORITY_LIST, (void *)5);
    }
    EQUAL("matching id", taker(0), 3);
    CHECK(unlink_entry(handles[2]));
    EQUAL("matching any nid or rank", taker(0), 4);
    CHECK(unlink_entry(handles[3]));
    EQUAL("matching any pid", taker(0), 5);
    CHECK(unlink_entry(handles[4]));
    EQUAL("matching no id", taker(0), 0);
    CHECK(unlink_entry(handles[0]));
    CHECK(unlink_entry(handles[1]));
}

/* Use-once entries are taken in order; a message finds the list as left by its predecessors. */
static void order(void) {
    enum { MESSAGES = 20 };
    ptl_me_t me =
        entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
    for (uintptr_t i = 0; i < MESSAGES; i++)
        append(pt, me, PTL_PRIORITY_LIST, (void *)i);
    settle();
    for (ptl_hdr_data_t i = 0; i < MESSAGES; i++)
        CHECK(PtlPut(md, 0, i % 3 ? 8 : 0, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, i));
    settle();
    for (uintptr_t i = 0; i < MESSAGES; i++) {
        ptl_event_t event = EVENT("matching in order", eq, PTL_EVENT_PUT);
        EQUAL("matching in order", (uintptr_t)event.user_ptr, event.hdr_data);
        EQUAL("matching events in order", event.hdr_data, i);
    }
}

int main(int argc, char **argv) {
    start(argc, argv);
    eq = queue(64);
    acks = queue(64);
    pt = portal(eq, 0);
    md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, acks, PTL_CT_NONE);
    bits();
    ids();
    order();
    return finish();
}
