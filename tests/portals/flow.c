/* conformance: ranks=1,2,4
 * Flow control: each cause, what is refused, the event, enabling again, queues that are shared. */
#include "ring.h"

enum { BYTES = 4096 };
static unsigned char source[BYTES], target[BYTES];
static ptl_handle_eq_t acks;
static ptl_handle_md_t md;

static int drops(void) {
    ptl_sr_value_t value;
    CHECK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value));
    return value;
}

static void put(ptl_pt_index_t pt, ptl_hdr_data_t data) {
    CHECK(PtlPut(md, 0, 8, PTL_ACK_REQ, next(), pt, 0, 0, NULL, data));
}

static void acked(const char *name, int fail) { EQUAL(name, EVENT(name, acks, PTL_EVENT_ACK).ni_fail_type, fail); }

static void disabled(const char *name, ptl_handle_eq_t eq, ptl_pt_index_t pt) {
    ptl_event_t event = EVENT(name, eq, PTL_EVENT_PT_DISABLED);
    EQUAL(name, event.pt_index, pt);
    EQUAL(name, event.ni_fail_type, PTL_NI_PT_DISABLED);
}

static void no_entry(void) {
    ptl_handle_eq_t eq = queue(16);
    ptl_pt_index_t pt = portal(eq, PTL_PT_FLOWCTRL);
    int before = drops();
    settle();
    for (int i = 0; i < 3; i++)
        put(pt, 0);
    settle();
    for (int i = 0; i < 3; i++)
        acked("flow: no entry", PTL_NI_PT_DISABLED);
    EQUAL("flow: no entry, drops", drops() - before, 3);
    disabled("flow: no entry", eq, pt);
    NO_MORE("flow: one event only", eq);
    /* A new entry alone has no effect; enabling does. */
    ptl_handle_me_t handle = append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE),
                                    PTL_PRIORITY_LIST, NULL);
    settle();
    put(pt, 0);
    acked("flow: still disabled", PTL_NI_PT_DISABLED);
    CHECK(PtlGet(md, 0, 8, next(), pt, 0, 0, NULL));
    EQUAL("flow: get refused", EVENT("flow: get refused", acks, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_PT_DISABLED);
    settle();
    NO_MORE("flow: still disabled", eq);
    CODE("flow: enable", PtlPTEnable(ni, pt), PTL_OK);
    settle();
    put(pt, 5);
    acked("flow: enabled", PTL_NI_OK);
    EQUAL("flow: enabled", EVENT("flow: enabled", eq, PTL_EVENT_PUT).hdr_data, 5);
    settle();
    /* And again. */
    CHECK(unlink_entry(handle));
    settle();
    put(pt, 0);
    acked("flow: second time", PTL_NI_PT_DISABLED);
    settle();
    disabled("flow: second time", eq, pt);
    NO_MORE("flow: second time", eq);
    CHECK(PtlPTFree(ni, pt));
    CHECK(PtlEQFree(eq));
}

/* More messages than unexpected headers. */
static void headers(void) {
    for (int silent = 0; silent < 2; silent++) {
        ptl_handle_eq_t eq = queue(64);
        ptl_pt_index_t pt = portal(eq, PTL_PT_FLOWCTRL);
        int most = limits.max_unexpected_headers, before = drops();
        ptl_me_t me = entry(target, BYTES,
                            PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | (silent ? PTL_ME_EVENT_FLOWCTRL_DISABLE : 0));
        ptl_handle_me_t overflow = append(pt, me, PTL_OVERFLOW_LIST, NULL);
        settle();
        for (int i = 0; i < most + 2; i++)
            put(pt, (ptl_hdr_data_t)i);
        settle();
        for (int i = 0; i < most; i++)
            acked("flow: header kept", PTL_NI_OK);
        for (int i = 0; i < 2; i++)
            acked("flow: no header left", PTL_NI_PT_DISABLED);
        EQUAL("flow: headers, drops", drops() - before, 2);
        for (int i = 0; i < most; i++)
            EQUAL("flow: headers", EVENT("flow: headers", eq, PTL_EVENT_PUT).hdr_data, i);
        if (!silent)
            disabled("flow: headers", eq, pt);
        NO_MORE("flow: headers", eq);
        settle();
        me.options = PTL_ME_OP_PUT;
        CHECK(search(pt, me, PTL_SEARCH_DELETE, NULL));
        for (int i = 0; i < most; i++)
            EVENT("flow: drain", eq, PTL_EVENT_PUT_OVERFLOW);
        CHECK(PtlPTEnable(ni, pt));
        settle();
        put(pt, 77);
        acked("flow: drained", PTL_NI_OK);
        EQUAL("flow: drained", EVENT("flow: drained", eq, PTL_EVENT_PUT).hdr_data, 77);
        settle();
        CHECK(search(pt, me, PTL_SEARCH_DELETE, NULL));
        EVENT("flow: drain", eq, PTL_EVENT_PUT_OVERFLOW);
        CHECK(unlink_entry(overflow));
        CHECK(PtlPTFree(ni, pt));
        CHECK(PtlEQFree(eq));
    }
    /* Without flow control the message is dropped and later ones may still match. */
    ptl_handle_eq_t eq = queue(64);
    ptl_pt_index_t pt = portal(eq, 0);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST, NULL);
    settle();
    for (int i = 0; i < limits.max_unexpected_headers + 1; i++)
        put(pt, 0);
    settle();
    for (int i = 0; i < limits.max_unexpected_headers; i++) {
        acked("no flow control: header kept", PTL_NI_OK);
        EVENT("no flow control", eq, PTL_EVENT_PUT);
    }
    acked("no flow control: no header left", PTL_NI_DROPPED);
    NO_MORE("no flow control", eq);
    CHECK(search(pt, entry(NULL, 0, PTL_ME_OP_PUT), PTL_SEARCH_DELETE, NULL));
    settle();
}

/* A full queue: every accepted message has its event, and all portal table entries with that queue stop. */
static void full_queue(void) {
    enum { SLOTS = 4 };
    ptl_handle_eq_t eq = queue(SLOTS), other = queue(SLOTS);
    ptl_pt_index_t pts[3] = {portal(eq, PTL_PT_FLOWCTRL), portal(eq, PTL_PT_FLOWCTRL), portal(other, PTL_PT_FLOWCTRL)};
    int refused = 0, taken = 0;
    for (int i = 0; i < 3; i++)
        append(pts[i], entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    settle();
    for (int i = 0; i < 12; i++)
        put(pts[0], (ptl_hdr_data_t)i);
    settle();
    for (int i = 0; i < 12; i++) {
        int fail = EVENT("flow: full queue ACK", acks, PTL_EVENT_ACK).ni_fail_type;
        TRUE("flow: full queue refuses the rest", fail == (refused ? PTL_NI_PT_DISABLED : fail));
        refused += fail == PTL_NI_PT_DISABLED;
        taken += fail == PTL_NI_OK;
    }
    EQUAL("flow: full queue", refused + taken, 12);
    TRUE("flow: full queue takes what fits", taken >= SLOTS && refused > 0);
    settle();
    put(pts[1], 0);
    acked("flow: shares the full queue", PTL_NI_PT_DISABLED);
    put(pts[2], 0);
    acked("flow: has another queue", PTL_NI_OK);
    settle();
    int seen[2] = {0, 0};
    ptl_hdr_data_t put_next = 0;
    for (int i = 0; i < taken + 2; i++) { /* the event of an idle entry may precede messages of another entry */
        ptl_event_t event = next_event(eq);
        TRUE("flow: no event is lost", event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PT_DISABLED);
        if (event.type == PTL_EVENT_PUT)
            EQUAL("flow: no event is lost", event.hdr_data, put_next++);
        for (int k = 0; k < 2 && event.type == PTL_EVENT_PT_DISABLED; k++)
            seen[k] += event.pt_index == pts[k];
    }
    TRUE("flow: both are told of", seen[0] == 1 && seen[1] == 1);
    NO_MORE("flow: full queue", eq);
    for (int i = 0; i < 2; i++)
        CHECK(PtlPTEnable(ni, pts[i]));
    settle();
    put(pts[0], 50);
    acked("flow: room again", PTL_NI_OK);
    settle();
    EVENT("flow: room again", eq, PTL_EVENT_PUT);

    /* The event of a disabling survives a later overflow of the queue. */
    ptl_handle_me_t more[3 * SLOTS];
    ptl_pt_index_t gone = portal(eq, PTL_PT_FLOWCTRL);
    settle();
    put(gone, 0);
    acked("flow: news", PTL_NI_PT_DISABLED);
    settle();
    for (int i = 0; i < 3 * SLOTS; i++)
        more[i] = append(pts[0], entry(target, BYTES, PTL_ME_OP_PUT), PTL_PRIORITY_LIST, NULL); /* LINK events */
    ptl_event_t event;
    int rc, news = 0, lost = 0;
    while ((rc = PtlEQGet(eq, &event)) != PTL_EQ_EMPTY) {
        news += event.type == PTL_EVENT_PT_DISABLED && event.pt_index == gone;
        lost += rc == PTL_EQ_DROPPED;
    }
    EQUAL("flow: news is never lost", news, 1);
    EQUAL("flow: loss of others is told", lost, 1);
    for (int i = 0; i < 3 * SLOTS; i++)
        CHECK(unlink_entry(more[i]));
}

int main(int argc, char **argv) {
    ptl_ni_limits_t desired;
    memset(&desired, 0x7f, sizeof desired);
    desired.max_unexpected_headers = 5;
    open_with(argc, argv, &desired);
    EQUAL("flow: limit of headers", limits.max_unexpected_headers, 5);
    fill(source, BYTES, 1);
    acks = queue(64);
    md = descriptor(source, BYTES, PTL_MD_EVENT_SEND_DISABLE, acks, PTL_CT_NONE);
    no_entry();
    headers();
    full_queue();
    ptl_pt_index_t pt;
    CODE("flow control needs a queue", PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &pt), PTL_PT_EQ_NEEDED);
    return finish();
}
