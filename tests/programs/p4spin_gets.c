/* Handlers on all kinds of requests (sPIN App. B.3, §5.4 "Distributed Transactions"): `p4spin_gets CASE`. Rank 0 asks,
 * rank 1 has the handlers, which keep a log of the accesses in host memory. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, BYTES = 3 * MTU, BITS = 7, PLAIN = 8, LOG = 16 };

struct access {
    uint32_t type, source;
    uint64_t offset, length, match_bits;
};

struct state {
    uint32_t verdict, ending; /* return codes of header and completion handler */
    uint32_t pendings;        /* accesses for which they are PENDING */
    uint32_t headers, payloads, completions;
    int32_t dropped;
    uint32_t pad;
    uint64_t seen; /* host memory at the run of the completion handler */
};

/* In the host memory of the handlers. */
struct logged {
    struct state state;
    struct access log[LOG];
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

__handler int header(const ptl_header_t h, void *state) {
    struct state *s = state;
    struct access access = {h.type, h.source_id.rank, h.offset, h.length, h.match_bits};
    ptl_size_t to = offsetof(struct logged, log) + s->headers++ * sizeof access;
    if (s->verdict == FAIL)
        return FAIL;
    if (PtlHandlerDMAToHostB(&access, to, sizeof access, PTL_HANDLER_HOST_MEM) != 0)
        return FAIL;
    return s->headers <= s->pendings ? (int)s->verdict + 1 : (int)s->verdict;
}

__handler int payload(const ptl_payload_t p, void *state) {
    (void)p;
    __atomic_fetch_add(&((struct state *)state)->payloads, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

__handler int completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    (void)flow_control_triggered;
    s->completions++;
    s->dropped = dropped_bytes;
    if (PtlHandlerDMAFromHostB(8, &s->seen, sizeof s->seen, PTL_ME_HOST_MEM) != 0)
        return FAIL;
    if (PtlHandlerDMAToHostB(s, 0, sizeof *s, PTL_HANDLER_HOST_MEM) != 0)
        return FAIL;
    return (int)s->ending;
}

/* Occupies its HPU, and the buffers of its message's packets. */
__handler int slow_header(const ptl_header_t h, void *state) {
    (void)h, (void)state;
    for (volatile uint32_t i = 0; i < 20000; i++) {
    }
    return DROP;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char memory[BYTES] __attribute__((aligned(64))), mine[BYTES] __attribute__((aligned(64)));
static struct logged told;
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;
static ptl_handle_md_t md;

static int receiver(void) { return spin_rank() == 1; }

static void append(struct state first, ptl_header_handler_t h, unsigned int options) {
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry(memory, BYTES, BITS, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options);
    CHECK(PtlHPUAllocMem(sizeof first, ni, &me.hpu_memory));
    me.header_handler = h;
    me.payload_handler = payload;
    me.completion_handler = completion;
    me.hpu_initial_state = &first;
    me.hpu_initial_state_length = sizeof first;
    me.handler_host_mem_start = &told;
    me.handler_host_mem_length = sizeof told;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_me_t plain = plain_entry(memory, BYTES, PLAIN, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    CHECK(PtlMEAppend(ni, pt, &plain, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Rank 1's memory counts from 100 in words of 64 bits. */
static void serve(uint32_t verdict, uint32_t ending, uint32_t pendings, unsigned int options) {
    for (uint64_t i = 0; i < BYTES / 8; i++)
        memcpy(memory + 8 * i, &(uint64_t){100 + i}, 8);
    append((struct state){.verdict = verdict, .ending = ending, .pendings = pendings}, header, options);
    CHECK(spin_barrier());
}

static uint64_t word(const unsigned char *data, size_t i) {
    uint64_t value;
    memcpy(&value, data + 8 * i, 8);
    return value;
}

static void start(void) {
    memset(mine, UNTOUCHED, BYTES);
    md = descriptor(mine, BYTES, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    CHECK(spin_barrier());
}

static ptl_event_t get(ptl_match_bits_t bits, size_t bytes, ptl_size_t from) {
    CHECK(PtlGet(md, 0, bytes, to_rank(1), pt, bits, from, NULL));
    return await_event(eq, PTL_EVENT_REPLY);
}

static ptl_event_t fetch(ptl_size_t at) {
    memcpy(mine + 64, &(uint64_t){5}, 8);
    CHECK(PtlFetchAtomic(md, 0, md, 64, 8, to_rank(1), pt, BITS, at, NULL, 0, PTL_SUM, PTL_UINT64_T));
    return await_event(eq, PTL_EVENT_REPLY);
}

static ptl_event_t atomic(ptl_size_t at) {
    memcpy(mine + 64, &(uint64_t){5}, 8);
    CHECK(PtlAtomic(md, 64, 8, PTL_ACK_REQ, to_rank(1), pt, BITS, at, NULL, 0, PTL_SUM, PTL_UINT64_T));
    return await_event(eq, PTL_EVENT_ACK);
}

static void logged(unsigned k, uint32_t type, uint64_t offset, uint64_t length) {
    const struct access *a = &told.log[k];
    EXPECT(a->type == type && a->source == 0 && a->offset == offset && a->length == length && a->match_bits == BITS);
}

static void ran(uint32_t headers, uint32_t payloads, uint32_t completions) {
    EXPECT(told.state.headers == headers && told.state.payloads == payloads && told.state.completions == completions);
}

/* The default action follows the header handler's PROCEED or PROCESS_DATA; accesses of all kinds are in the log. */
static void does(uint32_t verdict) {
    enum { GOT = 2 * MTU + 40 };
    if (!receiver()) {
        start();
        ptl_event_t reply = get(BITS, GOT, 16);
        EXPECT(reply.ni_fail_type == PTL_NI_OK && reply.mlength == GOT && reply.remote_offset == 16);
        for (size_t i = 0; i < GOT / 8; i++)
            EXPECT(word(mine, i) == 102 + i);
        EXPECT(is_untouched(mine + GOT, BYTES - GOT));
        CHECK(spin_barrier());
        reply = fetch(8);
        EXPECT(reply.ni_fail_type == PTL_NI_OK && reply.mlength == 8 && word(mine, 0) == 101);
        CHECK(spin_barrier());
        EXPECT(atomic(8).ni_fail_type == PTL_NI_OK);
        CHECK(spin_barrier());
        EXPECT(get(BITS, 0, 0).ni_fail_type == PTL_NI_OK);
        return;
    }
    serve(verdict, SUCCESS, 0, 0);
    ptl_event_t event = await_event(eq, PTL_EVENT_GET);
    EXPECT(event.ni_fail_type == PTL_NI_OK && event.mlength == GOT && event.start == memory + 16);
    logged(0, PTL_REQUEST_GET, 16, GOT);
    ran(1, 0, 1);
    EXPECT(told.state.dropped == 0 && told.state.seen == 101);
    CHECK(spin_barrier());
    event = await_event(eq, PTL_EVENT_FETCH_ATOMIC);
    EXPECT(event.ni_fail_type == PTL_NI_OK && event.mlength == 8 && event.atomic_operation == PTL_SUM);
    logged(1, PTL_REQUEST_FETCH_ATOMIC, 8, 8);
    ran(2, 0, 2);
    EXPECT(told.state.seen == 106 && word(memory, 1) == 106); /* the result arrived before the completion handler ran */
    CHECK(spin_barrier());
    event = await_event(eq, PTL_EVENT_ATOMIC);
    logged(2, PTL_REQUEST_ATOMIC, 8, 8);
    ran(3, 0, 3);
    EXPECT(event.ni_fail_type == PTL_NI_OK && told.state.seen == 111 && word(memory, 1) == 111);
    CHECK(spin_barrier());
    await_event(eq, PTL_EVENT_GET);
    logged(3, PTL_REQUEST_GET, 0, 0);
    ran(4, 0, 4);
}

static void proceed(void) { does(PROCEED); }
static void process(void) { does(PROCESS_DATA); }

static void drop(void) {
    if (!receiver()) {
        start();
        ptl_event_t reply = get(BITS, 100, 16);
        EXPECT(reply.ni_fail_type == PTL_NI_DROPPED && reply.mlength == 0 && is_untouched(mine, BYTES));
        reply = fetch(8);
        EXPECT(reply.ni_fail_type == PTL_NI_DROPPED && reply.mlength == 0 && is_untouched(mine, 64));
        EXPECT(atomic(8).ni_fail_type == PTL_NI_DROPPED); /* acknowledged like a dropped put */
        return;
    }
    serve(DROP, SUCCESS, 0, 0);
    ptl_event_t event = await_event(eq, PTL_EVENT_GET);
    EXPECT(event.ni_fail_type == PTL_NI_DROPPED && event.mlength == 0 && event.rlength == 100);
    EXPECT(told.state.dropped == 0); /* a get brings no data */
    EXPECT(await_event(eq, PTL_EVENT_FETCH_ATOMIC).ni_fail_type == PTL_NI_DROPPED);
    EXPECT(await_event(eq, PTL_EVENT_ATOMIC).ni_fail_type == PTL_NI_DROPPED);
    ran(3, 0, 3);
    EXPECT(told.state.dropped == 8 && word(memory, 1) == 101);
}

static void fail(void) {
    if (!receiver()) {
        start();
        EXPECT(get(BITS, 100, 16).ni_fail_type == PTL_NI_HANDLER_FAIL && is_untouched(mine, BYTES));
        EXPECT(fetch(8).ni_fail_type == PTL_NI_HANDLER_FAIL && is_untouched(mine, 64));
        EXPECT(atomic(8).ni_fail_type == PTL_NI_HANDLER_FAIL);
        CHECK(spin_barrier());
        return;
    }
    serve(FAIL, SUCCESS, 0, 0);
    for (int i = 0; i < 3; i++)
        EXPECT(await_event(eq, PTL_EVENT_HANDLER_ERROR).ni_fail_type == PTL_NI_HANDLER_FAIL);
    CHECK(spin_barrier());
    ran(3, 0, 3);
    EXPECT(word(memory, 1) == 101);
}

/* The reply has left when the completion handler fails: only the target is notified. */
static void completion_fails(void) {
    if (!receiver()) {
        start();
        EXPECT(get(BITS, 8, 16).ni_fail_type == PTL_NI_OK && word(mine, 0) == 102);
        return;
    }
    serve(PROCEED, FAIL, 0, 0);
    EXPECT(await_event(eq, PTL_EVENT_HANDLER_ERROR).ni_fail_type == PTL_NI_HANDLER_FAIL);
}

/* A PENDING get leaves a use-once entry linked: no event, no unlink. The entry is available again once the get's
 * handlers end, without notice: the reply precedes the end of its completion handler. */
static void pending(void) {
    if (!receiver()) {
        start();
        EXPECT(get(BITS, 8, 16).ni_fail_type == PTL_NI_OK && word(mine, 0) == 102);
        spin_host_compute(10000);
        CHECK(spin_barrier());
        EXPECT(get(BITS, 8, 24).ni_fail_type == PTL_NI_OK && word(mine, 0) == 103);
        EXPECT(get(BITS, 8, 24).ni_fail_type == PTL_NI_DROPPED);
        return;
    }
    serve(PROCEED, SUCCESS, 1, PTL_ME_USE_ONCE);
    CHECK(spin_barrier());
    ptl_event_t event = await_event(eq, PTL_EVENT_GET);
    EXPECT(event.start == memory + 24);
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
    ran(2, 0, 2);
}

/* A get that finds no free packet buffer is refused, and the entry disabled (run with room for two packets). */
static void flow_control(void) {
    if (!receiver()) {
        start();
        CHECK(PtlPut(md, 0, 2 * MTU, PTL_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
        EXPECT(get(BITS, 8, 0).ni_fail_type == PTL_NI_PT_DISABLED);
        EXPECT(await_event(eq, PTL_EVENT_ACK).ni_fail_type == PTL_NI_DROPPED);
        EXPECT(get(BITS, 8, 0).ni_fail_type == PTL_NI_PT_DISABLED);
        CHECK(spin_barrier());
        return;
    }
    append((struct state){.ending = SUCCESS}, slow_header, 0);
    CHECK(spin_barrier());
    int puts = 0, gets = 0, disabled = 0;
    while (puts + gets + disabled < 3) {
        ptl_event_t event;
        CHECK(PtlEQWait(eq, &event));
        puts += event.type == PTL_EVENT_PUT;
        gets += event.type == PTL_EVENT_GET;
        disabled += event.type == PTL_EVENT_PT_DISABLED;
    }
    EXPECT(puts == 1 && gets == 1 && disabled == 1 && told.state.completions == 2);
    CHECK(spin_barrier());
}

/* Duration of a get, from an entry without handlers and from one with them. */
static void times(void) {
    if (!receiver()) {
        start();
        for (int i = 0; i < 2; i++) {
            uint64_t before = spin_time_ps();
            get(i == 0 ? PLAIN : BITS, 64, 0);
            printf("%llu\n", (unsigned long long)(spin_time_ps() - before));
            CHECK(spin_barrier());
        }
        return;
    }
    serve(PROCEED, SUCCESS, 0, 0);
    await_event(eq, PTL_EVENT_GET);
    CHECK(spin_barrier());
    await_event(eq, PTL_EVENT_GET);
    CHECK(spin_barrier());
}

static const struct test_case cases[] = {CASE(proceed),          CASE(process), CASE(drop),         CASE(fail),
                                         CASE(completion_fails), CASE(pending), CASE(flow_control), CASE(times)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlPTAlloc(ni, argc > 1 && strcmp(argv[1], "flow_control") == 0 ? PTL_PT_FLOWCTRL : 0, eq, 5, &pt));
    return RUN_CASE(argc, argv, cases);
}
