/* A handler does what it must not; the host must hear of it, nothing else may suffer, and the run goes on.
 *
 *   errors ROLE ACT [ADDRESS]   ROLE: header, payload or completion; ACT: a name of `acts`
 *
 * Rank 0 sends a message to an entry of rank 1 whose handler of that role misbehaves, and then one to a healthy entry
 * whose HPU memory lies behind it. Rank 1 prints every event, and what the handler has found out. */
#include "../portals/harness.h"
#include <spin.h>

enum act {
    POKE,
    PEEK,
    LOOP,
    FAILS,
    UNKNOWN,
    DEEP,
    ABORT,
    JUMP,
    COMMANDS,
    WILD_PUT,
    WILD_DMA,
    NOWHERE,
    ONWARD,
    WIDE,
    PAST
};
static const char *const acts[] = {"poke",     "peek",     "loop",     "fail",    "unknown", "deep", "abort", "jump",
                                   "commands", "wild-put", "wild-dma", "nowhere", "onward",  "wide", "past"};
static const char *const roles[] = {"header", "payload", "completion"};
enum { HEADER, PAYLOAD, COMPLETION, NOBODY };

struct state {
    uint32_t role, act; /* who misbehaves, and how */
    uint32_t address;   /* where */
    int32_t results[6];
    uint32_t marks[7]; /* 64 bytes in all: the healthy entry's memory follows at once */
};
_Static_assert(sizeof(struct state) == 64, "HPU memory is given out in units of 64 bytes");

/* ---- On the card ------------------------------------------------------------------------------------------------ */

static int *where; /* nobody sets it */

static __attribute__((noinline)) int dig(volatile char *above, int depth) { /* entry */
    volatile char here[200];
    here[depth & 63] = above[depth & 63];
    return depth > 1 << 20 ? here[0] : dig(here, depth + 1) + here[1]; /* deeper */
}

static int misbehave(struct state *s, int fine) {
    ptl_process_t nobody = {.rank = 99}, self = {.rank = 1};
    uint8_t *wild = (uint8_t *)(uintptr_t)s->address;
    uint8_t here[16] = {0};
    switch (s->act) {
    case POKE:
        *(volatile uint32_t *)wild = 7; /* poke */
        break;
    case PEEK:
        s->results[0] = *(volatile int32_t *)wild; /* peek */
        break;
    case LOOP:
        for (;;)
            (*(volatile uint32_t *)&s->marks[6])++; /* loop */
    case FAILS: return FAIL;
    case UNKNOWN: return 77;
    case DEEP: s->results[0] = dig((volatile char *)here, 0); break;
    case ABORT: abort();
    case NOWHERE:
        *where = 5; /* nowhere */
        break;
    case ONWARD: {
        int i = fine;
        while (i >= 0) /* onward */
            i++;
        break;
    }
    case WIDE: {
        volatile char frame[s->address];
        frame[0] = 1; /* wide */
        s->results[0] = frame[0];
        break;
    }
    case PAST: return PtlHandlerDMAToHostB(here, s->address, 16, PTL_ME_HOST_MEM) ? FAIL : fine; /* past */
    case JUMP: ((void (*)(void))(uintptr_t)s->address)(); break;
    case COMMANDS:
        s->results[0] = PtlHandlerPutFromDevice(here, 4097, 0, PTL_NO_ACK_REQ, self, 9, 0, NULL, 0);
        s->results[1] = PtlHandlerPutFromDevice(here, 16, 0, PTL_NO_ACK_REQ, nobody, 9, 0, NULL, 0);
        s->results[2] = PtlHandlerPutFromHost(1 << 20, 16, 0, PTL_NO_ACK_REQ, self, 9, 0, NULL, 0);
        s->results[3] = PtlHandlerDMAToHostB(here, 0, 16, 5);
        s->results[4] = PtlHandlerDMAWait(12345);
        s->results[5] = PtlHandlerCTInc((ptl_ct_event_t){1, 0}); /* the entry has no counter */
        break;
    case WILD_PUT: PtlHandlerPutFromDevice(wild, 16, 0, PTL_NO_ACK_REQ, self, 9, 0, NULL, 0); break; /* wild put */
    case WILD_DMA: PtlHandlerDMAFromHostB(0, wild, 16, PTL_ME_HOST_MEM); break;                      /* wild dma */
    }
    return fine;
}

__handler int header(const ptl_header_t h, void *state) {
    struct state *s = state;
    (void)h;
    s->marks[0]++;
    return s->role == HEADER ? misbehave(s, PROCESS_DATA) : PROCESS_DATA;
}

__handler int payload(const ptl_payload_t p, void *state) {
    struct state *s = state;
    __atomic_fetch_add(&s->marks[1], 1, __ATOMIC_RELAXED);
    /* Only the first packet's handler misbehaves; a second error of a message would not be reported. */
    return s->role == PAYLOAD && p.offset == 0 ? misbehave(s, SUCCESS) : SUCCESS;
}

__handler int completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    s->marks[2]++;
    s->marks[3] = (uint32_t)dropped_bytes;
    s->marks[4] = flow_control_triggered;
    if (s->role == COMPLETION)
        return misbehave(s, SUCCESS);
    return PtlHandlerDMAToHostB(s, 0, sizeof *s, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

enum { FAULTY = 1, HEALTHY = 2, MTU = 4096, BYTES = 6000 };

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fprintf(stderr, "errors: no %s\n", name);
    exit(2);
}

static void send(ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_match_bits_t bits) {
    ptl_event_t event;
    CHECK(PtlPut(md, 0, BYTES, PTL_ACK_REQ, to_rank(1), 0, bits, 0, NULL, bits));
    do
        CHECK(PtlEQWait(eq, &event));
    while (event.type != PTL_EVENT_ACK);
    printf("rank 0: ACK %s\n", fail_name(event.ni_fail_type));
}

static unsigned char data[BYTES], faulty[BYTES], healthy[BYTES];

static void append(ptl_match_bits_t bits, unsigned char *memory, struct state *state, struct state *copy) {
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry(memory, BYTES, bits, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    CHECK(PtlHPUAllocMem(sizeof *state, ni, &me.hpu_memory));
    me.header_handler = header;
    me.payload_handler = payload;
    me.completion_handler = completion;
    me.hpu_initial_state = state;
    me.hpu_initial_state_length = sizeof *state;
    me.handler_host_mem_start = copy;
    me.handler_host_mem_length = sizeof *copy;
    CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, (void *)(uintptr_t)bits, &handle));
}

static void serve(ptl_handle_eq_t eq, struct state state) {
    struct state well = {.role = NOBODY, .marks = {0, 0, 0, 0, 0, 0xC0FFEE}}, copies[3];
    ptl_event_t event;
    memset(copies, UNTOUCHED, sizeof copies);
    memset(faulty, UNTOUCHED, BYTES);
    memset(healthy, UNTOUCHED, BYTES);
    append(FAULTY, faulty, &state, &copies[FAULTY]);
    append(HEALTHY, healthy, &well, &copies[HEALTHY]);
    CHECK(spin_barrier());
    do {
        CHECK(PtlEQWait(eq, &event));
        printf("rank 1: %s %s of %d, start %#llx\n", event_name(event.type), fail_name(event.ni_fail_type),
               (int)event.match_bits, event.type == PTL_EVENT_PUT ? 0ull : (unsigned long long)(uintptr_t)event.start);
        EXPECT(event.user_ptr == (void *)(uintptr_t)event.match_bits && event.hdr_data == event.match_bits);
        EXPECT(event.rlength == BYTES && event.pt_index == 0 && event.initiator.rank == 0);
    } while (event.match_bits != HEALTHY);

    /* The healthy message found its memory as the host had left it. */
    const struct state *w = &copies[HEALTHY], *f = &copies[FAULTY];
    EXPECT(w->role == NOBODY && w->marks[0] == 1 && w->marks[1] == 2 && w->marks[2] == 1 && w->marks[5] == 0xC0FFEE);
    EXPECT(is_untouched(healthy, BYTES) && is_untouched(faulty, BYTES)); /* handlers took all data */
    if (state.role != COMPLETION)
        printf("rank 1: handlers %u %u %u, dropped %u, results %d %d %d %d %d %d\n", f->marks[0], f->marks[1],
               f->marks[2], f->marks[3], f->results[0], f->results[1], f->results[2], f->results[3], f->results[4],
               f->results[5]);
}

int main(int argc, char **argv) {
    struct state state = {0};
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    if (argc < 3)
        return 2;
    state.role = (uint32_t)find(roles, 3, argv[1]);
    state.act = (uint32_t)find(acts, sizeof acts / sizeof *acts, argv[2]);
    state.address = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    needs_packets_of(MTU);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, 0, &pt));
    if (spin_rank() == 1) {
        serve(eq, state);
    } else {
        ptl_handle_md_t md = descriptor(data, BYTES, 0, eq, PTL_CT_NONE);
        CHECK(spin_barrier());
        send(md, eq, FAULTY);
        send(md, eq, HEALTHY);
    }
    CHECK(spin_barrier());
    return close_interface();
}
