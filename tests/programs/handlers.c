/* Effects of handlers and their order (sPIN App. B.3 to B.6): `handlers CASE`.
 *
 * Rank 0 sends, rank 1 has the handlers; they keep their results in HPU memory, which the completion handler copies to
 * the host. */
#define PTL_USER_HEADER struct user_header
#include <stdint.h>

struct user_header {
    uint32_t kind;
    uint32_t pad;
    uint64_t value;
};

#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, BYTES = 2 * MTU + 100, PACKETS = 8, BITS = 7 };

struct state {
    uint32_t verdict, ending; /* return codes of the header and completion handlers, set by the host */
    uint32_t pendings;        /* messages for which they are returned; then PROCESS_DATA and SUCCESS */
    uint32_t drop_odd;        /* payload handlers drop odd packets */
    uint32_t work;            /* duration of payload handlers */
    uint32_t headers, payloads, completions;
    uint32_t running, most_running; /* payload handlers at once */
    uint32_t hpus;                  /* bit k: HPU k has run one */
    uint32_t disorder;              /* a handler ran out of order */
    int32_t dropped;
    uint32_t flow_control;
    uint32_t first_offset, second_offset, first_length, bytes;
    struct user_header user;
    uint64_t match_bits, length, offset, hdr_data;
    ptl_process_t source, target;
    uint32_t type;
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

__handler int header(const ptl_header_t h, void *state) {
    struct state *s = state;
    s->disorder |= s->running != 0;
    s->headers++;
    s->type = h.type;
    s->length = h.length;
    s->source = h.source_id;
    s->target = h.target_id;
    s->match_bits = h.match_bits;
    s->offset = h.offset;
    s->hdr_data = h.hdr_data;
    s->user = h.user_hdr;
    for (volatile uint32_t i = 0; i < s->work; i++)
        s->disorder |= s->running != 0 || s->completions >= s->headers;
    return s->headers <= s->pendings ? (int)s->verdict : PROCESS_DATA;
}

__handler int payload(const ptl_payload_t p, void *state) {
    struct state *s = state;
    uint32_t running = __atomic_add_fetch(&s->running, 1, __ATOMIC_RELAXED);
    uint32_t packet = (uint32_t)(p.offset + MTU - 1) / MTU;
    while (running > s->most_running)
        s->most_running = running;
    s->disorder |= s->completions >= s->headers && s->headers != 0;
    __atomic_fetch_or(&s->hpus, 1u << PTL_MY_HPU, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->payloads, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->bytes, (uint32_t)p.length, __ATOMIC_RELAXED);
    if (packet == 0)
        s->first_length = (uint32_t)p.length, s->first_offset = (uint32_t)p.offset;
    if (packet == 1)
        s->second_offset = (uint32_t)p.offset;
    for (volatile uint32_t i = 0; i < s->work; i++) {
    }
    __atomic_fetch_sub(&s->running, 1, __ATOMIC_RELAXED);
    return s->drop_odd && packet % 2 == 1 ? DROP : SUCCESS;
}

__handler int completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    s->disorder |= s->running != 0;
    s->completions++;
    s->dropped = dropped_bytes;
    s->flow_control = flow_control_triggered;
    PtlHandlerDMAToHostB(s, 0, sizeof *s, PTL_HANDLER_HOST_MEM);
    return s->completions <= s->pendings ? (int)s->ending : SUCCESS;
}

/* Fails at once on the first packet; takes its time over the others, and writes them to the host. */
__handler int fail_first(const ptl_payload_t p, void *state) {
    const struct state *s = state;
    if (p.offset == 0)
        return FAIL;
    for (volatile uint32_t i = 0; i < s->work; i++) {
    }
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char sent[PACKETS * MTU], received[PACKETS * MTU];
static struct state told; /* from the completion handler */
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;
static ptl_handle_me_t me_handle;
static ptl_hpu_md_h memory;
static ptl_list_t list = PTL_PRIORITY_LIST; /* list of the next entry */
static ptl_size_t min_free;                 /* min_free of the next entry */

static struct state plainly(void) { return (struct state){.verdict = PROCESS_DATA, .ending = SUCCESS, .pendings = 2}; }

/* Handlers that are NULL are not called. `options` are added to those of every entry. */
static void serve(struct state first, ptl_header_handler_t h, ptl_payload_handler_t p, ptl_completion_handler_t c,
                  ptl_size_t user_header, unsigned int options) {
    ptl_me_t me = plain_entry(received, sizeof received, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options);
    memset(received, UNTOUCHED, sizeof received);
    CHECK(PtlHPUAllocMem(sizeof first, ni, &memory));
    me.hpu_memory = memory;
    me.header_handler = h;
    me.payload_handler = p;
    me.completion_handler = c;
    me.user_hdr_size = user_header;
    me.hpu_initial_state = &first;
    me.hpu_initial_state_length = sizeof first;
    me.handler_host_mem_start = &told;
    me.handler_host_mem_length = sizeof told;
    me.min_free = min_free;
    CHECK(PtlMEAppend(ni, pt, &me, list, NULL, &me_handle));
    memset(&first, 0xFF, sizeof first); /* the append has taken it */
    CHECK(spin_barrier());
}

/* Sender's side: sends one message and returns its acknowledgement. */
static ptl_event_t put(size_t bytes, ptl_size_t offset) {
    ptl_handle_md_t md = descriptor(sent, sizeof sent, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    fill(sent, sizeof sent, 1);
    CHECK(PtlPut(md, 0, bytes, PTL_ACK_REQ, to_rank(1), pt, BITS, offset, NULL, 0xABCDEF0123456789));
    ptl_event_t ack = await_event(eq, PTL_EVENT_ACK);
    CHECK(PtlMDRelease(md));
    return ack;
}

static void sends(size_t bytes) {
    CHECK(spin_barrier());
    EXPECT(put(bytes, 0).ni_fail_type == PTL_NI_OK);
}

static ptl_event_t delivered(size_t bytes) {
    ptl_event_t event = await_event(eq, PTL_EVENT_PUT);
    EXPECT(event.ni_fail_type == PTL_NI_OK && event.rlength == bytes && told.disorder == 0);
    return event;
}

static int receiver(void) { return spin_rank() == 1; }

/* The header handler gets every field, runs first and alone; payload handlers fill all HPUs; completion runs last. */
static void order(void) {
    struct state first = plainly();
    first.work = 2000;
    if (!receiver()) {
        CHECK(spin_barrier());
        ptl_event_t ack = put(PACKETS * MTU - 64, 64);
        EXPECT(ack.ni_fail_type == PTL_NI_OK && ack.mlength == PACKETS * MTU - 64);
        return;
    }
    serve(first, header, payload, completion, 0, 0);
    delivered(PACKETS * MTU - 64);
    EXPECT(told.type == PTL_REQUEST_PUT && told.length == PACKETS * MTU - 64 && told.match_bits == BITS);
    EXPECT(told.offset == 64 && told.hdr_data == 0xABCDEF0123456789);
    EXPECT(told.source.rank == 0 && told.target.rank == 1);
    EXPECT(told.bytes == PACKETS * MTU - 64 && told.dropped == 0 && told.flow_control == 0);
    EXPECT(is_untouched(received, sizeof received)); /* data not copied by handlers does not reach the host */
    printf("headers %u payloads %u completions %u at once %u hpus %#x\n", told.headers, told.payloads, told.completions,
           told.most_running, told.hpus);
}

/* A dropped message fails at both sides, with no byte transferred. */
static void sends_in_vain(size_t bytes) {
    CHECK(spin_barrier());
    ptl_event_t ack = put(bytes, 0);
    EXPECT(ack.ni_fail_type == PTL_NI_DROPPED && ack.mlength == 0);
}

static void is_dropped(size_t bytes) {
    ptl_event_t event = await_event(eq, PTL_EVENT_PUT);
    EXPECT(event.ni_fail_type == PTL_NI_DROPPED && event.mlength == 0 && event.rlength == bytes && told.disorder == 0);
}

static void drop(void) {
    struct state first = plainly();
    first.verdict = DROP;
    if (!receiver())
        return sends_in_vain(BYTES);
    serve(first, header, payload, completion, 0, 0);
    is_dropped(BYTES);
    EXPECT(told.headers == 1 && told.payloads == 0 && told.completions == 1);
    EXPECT(told.dropped == BYTES && is_untouched(received, BYTES));
}

/* A dropped message does not become an unexpected one. */
static void drop_unexpected(void) {
    struct state first = plainly();
    first.verdict = DROP;
    first.pendings = 1;
    if (!receiver()) {
        sends_in_vain(BYTES);
        return sends(100);
    }
    list = PTL_OVERFLOW_LIST;
    serve(first, header, NULL, completion, 0, 0);
    is_dropped(BYTES);
    CHECK(spin_barrier());
    delivered(100);
    ptl_me_t wanted = plain_entry(NULL, 0, BITS, PTL_ME_OP_PUT);
    CHECK(PtlMESearch(ni, pt, &wanted, PTL_SEARCH_DELETE, NULL));
    EXPECT(await_event(eq, PTL_EVENT_PUT_OVERFLOW).rlength == 100);
    ptl_event_t event;
    EXPECT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
}

/* Two messages are dropped; the third is placed at their offset, although each of them left less than min_free. */
static void managed(uint32_t verdict) {
    struct state first = plainly();
    first.verdict = verdict;
    if (!receiver()) {
        sends_in_vain(100);
        sends_in_vain(2 * MTU);
        CHECK(spin_barrier());
        ptl_event_t ack = put(50, 77);
        EXPECT(ack.ni_fail_type == PTL_NI_OK && ack.mlength == 50 && ack.remote_offset == 0);
        return;
    }
    min_free = sizeof received - 10;
    serve(first, header, NULL, completion, 0, PTL_ME_MANAGE_LOCAL);
    for (int i = 0; i < 2; i++) {
        if (verdict == DROP)
            is_dropped(i == 0 ? 100 : 2 * MTU);
        CHECK(spin_barrier());
    }
    ptl_event_t event = delivered(50);
    EXPECT(event.start == received && event.mlength == 50 && told.offset == 0);
    EXPECT(is_filled(received, 50, 1) && is_untouched(received + 50, sizeof received - 50));
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
}

static void drop_managed(void) { managed(DROP); }
static void drop_managed_pending(void) { managed(DROP_PENDING); }

/* The default action takes the user header along. */
static void proceed(void) {
    struct state first = plainly();
    first.verdict = PROCEED;
    if (!receiver())
        return sends(BYTES);
    serve(first, header, payload, completion, sizeof(struct user_header), 0);
    ptl_event_t event = delivered(BYTES);
    EXPECT(event.start == received && event.mlength == BYTES && told.payloads == 0 && told.dropped == 0);
    EXPECT(is_filled(received, BYTES, 1) && is_untouched(received + BYTES, sizeof received - BYTES));
}

/* PROCESS_DATA without payload handlers leaves the data to the default action. */
static void process_without_handler(void) {
    if (!receiver())
        return sends(BYTES);
    serve(plainly(), header, NULL, completion, 0, 0);
    delivered(BYTES);
    EXPECT(is_filled(received, BYTES, 1) && told.headers == 1 && told.payloads == 0 && told.completions == 1);
}

/* Each handler can be left out (App. B.1). */
static void payload_alone(void) {
    if (!receiver())
        return sends(BYTES);
    serve(plainly(), NULL, payload, NULL, 0, 0);
    delivered(BYTES);
    EXPECT(told.completions == 0 && is_untouched(received, BYTES));
}

static void completion_alone(void) {
    if (!receiver())
        return sends(BYTES);
    serve(plainly(), NULL, NULL, completion, 0, 0);
    delivered(BYTES);
    EXPECT(is_filled(received, BYTES, 1) && told.headers == 0 && told.completions == 1);
}

static void drop_packets(void) {
    struct state first = plainly();
    first.drop_odd = 1;
    if (!receiver()) {
        CHECK(spin_barrier());
        ptl_event_t ack = put(BYTES, 0);
        EXPECT(ack.ni_fail_type == PTL_NI_OK && ack.mlength == BYTES - MTU);
        return;
    }
    serve(first, header, payload, completion, 0, 0);
    EXPECT(delivered(BYTES).mlength == BYTES - MTU);
    EXPECT(told.payloads == 3 && told.dropped == MTU && told.flow_control == 0);
}

/* Only the header handler gets the user header; offsets of payload handlers start after it. */
static void user_header(void) {
    struct user_header head;
    if (!receiver())
        return sends(BYTES);
    serve(plainly(), header, payload, completion, sizeof head, 0);
    delivered(BYTES);
    fill(sent, sizeof sent, 1);
    memcpy(&head, sent, sizeof head);
    EXPECT(told.user.kind == head.kind && told.user.value == head.value && told.length == BYTES);
    EXPECT(told.payloads == 3 && told.bytes == BYTES - sizeof head && told.first_offset == 0);
    EXPECT(told.first_length == MTU - sizeof head && told.second_offset == MTU - sizeof head);
}

/* A message that is all user header has no payload; one without data has no packet for payload handlers either. */
static void no_payload(void) {
    if (!receiver()) {
        sends(sizeof(struct user_header));
        return sends(0);
    }
    serve(plainly(), header, payload, completion, sizeof(struct user_header), 0);
    delivered(sizeof(struct user_header));
    EXPECT(told.headers == 1 && told.payloads == 0 && told.completions == 1);
    CHECK(spin_barrier());
    delivered(0);
    EXPECT(told.headers == 2 && told.payloads == 0 && told.completions == 2 && told.length == 0);
}

/* A message whose handlers return a PENDING code does not complete the entry (App. B.1, B.5): no event, no unlink. */
static void pending(uint32_t verdict, uint32_t ending) {
    struct state first = plainly();
    first.verdict = verdict;
    first.ending = ending;
    if (!receiver()) {
        (verdict == DROP_PENDING ? sends_in_vain : sends)(100);
        (verdict == DROP_PENDING ? sends_in_vain : sends)(200);
        return sends(300);
    }
    serve(first, header, payload, completion, 0, PTL_ME_USE_ONCE);
    CHECK(spin_barrier()); /* the first message is acknowledged */
    ptl_event_t event;
    EXPECT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
    EXPECT(told.completions == 1 && told.length == 100);
    CHECK(spin_barrier());
    EXPECT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
    EXPECT(told.completions == 2 && told.length == 200); /* the state is shared by all messages */
    delivered(300);                                      /* the one that completes the entry */
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT(told.completions == 3 && told.length == 300);
}

static void pending_process(void) { pending(PROCESS_DATA_PENDING, SUCCESS); }
static void pending_proceed(void) { pending(PROCEED_PENDING, SUCCESS); }
static void pending_drop(void) { pending(DROP_PENDING, SUCCESS); }
static void pending_completion(void) { pending(PROCESS_DATA, SUCCESS_PENDING); }

/* Without PENDING, a use-once entry is gone after one message. */
static void once(void) {
    if (!receiver())
        return sends(100);
    serve(plainly(), header, payload, completion, 0, PTL_ME_USE_ONCE);
    delivered(100);
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT(PtlMEUnlink(me_handle) == PTL_ARG_INVALID);
    CHECK(PtlHPUFreeMem(&memory));
    EXPECT(memory == PTL_INVALID_HANDLE);
}

/* HPU memory persists until it is freed, also for the next entry; without initial state it is unchanged. */
static void memory_outlives_entries(void) {
    if (!receiver()) {
        sends(100);
        return sends(100);
    }
    serve(plainly(), header, payload, completion, 0, PTL_ME_USE_ONCE);
    delivered(100);
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT(told.headers == 1);
    ptl_me_t me = plain_entry(received, sizeof received, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.hpu_memory = memory;
    me.header_handler = header;
    me.completion_handler = completion;
    me.handler_host_mem_start = &told;
    me.handler_host_mem_length = sizeof told;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &me_handle));
    EXPECT(PtlHPUFreeMem(&memory) == PTL_IN_USE);
    CHECK(spin_barrier());
    delivered(100);
    EXPECT(told.headers == 2 && told.completions == 2);
}

/* A handler fails while others still write to the host: the event is posted after they finish. */
static void error_last(void) {
    struct state first = plainly();
    first.work = 2000;
    if (!receiver()) {
        CHECK(spin_barrier());
        ptl_event_t ack = put(PACKETS * MTU, 0);
        EXPECT(ack.ni_fail_type == PTL_NI_HANDLER_FAIL && ack.mlength == (PACKETS - 1) * MTU);
        return;
    }
    serve(first, NULL, fail_first, completion, 0, PTL_ME_USE_ONCE);
    uint64_t before = spin_time_ps();
    ptl_event_t event = await_event(eq, PTL_EVENT_HANDLER_ERROR);
    printf("%llu\n", (unsigned long long)(spin_time_ps() - before));
    EXPECT(event.ni_fail_type == PTL_NI_HANDLER_FAIL && (uintptr_t)event.start == FAIL);
    EXPECT(event.rlength == PACKETS * MTU && event.mlength == (PACKETS - 1) * MTU);
    EXPECT(told.completions == 1 && told.dropped == MTU);
    fill(sent, sizeof sent, 1);
    EXPECT(is_untouched(received, MTU) && memcmp(received + MTU, sent + MTU, (PACKETS - 1) * MTU) == 0);
    await_event(eq, PTL_EVENT_AUTO_UNLINK);
}

/* Packets without a free buffer are dropped, the completion handler and the host are notified, and the entry accepts
 * messages again once enabled (sPIN 3.2). Run with room for two packets. */
static void flow_control(void) {
    struct state first = plainly();
    first.work = 20000; /* longer than the message is on the wire */
    if (!receiver()) {
        CHECK(spin_barrier());
        ptl_event_t ack = put(PACKETS * MTU, 0);
        EXPECT(ack.ni_fail_type == PTL_NI_PT_DISABLED && ack.mlength == 2 * MTU);
        CHECK(spin_barrier());
        EXPECT(put(10, 0).ni_fail_type == PTL_NI_PT_DISABLED);
        CHECK(spin_barrier());
        return sends(MTU);
    }
    serve(first, NULL, payload, completion, 0, 0);
    ptl_event_t event = await_event(eq, PTL_EVENT_PUT);
    EXPECT(event.ni_fail_type == PTL_NI_PT_DISABLED && event.mlength == 2 * MTU && event.rlength == PACKETS * MTU);
    EXPECT(await_event(eq, PTL_EVENT_PT_DISABLED).pt_index == pt);
    printf("payloads %u dropped %d flow control %u\n", told.payloads, told.dropped, told.flow_control);
    CHECK(spin_barrier()); /* a message is refused */
    CHECK(spin_barrier());
    CHECK(PtlPTEnable(ni, pt));
    CHECK(spin_barrier());
    delivered(MTU);
    EXPECT(told.completions == 2 && told.dropped == 0 && told.flow_control == 0);
}

static const struct test_case cases[] = {CASE(order),
                                         CASE(drop),
                                         CASE(drop_unexpected),
                                         CASE(drop_managed),
                                         CASE(drop_managed_pending),
                                         CASE(error_last),
                                         CASE(proceed),
                                         CASE(process_without_handler),
                                         CASE(payload_alone),
                                         CASE(completion_alone),
                                         CASE(drop_packets),
                                         CASE(user_header),
                                         CASE(no_payload),
                                         CASE(pending_process),
                                         CASE(pending_proceed),
                                         CASE(pending_drop),
                                         CASE(pending_completion),
                                         CASE(once),
                                         CASE(memory_outlives_entries),
                                         CASE(flow_control)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    needs_packets_of(MTU);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, eq, 5, &pt));
    return RUN_CASE(argc, argv, cases);
}
