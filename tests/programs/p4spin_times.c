/* Times at which handler calls take effect, and for which they hold the HPU (sPIN App. B.6): `p4spin_times CASE BYTES`.
 *
 * Rank 0 starts the payload handler of rank 1 with a message of 8 bytes. The handler makes one call, between two reads
 * of its cycle counter; the rank that observes the effect prints the time. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, BITS = 7, ECHO = 8 };

struct state {
    uint32_t what, bytes;
    uint32_t before, after, before_wait, after_wait; /* cycles of the handler */
    int32_t result, waited;
    uint64_t word, other;
    uint8_t data[MTU];
};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

static inline uint32_t cycles(void) {
    uint32_t now = 0;
#ifdef __SPIN_DEVICE__
    __asm__ volatile("rdcycle %0" : "=r"(now) : : "memory");
#endif
    return now;
}

#define TIMED(call)                                                                                                    \
    do {                                                                                                               \
        s->before = cycles();                                                                                          \
        s->result = (int32_t)(call);                                                                                   \
        s->after = cycles();                                                                                           \
    } while (0)

#define WAITED()                                                                                                       \
    do {                                                                                                               \
        s->before_wait = cycles();                                                                                     \
        s->waited = PtlHandlerDMAWait(h);                                                                              \
        s->after_wait = cycles();                                                                                      \
    } while (0)

enum what {
    PUT_FROM_DEVICE,
    PUT_FROM_HOST,
    GET_TO_HOST,
    GET_TO_DEVICE,
    ATOMIC_FROM_DEVICE,
    ATOMIC_FROM_HOST,
    DMA_TO_HOST_B,
    DMA_FROM_HOST_B,
    DMA_TO_HOST_NB,
    DMA_FROM_HOST_NB,
    DMA_CAS_B,
    DMA_CAS_NB,
    DMA_FETCH_ADD_B,
    DMA_FETCH_ADD_NB,
    DMA_TEST,
    CAS,
    FADD,
    YIELD,
    CT_INC,
    CT_GET,
    CT_SET,
    MY_HPU,
    NUM_HPUS
};
static const char *const names[] = {"PutFromDevice",
                                    "PutFromHost",
                                    "GetToHost",
                                    "GetToDevice",
                                    "AtomicFromDevice",
                                    "AtomicFromHost",
                                    "DMAToHostB",
                                    "DMAFromHostB",
                                    "DMAToHostNB",
                                    "DMAFromHostNB",
                                    "DMACASB",
                                    "DMACASNB",
                                    "DMAFetchAddB",
                                    "DMAFetchAddNB",
                                    "DMATest",
                                    "CAS",
                                    "FAdd",
                                    "Yield",
                                    "CTInc",
                                    "CTGet",
                                    "CTSet",
                                    "MyHpu",
                                    "NumHpus"};

__handler int timed(const ptl_payload_t p, void *state) {
    struct state *s = state;
    const ptl_process_t zero = {.rank = 0};
    const ptl_ct_event_t two = {.success = 2, .failure = 0};
    ptl_ct_event_t read;
    ptl_dma_h h = 0;
    (void)p;
    switch (s->what) {
    case PUT_FROM_DEVICE:
        TIMED(PtlHandlerPutFromDevice(s->data, s->bytes, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0));
        break;
    case PUT_FROM_HOST: TIMED(PtlHandlerPutFromHost(0, s->bytes, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0)); break;
    case GET_TO_HOST: TIMED(PtlHandlerGetToHost(0, s->bytes, PTL_LOCAL_ME_CT, zero, ECHO, 0, NULL)); break;
    case GET_TO_DEVICE: TIMED(PtlHandlerGetToDevice(s->data, s->bytes, PTL_LOCAL_ME_CT, zero, ECHO, 0, NULL)); break;
    case ATOMIC_FROM_DEVICE:
        TIMED(PtlHandlerAtomicFromDevice(s->data, s->bytes, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0, PTL_SUM,
                                         PTL_UINT64_T));
        break;
    case ATOMIC_FROM_HOST:
        TIMED(PtlHandlerAtomicFromHost(0, s->bytes, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        break;
    case DMA_TO_HOST_B: TIMED(PtlHandlerDMAToHostB(s->data, 0, s->bytes, PTL_ME_HOST_MEM)); break;
    case DMA_FROM_HOST_B: TIMED(PtlHandlerDMAFromHostB(0, s->data, s->bytes, PTL_ME_HOST_MEM)); break;
    case DMA_TO_HOST_NB:
        TIMED(PtlHandlerDMAToHostNB(s->data, 0, s->bytes, PTL_ME_HOST_MEM, &h));
        WAITED();
        break;
    case DMA_FROM_HOST_NB:
        TIMED(PtlHandlerDMAFromHostNB(0, s->data, s->bytes, PTL_ME_HOST_MEM, &h));
        WAITED();
        break;
    case DMA_CAS_B: TIMED(PtlHandlerDMACASB(0, &s->word, 1, PTL_ME_HOST_MEM)); break;
    case DMA_CAS_NB:
        TIMED(PtlHandlerDMACASNB(0, &s->word, 1, PTL_ME_HOST_MEM, &h));
        WAITED();
        break;
    case DMA_FETCH_ADD_B: TIMED(PtlHandlerDMAFetchAddB(0, 1, &s->word, PTL_UINT64_T, PTL_ME_HOST_MEM)); break;
    case DMA_FETCH_ADD_NB:
        TIMED(PtlHandlerDMAFetchAddNB(0, 1, &s->word, PTL_UINT64_T, PTL_ME_HOST_MEM, &h));
        WAITED();
        break;
    case DMA_TEST:
        if (PtlHandlerDMAFromHostNB(0, s->data, s->bytes, PTL_ME_HOST_MEM, &h) != 0)
            return FAIL;
        TIMED(PtlHandlerDMATest(h));
        break;
    case CAS: TIMED(PtlHandlerCAS(&s->word, 0, 1)); break;
    case FADD: TIMED(PtlHandlerFAdd(&s->word, &s->other, 1)); break;
    case YIELD: TIMED(PtlHandlerYield()); break;
    case CT_INC: TIMED(PtlHandlerCTInc(two)); break;
    case CT_GET:
        TIMED(PtlHandlerCTGet(&read));
        s->word = read.success;
        break;
    case CT_SET: TIMED(PtlHandlerCTSet(two)); break;
    case MY_HPU: TIMED(PTL_MY_HPU); break;
    case NUM_HPUS: TIMED(PTL_NUM_HPUS); break;
    default: return FAIL;
    }
    return SUCCESS;
}

__handler int tell(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered;
    return PtlHandlerDMAToHostB(state, 0, offsetof(struct state, word), PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char memory[MTU];

/* An entry that everything is allowed on; its messages count. */
static void append(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_handle_ct_t ct) {
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry(memory, MTU, bits, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    me.options |= PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE;
    me.ct_handle = ct;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Prints the time at which this rank sees the counter at `count`. */
static void see(ptl_handle_ct_t ct, ptl_size_t count) {
    ptl_ct_event_t event;
    CHECK(PtlCTWait(ct, count, &event));
    EXPECT(event.failure == 0);
    printf("seen %llu\n", (unsigned long long)spin_time_ps());
}

static void initiator(ptl_pt_index_t pt, enum what what) {
    static uint64_t word;
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    append(pt, ECHO, ct);
    ptl_handle_md_t md = descriptor(&word, sizeof word, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE);
    CHECK(spin_barrier());
    printf("start %llu\n", (unsigned long long)spin_time_ps());
    CHECK(PtlPut(md, 0, sizeof word, PTL_NO_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
    if (what <= ATOMIC_FROM_HOST && what != GET_TO_HOST && what != GET_TO_DEVICE)
        see(ct, 1);
}

static void target(ptl_pt_index_t pt, ptl_handle_eq_t eq, enum what what, uint32_t bytes) {
    static struct state first, told;
    ptl_handle_ct_t ct;
    ptl_handle_me_t handle;
    CHECK(PtlCTAlloc(ni, &ct));
    ptl_me_t me = plain_entry(memory, MTU, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    first.what = what;
    first.bytes = bytes;
    CHECK(PtlHPUAllocMem(sizeof first, ni, &me.hpu_memory));
    me.ct_handle = ct;
    me.payload_handler = timed;
    me.completion_handler = tell;
    me.hpu_initial_state = &first;
    me.hpu_initial_state_length = offsetof(struct state, word);
    me.handler_host_mem_start = &told;
    me.handler_host_mem_length = sizeof told;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
    if (what == GET_TO_HOST || what == CT_INC || what == CT_SET)
        see(ct, what == GET_TO_HOST ? 1 : 2);
    ptl_event_t event;
    do
        CHECK(PtlEQWait(eq, &event)); /* REPLY may precede it */
    while (event.type == PTL_EVENT_REPLY);
    EXPECT(event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK);
    printf("result %d %d\ncycles %u %u %u %u\n", told.result, told.waited, told.before, told.after, told.before_wait,
           told.after_wait);
}

int main(int argc, char **argv) {
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlEQAlloc(ni, 16, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, 5, &pt));
    for (unsigned what = 0; argc > 2 && what < sizeof names / sizeof *names; what++) {
        if (strcmp(argv[1], names[what]) != 0)
            continue;
        if (spin_rank() == 0)
            initiator(pt, (enum what)what);
        else
            target(pt, eq, (enum what)what, (uint32_t)atoi(argv[2]));
        CHECK(spin_barrier());
        return close_interface();
    }
    fprintf(stderr, "p4spin_times: no such case\n");
    return 2;
}
