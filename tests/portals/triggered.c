/* conformance: ranks=1,2,4
 * Triggered operations: every kind, thresholds, order, chains, buffers, cancelling, limits. */
#include "ring.h"

enum { BYTES = 256 };
static unsigned char source[BYTES], target[BYTES], result[BYTES];
static ptl_handle_ct_t trigger;
static ptl_handle_md_t md;
static ptl_pt_index_t pt;
static ptl_handle_eq_t eq;
static const ptl_ct_event_t one = {1, 0}, zero = {0, 0};

static void reset(void) {
    settle();
    CHECK(PtlCTSet(trigger, zero));
    clear(target, BYTES);
    clear(result, BYTES);
    fill(source, BYTES, 3);
    barrier();
}

static void inc(ptl_handle_ct_t ct, unsigned int times) {
    while (times--)
        CHECK(PtlCTInc(ct, one));
}

/* Each kind of transfer waits for its threshold, then acts like its plain call, from the buffer as it is then. */
static void kinds(void) {
    ptl_event_t event;
    reset();
    CHECK(PtlTriggeredPut(md, 0, 16, PTL_NO_ACK_REQ, next(), pt, 0, 8, NULL, 42, trigger, 2));
    inc(trigger, 1);
    settle();
    NO_MORE("triggered put waits", eq);
    fill(source, BYTES, 4); /* read when it fires */
    inc(trigger, 1);
    event = EVENT("triggered put", eq, PTL_EVENT_PUT);
    EQUAL("triggered put hdr_data", event.hdr_data, 42);
    FILLED("triggered put data", target + 8, 16, 4);

    reset();
    fill(target, BYTES, 6);
    barrier();
    CHECK(PtlTriggeredGet(md, 0, 16, next(), pt, 0, 0, NULL, trigger, 1));
    settle();
    NO_MORE("triggered get waits", eq);
    inc(trigger, 1);
    EVENT("triggered get", eq, PTL_EVENT_GET);
    settle();
    FILLED("triggered get data", source, 16, 6);

    uint64_t value = 40, two = 2;
    reset();
    memcpy(target, &value, 8);
    memcpy(source, &two, 8);
    barrier();
    CHECK(PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, trigger, 1));
    inc(trigger, 1);
    EVENT("triggered atomic", eq, PTL_EVENT_ATOMIC);
    memcpy(&value, target, 8);
    EQUAL("triggered atomic data", value, 42);

    reset();
    memcpy(target, &value, 8);
    memcpy(source, &two, 8);
    barrier();
    ptl_handle_md_t into = descriptor(result, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    CHECK(PtlTriggeredFetchAtomic(into, 0, md, 0, 8, next(), pt, 0, 0, NULL, 0, PTL_PROD, PTL_UINT64_T, trigger, 1));
    inc(trigger, 1);
    EVENT("triggered fetch", eq, PTL_EVENT_FETCH_ATOMIC);
    settle();
    memcpy(&value, target, 8);
    EQUAL("triggered fetch data", value, 84);
    memcpy(&value, result, 8);
    EQUAL("triggered fetch old value", value, 42);

    reset();
    value = 5;
    memcpy(target, &value, 8);
    memcpy(source, &two, 8);
    barrier();
    uint64_t operand = 5;
    CHECK(
        PtlTriggeredSwap(into, 0, md, 0, 8, next(), pt, 0, 0, NULL, 0, &operand, PTL_CSWAP, PTL_UINT64_T, trigger, 1));
    operand = 6; /* copied when posted */
    inc(trigger, 1);
    EVENT("triggered swap", eq, PTL_EVENT_FETCH_ATOMIC);
    settle();
    memcpy(&value, target, 8);
    EQUAL("triggered swap data", value, 2);
    CHECK(PtlMDRelease(into));
    NO_MORE("triggered kinds", eq);
}

static void thresholds(void) {
    ptl_handle_ct_t ct = counter();
    /* Already reached, also by failures alone and by threshold 0. */
    reset();
    CHECK(PtlTriggeredCTInc(ct, one, trigger, 0));
    COUNTS("triggered threshold 0", ct, 1, 0);
    inc(trigger, 3);
    CHECK(PtlTriggeredCTInc(ct, one, trigger, 3));
    COUNTS("triggered threshold met", ct, 2, 0);
    ptl_ct_event_t failed = {0, 1}, jump = {10, 5}, back = {1, 0}, mixed = {7, 9};
    CHECK(PtlTriggeredCTInc(ct, one, trigger, 4));
    COUNTS("triggered threshold not met", ct, 2, 0);
    CHECK(PtlCTInc(trigger, failed));
    COUNTS("triggered success plus failure", ct, 3, 0);
    /* A set fires all operations that it passes; a fired operation does not fire again. */
    for (ptl_size_t threshold = 6; threshold <= 20; threshold += 3)
        CHECK(PtlTriggeredCTInc(ct, one, trigger, threshold));
    CHECK(PtlCTSet(trigger, jump));
    COUNTS("triggered by PtlCTSet", ct, 7, 0);
    CHECK(PtlCTSet(trigger, back));
    CHECK(PtlCTSet(trigger, jump));
    COUNTS("triggered once only", ct, 7, 0);
    CHECK(PtlCTCancelTriggered(trigger));
    jump.success = 100;
    CHECK(PtlCTSet(trigger, jump));
    COUNTS("triggered cancelled", ct, 7, 0);
    COUNTS("triggered cancel keeps the value", trigger, 100, 5);
    CHECK(PtlTriggeredCTSet(ct, mixed, trigger, 1));
    COUNTS("triggered set", ct, 7, 9);
    CHECK(PtlTriggeredCTInc(ct, failed, trigger, 1));
    COUNTS("triggered inc of failure", ct, 7, 10);
    CHECK(PtlCTFree(ct));
}

/* Operations run in the order of their thresholds, then in the order of posting. */
static void order(void) {
    reset();
    static const ptl_size_t posted[] = {3, 1, 2, 2, 1, 3};
    static const ptl_size_t fired[] = {1, 4, 2, 3, 0, 5};
    for (size_t i = 0; i < 6; i++)
        CHECK(PtlTriggeredPut(md, 0, 4, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, i, trigger, posted[i]));
    ptl_ct_event_t all = {3, 0};
    CHECK(PtlCTSet(trigger, all));
    for (size_t i = 0; i < 6; i++)
        EQUAL("triggered order", EVENT("triggered order", eq, PTL_EVENT_PUT).hdr_data, fired[i]);
}

/* A message circles the ring three times without help of a rank: its arrival triggers the next put. */
static void ring(void) {
    enum { ROUNDS = 3 };
    ptl_handle_ct_t arrived = counter();
    ptl_pt_index_t ring_pt = portal(PTL_EQ_NONE, 0);
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = arrived;
    append(ring_pt, me, PTL_PRIORITY_LIST, NULL);
    reset();
    for (ptl_size_t round = 1; round <= ROUNDS; round++)
        if (me_ != 0 || round < ROUNDS)
            CHECK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, next(), ring_pt, 0, 0, NULL, 0, arrived, round));
    barrier();
    if (me_ == 0)
        CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, next(), ring_pt, 0, 0, NULL, 0));
    settle();
    COUNTS("triggered ring", arrived, ROUNDS, 0);
    /* A long chain of counters on one card. */
    enum { LINKS = 64 };
    ptl_handle_ct_t chain[LINKS];
    for (int i = 0; i < LINKS; i++)
        chain[i] = counter();
    for (int i = 1; i < LINKS; i++)
        CHECK(PtlTriggeredCTInc(chain[i], one, chain[i - 1], 1));
    inc(chain[0], 1);
    COUNTS("triggered chain", chain[LINKS - 1], 1, 0);
    for (int i = 0; i < LINKS; i++)
        CHECK(PtlCTFree(chain[i]));
}

/* A counter of an MD triggers: acknowledgement, then the next put; in bytes too. */
static void by_md(void) {
    reset();
    ptl_handle_ct_t acks = counter(), last = counter();
    ptl_handle_md_t counted = descriptor(source, BYTES, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE, acks);
    CHECK(PtlTriggeredPut(counted, 0, 20, PTL_CT_ACK_REQ, next(), pt, 0, 0, NULL, 2, acks, 10));
    CHECK(PtlTriggeredCTInc(last, one, acks, 30));
    CHECK(PtlPut(counted, 0, 10, PTL_CT_ACK_REQ, next(), pt, 0, 0, NULL, 1));
    EQUAL("triggered by ack", EVENT("triggered by ack", eq, PTL_EVENT_PUT).hdr_data, 1);
    EQUAL("triggered by ack", EVENT("triggered by ack", eq, PTL_EVENT_PUT).hdr_data, 2);
    settle();
    COUNTS("triggered by bytes", acks, 30, 0);
    COUNTS("triggered by bytes", last, 1, 0);
    CHECK(PtlMDRelease(counted));
}

/* Pending operations vanish with their counter; too many are refused. */
static void limit(void) {
    reset();
    ptl_handle_ct_t ct = counter(), done = counter();
    for (int i = 0; i < limits.max_triggered_ops; i++)
        CODE("triggered up to the limit", PtlTriggeredCTInc(done, one, ct, 1 + (ptl_size_t)i), PTL_OK);
    CODE("triggered beyond the limit", PtlTriggeredCTInc(done, one, ct, 1), PTL_NO_SPACE);
    CODE("triggered put beyond the limit", PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, ct, 1),
         PTL_NO_SPACE);
    inc(ct, 1);
    COUNTS("triggered one fired", done, 1, 0);
    CODE("triggered again room for one", PtlTriggeredCTInc(done, one, ct, 1000), PTL_OK);
    CODE("triggered full again", PtlTriggeredCTInc(done, one, ct, 1000), PTL_NO_SPACE);
    CHECK(PtlCTCancelTriggered(ct));
    CODE("triggered room after cancel", PtlTriggeredCTInc(done, one, ct, 1000), PTL_OK);
    CHECK(PtlCTFree(ct));
    COUNTS("triggered dropped with its counter", done, 1, 0);
    ct = counter();
    for (int i = 0; i < limits.max_triggered_ops; i++)
        CHECK(PtlTriggeredCTInc(done, one, ct, 1000));
    CHECK(PtlCTFree(ct));
    CODE("triggered on a freed counter", PtlTriggeredCTInc(done, one, ct, 1), PTL_ARG_INVALID);
    COUNTS("triggered on a freed counter", done, 1, 0);
    ct = counter();
    CODE("triggered, target freed", PtlTriggeredCTInc(done, one, ct, 1), PTL_OK);
    CHECK(PtlCTFree(done));
    inc(ct, 1); /* nothing to add to any more */
    CHECK(PtlCTFree(ct));
}

/* The reference's extensions. */
static void entries(void) {
    ptl_handle_me_t handle;
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT);
    reset();
    if (!matching) {
        CODE("triggered append needs matching",
             PtlTriggeredMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle, trigger, 1), PTL_ARG_INVALID);
        return;
    }
    ptl_handle_eq_t queue_ = queue(8);
    ptl_pt_index_t late = portal(queue_, 0);
    CHECK(PtlTriggeredMEAppend(ni, late, &me, PTL_PRIORITY_LIST, (void *)9, &handle, trigger, 1));
    CHECK(PtlTriggeredMEUnlink(handle, trigger, 2));
    NO_MORE("triggered append waits", queue_);
    inc(trigger, 1);
    EQUAL("triggered append", (uintptr_t)EVENT("triggered append", queue_, PTL_EVENT_LINK).user_ptr, 9);
    barrier();
    CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, next(), late, 0, 0, NULL, 0));
    EVENT("triggered append takes messages", queue_, PTL_EVENT_PUT);
    settle();
    inc(trigger, 1);
    CODE("triggered unlink", PtlMEUnlink(handle), PTL_ARG_INVALID);
    NO_MORE("triggered unlink is silent", queue_);
    CHECK(PtlPTFree(ni, late));
}

int main(int argc, char **argv) {
    ptl_ni_limits_t desired;
    memset(&desired, 0x7f, sizeof desired);
    desired.max_triggered_ops = 30;
    desired.max_pt_index = 63;
    open_with(argc, argv, &desired);
    EQUAL("triggered limit honoured", limits.max_triggered_ops, 30);
    eq = queue(64);
    trigger = counter();
    pt = portal(eq, 0);
    md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST,
           NULL);
    kinds();
    thresholds();
    order();
    by_md();
    limit();
    entries();
    CHECK(PtlNIFini(ni)); /* room for the chain */
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, NULL, &limits, &ni));
    if (logical)
        CHECK(PtlSetMap(ni, (ptl_size_t)size_, table));
    trigger = counter();
    md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ring();
    return finish();
}
