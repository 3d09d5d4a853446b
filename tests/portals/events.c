/* conformance: ranks=1,2,4
 * Full events: kinds, order, fields, disable options, queues that overflow, waits and polls. */
#include "ring.h"

enum { BYTES = 4096 };
static unsigned char source[BYTES], target[BYTES];

static void operation(int kind, ptl_handle_md_t md, ptl_pt_index_t pt) {
    switch (kind) {
    case PTL_EVENT_PUT: CHECK(PtlPut(md, 0, 16, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0)); break;
    case PTL_EVENT_GET: CHECK(PtlGet(md, 0, 16, next(), pt, 0, 0, NULL)); break;
    case PTL_EVENT_ATOMIC:
        CHECK(PtlAtomic(md, 0, 16, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT32_T));
        break;
    default: CHECK(PtlFetchAtomic(md, 0, md, 0, 16, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT32_T));
    }
}

/* Events of each operation, in order, and the effect of MD and entry options. */
static void kinds(void) {
    static const int operations[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
    static const unsigned int md_options[] = {0, PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_SUCCESS_DISABLE};
    static const unsigned int me_options[] = {0, PTL_ME_EVENT_COMM_DISABLE, PTL_ME_EVENT_SUCCESS_DISABLE,
                                              PTL_ME_EVENT_LINK_DISABLE, PTL_ME_EVENT_UNLINK_DISABLE};
    for (int o = 0; o < 4; o++)
        for (int m = 0; m < 3; m++)
            for (int e = 0; e < 5; e++) {
                ptl_handle_eq_t eq = queue(8), own = queue(8);
                ptl_pt_index_t pt = portal(eq, 0);
                ptl_handle_md_t md = descriptor(source, BYTES, md_options[m], own, PTL_CT_NONE);
                unsigned int options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | me_options[e];
                append(pt, entry(target, BYTES, options), PTL_PRIORITY_LIST, (void *)8);
                barrier();
                operation(operations[o], md, pt);
                settle();
                int sends = operations[o] != PTL_EVENT_GET && m == 0;
                if (sends)
                    EVENT("events SEND first", own, PTL_EVENT_SEND);
                if (m != 2)
                    EVENT("events answer", own,
                          operations[o] == PTL_EVENT_PUT || operations[o] == PTL_EVENT_ATOMIC ? PTL_EVENT_ACK
                                                                                              : PTL_EVENT_REPLY);
                NO_MORE("events of the initiator", own);
                ptl_event_t event;
                if (e != 3) {
                    event = EVENT("events LINK", eq, PTL_EVENT_LINK);
                    EQUAL("events LINK user_ptr", (uintptr_t)event.user_ptr, 8);
                    EQUAL("events LINK pt_index", event.pt_index, pt);
                    EQUAL("events LINK fail", event.ni_fail_type, PTL_NI_OK);
                }
                if (e != 1 && e != 2) {
                    event = EVENT("events communication", eq, operations[o]);
                    EQUAL("events communication list", event.ptl_list, PTL_PRIORITY_LIST);
                }
                if (e != 4) {
                    event = EVENT("events AUTO_UNLINK last", eq, PTL_EVENT_AUTO_UNLINK);
                    EQUAL("events AUTO_UNLINK user_ptr", (uintptr_t)event.user_ptr, 8);
                    EQUAL("events AUTO_UNLINK pt_index", event.pt_index, pt);
                    EQUAL("events AUTO_UNLINK fail", event.ni_fail_type, PTL_NI_OK);
                }
                NO_MORE("events of the target", eq);
                CHECK(PtlMDRelease(md));
                CHECK(PtlPTFree(ni, pt));
                CHECK(PtlEQFree(own));
                CHECK(PtlEQFree(eq));
            }
}

static void fields(ptl_handle_eq_t eq, ptl_pt_index_t pt) {
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_uid_t uid;
    CHECK(PtlGetUid(ni, &uid));
    barrier();
    CHECK(PtlPut(md, 0, 100, PTL_NO_ACK_REQ, next(), pt, 0x1234567890abcdefu, BYTES - 60, NULL, 0xfedcba0987654321u));
    ptl_event_t event = EVENT("event fields", eq, PTL_EVENT_PUT);
    EQUAL("event start", (uintptr_t)event.start, (uintptr_t)target + BYTES - 60);
    EQUAL("event user_ptr", (uintptr_t)event.user_ptr, 0x5A);
    EQUAL("event hdr_data", event.hdr_data, 0xfedcba0987654321u);
    if (matching)
        EQUAL("event match_bits", event.match_bits, 0x1234567890abcdefu);
    EQUAL("event rlength", event.rlength, 100);
    EQUAL("event mlength", event.mlength, 60);
    EQUAL("event remote_offset", event.remote_offset, BYTES - 60);
    TRUE("event initiator", same_process(event.initiator, prev()));
    EQUAL("event uid", event.uid, uid);
    EQUAL("event pt_index", event.pt_index, pt);
    EQUAL("event ptl_list", event.ptl_list, PTL_PRIORITY_LIST);
    EQUAL("event ni_fail_type", event.ni_fail_type, PTL_NI_OK);
    CHECK(PtlMDRelease(md));
    barrier();
}

/* A queue is a ring: the newest events survive, and the first read reports the loss. */
static void overflow(ptl_handle_md_t md) {
    ptl_handle_eq_t small = queue(4);
    ptl_pt_index_t pt = portal(small, 0);
    ptl_event_t event;
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    barrier();
    for (ptl_hdr_data_t i = 0; i < 40; i++)
        CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, i));
    settle();
    CODE("event lost", PtlEQGet(small, &event), PTL_EQ_DROPPED);
    EQUAL("event lost, still one", event.type, PTL_EVENT_PUT);
    ptl_hdr_data_t at = event.hdr_data;
    TRUE("event lost, at least as many kept as asked for", at <= 36);
    for (at++; at < 40; at++) {
        CODE("event lost is told once", PtlEQGet(small, &event), PTL_OK);
        EQUAL("event order after loss", event.hdr_data, at);
    }
    NO_MORE("event lost, end", small);
    barrier();
    CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 77));
    EQUAL("event after loss", EVENT("event after loss", small, PTL_EVENT_PUT).hdr_data, 77);
    /* Exactly as many as asked for fit. */
    barrier();
    for (ptl_hdr_data_t i = 0; i < 4; i++)
        CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, i));
    settle();
    for (ptl_hdr_data_t i = 0; i < 4; i++)
        EQUAL("event fits", EVENT("event fits", small, PTL_EVENT_PUT).hdr_data, i);
}

static void polls(ptl_handle_md_t md) {
    ptl_handle_eq_t queues[3] = {queue(16), queue(16), queue(16)};
    ptl_pt_index_t pts[3];
    ptl_event_t event;
    unsigned int which = 99, seen[3] = {0, 0, 0};
    uint64_t before = spin_time_ps();
    CODE("event poll once", PtlEQPoll(queues, 3, 0, &event, &which), PTL_EQ_EMPTY);
    uint64_t spent = spin_time_ps() - before;
    if (keeps_time("event poll with time 0 returns at once"))
        TRUE("event poll with time 0 returns at once", spent < 1000000);
    before = spin_time_ps();
    CODE("event poll times out", PtlEQPoll(queues, 3, 3, &event, &which), PTL_EQ_EMPTY);
    TRUE("event poll waits its time", spin_time_ps() - before >= 3000000000u);
    CODE("event poll of nothing", PtlEQPoll(queues, 0, 0, &event, &which), PTL_ARG_INVALID);
    for (int i = 0; i < 3; i++) {
        pts[i] = portal(queues[i], 0);
        append(pts[i], entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, NULL);
    }
    barrier();
    CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pts[2], 0, 0, NULL, 0));
    CODE("event poll waits", PtlEQPoll(queues, 3, PTL_TIME_FOREVER, &event, &which), PTL_OK);
    EQUAL("event poll which", which, 2);
    EQUAL("event poll event", event.pt_index, pts[2]);
    barrier();
    /* Queues are polled in turn: a full one does not starve the others. */
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 3; i++)
            CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pts[i], 0, 0, NULL, 0));
    settle();
    for (int k = 0; k < 3; k++) {
        CODE("event poll in turns", PtlEQPoll(queues, 3, 0, &event, &which), PTL_OK);
        seen[which % 3]++;
    }
    TRUE("event poll in turns", seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
    barrier();
    for (int i = 0; i < 3; i++)
        CHECK(PtlEQFree(queues[i]));
    CODE("event queue freed", PtlEQGet(queues[0], &event), PTL_ARG_INVALID);
}

int main(int argc, char **argv) {
    start(argc, argv);
    ptl_handle_eq_t eq = queue(16);
    ptl_pt_index_t pt = portal(eq, 0);
    ptl_event_t event;
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST, (void *)0x5A);
    kinds();
    fields(eq, pt);
    overflow(md);
    polls(md);
    barrier();
    CHECK(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 5));
    CODE("event wait", PtlEQWait(eq, &event), PTL_OK);
    EQUAL("event wait", event.hdr_data, 5);
    return finish();
}
