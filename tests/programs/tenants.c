/* A victim and its hostile neighbour, two jobs on one simulated network: `tenants victim` and `tenants CASE`.
 *
 * The victim's rank 0 sends numbered messages to handlers of rank 1, which add them up in HPU memory between canaries;
 * both ranks have canaries around their buffers, and an entry without restrictions that no message of the job matches.
 * Each hostile CASE attempts something that must be refused, and prints the numbers of refusals. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, MESSAGES = 100, WORDS = 512, BITS = 5, OPEN_BITS = 6, GUARD = 0x5CA1AB1E, NODES = 24 };

struct state {
    uint32_t low[8], sum, messages, high[8];
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

__handler int payload(const ptl_payload_t p, void *state) {
    struct state *s = state;
    const uint32_t *words = (const uint32_t *)(const void *)p.base;
    uint32_t sum = 0;
    for (unsigned int i = 0; i < p.length / sizeof *words; i++)
        sum += words[i];
    __atomic_fetch_add(&s->sum, sum, __ATOMIC_RELAXED);
    return SUCCESS;
}

__handler int completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    s->messages++;
    (void)flow_control_triggered;
    PtlHandlerDMAToHostB(s, 0, sizeof *s, PTL_HANDLER_HOST_MEM);
    return dropped_bytes == 0 ? SUCCESS : FAIL;
}

/* Never ends. */
__handler int endless(const ptl_payload_t p, void *state) {
    volatile uint32_t *word = state;
    (void)p;
    for (;;)
        (*word)++;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static struct {
    uint32_t low[64], words[WORDS], high[64];
} guarded;
static uint32_t open_memory[256]; /* of the entry without restrictions */
static ptl_pt_index_t pt;
static ptl_handle_eq_t eq;
static ptl_handle_me_t entry;

static void guard(uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        words[i] = GUARD;
}

static bool is_guarded(const uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (words[i] != GUARD)
            return false;
    return true;
}

static bool is_intact(void) {
    return is_guarded(guarded.low, 64) && is_guarded(guarded.high, 64) && is_guarded(open_memory, 256);
}

static void victim(void) {
    struct state first = {.sum = 0}, told;
    bool receives = spin_rank() == 1;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    guard(guarded.low, 64), guard(guarded.high, 64), guard(open_memory, 256);
    CHECK(PtlEQAlloc(ni, 256, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
    ptl_me_t open = plain_entry(open_memory, sizeof open_memory, OPEN_BITS,
                                PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    CHECK(PtlMEAppend(ni, pt, &open, PTL_PRIORITY_LIST, NULL, &entry));
    if (receives) {
        ptl_hpu_md_h memory;
        ptl_me_t me = plain_entry(guarded.words, sizeof guarded.words, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        guard(first.low, 8), guard(first.high, 8);
        CHECK(PtlHPUAllocMem(sizeof first, ni, &memory));
        me.hpu_memory = memory;
        me.payload_handler = payload;
        me.completion_handler = completion;
        me.hpu_initial_state = &first;
        me.hpu_initial_state_length = sizeof first;
        me.handler_host_mem_start = &told;
        me.handler_host_mem_length = sizeof told;
        CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
    }
    CHECK(spin_barrier());
    uint32_t sum = 0;
    ptl_handle_md_t md = descriptor(guarded.words, sizeof guarded.words, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    for (uint32_t message = 0; message < MESSAGES; message++) {
        for (uint32_t i = 0; i < WORDS; i++)
            sum += message * 1000 + i;
        if (receives) {
            EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_OK);
            continue;
        }
        for (uint32_t i = 0; i < WORDS; i++)
            guarded.words[i] = message * 1000 + i;
        CHECK(PtlPut(md, 0, sizeof guarded.words, PTL_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
        EXPECT(await_event(eq, PTL_EVENT_ACK).ni_fail_type == PTL_NI_OK);
    }
    EXPECT(is_intact());
    if (receives) {
        EXPECT(told.messages == MESSAGES && told.sum == sum && is_guarded(told.low, 8) && is_guarded(told.high, 8));
        printf("victim: %u messages intact after %llu ps\n", told.messages, (unsigned long long)spin_time_ps());
    }
    CHECK(spin_barrier());
}

static void open_hostile(unsigned int addressing) {
    open_interface(PTL_NI_MATCHING | addressing);
    CHECK(PtlEQAlloc(ni, 4096, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
}

/* Sends a put and a get to each process that could be another job's, and counts the answers by status. */
static void reach(ptl_process_t (*process)(unsigned int), const char *name) {
    unsigned int violations = 0, undeliverable = 0, others = 0;
    uint32_t words[4] = {0};
    ptl_handle_md_t md = descriptor(words, sizeof words, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    for (unsigned int node = (unsigned int)spin_size(); node < NODES; node++) {
        for (unsigned int get = 0; get < 2; get++) {
            ptl_process_t to = process(node);
            if (get)
                CHECK(PtlGet(md, 0, sizeof words, to, 0, OPEN_BITS, 0, NULL));
            else
                CHECK(PtlPut(md, 0, sizeof words, PTL_ACK_REQ, to, 0, OPEN_BITS, 0, NULL, 0));
            ptl_event_t event = await_event(eq, get ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
            violations += event.ni_fail_type == PTL_NI_PERM_VIOLATION;
            undeliverable += event.ni_fail_type == PTL_NI_UNDELIVERABLE;
            others += event.ni_fail_type != PTL_NI_PERM_VIOLATION && event.ni_fail_type != PTL_NI_UNDELIVERABLE;
        }
    }
    EXPECT(words[0] == 0 && others == 0);
    printf("%s: %u violations, %u undeliverable\n", name, violations, undeliverable);
}

static ptl_process_t physically(unsigned int node) { return (ptl_process_t){.phys = {.nid = node, .pid = 1}}; }

static void ids(void) {
    open_hostile(PTL_NI_PHYSICAL);
    reach(physically, "ids");
}

/* A map of ranks that names nodes of other jobs. */
static void map(void) {
    ptl_process_t all[NODES], own;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    CHECK(PtlGetPhysId(ni, &own));
    for (unsigned int node = 0; node < NODES; node++)
        all[node] = (ptl_process_t){.phys = {.nid = node, .pid = own.phys.pid}};
    CHECK(PtlSetMap(ni, NODES, all));
    CHECK(PtlEQAlloc(ni, 4096, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt));
    reach(to_rank, "map");
}

/* Handles of all kinds and indices that the victim has, or may have. */
static void handles(void) {
    unsigned int refused = 0, tried = 0;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    for (unsigned int interface = 0; interface < 4; interface++) {
        for (unsigned int index = 0; index < 64; index++) {
            unsigned int base = interface << 26 | index;
            ptl_handle_any_t queue = 5u << 28 | base, counter = 6u << 28 | base;
            ptl_hpu_md_h memory = 7u << 28 | base;
            ptl_ct_event_t value;
            ptl_event_t event;
            const int codes[] = {PtlMEUnlink(4u << 28 | base),
                                 PtlMDRelease(3u << 28 | base),
                                 PtlEQFree(queue),
                                 PtlEQGet(queue, &event),
                                 PtlCTFree(counter),
                                 PtlCTGet(counter, &value),
                                 PtlHPUFreeMem(&memory)};
            for (size_t i = 0; i < sizeof codes / sizeof *codes; i++, tried++)
                refused += codes[i] == PTL_ARG_INVALID;
        }
    }
    EXPECT(refused == tried);
    printf("handles: %u refused\n", refused);
}

/* Takes all that a card has: the job's cards become full, others do not. */
static void exhaust(void) {
    unsigned int portals = 0, counters = 0, entries = 0, kibibytes = 0;
    ptl_handle_ct_t ct;
    ptl_hpu_md_h memory;
    int codes[4];
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    while ((codes[0] = PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt)) == PTL_OK)
        portals++;
    while ((codes[1] = PtlCTAlloc(ni, &ct)) == PTL_OK)
        counters++;
    ptl_me_t me = plain_entry(open_memory, sizeof open_memory, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    while ((codes[2] = PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry)) == PTL_OK)
        entries++;
    while ((codes[3] = PtlHPUAllocMem(1024, ni, &memory)) == PTL_OK)
        kibibytes++;
    EXPECT(codes[0] == PTL_PT_FULL && codes[1] == PTL_NO_SPACE && codes[3] == PTL_NO_SPACE);
    EXPECT(codes[2] == PTL_NO_SPACE || codes[2] == PTL_LIST_TOO_LONG);
    EXPECT(portals > 0 && counters > 0 && entries > 0 && kibibytes > 0);
    printf("exhaust: %u portal table entries, %u counters, %u KiB of HPU memory\n", portals, counters, kibibytes);
}

/* Endless handlers on all HPUs, until the watchdog ends them. */
static void loop(void) {
    static uint32_t words[MTU];
    struct state first = {.sum = 0};
    open_hostile(PTL_NI_LOGICAL);
    if (spin_rank() == 1) {
        ptl_hpu_md_h memory;
        ptl_me_t me = plain_entry(words, sizeof words, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        CHECK(PtlHPUAllocMem(sizeof first, ni, &memory));
        me.hpu_memory = memory;
        me.payload_handler = endless;
        me.hpu_initial_state = &first;
        me.hpu_initial_state_length = sizeof first;
        CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
    }
    CHECK(spin_barrier());
    if (spin_rank() == 1) {
        ptl_event_t event;
        CHECK(PtlEQWait(eq, &event));
        EXPECT(event.ni_fail_type == PTL_NI_HANDLER_TIMEOUT);
        printf("loop: the message fails with %s\n", fail_name(event.ni_fail_type));
    } else {
        ptl_handle_md_t md = descriptor(words, sizeof words, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
        CHECK(PtlPut(md, 0, sizeof words, PTL_NO_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
    }
    CHECK(spin_barrier());
}

/* Many messages to processes of other jobs, and to a process of the job without a matching entry. */
static void flood(void) {
    static uint32_t words[4 * MTU];
    open_hostile(PTL_NI_PHYSICAL);
    CHECK(spin_barrier());
    ptl_handle_md_t md = descriptor(words, sizeof words, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE);
    for (unsigned int message = 0; message < 2000; message++)
        CHECK(PtlPut(md, 0, sizeof words, PTL_NO_ACK_REQ, physically(message % NODES), 0, OPEN_BITS, 0, NULL, 0));
    CHECK(spin_barrier());
    printf("flood: sent\n");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"victim", victim},   {"ids", ids},   {"map", map},    {"handles", handles},
                 {"exhaust", exhaust}, {"loop", loop}, {"flood", flood}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return close_interface();
        }
    fprintf(stderr, "tenants: the argument is victim, ids, map, handles, exhaust, loop or flood\n");
    return 2;
}
