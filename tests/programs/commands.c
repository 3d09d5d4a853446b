/* Commands of handlers to the card (sPIN App. B.6), and computations: `commands CASE`. Rank 0 sends, rank 1 has the
 * handlers. */
#include "../portals/harness.h"
#include <spin.h>

enum { MTU = 4096, BYTES = 3 * MTU, BITS = 7, ECHO = 8 };

/* ---- Host memory ------------------------------------------------------------------------------------------------ */

struct table {
    uint32_t factor, polls;
    uint8_t copy[MTU];
};

/* Multiplies every byte by a factor from host memory, in HPU memory, and sends it to host memory: blocking. */
__handler int scale_blocking(const ptl_payload_t p, void *state) {
    uint32_t factor;
    (void)state;
    if (PtlHandlerDMAFromHostB(0, &factor, sizeof factor, PTL_HANDLER_HOST_MEM) != 0)
        return FAIL;
    for (ptl_size_t i = 0; i < p.length; i++)
        p.base[i] = (uint8_t)(p.base[i] * factor);
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Like scale_blocking, with several concurrent transfers, some tested and some awaited. */
__handler int scale_nonblocking(const ptl_payload_t p, void *state) {
    uint32_t factor, polls = 0;
    ptl_dma_h first, second, parts[4];
    (void)state;
    if (PtlHandlerDMAFromHostNB(0, &factor, 2, PTL_HANDLER_HOST_MEM, &first) != 0)
        return FAIL;
    if (PtlHandlerDMAFromHostNB(2, (uint8_t *)&factor + 2, 2, PTL_HANDLER_HOST_MEM, &second) != 0)
        return FAIL;
    while (PtlHandlerDMATest(first) == 0)
        polls++;
    if (polls == 0 || PtlHandlerDMAWait(second) != 0)
        return FAIL;
    ptl_size_t part = p.length / 4;
    for (ptl_size_t k = 0; k < 4; k++) {
        for (ptl_size_t i = k * part; i < (k + 1) * part; i++)
            p.base[i] = (uint8_t)(p.base[i] * factor);
        if (PtlHandlerDMAToHostNB(p.base + k * part, p.offset + k * part, part, PTL_ME_HOST_MEM, &parts[k]) != 0)
            return FAIL;
    }
    for (int k = 3; k >= 0; k--)
        if (PtlHandlerDMAWait(parts[k]) != 0)
            return FAIL;
    if (PtlHandlerDMAWait(parts[0]) >= 0)
        return FAIL; /* its handle is free */
    return PtlHandlerYield() == 0 ? SUCCESS : FAIL;
}

/* Leaves a transfer running: the message is complete only after it. */
__handler int leave_running(const ptl_payload_t p, void *state) {
    ptl_dma_h h;
    (void)state;
    return PtlHandlerDMAToHostNB(p.base, p.offset, p.length, PTL_ME_HOST_MEM, &h) == 0 ? SUCCESS : FAIL;
}

/* ---- Counters --------------------------------------------------------------------------------------------------- */

__handler int count(int dropped_bytes, bool flow_control_triggered, void *state) {
    ptl_ct_event_t *seen = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    if (PtlHandlerCTGet(&seen[0]) != 0)
        return FAIL;
    if (PtlHandlerCTInc((ptl_ct_event_t){.success = 1ull << 33}) != 0)
        return FAIL;
    if (PtlHandlerCTGet(&seen[1]) != 0)
        return FAIL;
    if (PtlHandlerCTSet((ptl_ct_event_t){.success = 41}) != 0)
        return FAIL;
    if (PtlHandlerCTInc((ptl_ct_event_t){.success = 1}) != 0)
        return FAIL;
    return PtlHandlerDMAToHostB(seen, 0, 2 * sizeof *seen, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- Puts ------------------------------------------------------------------------------------------------------- */

__handler int echo(const ptl_payload_t p, void *state) {
    ptl_process_t *origin = state;
    if (PtlHandlerPutFromDevice(p.base, p.length, PTL_LOCAL_ME_CT, PTL_CT_ACK_REQ, *origin, ECHO, p.offset, NULL,
                                p.offset) != 0)
        return FAIL;
    for (ptl_size_t i = 0; i < p.length; i++)
        p.base[i] = 0; /* it has left the card */
    return SUCCESS;
}

__handler int remember_origin(const ptl_header_t h, void *state) {
    ptl_process_t *origin = state;
    *origin = h.source_id;
    return PROCESS_DATA;
}

__handler int deposit(const ptl_header_t h, void *state) {
    ptl_process_t *origin = state;
    *origin = h.source_id;
    return PROCEED;
}

__handler int echo_from_host(int dropped_bytes, bool flow_control_triggered, void *state) {
    ptl_process_t *origin = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    int rc = PtlHandlerPutFromHost(100, BYTES - 100, PTL_LOCAL_ME_CT, PTL_ACK_REQ, *origin, ECHO, 100, (void *)77, 5);
    return rc == 0 ? SUCCESS : FAIL;
}

/* ---- Static data ------------------------------------------------------------------------------------------------ */

static uint32_t initialised = 5;
static uint32_t zeroed[PTL_MAX_HPUS];
static const uint32_t constants[] = {2, 3, 5, 7, 11, 13};
static const char *const names[] = {"zero", "one", "two"};

__handler int statics(int dropped_bytes, bool flow_control_triggered, void *state) {
    uint32_t *out = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    out[0] = initialised++;
    zeroed[PTL_NUM_HPUS - 1] += 3;
    out[1] = zeroed[PTL_NUM_HPUS - 1] + zeroed[PTL_NUM_HPUS];
    out[2] = constants[out[0] % 6];
    out[3] = (uint32_t)names[out[0] % 3][1];
    return PtlHandlerDMAToHostB(out, 0, 16, PTL_HANDLER_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* ---- Arithmetic ------------------------------------------------------------------------------------------------- */

#ifdef __SPIN_DEVICE__
#pragma STDC FP_CONTRACT OFF /* the card has a fused multiply-add, which rounds once; many hosts' code has not */
#endif

struct operands {
    uint64_t a, b;
    int64_t c, d;
    double x, y;
    float f, g;
};

struct results {
    uint64_t sum, product, quotient, remainder, shifted, high;
    int64_t signed_quotient, signed_remainder, arithmetic;
    double total, times, ratio, mixed, from_integer;
    float single;
    uint32_t to_integer;
    uint64_t comparisons;
};

static inline void compute(const struct operands *o, struct results *r) {
    r->sum = o->a + o->b;
    r->product = o->a * o->b;
    r->quotient = o->a / o->b;
    r->remainder = o->a % o->b;
    r->shifted = o->a << (o->b & 63) | o->a >> (o->d & 63);
    r->high = (o->a >> 32) * (o->b & 0xFFFFFFFF);
    r->signed_quotient = o->c / o->d;
    r->signed_remainder = o->c % o->d;
    r->arithmetic = o->c >> (o->b & 31);
    r->total = o->x + o->y;
    r->times = o->x * o->y;
    r->ratio = o->x / o->y;
    r->mixed = o->x * o->y + o->x;
    r->from_integer = (double)o->c + (double)o->a;
    r->single = o->f * o->g - o->f / o->g;
    r->to_integer = (uint32_t)(int32_t)o->x;
    r->comparisons = (uint64_t)(o->x < o->y) | (uint64_t)(o->c < o->d) << 1 | (uint64_t)(o->a < o->b) << 2;
}

__handler int calculate(const ptl_payload_t p, void *state) {
    struct results *r = state;
    struct operands o;
    for (ptl_size_t k = 0; k < p.length / sizeof o; k++) {
        __builtin_memcpy(&o, p.base + k * sizeof o, sizeof o);
        compute(&o, r);
        ptl_size_t to = (p.offset / sizeof o + k) * sizeof *r;
        if (PtlHandlerDMAToHostB(r, to, sizeof *r, PTL_HANDLER_HOST_MEM) != 0)
            return FAIL;
    }
    return SUCCESS;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static unsigned char sent[BYTES], received[BYTES];
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static ptl_pt_index_t pt;

static int receiver(void) { return spin_rank() == 1; }

static void serve(ptl_header_handler_t h, ptl_payload_handler_t p, ptl_completion_handler_t c, void *host,
                  ptl_size_t bytes) {
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry(received, BYTES, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    memset(received, UNTOUCHED, BYTES);
    CHECK(PtlHPUAllocMem(1024, ni, &me.hpu_memory));
    me.ct_handle = ct;
    me.header_handler = h;
    me.payload_handler = p;
    me.completion_handler = c;
    me.handler_host_mem_start = host;
    me.handler_host_mem_length = bytes;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
}

static void sends(size_t bytes) {
    ptl_handle_md_t md = descriptor(sent, BYTES, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    CHECK(spin_barrier());
    CHECK(PtlPut(md, 0, bytes, PTL_ACK_REQ, to_rank(1), pt, BITS, 0, NULL, 0));
    ptl_event_t event;
    do
        CHECK(PtlEQWait(eq, &event)); /* an echo may precede it */
    while (event.type != PTL_EVENT_ACK);
    EXPECT(event.ni_fail_type == PTL_NI_OK);
}

static void delivered(void) { EXPECT(await_event(eq, PTL_EVENT_PUT).ni_fail_type == PTL_NI_OK); }

static void scale(ptl_payload_handler_t handler) {
    static struct table table = {.factor = 251};
    fill(sent, BYTES, 2);
    if (!receiver())
        return sends(BYTES);
    serve(NULL, handler, NULL, &table, sizeof table);
    delivered();
    for (size_t i = 0; i < BYTES; i++)
        EXPECT(received[i] == (unsigned char)(sent[i] * 251));
}

static void dma_blocking(void) { scale(scale_blocking); }
static void dma_nonblocking(void) { scale(scale_nonblocking); }

static void dma_left_running(void) {
    fill(sent, BYTES, 2);
    if (!receiver())
        return sends(BYTES);
    serve(NULL, leave_running, NULL, NULL, 0);
    delivered();
    EXPECT(is_filled(received, BYTES, 2)); /* before the event */
}

/* Handler memory as an array of segments (App. B.2). */
static void dma_segments(void) {
    static uint8_t bytes[4] = {0, 0, 251, 0};
    ptl_iovec_t segments[] = {{bytes + 2, 1}, {bytes, 2}, {bytes + 3, 1}};
    fill(sent, BYTES, 2);
    if (!receiver())
        return sends(BYTES);
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry(received, BYTES, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_HANDLER_IOVEC);
    me.payload_handler = scale_blocking;
    me.handler_host_mem_start = segments;
    me.handler_host_mem_length = 3;
    CHECK(PtlHPUAllocMem(64, ni, &me.hpu_memory));
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
    delivered();
    for (size_t i = 0; i < BYTES; i++)
        EXPECT(received[i] == (unsigned char)(sent[i] * 251));
}

static void counters(void) {
    static ptl_ct_event_t seen[2];
    ptl_ct_event_t now;
    if (!receiver())
        return sends(10);
    CHECK(PtlCTSet(ct, (ptl_ct_event_t){.success = 7, .failure = 2}));
    serve(NULL, NULL, count, seen, sizeof seen);
    delivered();
    EXPECT(seen[0].success == 7 && seen[0].failure == 2 && seen[1].success == 7 + (1ull << 33) && seen[1].failure == 2);
    CHECK(PtlCTGet(ct, &now));
    EXPECT(now.success == 42 && now.failure == 0);
}

/* Receives the echoes. */
static void echoed(unsigned int seed, size_t from, int messages) {
    ptl_handle_me_t handle;
    ptl_me_t me =
        plain_entry(received, BYTES, ECHO,
                    PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
    ptl_ct_event_t counted;
    me.ct_handle = ct;
    memset(received, UNTOUCHED, BYTES);
    fill(sent, BYTES, seed);
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    sends(BYTES);
    CHECK(PtlCTWait(ct, (ptl_size_t)messages, &counted));
    EXPECT(counted.failure == 0 && is_untouched(received, from));
    for (size_t i = from; i < BYTES; i++)
        EXPECT(received[i] == sent[i]);
}

static void put_from_device(void) {
    ptl_ct_event_t counted;
    if (!receiver())
        return echoed(3, 0, 3);
    serve(remember_origin, echo, NULL, NULL, 0);
    delivered();
    CHECK(PtlCTWait(ct, 6, &counted)); /* three departures, three acknowledgements */
    EXPECT(counted.success == 6 && counted.failure == 0 && is_untouched(received, BYTES));
}

static void put_from_host(void) {
    ptl_ct_event_t counted;
    if (!receiver())
        return echoed(4, 100, 1);
    serve(deposit, NULL, echo_from_host, NULL, 0);
    delivered();
    EXPECT(is_filled(received, BYTES, 4));
    ptl_event_t ack = await_event(eq, PTL_EVENT_ACK); /* eq and counter are the entry's */
    EXPECT(ack.ni_fail_type == PTL_NI_OK && ack.mlength == BYTES - 100 && ack.user_ptr == (void *)77);
    CHECK(PtlCTGet(ct, &counted));
    EXPECT(counted.success == 2 && counted.failure == 0);
}

static void static_data(void) {
    static uint32_t out[4];
    if (!receiver()) {
        sends(1);
        sends(1);
        return;
    }
    serve(NULL, NULL, statics, out, sizeof out);
    delivered();
    EXPECT(out[0] == 5 && out[1] == 3 && out[2] == 13 && out[3] == 'w');
    CHECK(spin_barrier());
    delivered();
    EXPECT(out[0] == 6 && out[1] == 6 && out[2] == 2 && out[3] == 'e');
    EXPECT(initialised == 5); /* the host has its own */
}

static void arithmetic(void) {
    enum { COUNT = MTU / sizeof(struct operands) };
    static struct results results[COUNT];
    static struct operands operands[COUNT];
    uint64_t random = 88172645463325252u;
    for (int k = 0; k < COUNT; k++) {
        uint64_t words[4];
        for (int i = 0; i < 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            words[i] = random;
        }
        operands[k] = (struct operands){
            .a = words[0],
            .b = k % 2 ? words[1] : words[1] >> 40 | 1,
            .c = (int64_t)words[2],
            .d = (int64_t)(words[3] >> (k % 50)) | 1,
            .x = (double)(int64_t)words[0] / (1ull << 34),
            .y = (double)(int64_t)words[1] / (1ull << 40),
            .f = (float)(int32_t)words[2] / 1000,
            .g = (float)(int32_t)words[3] / 7,
        };
    }
    memcpy(sent, operands, sizeof operands);
    if (!receiver())
        return sends(sizeof operands);
    serve(NULL, calculate, NULL, results, sizeof results);
    delivered();
    for (int k = 0; k < COUNT; k++) {
        struct results expected = {0};
        compute(&operands[k], &expected);
        EXPECT(memcmp(&results[k], &expected, sizeof expected) == 0);
    }
}

static const struct test_case cases[] = {CASE(dma_blocking),  CASE(dma_nonblocking), CASE(dma_left_running),
                                         CASE(dma_segments),  CASE(counters),        CASE(put_from_device),
                                         CASE(put_from_host), CASE(static_data),     CASE(arithmetic)};

int main(int argc, char **argv) {
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    needs_packets_of(MTU);
    CHECK(PtlEQAlloc(ni, 64, &eq));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, eq, 5, &pt));
    return RUN_CASE(argc, argv, cases);
}
