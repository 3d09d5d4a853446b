/* The limits of sPIN App. B.2.1, as returned by the interface and as enforced by the card: `p4spin_limits CASE`. */
#include "../portals/harness.h"
#include <spin.h>

enum { BITS = 7 };

struct state {
    uint64_t cycles, length;
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

/* Takes the given number of cycles for each byte of its packet. */
__handler int takes_time(const ptl_payload_t p, void *state) {
    uint64_t most = ((struct state *)state)->cycles * p.length;
#ifdef __SPIN_DEVICE__
    uint32_t start, now; /* cards count from any time on */
    __asm__ volatile("rdcycle %0" : "=r"(start) : : "memory");
    do
        __asm__ volatile("rdcycle %0" : "=r"(now) : : "memory");
    while (now - start + 100 < most);
#endif
    return most > 0 ? SUCCESS : FAIL;
}

__handler int sends_payload(const ptl_payload_t p, void *state) {
    struct state *s = state;
    const ptl_process_t zero = {.rank = 0};
    int rc = PtlHandlerPutFromDevice(p.base, s->length, 0, PTL_NO_ACK_REQ, zero, BITS, 0, NULL, 0);
    return rc == (s->length <= s->cycles ? 0 : SPIN_ERR_INVALID) ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char memory[1 << 16], sent[1 << 16];
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;

static int receiver(void) { return spin_rank() == 1; }

static ptl_me_t with(ptl_payload_handler_t handler, struct state *first, ptl_size_t bytes) {
    ptl_me_t me = plain_entry(memory, sizeof memory, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    CHECK(PtlHPUAllocMem(bytes, ni, &me.hpu_memory));
    me.payload_handler = handler;
    me.hpu_initial_state = first;
    me.hpu_initial_state_length = bytes;
    return me;
}

static int append(const ptl_me_t *me) {
    ptl_handle_me_t handle;
    return PtlMEAppend(ni, pt, me, PTL_PRIORITY_LIST, NULL, &handle);
}

static ptl_ni_fail_t put(size_t bytes) {
    ptl_handle_md_t md = descriptor(sent, sizeof sent, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    CHECK(PtlPut(md, 0, bytes, PTL_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
    ptl_ni_fail_t fail = await_event(eq, PTL_EVENT_ACK).ni_fail_type;
    CHECK(PtlMDRelease(md));
    return fail;
}

static void queried(void) {
    printf("rank %d: %llu %llu %llu %llu %llu %llu\n", spin_rank(), (unsigned long long)limits.max_user_hdr_size,
           (unsigned long long)limits.max_payload_size, (unsigned long long)limits.max_handler_mem,
           (unsigned long long)limits.max_initial_state, (unsigned long long)limits.min_fragmentation_limit,
           (unsigned long long)limits.max_cycles_per_byte);
}

static void user_header(void) {
    struct state first = {1, 0};
    ptl_me_t me = with(takes_time, &first, sizeof first);
    me.user_hdr_size = limits.max_user_hdr_size + 1;
    EXPECT(append(&me) == PTL_ARG_INVALID);
    me.user_hdr_size = limits.max_user_hdr_size;
    CHECK(append(&me));
}

static void handler_memory(void) {
    ptl_hpu_md_h all, more;
    uint64_t before = spin_time_ps();
    EXPECT(PtlHPUAllocMem(limits.max_handler_mem + 1, ni, &all) == PTL_NO_SPACE);
    EXPECT(PtlHPUAllocMem(0, ni, &all) == PTL_ARG_INVALID);
    CHECK(PtlHPUAllocMem(limits.max_handler_mem, ni, &all));
    EXPECT(PtlHPUAllocMem(limits.max_handler_mem, ni, &more) == PTL_NO_SPACE);
    printf("rank %d: refused for %llu\n", spin_rank(), (unsigned long long)(spin_time_ps() - before));
    CHECK(PtlHPUFreeMem(&all));
    EXPECT(all == PTL_INVALID_HANDLE && PtlHPUFreeMem(&all) == PTL_ARG_INVALID);
    CHECK(PtlHPUAllocMem(limits.max_handler_mem / 2, ni, &all));
    CHECK(PtlHPUAllocMem(limits.max_handler_mem / 2, ni, &more));
}

static void initial_state(void) {
    static struct state most[4096];
    most[0].cycles = 1;
    ptl_me_t me = with(takes_time, most, limits.max_initial_state + 64);
    EXPECT(append(&me) == PTL_ARG_INVALID);
    me.hpu_initial_state_length = limits.max_initial_state;
    CHECK(append(&me));
    /* It has to fit the memory that it is for. */
    CHECK(PtlHPUAllocMem(64, ni, &me.hpu_memory));
    me.hpu_initial_state_length = 65;
    EXPECT(append(&me) == PTL_ARG_INVALID);
    me.hpu_initial_state_length = 64;
    CHECK(append(&me));
    me.hpu_memory = PTL_INVALID_HANDLE; /* nor is there state without memory */
    EXPECT(append(&me) == PTL_ARG_INVALID);
}

/* A put of a whole packet is sent, one byte more is refused. */
static void payload_size(void) {
    static unsigned char landed[1 << 16];
    ptl_ct_event_t count;
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    for (unsigned more = 0; more < 2; more++) {
        if (!receiver()) {
            ptl_me_t me = plain_entry(landed, sizeof landed, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
            me.options |= PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                          PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES;
            me.ct_handle = ct;
            fill(sent, sizeof sent, 9);
            CHECK(append(&me));
            CHECK(spin_barrier());
            EXPECT(put(limits.max_payload_size) == PTL_NI_OK);
            if (more == 0) {
                CHECK(PtlCTWait(ct, 1, &count));
                EXPECT(count.success == limits.max_payload_size && count.failure == 0);
                EXPECT(memcmp(landed, sent, limits.max_payload_size) == 0);
            }
        } else {
            struct state first = {limits.max_payload_size, limits.max_payload_size + more};
            ptl_me_t me = with(sends_payload, &first, sizeof first);
            me.options |= PTL_ME_USE_ONCE;
            CHECK(append(&me));
            CHECK(spin_barrier());
            EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_OK);
            await_event(eq, PTL_EVENT_AUTO_UNLINK);
        }
        CHECK(spin_barrier());
    }
}

/* A handler that takes the permitted cycles for each byte of a full packet is not stopped; one that takes more is. */
static void cycles(void) {
    for (unsigned more = 0; more < 2; more++) {
        if (!receiver()) {
            CHECK(spin_barrier());
            EXPECT(put(limits.max_payload_size) == (more ? PTL_NI_HANDLER_TIMEOUT : PTL_NI_OK));
            EXPECT(more || put(1) == PTL_NI_OK);
        } else {
            struct state first = {limits.max_cycles_per_byte + more, 0};
            ptl_me_t me = with(takes_time, &first, sizeof first);
            me.match_bits = BITS;
            ptl_handle_me_t handle;
            CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
            CHECK(spin_barrier());
            for (unsigned k = 0; k < 2 - more; k++)
                EXPECT(await_event(eq, more ? PTL_EVENT_HANDLER_ERROR : PTL_EVENT_PUT).pt_index == pt);
            CHECK(PtlMEUnlink(handle));
        }
        CHECK(spin_barrier());
    }
}

/* Retry loops must let time advance (the run would not end). */
static void loops(void) {
    struct state first = {1, 0};
    ptl_sr_value_t drops;
    if (!receiver()) {
        ptl_handle_md_t md = descriptor(sent, sizeof sent, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
        CHECK(spin_barrier());
        CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to_rank(1), pt, BITS + 1, 0, NULL, 0)); /* nothing matches */
        CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
        CHECK(spin_barrier());
        return;
    }
    ptl_me_t me = with(takes_time, &first, sizeof first);
    me.options |= PTL_ME_USE_ONCE;
    CHECK(append(&me));
    CHECK(spin_barrier());
    uint64_t before = spin_time_ps(), looks = 0;
    do {
        CHECK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
        looks++;
    } while (drops == 0);
    uint64_t passed = spin_time_ps() - before;
    while (PtlHPUFreeMem(&me.hpu_memory) == PTL_IN_USE) {
    }
    EXPECT(me.hpu_memory == PTL_INVALID_HANDLE);
    EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_OK);
    EXPECT(looks > 1 && passed % looks == 0);
    printf("rank 1: a look takes %llu\n", (unsigned long long)(passed / looks));
    CHECK(spin_barrier());
}

static const struct test_case cases[] = {CASE(queried),       CASE(user_header),  CASE(handler_memory),
                                         CASE(initial_state), CASE(payload_size), CASE(cycles),
                                         CASE(loops)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, 5, &pt));
    return RUN_CASE(argc, argv, cases);
}
