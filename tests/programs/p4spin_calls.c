/* Effects of handler calls (sPIN App. B.6), against plain computations: `p4spin_calls CASE [NUMBER]`. Rank 0 starts the
 * handlers of rank 1 and is the target of their messages. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, BYTES = 8 * MTU, BITS = 7, ECHO = 8, SOURCE = 9, WORDS = 32 };

struct state {
    int32_t results[16];
    uint64_t words[WORDS];
    uint32_t number; /* given on the command line */
    uint32_t count, running, most, hpus, moved, pad;
    uint8_t data[MTU];
};

#define TOLD offsetof(struct state, data) /* result for the host */

/* ---- Gets ------------------------------------------------------------------------------------------------------- */

enum { GOT = MTU * 2 + 5, FROM = 3, TO = 64 };

__handler int get_to_host(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0};
    (void)dropped_bytes, (void)flow_control_triggered, (void)state;
    int rc = PtlHandlerGetToHost(TO, GOT, PTL_LOCAL_ME_CT, zero, SOURCE, FROM, (void *)77);
    return rc == 0 ? SUCCESS : FAIL;
}

/* A whole packet; one of which the target has only half; one without a match. */
__handler int get_to_device(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0};
    struct state *s = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    __builtin_memset(s->data, UNTOUCHED, MTU);
    s->results[0] = PtlHandlerGetToDevice(s->data, MTU, PTL_LOCAL_ME_CT, zero, SOURCE, 1, NULL);
    s->results[1] = PtlHandlerDMAToHostB(s->data, 0, MTU, PTL_ME_HOST_MEM);
    __builtin_memset(s->data, UNTOUCHED, MTU);
    s->results[2] = PtlHandlerGetToDevice(s->data, 100, PTL_LOCAL_ME_CT, zero, SOURCE, BYTES - 50, NULL);
    s->results[3] = PtlHandlerDMAToHostB(s->data, MTU, 200, PTL_ME_HOST_MEM);
    s->results[4] = PtlHandlerGetToDevice(s->data, 8, PTL_LOCAL_ME_CT, zero, 12345, 0, NULL);
    s->results[5] = PtlHandlerGetToDevice(s->data, 0, 0, zero, SOURCE, 0, NULL);
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- Atomics at another process --------------------------------------------------------------------------------- */

enum { ITEMS = 4, ITEM = 8 };

/* Operation `k` works on the k-th slot of ITEMS items at the target, with the data at the same place here. */
static const struct {
    uint8_t operation, type, bytes;
} atomics[] = {{PTL_SUM, PTL_UINT64_T, 8}, {PTL_PROD, PTL_INT32_T, 4}, {PTL_MIN, PTL_INT16_T, 2},
               {PTL_MAX, PTL_UINT8_T, 1},  {PTL_BXOR, PTL_INT64_T, 8}, {PTL_BAND, PTL_UINT32_T, 4},
               {PTL_LOR, PTL_INT8_T, 1},   {PTL_SUM, PTL_FLOAT, 4},    {PTL_PROD, PTL_DOUBLE, 8}};
enum { ATOMICS = sizeof atomics / sizeof *atomics, SLOT = ITEMS * ITEM };

__handler int atomics_from_device(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0};
    struct state *s = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    if (PtlHandlerDMAFromHostB(0, s->data, ATOMICS * SLOT, PTL_ME_HOST_MEM) != 0)
        return FAIL;
    for (unsigned k = 0; k < ATOMICS; k++)
        if (PtlHandlerAtomicFromDevice(s->data + k * SLOT, ITEMS * atomics[k].bytes, PTL_LOCAL_ME_CT, PTL_CT_ACK_REQ,
                                       zero, SOURCE, k * SLOT, NULL, 5, atomics[k].operation, atomics[k].type) != 0)
            return FAIL;
    return SUCCESS;
}

__handler int atomics_from_host(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0};
    (void)dropped_bytes, (void)flow_control_triggered, (void)state;
    for (unsigned k = 0; k < ATOMICS; k++)
        if (PtlHandlerAtomicFromHost(k * SLOT, ITEMS * atomics[k].bytes, PTL_LOCAL_ME_CT, PTL_CT_ACK_REQ, zero, SOURCE,
                                     k * SLOT, NULL, 5, atomics[k].operation, atomics[k].type) != 0)
            return FAIL;
    return SUCCESS;
}

/* ---- Atomics on host memory ------------------------------------------------------------------------------------- */

enum { TYPES = 11, INCREMENT = 3 };

__handler int dma_compare_and_swap(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    uint64_t right = 100, wrong = 7, later = 102;
    ptl_dma_h h;
    (void)dropped_bytes, (void)flow_control_triggered;
    s->results[0] = PtlHandlerDMACASB(8, &right, 101, PTL_ME_HOST_MEM); /* 100 -> 101 */
    s->words[0] = right;
    s->results[1] = PtlHandlerDMACASB(8, &wrong, 102, PTL_ME_HOST_MEM); /* fails and reads 101 */
    s->words[1] = wrong;
    s->results[2] = PtlHandlerDMACASB(8, &wrong, 102, PTL_ME_HOST_MEM); /* 101 -> 102 */
    s->results[3] = PtlHandlerDMACASNB(8, &later, 103, PTL_ME_HOST_MEM, &h);
    s->results[4] = PtlHandlerDMATest(h); /* a round trip takes longer */
    s->results[5] = PtlHandlerDMAWait(h); /* 102 -> 103 */
    s->words[2] = later;
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

static const uint64_t increments[TYPES] = {INCREMENT,          INCREMENT,         INCREMENT,
                                           INCREMENT,          INCREMENT,         INCREMENT,
                                           INCREMENT,          INCREMENT,         0x3FC00000 /* 1.5f */,
                                           0x3FC000003FC00000, 0x3FF8000000000000 /* 1.5 */};
static const uint8_t types[TYPES] = {PTL_INT8_T,  PTL_UINT8_T,       PTL_INT16_T, PTL_UINT16_T,
                                     PTL_INT32_T, PTL_UINT32_T,      PTL_INT64_T, PTL_UINT64_T,
                                     PTL_FLOAT,   PTL_FLOAT_COMPLEX, PTL_DOUBLE};

__handler int dma_fetch_and_add(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    ptl_dma_h h[TYPES];
    (void)dropped_bytes, (void)flow_control_triggered;
    for (unsigned k = 0; k < TYPES; k++)
        if (PtlHandlerDMAFetchAddB(8 * k, increments[k], &s->words[k], types[k], PTL_ME_HOST_MEM) != 0)
            return FAIL;
    for (unsigned k = 0; k < TYPES; k++)
        if (PtlHandlerDMAFetchAddNB(8 * k, increments[k], &s->words[TYPES + k], types[k], PTL_ME_HOST_MEM, &h[k]) != 0)
            return FAIL;
    for (unsigned k = 0; k < TYPES; k++)
        while (PtlHandlerDMATest(h[k]) == 0)
            s->count++;
    s->results[0] = PtlHandlerDMAFetchAddB(0, 1, &s->words[0], PTL_DOUBLE_COMPLEX, PTL_ME_HOST_MEM);
    s->results[1] = PtlHandlerDMAFetchAddB(4, 1, &s->words[0], PTL_UINT64_T, PTL_ME_HOST_MEM);
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Every packet counts itself in host memory by fetch-and-add and by compare-and-swap, concurrently with others. */
__handler int count_in_host(const ptl_payload_t p, void *state) {
    uint64_t before, seen = 0;
    (void)state;
    if (PtlHandlerDMAFetchAddB(0, 1, &before, PTL_UINT64_T, PTL_HANDLER_HOST_MEM) != 0 || before >= BYTES / MTU)
        return FAIL;
    for (uint64_t expected = 0;; expected = seen) {
        seen = expected;
        if (PtlHandlerDMACASB(8, &seen, expected + p.length, PTL_HANDLER_HOST_MEM) != 0)
            return FAIL;
        if (seen == expected)
            return SUCCESS;
    }
}

/* ---- Atomics on HPU memory -------------------------------------------------------------------------------------- */

/* words[0]: packets by fetch-and-add; words[1]: bytes by compare-and-swap; words[2..]: counts seen by each packet. */
__handler int count_on_card(const ptl_payload_t p, void *state) {
    struct state *s = state;
    uint64_t before, expected;
    if (PtlHandlerFAdd(&s->words[0], &before, 1) != 0 || before >= BYTES / MTU)
        return FAIL;
    s->words[2 + before]++;
    do
        expected = *(volatile uint64_t *)&s->words[1];
    while (!PtlHandlerCAS(&s->words[1], expected, expected + p.length));
    return PtlHandlerCAS(&s->words[30], 1, 2) == 0 ? SUCCESS : FAIL; /* it is 0 */
}

__handler int tell(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)flow_control_triggered;
    ((struct state *)state)->results[15] = dropped_bytes;
    return PtlHandlerDMAToHostB(state, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- Posted writes ---------------------------------------------------------------------------------------------- */

/* The first write keeps the engine busy, so the second has not left at the first test. */
__handler int posted_writes(const ptl_payload_t p, void *state) {
    struct state *s = state;
    ptl_dma_h first, second;
    if (p.offset != 0)
        return DROP;
    s->results[0] = PtlHandlerDMAToHostNB(p.base, 0, p.length, PTL_ME_HOST_MEM, &first);
    s->results[1] = PtlHandlerDMAToHostNB(p.base, p.length, p.length, PTL_ME_HOST_MEM, &second);
    s->results[2] = PtlHandlerDMATest(second);
    s->results[3] = PtlHandlerDMAWait(second);
    s->results[4] = PtlHandlerDMATest(first); /* it left before */
    s->results[5] = PtlHandlerDMATest(first); /* its handle is free */
    s->results[6] = PtlHandlerDMAWait(second);
    __builtin_memset(p.base, 0, p.length); /* both have left */
    return SUCCESS;
}

/* ---- Contexts --------------------------------------------------------------------------------------------------- */

/* Waits for host memory, several times; records the number of concurrent waiters, and migration. */
__handler int wait_for_host(const ptl_payload_t p, void *state) {
    struct state *s = state;
    uint32_t hpu = PTL_MY_HPU, words[64], running = __atomic_add_fetch(&s->running, 1, __ATOMIC_RELAXED);
    while (running > s->most)
        s->most = running;
    for (int i = 0; i < 4; i++) {
        if (PtlHandlerDMAFromHostB(p.offset, words, sizeof words, PTL_ME_HOST_MEM) != 0)
            return FAIL;
        if (PTL_MY_HPU != hpu)
            __atomic_fetch_add(&s->moved, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_or(&s->hpus, 1u << hpu, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->running, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->count, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

/* Every second packet's handler waits until the next one has run; `number`: whether it yields. */
__handler int wait_for_next(const ptl_payload_t p, void *state) {
    struct state *s = state;
    uint32_t packet = (uint32_t)(p.offset / MTU);
    if (packet % 2 == 1) {
        __atomic_store_n(&s->data[packet], 1, __ATOMIC_RELEASE);
        return PtlHandlerYield() == 0 ? SUCCESS : FAIL;
    }
    while (__atomic_load_n(&s->data[packet + 1], __ATOMIC_ACQUIRE) == 0) {
        __atomic_fetch_add(&s->count, 1, __ATOMIC_RELAXED);
        if (s->number && PtlHandlerYield() != 0)
            return FAIL;
    }
    return SUCCESS;
}

/* ---- Alignment and order ---------------------------------------------------------------------------------------- */

/* words[packet]: the payload's alignment, then its length. */
__handler int alignment(const ptl_payload_t p, void *state) {
    struct state *s = state;
    uint32_t packet = (uint32_t)((p.offset + MTU - 1) / MTU);
    s->words[packet] = (uint64_t)((uintptr_t)p.base & 63) << 32 | p.length;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Packets of several messages: the current message, in static memory, and data for each message's entry. */
static uint32_t turns, changes, last;

__handler int interleaved(const ptl_payload_t p, void *state) {
    struct state *s = state;
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&last, s->number, __ATOMIC_RELAXED) != s->number)
        __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

__handler int tell_turns(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    s->words[0] = turns;
    s->words[1] = changes;
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- Misuse ----------------------------------------------------------------------------------------------------- */

/* Numbers out of range, to every call that takes some; memory is not accessed then. */
__handler int numbers(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0}, nobody = {.rank = 99};
    struct state *s = state;
    uint8_t *d = s->data, *wild = (uint8_t *)64;
    ptl_dma_h h;
    uint32_t n = 0;
    (void)dropped_bytes, (void)flow_control_triggered;
#define BAD(call) (n++, s->count += (call) == SPIN_ERR_INVALID)
    BAD(PtlHandlerPutFromDevice(wild, MTU + 1, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromDevice(d, 8, 0, PTL_NO_ACK_REQ, nobody, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromDevice(d, 8, 2, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromDevice(d, 8, 0, 9, zero, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromHost(BYTES - 7, 8, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromHost(UINT64_MAX, 8, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0));
    BAD(PtlHandlerPutFromHost(0, 8, 0, PTL_NO_ACK_REQ, nobody, ECHO, 0, NULL, 0));
    BAD(PtlHandlerGetToHost(BYTES - 7, 8, 0, zero, SOURCE, 0, NULL));
    BAD(PtlHandlerGetToHost(0, 8, 0, nobody, SOURCE, 0, NULL));
    BAD(PtlHandlerGetToDevice(wild, MTU + 1, 0, zero, SOURCE, 0, NULL));
    BAD(PtlHandlerGetToDevice(d, 8, 0, nobody, SOURCE, 0, NULL));
    BAD(PtlHandlerAtomicFromDevice(d, 520, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    BAD(PtlHandlerAtomicFromDevice(d, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_SWAP, PTL_UINT64_T));
    BAD(PtlHandlerAtomicFromDevice(d, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_BXOR, PTL_DOUBLE));
    BAD(PtlHandlerAtomicFromDevice(d, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, 200, PTL_DOUBLE));
    BAD(PtlHandlerAtomicFromHost(0, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_SUM, 200));
    BAD(PtlHandlerAtomicFromHost(BYTES, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    BAD(PtlHandlerDMAToHostB(wild, BYTES - 7, 8, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMAToHostB(d, 0, sizeof *s + 1, PTL_HANDLER_HOST_MEM));
    BAD(PtlHandlerDMAToHostNB(d, 0, 8, 2, &h));
    BAD(PtlHandlerDMAFromHostB(BYTES - 7, wild, 8, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMAFromHostNB(UINT64_MAX, d, 8, PTL_ME_HOST_MEM, &h));
    BAD(PtlHandlerDMAFromHostB(0, d, 1ull << 40, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMACASB(BYTES, s->words, 0, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMACASNB(4, s->words, 0, PTL_ME_HOST_MEM, &h));
    BAD(PtlHandlerDMACASB(0, s->words, 0, 7));
    BAD(PtlHandlerDMAFetchAddB(2, 1, s->words, PTL_FLOAT, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMAFetchAddNB(BYTES, 1, s->words, PTL_INT8_T, PTL_ME_HOST_MEM, &h));
    BAD(PtlHandlerDMAFetchAddB(0, 1, s->words, PTL_LONG_DOUBLE, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMAFetchAddB(0, 1, s->words, 99, PTL_ME_HOST_MEM));
    BAD(PtlHandlerDMATest(4321));
    BAD(PtlHandlerDMAWait(4321));
#undef BAD
    s->results[0] = (int32_t)n;
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Passes memory outside the handler's windows to the call with this number. */
__handler int wild(int dropped_bytes, bool flow_control_triggered, void *state) {
    const ptl_process_t zero = {.rank = 0};
    struct state *s = state;
    void *theirs = (void *)0x40;
    (void)dropped_bytes, (void)flow_control_triggered;
    switch (s->number) {
    case 0: PtlHandlerPutFromDevice(theirs, 8, 0, PTL_NO_ACK_REQ, zero, ECHO, 0, NULL, 0); break;
    case 1: PtlHandlerGetToDevice(theirs, 8, 0, zero, SOURCE, 0, NULL); break;
    case 2:
        PtlHandlerAtomicFromDevice(theirs, 8, 0, PTL_NO_ACK_REQ, zero, SOURCE, 0, NULL, 0, PTL_SUM, PTL_UINT64_T);
        break;
    case 3: PtlHandlerDMAToHostB(theirs, 0, 8, PTL_ME_HOST_MEM); break;
    case 4: PtlHandlerDMAFromHostB(0, theirs, 8, PTL_ME_HOST_MEM); break;
    case 5: PtlHandlerDMAFetchAddB(0, 1, theirs, PTL_UINT64_T, PTL_ME_HOST_MEM); break;
    case 6: PtlHandlerCAS(theirs, 0, 1); break;
    case 7: PtlHandlerFAdd(theirs, s->words, 1); break;
    case 8:
        PtlHandlerDMAFromHostB(0, s->data + sizeof s->data - 4, 128, PTL_ME_HOST_MEM); /* some of it its own */
        break;
    case 9:
        PtlHandlerCAS((uint64_t *)((uint8_t *)s->words + 4), 0, 1); /* not aligned */
        break;
    }
    return SUCCESS;
}

/* Unmapped host memory: the read fails, and so does the message. */
__handler int unmapped(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct state *s = state;
    ptl_dma_h h;
    int32_t result;
    (void)dropped_bytes, (void)flow_control_triggered;
    s->results[0] = PtlHandlerDMAFromHostB(TOLD, s->words, 8, PTL_HANDLER_HOST_MEM);
    s->results[1] = PtlHandlerDMAFetchAddB(TOLD, 1, s->words, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    s->results[2] = PtlHandlerDMAFromHostNB(TOLD, s->words, 8, PTL_HANDLER_HOST_MEM, &h);
    while ((result = PtlHandlerDMATest(h)) == 0) {
    }
    s->results[3] = result;
    return PtlHandlerDMAToHostB(s, 0, TOLD, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char sent[BYTES], received[BYTES] __attribute__((aligned(64))), got[BYTES] __attribute__((aligned(64)));
static struct state told;
static uint32_t number;
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static ptl_pt_index_t pt;

static int receiver(void) { return spin_rank() == 1; }

static ptl_me_t served(unsigned char *memory, ptl_match_bits_t bits, ptl_header_handler_t h, ptl_payload_handler_t p,
                       ptl_completion_handler_t c, uint32_t argument) {
    static struct state first;
    ptl_me_t me = plain_entry(memory, BYTES, bits, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    first.number = argument;
    CHECK(PtlHPUAllocMem(sizeof first, ni, &me.hpu_memory));
    me.ct_handle = ct;
    me.header_handler = h;
    me.payload_handler = p;
    me.completion_handler = c;
    me.hpu_initial_state = &first;
    me.hpu_initial_state_length = TOLD;
    me.handler_host_mem_start = &told;
    me.handler_host_mem_length = sizeof told;
    return me;
}

static void append(const ptl_me_t *me) {
    ptl_handle_me_t handle;
    CHECK(PtlMEAppend(ni, pt, me, PTL_PRIORITY_LIST, NULL, &handle));
}

static void serve(ptl_payload_handler_t p, ptl_completion_handler_t c) {
    ptl_me_t me = served(received, BITS, NULL, p, c, number);
    append(&me);
    CHECK(spin_barrier());
}

/* Appends a plain entry of rank 0 for requests of handlers; messages count. */
static void offer(unsigned char *memory, ptl_match_bits_t bits) {
    ptl_me_t me = plain_entry(memory, BYTES, bits, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    me.options |= PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE;
    me.ct_handle = ct;
    append(&me);
}

static void send_to(unsigned int target, ptl_match_bits_t bits, size_t bytes) {
    ptl_handle_md_t md = descriptor(sent, BYTES, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    CHECK(PtlPut(md, 0, bytes, PTL_ACK_REQ, to_rank(target), pt, bits, 0, NULL, 0));
}

static ptl_event_t sends(size_t bytes) {
    CHECK(spin_barrier());
    send_to(1, BITS, bytes);
    return await_event(eq, PTL_EVENT_ACK);
}

static void delivered(void) { EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_OK); }

static void counted(ptl_size_t count) {
    ptl_ct_event_t value;
    CHECK(PtlCTWait(ct, count, &value));
    EXPECT(value.success == count && value.failure == 0);
}

static void gets_to_host(void) {
    fill(got, BYTES, 3);
    if (!receiver()) {
        offer(got, SOURCE);
        sends(8);
        return counted(1);
    }
    memset(received, UNTOUCHED, BYTES);
    fill(sent, BYTES, 3);
    serve(NULL, get_to_host);
    int replies = 0, puts = 0;
    while (replies + puts < 2) {
        ptl_event_t event;
        CHECK(PtlEQWait(eq, &event));
        EXPECT(event.ni_fail_type == PTL_NI_OK);
        puts += event.type == PTL_EVENT_PUT;
        if (event.type == PTL_EVENT_REPLY) {
            EXPECT(event.mlength == GOT && event.user_ptr == (void *)77 && event.remote_offset == FROM);
            replies++;
        }
    }
    EXPECT(replies == 1 && puts == 1);
    counted(1);
    EXPECT(memcmp(received + TO, sent + FROM, GOT) == 0 && is_untouched(received + TO + GOT, BYTES - TO - GOT));
    EXPECT(is_untouched(received + 8, TO - 8)); /* 8 bytes of the message that started it */
}

static void gets_to_device(void) {
    fill(got, BYTES, 3);
    if (!receiver()) {
        offer(got, SOURCE);
        sends(8);
        return counted(3);
    }
    fill(sent, BYTES, 3);
    serve(NULL, get_to_device);
    delivered();
    const int32_t expected[] = {0, 0, 0, 0, SPIN_ERR_FAILED, 0};
    ptl_ct_event_t value;
    EXPECT(memcmp(told.results, expected, sizeof expected) == 0);
    EXPECT(memcmp(received, sent + 1, MTU) == 0);
    EXPECT(memcmp(received + MTU, sent + BYTES - 50, 50) == 0 && is_untouched(received + MTU + 50, 150));
    CHECK(PtlCTGet(ct, &value));
    EXPECT(value.success == 2 && value.failure == 1); /* the last one is not counted */
}

/* The operands, of values that no type rounds. */
static void operands(unsigned char *slots, unsigned int seed) {
    for (unsigned k = 0; k < ATOMICS; k++)
        for (unsigned i = 0; i < ITEMS; i++) {
            int64_t value = (int64_t)(k * 7 + i * 3 + seed) % 11 - (atomics[k].type == PTL_UINT8_T ? 0 : 4);
            unsigned char *item = slots + k * SLOT + i * atomics[k].bytes;
            float f = (float)value;
            double d = (double)value;
            memcpy(item,
                   atomics[k].type == PTL_FLOAT    ? (void *)&f
                   : atomics[k].type == PTL_DOUBLE ? (void *)&d
                                                   : &value,
                   atomics[k].bytes);
        }
}

#define COMBINE(T, expression)                                                                                         \
    do {                                                                                                               \
        T a, b;                                                                                                        \
        memcpy(&a, x, sizeof a), memcpy(&b, y, sizeof b);                                                              \
        a = (T)(expression);                                                                                           \
        memcpy(x, &a, sizeof a);                                                                                       \
    } while (0)

static void combine(unsigned k, unsigned char *x, const unsigned char *y) {
    switch (k) {
    case 0: COMBINE(uint64_t, a + b); break;
    case 1: COMBINE(int32_t, a *b); break;
    case 2: COMBINE(int16_t, a < b ? a : b); break;
    case 3: COMBINE(uint8_t, a > b ? a : b); break;
    case 4: COMBINE(int64_t, a ^ b); break;
    case 5: COMBINE(uint32_t, a &b); break;
    case 6: COMBINE(int8_t, a || b); break;
    case 7: COMBINE(float, a + b); break;
    default: COMBINE(double, a *b); break;
    }
}

static void atomics_with(ptl_completion_handler_t handler) {
    static unsigned char expected[ATOMICS * SLOT], data[ATOMICS * SLOT];
    operands(data, 5);
    if (!receiver()) {
        operands(got, 1);
        operands(expected, 1);
        for (unsigned k = 0; k < ATOMICS; k++)
            for (unsigned i = 0; i < ITEMS; i++)
                combine(k, expected + k * SLOT + i * atomics[k].bytes, data + k * SLOT + i * atomics[k].bytes);
        offer(got, SOURCE);
        sends(0);
        counted(ATOMICS);
        EXPECT(memcmp(got, expected, sizeof expected) == 0);
        return;
    }
    memcpy(received, data, sizeof data);
    serve(NULL, handler);
    delivered();
    counted(2 * ATOMICS); /* departures and acknowledgements */
}

static void atomics_device(void) { atomics_with(atomics_from_device); }
static void atomics_host(void) { atomics_with(atomics_from_host); }

static void dma_cas(void) {
    if (!receiver()) {
        sends(0);
        return;
    }
    uint64_t value = 100, neighbour = 55;
    memcpy(received + 8, &value, 8);
    memcpy(received + 16, &neighbour, 8);
    serve(NULL, dma_compare_and_swap);
    delivered();
    const int32_t expected[] = {0, 0, 0, 0, 0, 0};
    EXPECT(memcmp(told.results, expected, sizeof expected) == 0);
    EXPECT(told.words[0] == 100 && told.words[1] == 101 && told.words[2] == 102);
    memcpy(&value, received + 8, 8);
    memcpy(&neighbour, received + 16, 8);
    EXPECT(value == 103 && neighbour == 55);
}

static void dma_fetch_add(void) {
    static unsigned char expected[8 * TYPES], before[8 * TYPES];
    if (!receiver()) {
        sends(0);
        return;
    }
    for (unsigned k = 0; k < 8; k++) { /* the greatest values: they wrap */
        uint64_t ones = UINT64_MAX - 1;
        memcpy(received + 8 * k, &ones, 8);
    }
    float f = 2.25f, c[2] = {-1.0f, 8.0f};
    double d = -0.5;
    memcpy(received + 64, &f, 4);
    memcpy(received + 72, c, 8);
    memcpy(received + 80, &d, 8);
    static const unsigned char sizes[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8};
    memcpy(expected, received, sizeof expected);
    for (unsigned k = 0; k < TYPES; k++) {
        for (int time = 0; time < 2; time++) {
            uint64_t word = 0;
            memcpy(&word, expected + 8 * k, sizes[k]);
            if (time == 0)
                memcpy(before + 8 * k, &word, 8);
            else
                EXPECT(k > 7 || word != 0);
            switch (types[k]) {
            case PTL_FLOAT:
                f += 1.5f;
                memcpy(expected + 8 * k, &f, 4);
                break;
            case PTL_FLOAT_COMPLEX:
                c[0] += 1.5f, c[1] += 1.5f;
                memcpy(expected + 8 * k, c, 8);
                break;
            case PTL_DOUBLE:
                d += 1.5;
                memcpy(expected + 8 * k, &d, 8);
                break;
            default: word += INCREMENT; memcpy(expected + 8 * k, &word, sizes[k]);
            }
        }
    }
    serve(NULL, dma_fetch_and_add);
    delivered();
    EXPECT(memcmp(received, expected, sizeof expected) == 0);
    EXPECT(memcmp(told.words, before, sizeof before) == 0);
    for (unsigned k = 0; k < 8; k++) { /* second result: incremented once, zero-padded */
        uint64_t once = 0, all = UINT64_MAX - 1 + INCREMENT;
        memcpy(&once, &all, sizes[k]);
        EXPECT(told.words[TYPES + k] == once);
    }
    EXPECT(told.count > 0 && told.results[0] == SPIN_ERR_INVALID && told.results[1] == SPIN_ERR_INVALID);
}

static void dma_contended(void) {
    static uint64_t counts[2];
    if (!receiver()) {
        sends(BYTES);
        return;
    }
    ptl_me_t me = served(received, BITS, NULL, count_in_host, NULL, 0);
    me.handler_host_mem_start = counts;
    me.handler_host_mem_length = sizeof counts;
    append(&me);
    CHECK(spin_barrier());
    delivered();
    EXPECT(counts[0] == BYTES / MTU && counts[1] == BYTES);
}

static void hpu_contended(void) {
    if (!receiver()) {
        sends(BYTES);
        return;
    }
    serve(count_on_card, tell);
    delivered();
    EXPECT(told.words[0] == BYTES / MTU && told.words[1] == BYTES && told.words[30] == 0);
    for (unsigned k = 0; k < BYTES / MTU; k++)
        EXPECT(told.words[2 + k] == 1);
}

static void posted(void) {
    fill(sent, BYTES, 4);
    if (!receiver()) {
        sends(BYTES);
        return;
    }
    serve(posted_writes, tell);
    delivered();
    const int32_t expected[] = {0, 0, 0, 0, 1, SPIN_ERR_INVALID, SPIN_ERR_INVALID};
    EXPECT(memcmp(told.results, expected, sizeof expected) == 0 && told.results[15] == BYTES - MTU);
    EXPECT(memcmp(received, sent, MTU) == 0 && memcmp(received + MTU, sent, MTU) == 0);
}

static void contexts(void) {
    if (!receiver()) {
        sends(BYTES);
        return;
    }
    serve(wait_for_host, tell);
    delivered();
    EXPECT(told.count == BYTES / MTU && told.running == 0 && told.moved == 0);
    printf("at once %u hpus %#x\n", told.most, told.hpus);
}

static void yields(void) {
    if (!receiver()) {
        ptl_event_t ack = sends(2 * MTU);
        EXPECT(ack.ni_fail_type == (number ? PTL_NI_OK : PTL_NI_HANDLER_TIMEOUT));
        return;
    }
    serve(wait_for_next, tell);
    ptl_event_t event;
    CHECK(PtlEQWait(eq, &event));
    EXPECT(event.type == (number ? PTL_EVENT_PUT : PTL_EVENT_HANDLER_ERROR) && told.count > 0);
}

static void aligned(void) {
    fill(sent, BYTES, 6);
    enum { SENT = 2 * MTU + 37 };
    if (!receiver()) {
        sends(SENT);
        return;
    }
    ptl_me_t me = served(received, BITS, NULL, alignment, tell, 0);
    me.user_hdr_size = number;
    append(&me);
    CHECK(spin_barrier());
    delivered();
    const uint64_t lengths[] = {MTU - number, MTU, 37};
    for (unsigned k = 0; k < 3; k++) {
        uint64_t offset = told.words[k] >> 32, length = told.words[k] & 0xFFFFFFFF;
        EXPECT(offset % limits.min_fragmentation_limit == 0 && length == lengths[k]);
        EXPECT(k == 2 || number % limits.min_fragmentation_limit || length % limits.min_fragmentation_limit == 0);
    }
    EXPECT(memcmp(received, sent + number, SENT - number) == 0);
}

/* Every other rank sends at once. */
static void interleave(void) {
    static unsigned char data[4][BYTES];
    int senders = spin_size() - 1;
    fill(sent, BYTES, (unsigned)spin_rank());
    if (spin_rank() != 0) {
        CHECK(spin_barrier());
        send_to(0, (ptl_match_bits_t)spin_rank(), BYTES - 100);
        EXPECT(await_event(eq, PTL_EVENT_ACK).ni_fail_type == PTL_NI_OK);
        return;
    }
    for (int k = 1; k <= senders; k++) {
        ptl_me_t me = served(data[k - 1], (ptl_match_bits_t)k, NULL, interleaved, tell_turns, (uint32_t)k);
        append(&me);
    }
    CHECK(spin_barrier());
    for (int k = 0; k < senders; k++)
        delivered();
    for (int k = 1; k <= senders; k++)
        EXPECT(is_filled(data[k - 1], BYTES - 100, (unsigned)k));
    EXPECT(told.words[0] == (uint64_t)(senders * (BYTES / MTU)) && told.words[1] > (uint64_t)(2 * senders));
}

static void bad_numbers(void) {
    if (!receiver()) {
        sends(0);
        return;
    }
    serve(NULL, numbers);
    delivered();
    EXPECT(told.results[0] == 32 && told.count == 32);
    ptl_event_t event;
    EXPECT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
}

static void wild_memory(void) {
    if (!receiver()) {
        EXPECT(sends(0).ni_fail_type == PTL_NI_SEGV);
        return;
    }
    serve(NULL, wild);
    ptl_event_t event = await_event(eq, PTL_EVENT_HANDLER_ERROR);
    EXPECT(event.ni_fail_type == PTL_NI_SEGV);
    printf("%#llx\n", (unsigned long long)(uintptr_t)event.start);
}

static void unmapped_memory(void) {
    if (!receiver()) {
        EXPECT(sends(0).ni_fail_type == PTL_NI_SEGV);
        return;
    }
    ptl_iovec_t pieces[] = {{&told, TOLD}, {(void *)8, 64}};
    ptl_me_t me = served(received, BITS, NULL, NULL, unmapped, 0);
    me.options |= PTL_HANDLER_IOVEC;
    me.handler_host_mem_start = pieces;
    me.handler_host_mem_length = 2;
    append(&me);
    CHECK(spin_barrier());
    EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_SEGV);
    EXPECT(told.results[0] == SPIN_ERR_FAILED && told.results[1] == SPIN_ERR_FAILED);
    EXPECT(told.results[2] == 0 && told.results[3] == SPIN_ERR_FAILED);
}

static const struct test_case cases[] = {
    CASE(gets_to_host), CASE(gets_to_device), CASE(atomics_device), CASE(atomics_host),
    CASE(dma_cas),      CASE(dma_fetch_add),  CASE(dma_contended),  CASE(hpu_contended),
    CASE(posted),       CASE(contexts),       CASE(yields),         CASE(aligned),
    CASE(interleave),   CASE(bad_numbers),    CASE(wild_memory),    CASE(unmapped_memory)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    needs_packets_of(MTU);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, eq, 5, &pt));
    number = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;
    return RUN_CASE(argc, argv, cases);
}
