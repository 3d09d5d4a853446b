/* Portals 4 for two ranks, on every kind of card: `portals CASE`. A plain C program: fields of ptl_me_t that Portals 4
 * does not define stay uninitialised. Both ranks send and receive, and check received data. */
#include "../portals/harness.h"
#include <spin.h>
#undef PtlMEAppend

enum { BIG = 1 << 20, MTU = 4096, BITS = 3 };

static unsigned char out[BIG], in[BIG];
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static ptl_pt_index_t pt;
static ptl_handle_md_t md; /* descriptor of `out`, with `eq`; `ct` counts acknowledgements and replies */

static ptl_process_t peer(void) { return to_rank(1 - (unsigned int)spin_rank()); }

static void both(void) { CHECK(spin_barrier()); }

/* An entry of this program: what plain Portals leaves undefined is garbage. */
static ptl_me_t garbled(void *start, ptl_size_t length, ptl_match_bits_t bits, unsigned int options) {
    ptl_me_t me = plain_entry(start, length, bits, options), garbage;
    memset(&garbage, 0xFF, sizeof garbage);
    memcpy(&garbage, &me, offsetof(ptl_me_t, header_handler));
    return garbage;
}

static ptl_handle_me_t append_to(ptl_list_t list, void *start, ptl_size_t length, ptl_match_bits_t bits,
                                 unsigned int options, void *user) {
    ptl_handle_me_t handle;
    ptl_me_t me = garbled(start, length, bits, options);
    CHECK(PtlMEAppend(ni, pt, &me, list, user, &handle));
    return handle;
}

static ptl_handle_me_t append(unsigned int options) {
    memset(in, UNTOUCHED, BIG);
    return append_to(PTL_PRIORITY_LIST, in, BIG, BITS, options | PTL_ME_EVENT_LINK_DISABLE, in + 1);
}

static void put(size_t bytes, ptl_match_bits_t bits, ptl_size_t offset) {
    CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, peer(), pt, bits, offset, out + 1, bytes));
}

static void puts_of(size_t bytes) {
    ptl_size_t offset = bytes % 7;
    memset(in, UNTOUCHED, bytes + 100);
    fill(out, bytes, (unsigned int)bytes + (unsigned int)spin_rank());
    both();
    CHECK(PtlPut(md, 0, bytes, PTL_ACK_REQ, peer(), pt, BITS, offset, out + 1, 99));
    /* The two sides' events are in any order; those of each are not. */
    int sends = 0, acks = 0, puts = 0;
    for (int k = 0; k < 3; k++) {
        ptl_event_t event;
        CHECK(PtlEQWait(eq, &event));
        EXPECT(event.ni_fail_type == PTL_NI_OK);
        if (event.type == PTL_EVENT_PUT) {
            puts++;
            EXPECT(event.start == in + offset && event.user_ptr == in + 1 && event.hdr_data == 99);
            EXPECT(event.match_bits == BITS && event.rlength == bytes && event.mlength == bytes);
            EXPECT(event.remote_offset == offset && event.initiator.rank == peer().rank && event.pt_index == pt);
            EXPECT(event.ptl_list == PTL_PRIORITY_LIST);
            EXPECT(is_filled(in + offset, bytes, (unsigned int)bytes + peer().rank));
        } else if (event.type == PTL_EVENT_SEND) {
            sends++;
            EXPECT(acks == 0 && event.user_ptr == out + 1);
        } else {
            acks++;
            EXPECT(event.type == PTL_EVENT_ACK && event.user_ptr == out + 1);
            EXPECT(event.mlength == bytes && event.remote_offset == offset && event.ptl_list == PTL_PRIORITY_LIST);
        }
    }
    EXPECT(sends == 1 && acks == 1 && puts == 1);
    EXPECT(is_untouched(in, offset) && is_untouched(in + offset + bytes, 100 - offset));
    both();
}

static void puts_of_all_sizes(void) {
    static const size_t sizes[] = {0, 1, 8, MTU - 1, MTU, MTU + 1, 3 * MTU + 5, BIG - 100};
    CHECK(PtlMEUnlink(append(PTL_ME_OP_PUT)));
    ptl_handle_me_t handle = append(PTL_ME_OP_PUT);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        puts_of(sizes[i]);
    CHECK(PtlMEUnlink(handle));
    memset(in, UNTOUCHED, BIG);
    /* All of it. */
    handle = append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    CHECK(PtlMEUnlink(handle));
}

static void gets(void) {
    static const size_t sizes[] = {0, 1, MTU - 1, MTU, MTU + 1, BIG};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        fill(in, BIG, 11 + (unsigned int)spin_rank());
        memset(out, UNTOUCHED, BIG);
        ptl_handle_me_t handle =
            append_to(PTL_PRIORITY_LIST, in, BIG, BITS, PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE, NULL);
        both();
        CHECK(PtlGet(md, 0, bytes, peer(), pt, BITS, BIG - bytes, out + 2));
        int replies = 0, got = 0;
        for (int k = 0; k < 2; k++) {
            ptl_event_t event;
            CHECK(PtlEQWait(eq, &event));
            EXPECT(event.ni_fail_type == PTL_NI_OK && event.mlength == bytes && event.remote_offset == BIG - bytes);
            if (event.type == PTL_EVENT_REPLY) {
                replies++;
                EXPECT(event.user_ptr == out + 2);
                for (size_t b = 0; b < bytes; b++)
                    EXPECT(out[b] == pattern(BIG - bytes + b, 11 + peer().rank));
                EXPECT(is_untouched(out + bytes, BIG - bytes));
            } else {
                got++;
                EXPECT(event.type == PTL_EVENT_GET && event.start == in + BIG - bytes && event.rlength == bytes);
            }
        }
        EXPECT(replies == 1 && got == 1);
        both();
        CHECK(PtlMEUnlink(handle));
    }
}

/* Puts that wait for effects of earlier puts; thresholds posted in the wrong order, and counters in a chain. */
static void triggered_chain(void) {
    enum { STEPS = 20 };
    ptl_ct_event_t counted;
    ptl_handle_ct_t second, sent;
    ptl_handle_me_t handle;
    CHECK(PtlCTAlloc(ni, &second));
    CHECK(PtlCTAlloc(ni, &sent));
    memset(in, UNTOUCHED, BIG);
    ptl_me_t me = garbled(in, BIG, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(PtlEQFree(eq)); /* no events: only counters */
    ptl_handle_md_t quiet = descriptor(out, BIG, 0, PTL_EQ_NONE, PTL_CT_NONE);
    for (int step = STEPS - 1; step >= 0; step--) {
        /* Rank 0's step k follows rank 1's step k - 1, which follows rank 0's step k - 1. */
        ptl_size_t threshold = (ptl_size_t)step + (ptl_size_t)spin_rank();
        CHECK(PtlTriggeredPut(quiet, (ptl_size_t)step, 1, PTL_NO_ACK_REQ, peer(), pt, BITS, (ptl_size_t)step, NULL, 0,
                              second, threshold == 0 ? 1000 : threshold));
    }
    for (int step = 1; step <= STEPS; step++)
        CHECK(PtlTriggeredCTSet(second, (ptl_ct_event_t){.success = (ptl_size_t)step}, ct, (ptl_size_t)step));
    CHECK(PtlTriggeredCTInc(sent, (ptl_ct_event_t){.failure = 5}, ct, STEPS));
    fill(out, STEPS, 21 + (unsigned int)spin_rank()); /* read when they start */
    both();
    if (spin_rank() == 0)
        CHECK(PtlPut(quiet, 0, 1, PTL_NO_ACK_REQ, peer(), pt, BITS, 0, NULL, 0));
    CHECK(PtlCTWait(ct, STEPS, &counted));
    EXPECT(counted.success == STEPS && counted.failure == 0);
    EXPECT(is_filled(in, STEPS, 21 + peer().rank) && is_untouched(in + STEPS, BIG - STEPS));
    CHECK(PtlCTWait(sent, 1, &counted)); /* a failure ends every wait */
    EXPECT(counted.success == 0 && counted.failure == 5);
    CHECK(PtlEQAlloc(ni, 64, &eq));
}

static void counting_events(void) {
    ptl_handle_ct_t other, both_counters[2];
    ptl_ct_event_t value;
    unsigned int which = 99;
    CHECK(PtlCTAlloc(ni, &other));
    CHECK(PtlCTGet(other, &value));
    EXPECT(value.success == 0 && value.failure == 0);
    CHECK(PtlCTInc(other, (ptl_ct_event_t){.success = 3}));
    CHECK(PtlCTInc(other, (ptl_ct_event_t){.failure = 2}));
    EXPECT(PtlCTInc(other, (ptl_ct_event_t){1, 1}) == PTL_ARG_INVALID);
    CHECK(PtlCTGet(other, &value));
    EXPECT(value.success == 3 && value.failure == 2);
    CHECK(PtlCTWait(other, 100, &value));
    EXPECT(value.failure == 2);
    CHECK(PtlCTSet(other, (ptl_ct_event_t){.success = 9}));
    CHECK(PtlCTWait(other, 9, &value));
    EXPECT(value.success == 9 && value.failure == 0);

    both_counters[0] = ct, both_counters[1] = other;
    uint64_t start = spin_time_ps();
    EXPECT(PtlCTPoll(both_counters, (ptl_size_t[]){1, 10}, 2, 3, &value, &which) == PTL_CT_NONE_REACHED);
    EXPECT(spin_time_ps() - start == 3000000000); /* 3 ms */
    CHECK(PtlCTPoll(both_counters, (ptl_size_t[]){1, 9}, 2, 3, &value, &which));
    EXPECT(which == 1 && value.success == 9);
    EXPECT(PtlCTPoll(both_counters, (ptl_size_t[]){1, 10}, 2, 0, &value, &which) == PTL_CT_NONE_REACHED);

    /* Bytes and operations: departures, acknowledgements, deliveries. */
    ptl_handle_ct_t delivered;
    ptl_handle_me_t handle;
    CHECK(PtlCTAlloc(ni, &delivered));
    ptl_me_t me = garbled(in, BIG, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
    me.ct_handle = delivered;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    unsigned int counting = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SEND_DISABLE;
    ptl_handle_md_t bytes = descriptor(out, BIG, counting | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE, ct);
    ptl_handle_md_t operations = descriptor(out, BIG, counting, PTL_EQ_NONE, other);
    CHECK(PtlCTSet(other, (ptl_ct_event_t){0, 0}));
    both();
    CHECK(PtlPut(bytes, 0, 5000, PTL_CT_ACK_REQ, peer(), pt, BITS, 0, NULL, 0));
    CHECK(PtlPut(operations, 0, 300, PTL_CT_ACK_REQ, peer(), pt, BITS, 0, NULL, 0));
    CHECK(PtlPut(operations, 0, 0, PTL_NO_ACK_REQ, peer(), pt, BITS, 0, NULL, 0));
    CHECK(PtlCTWait(ct, 2 * 5000, &value));
    EXPECT(value.success == 2 * 5000 && value.failure == 0);
    CHECK(PtlCTWait(other, 3, &value));
    EXPECT(value.success == 3 && value.failure == 0);
    CHECK(PtlCTWait(delivered, 5300, &value));
    EXPECT(value.success == 5300 && value.failure == 0);
    CHECK(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
    /* No entry has these bits: one failure, also where bytes are counted. */
    both();
    CHECK(PtlPut(bytes, 0, 5000, PTL_CT_ACK_REQ, peer(), pt, 12345, 0, NULL, 0));
    CHECK(PtlCTWait(ct, 20000, &value));
    EXPECT(value.success == 5000 && value.failure == 1);
    EXPECT(PtlCTFree(other) == PTL_OK && PtlCTGet(other, &value) == PTL_ARG_INVALID);
    await_event(eq, PTL_EVENT_LINK);
    for (int k = 0; k < 3; k++)
        await_event(eq, PTL_EVENT_PUT);
}

static void event_queues(void) {
    ptl_handle_eq_t queues[2] = {eq};
    ptl_event_t event;
    unsigned int which = 99;
    CHECK(PtlEQAlloc(ni, 8, &queues[1]));
    EXPECT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
    uint64_t start = spin_time_ps();
    EXPECT(PtlEQPoll(queues, 2, 5, &event, &which) == PTL_EQ_EMPTY);
    EXPECT(spin_time_ps() - start == 5000000000);
    EXPECT(PtlEQPoll(queues, 2, 0, &event, &which) == PTL_EQ_EMPTY);
    EXPECT(PtlEQPoll(queues, 0, 0, &event, &which) == PTL_ARG_INVALID);
    ptl_handle_me_t handle = append(PTL_ME_OP_PUT);
    ptl_handle_md_t other = descriptor(out, BIG, 0, queues[1], PTL_CT_NONE);
    both();
    CHECK(PtlPut(other, 0, 10, PTL_NO_ACK_REQ, peer(), pt, BITS, 0, out, 0));
    int seen[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        CHECK(PtlEQPoll(queues, 2, PTL_TIME_FOREVER, &event, &which));
        EXPECT(event.type == (which == 0 ? PTL_EVENT_PUT : PTL_EVENT_SEND));
        seen[which]++;
    }
    EXPECT(seen[0] == 1 && seen[1] == 1);
    CHECK(PtlMEUnlink(handle));
    CHECK(PtlMDRelease(other));
    CHECK(PtlEQFree(queues[1]));
    EXPECT(PtlEQGet(queues[1], &event) == PTL_ARG_INVALID);
}

/* A full queue loses its oldest events and reports it. */
static void limits_of_the_queue(void) {
    enum { ROOM = 4, SENT = 10 };
    ptl_handle_eq_t little;
    ptl_event_t event;
    CHECK(PtlEQAlloc(ni, ROOM, &little));
    CHECK(PtlPTFree(ni, pt));
    CHECK(PtlPTAlloc(ni, 0, little, PTL_PT_ANY, &pt));
    append(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    both();
    for (size_t k = 0; k < SENT; k++) {
        CHECK(PtlPut(md, 0, k, PTL_ACK_REQ, peer(), pt, BITS, 0, NULL, 0));
        await_event(eq, PTL_EVENT_SEND);
        await_event(eq, PTL_EVENT_ACK);
    }
    both();
    spin_host_compute(100000);
    int lost = 0;
    for (int k = 0, rc; (rc = PtlEQGet(little, &event)) != PTL_EQ_EMPTY; k++) {
        if (k == 0 && spin_rank() >= 0)
            lost = rc == PTL_EQ_DROPPED;
        EXPECT(event.rlength == (ptl_size_t)(SENT - ROOM + k) && (k == 0 || rc == PTL_OK));
    }
    EXPECT(lost);
}

/* Messages before their receive: overflow list, searches, appends that take them. */
static void unexpected_messages(void) {
    static unsigned char space[2][1000];
    ptl_event_t event;
    unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    ptl_me_t any = garbled(space[0], sizeof space[0], 0, quiet | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE);
    ptl_handle_me_t overflow, taken;
    any.ignore_bits = ~(ptl_match_bits_t)0;
    any.min_free = 500;
    memset(space, UNTOUCHED, sizeof space);
    CHECK(PtlMEAppend(ni, pt, &any, PTL_OVERFLOW_LIST, space[0], &overflow));
    any.start = space[1];
    CHECK(PtlMEAppend(ni, pt, &any, PTL_OVERFLOW_LIST, space[1], &overflow));
    fill(out, BIG, 31 + (unsigned int)spin_rank());
    both();
    put(400, 1, 0);
    put(200, 2, 0); /* leaves less than 500: the first entry is used up */
    put(100, 3, 0);
    for (int k = 0; k < 3; k++)
        await_event(eq, PTL_EVENT_SEND);
    both();
    spin_host_compute(10000);
    event = await_event(eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT(event.user_ptr == space[0]);
    EXPECT(PtlMEUnlink(overflow) == PTL_IN_USE); /* it holds a header */

    ptl_me_t wanted = garbled(in, 300, 2, quiet | PTL_ME_USE_ONCE);
    CHECK(PtlMESearch(ni, pt, &wanted, PTL_SEARCH_ONLY, in + 7));
    event = await_event(eq, PTL_EVENT_SEARCH);
    EXPECT(event.ni_fail_type == PTL_NI_OK && event.user_ptr == in + 7 && event.mlength == 200);
    EXPECT(event.start == space[0] + 400 && event.hdr_data == 200 && event.match_bits == 2);
    wanted.match_bits = 9;
    CHECK(PtlMESearch(ni, pt, &wanted, PTL_SEARCH_ONLY, in + 8));
    event = await_event(eq, PTL_EVENT_SEARCH);
    EXPECT(event.ni_fail_type == PTL_NI_NO_MATCH && event.user_ptr == in + 8);

    wanted.match_bits = 2;
    CHECK(PtlMEAppend(ni, pt, &wanted, PTL_PRIORITY_LIST, in + 9, &taken));
    event = await_event(eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT(event.user_ptr == in + 9 && event.start == space[0] + 400 && event.mlength == 200 && event.rlength == 200);
    EXPECT(event.initiator.rank == peer().rank && is_filled(event.start, 200, 31 + peer().rank));
    EXPECT(await_event(eq, PTL_EVENT_AUTO_UNLINK).user_ptr == in + 9);

    /* A persistent entry takes all matching headers and is then linked. */
    wanted.options = PTL_ME_OP_PUT;
    wanted.match_bits = 1;
    wanted.ignore_bits = 2; /* 1 and 3 */
    CHECK(PtlMEAppend(ni, pt, &wanted, PTL_PRIORITY_LIST, in + 10, &taken));
    event = await_event(eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT(event.match_bits == 1 && event.start == space[0] && is_filled(event.start, 400, 31 + peer().rank));
    event = await_event(eq, PTL_EVENT_AUTO_FREE); /* the first overflow entry's last header is gone */
    EXPECT(event.user_ptr == space[0]);
    event = await_event(eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT(event.match_bits == 3 && event.start == space[1] && is_filled(event.start, 100, 31 + peer().rank));
    EXPECT(await_event(eq, PTL_EVENT_LINK).user_ptr == in + 10);
    EXPECT(is_untouched(space[0] + 600, 400) && is_untouched(space[1] + 100, 900));
    CHECK(PtlMEUnlink(overflow));
    both();
    memset(in, UNTOUCHED, 300);
    both();
    put(300, 3, 0); /* now it is expected */
    await_event(eq, PTL_EVENT_SEND);
    event = await_event(eq, PTL_EVENT_PUT);
    EXPECT(event.ptl_list == PTL_PRIORITY_LIST && is_filled(in, 300, 31 + peer().rank));
    CHECK(PtlMEUnlink(taken));
}

static void unlinking(void) {
    ptl_event_t event;
    ptl_handle_me_t first = append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE), second = append(PTL_ME_OP_PUT);
    EXPECT(PtlPTFree(ni, pt) == PTL_PT_IN_USE);
    both();
    put(10, BITS, 0);
    await_event(eq, PTL_EVENT_SEND);
    CHECK(PtlEQWait(eq, &event));
    EXPECT(event.type == PTL_EVENT_PUT);
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT(PtlMEUnlink(first) == PTL_ARG_INVALID);
    both();
    put(10, BITS, 0);
    await_event(eq, PTL_EVENT_SEND);
    await_event(eq, PTL_EVENT_PUT);
    CHECK(PtlMEUnlink(second));
    EXPECT(PtlMEUnlink(second) == PTL_ARG_INVALID);
    CHECK(PtlPTFree(ni, pt));
    EXPECT(PtlPTFree(ni, pt) == PTL_ARG_INVALID);
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
}

/* Processes by nid and pid, on a separate interface. */
static void physical_addresses(void) {
    ptl_handle_ni_t logical = ni;
    ptl_handle_eq_t events;
    ptl_process_t own, same, map[2];
    ptl_size_t size;
    CHECK(PtlGetId(logical, &own));
    EXPECT(own.rank == (unsigned int)spin_rank());
    CHECK(PtlGetMap(logical, 2, map, &size));
    EXPECT(size == 2);
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    EXPECT(!PtlHandleIsEqual(ni, logical));
    CHECK(PtlGetId(ni, &own));
    CHECK(PtlGetPhysId(logical, &same));
    EXPECT(own.phys.nid == same.phys.nid && own.phys.pid == same.phys.pid);
    EXPECT(own.phys.nid == map[spin_rank()].phys.nid && own.phys.pid == map[spin_rank()].phys.pid);
    EXPECT(PtlSetMap(ni, 2, map) == PTL_ARG_INVALID);
    CHECK(PtlEQAlloc(ni, 8, &events));
    CHECK(PtlPTAlloc(ni, 0, events, 33, &pt));
    ptl_handle_me_t handle;
    ptl_me_t me = garbled(in, BIG, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_id = map[1 - spin_rank()];
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    fill(out, MTU, 41);
    ptl_handle_md_t here = descriptor(out, MTU, PTL_MD_EVENT_SEND_DISABLE, events, PTL_CT_NONE);
    both();
    CHECK(PtlPut(here, 0, MTU, PTL_NO_ACK_REQ, map[1 - spin_rank()], 33, BITS, 0, NULL, 0));
    ptl_event_t event = await_event(events, PTL_EVENT_PUT);
    EXPECT(event.initiator.phys.nid == map[1 - spin_rank()].phys.nid && is_filled(in, MTU, 41));
    EXPECT(event.initiator.phys.pid == map[1 - spin_rank()].phys.pid);
    both();
    CHECK(PtlNIFini(ni)); /* frees what belongs to it */
    EXPECT(PtlEQGet(events, &event) == PTL_ARG_INVALID);
    ni = logical;
}

/* Segments on both sides, which divide the data at different places. */
static void segments(void) {
    ptl_iovec_t from[] = {{out + 100, 1000}, {out, 10}, {out + 5000, 7000}};
    ptl_iovec_t to[] = {{in + 9000, 1}, {in + 100, 5000}, {in + 20000, 4000}};
    static unsigned char sent[8010], got[9001];
    fill(out, 20000, 51);
    memcpy(sent, out + 100, 1000);
    memcpy(sent + 1000, out, 10);
    memcpy(sent + 1010, out + 5000, 7000);
    memset(in, UNTOUCHED, BIG);
    ptl_handle_me_t handle =
        append_to(PTL_PRIORITY_LIST, to, 3, BITS, PTL_ME_OP_PUT | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE, NULL);
    ptl_handle_md_t scattered = descriptor(from, 3, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    both();
    CHECK(PtlPut(scattered, 5, 8000, PTL_NO_ACK_REQ, peer(), pt, BITS, 500, NULL, 0));
    EXPECT(await_event(eq, PTL_EVENT_PUT).mlength == 8000);
    got[0] = in[9000];
    memcpy(got + 1, in + 100, 5000);
    memcpy(got + 5001, in + 20000, 4000);
    EXPECT(is_untouched(got, 500) && memcmp(got + 500, sent + 5, 8000) == 0 && is_untouched(got + 8500, 501));
    EXPECT(is_untouched(in, 100) && is_untouched(in + 5100, 3900) && is_untouched(in + 9001, 10999));
    CHECK(PtlMEUnlink(handle));
    both();
}

static void truncation(void) {
    memset(in, UNTOUCHED, BIG);
    fill(out, BIG, 61);
    unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    append_to(PTL_PRIORITY_LIST, in, 5000, BITS, quiet | PTL_ME_NO_TRUNCATE, "exact");
    append_to(PTL_PRIORITY_LIST, in, 5000, BITS, quiet, "cut");
    ptl_handle_md_t silent = descriptor(out, BIG, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    const struct {
        ptl_size_t bytes, offset, moved;
        const char *entry;
    } puts[] = {{5000, 0, 5000, "exact"}, {5001, 0, 5000, "cut"},  {9000, 1000, 4000, "cut"},
                {10, 4995, 5, "cut"},     {10, 4990, 10, "exact"}, {10, 6000, 0, "cut"}};
    for (size_t k = 0; k < sizeof puts / sizeof *puts; k++) {
        both();
        CHECK(PtlPut(silent, 0, puts[k].bytes, PTL_NO_ACK_REQ, peer(), pt, BITS, puts[k].offset, NULL, 0));
        ptl_event_t event = await_event(eq, PTL_EVENT_PUT);
        EXPECT(event.rlength == puts[k].bytes && event.mlength == puts[k].moved);
        EXPECT(strcmp(event.user_ptr, puts[k].entry) == 0);
        if (puts[k].offset < 5000)
            EXPECT(is_filled(in + puts[k].offset, puts[k].moved, 61));
        EXPECT(is_untouched(in + 5000, 10000));
    }
    both();
}

/* Refused messages change nothing and are reported to their sender. */
static void failures(void) {
    ptl_handle_me_t handle = append(PTL_ME_OP_GET);
    ptl_me_t foreign = garbled(in, BIG, 77, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t not_mine;
    ptl_sr_value_t before[3], after[3];
    CHECK(PtlGetUid(ni, &foreign.uid));
    foreign.uid++;
    CHECK(PtlMEAppend(ni, pt, &foreign, PTL_PRIORITY_LIST, NULL, &not_mine));
    for (int k = 0; k < 3; k++)
        CHECK(PtlNIStatus(ni, (ptl_sr_index_t)k, &before[k]));
    const struct {
        ptl_pt_index_t pt;
        ptl_match_bits_t bits;
        ptl_ni_fail_t fail;
    } puts[] = {{pt, BITS, PTL_NI_OP_VIOLATION},
                {pt, 77, PTL_NI_PERM_VIOLATION},
                {pt, 5, PTL_NI_DROPPED},
                {pt + 20, BITS, PTL_NI_DROPPED}};
    for (size_t k = 0; k < sizeof puts / sizeof *puts; k++) {
        both();
        CHECK(PtlPut(md, 0, 100, PTL_ACK_REQ, peer(), puts[k].pt, puts[k].bits, 0, NULL, 0));
        EXPECT(await_event(eq, PTL_EVENT_SEND).ni_fail_type == PTL_NI_OK);
        ptl_event_t ack = await_event(eq, PTL_EVENT_ACK);
        EXPECT(ack.ni_fail_type == puts[k].fail && ack.mlength == 0);
    }
    both();
    CHECK(PtlPTDisable(ni, pt));
    both();
    CHECK(PtlGet(md, 0, 100, peer(), pt, BITS, 0, NULL));
    EXPECT(await_event(eq, PTL_EVENT_REPLY).ni_fail_type == PTL_NI_PT_DISABLED);
    both();
    CHECK(PtlPTEnable(ni, pt));
    for (int k = 0; k < 3; k++)
        CHECK(PtlNIStatus(ni, (ptl_sr_index_t)k, &after[k]));
    EXPECT(after[PTL_SR_OPERATION_VIOLATIONS] - before[PTL_SR_OPERATION_VIOLATIONS] == 1);
    EXPECT(after[PTL_SR_PERMISSION_VIOLATIONS] - before[PTL_SR_PERMISSION_VIOLATIONS] == 1);
    EXPECT(after[PTL_SR_DROP_COUNT] - before[PTL_SR_DROP_COUNT] == 3);
    EXPECT(is_untouched(in, BIG));

    /* Errors at this side are refused before the start. */
    EXPECT(PtlPut(md, BIG - 10, 11, PTL_NO_ACK_REQ, peer(), pt, BITS, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, to_rank(2), pt, BITS, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlPut(md, 0, 1, 9, peer(), pt, BITS, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, peer(), 1000, BITS, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlPut(handle, 0, 1, PTL_NO_ACK_REQ, peer(), pt, BITS, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlMEAppend(ni, pt + 20, &foreign, PTL_PRIORITY_LIST, NULL, &not_mine) == PTL_ARG_INVALID);
    EXPECT(PtlMEAppend(ni, pt, &foreign, 2, NULL, &not_mine) == PTL_ARG_INVALID);
    EXPECT(PtlMEAppend(ni, pt, NULL, PTL_PRIORITY_LIST, NULL, &not_mine) == PTL_ARG_INVALID);
    EXPECT(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &(ptl_pt_index_t){0}) == PTL_PT_EQ_NEEDED);
    EXPECT(PtlPTAlloc(ni, 0, eq, pt, &(ptl_pt_index_t){0}) == PTL_PT_IN_USE);
    both();
}

static void managed_offsets(void) {
    unsigned int options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE;
    memset(in, UNTOUCHED, BIG);
    ptl_handle_me_t handle;
    ptl_me_t me = garbled(in, 10000, BITS, options);
    me.min_free = 3000;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    fill(out, BIG, 71);
    both();
    for (size_t k = 0; k < 3; k++) /* 5000 and 3000 bytes; less than 3000 are left: the third finds nothing */
        CHECK(PtlPut(md, 0, k == 0 ? 5000 : 3000, PTL_ACK_REQ, peer(), pt, BITS, 123, NULL, k));
    ptl_size_t offsets[3] = {0, 5000, 0};
    int acks = 0, puts = 0, unlinks = 0, sends = 0;
    while (acks < 3 || puts < 2 || unlinks < 1 || sends < 3) {
        ptl_event_t event;
        CHECK(PtlEQWait(eq, &event));
        if (event.type == PTL_EVENT_PUT) {
            EXPECT(event.start == in + offsets[event.hdr_data] && event.remote_offset == 123);
            puts++;
        } else if (event.type == PTL_EVENT_ACK) {
            /* The offset that was used. */
            if (event.ni_fail_type == PTL_NI_OK)
                EXPECT(event.remote_offset == (event.mlength == 5000 ? 0 : 5000));
            if (acks++ == 2)
                EXPECT(event.ni_fail_type == PTL_NI_DROPPED || event.mlength == 3000);
        } else {
            EXPECT(event.type == PTL_EVENT_AUTO_UNLINK || event.type == PTL_EVENT_SEND);
            event.type == PTL_EVENT_SEND ? sends++ : unlinks++;
        }
    }
    EXPECT(is_filled(in, 5000, 71) && is_filled(in + 5000, 3000, 71) && is_untouched(in + 8000, 10000));
    both();
}

static const struct test_case cases[] = {{"puts", puts_of_all_sizes},
                                         CASE(gets),
                                         CASE(triggered_chain),
                                         CASE(counting_events),
                                         CASE(event_queues),
                                         CASE(unexpected_messages),
                                         CASE(unlinking),
                                         CASE(physical_addresses),
                                         CASE(segments),
                                         CASE(truncation),
                                         CASE(failures),
                                         CASE(managed_offsets),
                                         CASE(limits_of_the_queue)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
    EXPECT(pt == 0);
    md = descriptor(out, BIG, 0, eq, ct);
    return RUN_CASE(argc, argv, cases);
}
