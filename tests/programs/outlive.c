/* Handlers that end while their requests are in flight: `outlive COMMAND PLACE END`. Their memory is reused at once by
 * other packets and handlers, which must not be affected.
 *
 * Rank 0 sends messages to rank 1, whose only HPU checks for a while that its packet and its stack do not change,
 * starts COMMAND with its result to PLACE (packet, stack or state), and ends according to END. `outlive free` frees HPU
 * memory while data is in flight to it. */
#include "../portals/harness.h"
#include <spin.h>
#include <stddef.h>

enum { MTU = 4096, PACKETS = 120, LOCAL = 512, LOOK = 400 };

enum command { READ, CAS, FADD };
enum place { PACKET, STACK, STATE };
enum end { RETURNS, FAILS, ABORTS, FAULTS, LOOPS };
static const char *const commands[] = {"read", "cas", "fadd"};
static const char *const places[] = {"packet", "stack", "state"};
static const char *const ends[] = {"return", "fail", "abort", "fault", "loop"};

struct state {
    uint32_t command, place, end;
    uint32_t bad_packets, bad_stacks, runs;
    uint64_t result;
    uint8_t data[MTU];
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

static void start(struct state *s, uint8_t *to, unsigned int bytes) {
    ptl_dma_h h;
    void *word = to;
    switch (s->command) {
    case READ: PtlHandlerDMAFromHostNB(0, to, bytes, PTL_HANDLER_HOST_MEM, &h); break;
    case CAS: PtlHandlerDMACASNB(0, word, 1, PTL_HANDLER_HOST_MEM, &h); break;
    default: PtlHandlerDMAFetchAddNB(0, 0, word, PTL_UINT64_T, PTL_HANDLER_HOST_MEM, &h); break;
    }
}

__handler int payload(const ptl_payload_t p, void *state) {
    struct state *s = state;
    _Alignas(8) volatile uint8_t local[LOCAL];
    for (unsigned int i = 0; i < LOCAL; i++)
        local[i] = (uint8_t)(i * 7 + 1);
    for (volatile unsigned int i = 0; i < LOOK; i++)
        ;
    uint32_t bad = 0;
    for (unsigned int i = 0; i < LOCAL; i++)
        bad += local[i] != (uint8_t)(i * 7 + 1);
    s->bad_stacks += bad != 0;
    bad = 0;
    for (unsigned int i = 0; i < p.length; i++)
        bad += p.base[i] != 0x33;
    s->bad_packets += bad != 0;
    s->runs++;
    switch (s->place) {
    case PACKET: start(s, p.base, p.length); break;
    case STACK: start(s, (uint8_t *)local, LOCAL); break;
    default: start(s, s->data, MTU); break;
    }
    switch (s->end) {
    case RETURNS: return SUCCESS;
    case FAILS: return FAIL;
    case ABORTS: abort();
    case FAULTS: *(volatile int *)0x40 = 1; break;
    default:
        for (;;)
            ;
    }
    return SUCCESS;
}

__handler int report(int dropped_bytes, bool flow_control, void *state) {
    (void)dropped_bytes, (void)flow_control;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct state), PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Starts reads, the last of which ends much later than this handler. */
__handler int leaves(const ptl_payload_t p, void *state) {
    struct state *s = state;
    (void)p;
    for (int i = 0; i < 32; i++)
        start(s, s->data, MTU);
    return FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static uint32_t numbered(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (uint32_t)i;
    fprintf(stderr, "no %s\n", name);
    exit(2);
}
#define NUMBERED(names, name) numbered(names, sizeof names / sizeof *names, name)

static unsigned char message[PACKETS * MTU];
static unsigned char host[MTU];

static ptl_me_t watched(struct state *start, struct state *into, ptl_handle_ct_t ct) {
    ptl_me_t me = plain_entry(into, sizeof *into, 7, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_USE_ONCE);
    me.ct_handle = ct;
    me.hpu_initial_state = start;
    me.hpu_initial_state_length = offsetof(struct state, data);
    me.handler_host_mem_start = host;
    me.handler_host_mem_length = sizeof host;
    me.completion_handler = report;
    CHECK(PtlHPUAllocMem(sizeof *start, ni, &me.hpu_memory));
    return me;
}

/* A put of this many bytes to rank 1. */
static void put(ptl_size_t bytes) {
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    ptl_handle_md_t md = descriptor(message, bytes, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, ct);
    CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, to_rank(1), 0, 7, 0, NULL, 0));
    ptl_ct_event_t count;
    CHECK(PtlCTWait(ct, 1, &count));
}

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    memset(message, 0x33, sizeof message);
    memset(host, 0x77, sizeof host);
    ptl_handle_eq_t eq;
    CHECK(PtlEQAlloc(ni, 64, &eq));
    ptl_pt_index_t pt;
    CHECK(PtlPTAlloc(ni, 0, eq, 0, &pt));
    static struct state begin, seen;
    int frees = argc == 2;
    if (!frees && argc != 4)
        return 2;
    if (!frees) {
        begin.command = NUMBERED(commands, argv[1]);
        begin.place = NUMBERED(places, argv[2]);
        begin.end = NUMBERED(ends, argv[3]);
    }
    ptl_handle_me_t handle;
    ptl_handle_ct_t ct;
    ptl_ct_event_t count;
    CHECK(PtlCTAlloc(ni, &ct));
    if (spin_rank() == 0) {
        CHECK(spin_barrier());
        put(frees ? 8 : sizeof message);
        CHECK(spin_barrier());
        if (frees)
            put(8);
    } else {
        ptl_me_t me = watched(&begin, &seen, ct);
        me.payload_handler = frees ? leaves : payload;
        ptl_hpu_md_h memory = me.hpu_memory;
        CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
        CHECK(spin_barrier());
        if (frees) {
            /* Refused until the message is complete, with all its reads. */
            unsigned int refused = 0;
            int rc;
            while ((rc = PtlHPUFreeMem(&memory)) == PTL_IN_USE) {
                refused++;
                spin_host_compute(50);
            }
            CHECK(rc);
            EXPECT(refused > 5);
            CHECK(PtlCTAlloc(ni, &ct));
            me = watched(&begin, &seen, ct);
            me.payload_handler = payload;
            CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
        }
        CHECK(spin_barrier());
        CHECK(PtlCTWait(ct, 1, &count));
        unsigned int dirty = 0;
        for (size_t i = 0; i < MTU && begin.place != STATE; i++)
            dirty += seen.data[i] != 0;
        printf("runs %u packets %u stacks %u dirty %u\n", seen.runs, seen.bad_packets, seen.bad_stacks, dirty);
    }
    CHECK(spin_barrier());
    return close_interface();
}
