/* conformance: ranks=1
 * Wrong arguments of every function give the documented code and change nothing; PTL_NO_INIT outside of the library. */
#include "ring.h"

enum { BYTES = 64 };
static unsigned char memory[BYTES];
static ptl_handle_md_t md;
static ptl_handle_me_t me_handle;
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static ptl_pt_index_t pt;
static ptl_me_t me;
static ptl_le_t le;

/* Every function that returns a code, with valid arguments provided that `h` is a handle of the right kind. */
static int call(int which, ptl_handle_any_t h) {
    ptl_handle_any_t made;
    ptl_process_t id, self = logical ? (ptl_process_t){.rank = 0} : (ptl_process_t){.phys = {0, 1}};
    ptl_ni_limits_t actual;
    ptl_sr_value_t status;
    ptl_size_t size, test = 1;
    ptl_uid_t uid;
    ptl_event_t event;
    ptl_ct_event_t count, zero = {0, 0};
    ptl_pt_index_t index;
    unsigned int at;
    ptl_md_t bound = {
        .start = memory, .length = BYTES, .options = 0, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    switch (which) {
    case 0: return PtlNIFini(h);
    case 1: return PtlNIStatus(h, PTL_SR_DROP_COUNT, &status);
    case 2: return PtlNIHandle(h, &made);
    case 3: return PtlSetMap(h, 1, &self);
    case 4: return PtlGetMap(h, 1, &id, &size);
    case 5: return PtlGetUid(h, &uid);
    case 6: return PtlGetId(h, &id);
    case 7: return PtlGetPhysId(h, &id);
    case 8: return PtlPTAlloc(h, 0, PTL_EQ_NONE, PTL_PT_ANY, &index);
    case 9: return PtlPTFree(h, pt);
    case 10: return PtlPTDisable(h, pt);
    case 11: return PtlPTEnable(h, pt);
    case 12: return PtlMDBind(h, &bound, &made);
    case 13: return PtlMDRelease(h);
    case 14: return PtlMEAppend(h, pt, &me, PTL_PRIORITY_LIST, NULL, &made);
    case 15: return PtlMEUnlink(h);
    case 16: return PtlMESearch(h, pt, &me, PTL_SEARCH_ONLY, NULL);
    case 17: return PtlLEAppend(h, pt, &le, PTL_PRIORITY_LIST, NULL, &made);
    case 18: return PtlLEUnlink(h);
    case 19: return PtlLESearch(h, pt, &le, PTL_SEARCH_ONLY, NULL);
    case 20: return PtlPut(h, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0);
    case 21: return PtlGet(h, 0, 8, self, pt, 0, 0, NULL);
    case 22: return PtlAtomic(h, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T);
    case 23: return PtlFetchAtomic(h, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T);
    case 24: return PtlFetchAtomic(md, 0, h, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T);
    case 25: return PtlSwap(h, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, memory, PTL_CSWAP, PTL_INT64_T);
    case 26: return PtlSwap(md, 0, h, 0, 8, self, pt, 0, 0, NULL, 0, memory, PTL_CSWAP, PTL_INT64_T);
    case 27: return PtlStartBundle(h);
    case 28: return PtlEndBundle(h);
    case 29: return PtlEQAlloc(h, 4, &made);
    case 30: return PtlEQFree(h);
    case 31: return PtlEQGet(h, &event);
    case 32: return PtlEQWait(h, &event);
    case 33: return PtlEQPoll(&h, 1, 0, &event, &at);
    case 34: return PtlCTAlloc(h, &made);
    case 35: return PtlCTFree(h);
    case 36: return PtlCTCancelTriggered(h);
    case 37: return PtlCTGet(h, &count);
    case 38: return PtlCTWait(h, 1, &count);
    case 39: return PtlCTPoll(&h, &test, 1, 0, &count, &at);
    case 40: return PtlCTSet(h, zero);
    case 41: return PtlCTInc(h, zero);
    case 42: return PtlTriggeredPut(h, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, ct, 1);
    case 43: return PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, h, 1);
    case 44: return PtlTriggeredGet(h, 0, 8, self, pt, 0, 0, NULL, ct, 1);
    case 45: return PtlTriggeredGet(md, 0, 8, self, pt, 0, 0, NULL, h, 1);
    case 46: return PtlTriggeredAtomic(h, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T, ct, 1);
    case 47: return PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T, h, 1);
    case 48: return PtlTriggeredFetchAtomic(h, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T, ct, 1);
    case 49: return PtlTriggeredFetchAtomic(md, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T, h, 1);
    case 50: return PtlTriggeredSwap(h, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT8_T, ct, 1);
    case 51: return PtlTriggeredSwap(md, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT8_T, h, 1);
    case 52: return PtlTriggeredCTInc(h, zero, ct, 1);
    case 53: return PtlTriggeredCTInc(ct, zero, h, 1);
    case 54: return PtlTriggeredCTSet(h, zero, ct, 1);
    case 55: return PtlTriggeredCTSet(ct, zero, h, 1);
    case 56: return PtlTriggeredMEAppend(h, pt, &me, PTL_PRIORITY_LIST, NULL, &made, ct, 1);
    case 57: return PtlTriggeredMEUnlink(h, ct, 1);
    case 58: return PtlTriggeredMEUnlink(me_handle, h, 1);
    case 59: return PtlAtomicSync();
    case 60: return PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, NULL, &actual, &made);
    default: return -1;
    }
}

static void outside(const char *name, ptl_handle_any_t h) {
    for (int which = 0; which <= 60; which++) {
        int rc = call(which, h);
        judge(rc == PTL_NO_INIT, __FILE__, __LINE__, name, "call %d returned %s", which, code_name(rc));
    }
}

static void handles(void) {
    ptl_handle_ct_t freed_ct = counter();
    ptl_handle_eq_t freed_eq = queue(1);
    CHECK(PtlCTFree(freed_ct));
    CHECK(PtlEQFree(freed_eq));
    const struct {
        ptl_handle_any_t handle;
        char kind; /* kind of object, 0 for none */
    } wrong[] = {{PTL_INVALID_HANDLE, 0}, {PTL_EQ_NONE, 0}, {PTL_CT_NONE, 0}, {0, 0},    {12345, 0},
                 {0x7fffffff, 0},         {freed_ct, 0},    {freed_eq, 0},    {ni, 'n'}, {md, 'd'},
                 {me_handle, 'l'},        {eq, 'q'},        {ct, 'c'}};
    /* Kind of handle of each call; '-' takes none. */
    static const char wants[] = "nn*nnnnnnnnnndnlnnlnddddddd"
                                "nnnqqqqncccccccdcdcdcdcdcccccnlc--";
    for (int which = 0; which <= 60; which++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            char want = wants[which];
            if (want == '-' || (want == '*' && wrong[i].kind) || (wrong[i].kind && wrong[i].kind == want))
                continue;
            int rc = call(which, wrong[i].handle);
            judge(rc == PTL_ARG_INVALID, __FILE__, __LINE__, "wrong handle", "call %d with handle %#x returned %s",
                  which, wrong[i].handle, code_name(rc));
        }
}

static void options(void) {
    ptl_handle_ni_t other;
    ptl_handle_any_t made = 4711;
    static const unsigned int bad[] = {0,
                                       PTL_NI_MATCHING,
                                       PTL_NI_LOGICAL,
                                       PTL_NI_MATCHING | PTL_NI_NO_MATCHING,
                                       PTL_NI_LOGICAL | PTL_NI_PHYSICAL,
                                       15,
                                       PTL_NI_MATCHING | PTL_NI_LOGICAL | 16};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CODE("wrong NI options", PtlNIInit(PTL_IFACE_DEFAULT, bad[i], PTL_PID_ANY, NULL, NULL, &other),
             PTL_ARG_INVALID);
    for (unsigned int bit = 1; bit; bit <<= 1) {
        ptl_md_t bound = {
            .start = memory, .length = 0, .options = bit, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        int known = !!(bit & PTL_MD_OPTIONS_MASK);
        int rc = PtlMDBind(ni, &bound, &made);
        judge(rc == (known ? PTL_OK : PTL_ARG_INVALID), __FILE__, __LINE__, "MD options", "bit %#x: %s", bit,
              code_name(rc));
        if (!rc)
            CHECK(PtlMDRelease(made));
        ptl_me_t one = me;
        one.options = bit;
        one.length = 0;
        one.min_free = 0;
        known = !!(bit & (matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK));
        rc = append_code(pt, &one, PTL_OVERFLOW_LIST, NULL, &made);
        judge(rc == (known ? PTL_OK : PTL_ARG_INVALID), __FILE__, __LINE__, "entry options", "bit %#x: %s", bit,
              code_name(rc));
        if (!rc)
            CHECK(unlink_entry(made));
        ptl_pt_index_t index;
        if (bit == PTL_PT_FLOWCTRL)
            continue;
        known = !!(bit & PTL_PT_ALLOC_OPTIONS_MASK);
        rc = PtlPTAlloc(ni, bit, PTL_EQ_NONE, PTL_PT_ANY, &index);
        judge(rc == (known ? PTL_OK : PTL_ARG_INVALID), __FILE__, __LINE__, "PT options", "bit %#x: %s", bit,
              code_name(rc));
        if (!rc)
            CHECK(PtlPTFree(ni, index));
    }
}

/* Calls of the other kind of entry, lists, indices, lengths, pointers. */
static void values(void) {
    ptl_handle_any_t made = 4711;
    ptl_process_t self = process(0);
    ptl_md_t bound = {.start = memory, .length = BYTES, .options = 0, .eq_handle = ct, .ct_handle = PTL_CT_NONE};
    ptl_event_t event;
    ptl_ct_event_t count;
    unsigned int at;
    CODE("ME calls need matching", PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &made),
         matching ? PTL_OK : PTL_ARG_INVALID);
    CODE("ME search needs matching", PtlMESearch(ni, pt, &me, PTL_SEARCH_ONLY, NULL),
         matching ? PTL_OK : PTL_ARG_INVALID);
    if (matching)
        CHECK(PtlMEUnlink(made));
    CODE("LE calls need non-matching", PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, NULL, &made),
         matching ? PTL_ARG_INVALID : PTL_OK);
    CODE("LE search needs non-matching", PtlLESearch(ni, pt, &le, PTL_SEARCH_ONLY, NULL),
         matching ? PTL_ARG_INVALID : PTL_OK);
    if (!matching)
        CHECK(PtlLEUnlink(made));
    made = 4711;
    CODE("list out of range", append_code(pt, &me, 2, NULL, &made), PTL_ARG_INVALID);
    CODE("free PT index", append_code(60, &me, PTL_PRIORITY_LIST, NULL, &made), PTL_ARG_INVALID);
    CODE("PT index out of range", append_code(5000, &me, PTL_PRIORITY_LIST, NULL, &made), PTL_ARG_INVALID);
    CODE("search of a free PT index", search(60, me, PTL_SEARCH_ONLY, NULL), PTL_ARG_INVALID);
    ptl_me_t wrong = me;
    wrong.ct_handle = eq;
    CODE("entry with a queue for a counter", append_code(pt, &wrong, PTL_PRIORITY_LIST, NULL, &made), PTL_ARG_INVALID);
    CODE("MD with a counter for a queue", PtlMDBind(ni, &bound, &made), PTL_ARG_INVALID);
    bound.eq_handle = PTL_EQ_NONE;
    bound.ct_handle = eq;
    CODE("MD with a queue for a counter", PtlMDBind(ni, &bound, &made), PTL_ARG_INVALID);
    EQUAL("nothing written", made, 4711);
    CODE("no MD", PtlMDBind(ni, NULL, &made), PTL_ARG_INVALID);
    CODE("no place for a handle", PtlCTAlloc(ni, NULL), PTL_ARG_INVALID);
    CODE("no place for an event", PtlEQGet(eq, NULL), PTL_ARG_INVALID);
    CODE("no place for a count", PtlCTGet(ct, NULL), PTL_ARG_INVALID);
    CODE("no queues", PtlEQPoll(NULL, 1, 0, &event, &at), PTL_ARG_INVALID);
    CODE("no counters", PtlCTPoll(NULL, NULL, 1, 0, &count, &at), PTL_ARG_INVALID);
    CODE("no operand", PtlSwap(md, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, NULL, PTL_CSWAP, PTL_INT64_T),
         PTL_ARG_INVALID);
    CODE("put beyond the MD", PtlPut(md, 0, BYTES + 1, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("put behind the MD", PtlPut(md, BYTES, 1, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("put around", PtlPut(md, PTL_SIZE_MAX, 2, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("get beyond the MD", PtlGet(md, BYTES - 7, 8, self, pt, 0, 0, NULL), PTL_ARG_INVALID);
    CODE("atomic beyond the MD",
         PtlAtomic(md, BYTES - 7, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
    CODE("fetch beyond the get MD",
         PtlFetchAtomic(md, BYTES - 7, md, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
    CODE("fetch beyond the put MD",
         PtlFetchAtomic(md, 0, md, BYTES - 7, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
    CODE("acknowledgement out of range", PtlPut(md, 0, 8, PTL_OC_ACK_REQ + 1, self, pt, 0, 0, NULL, 0),
         PTL_ARG_INVALID);
    CODE("put to an index out of range",
         PtlPut(md, 0, 8, PTL_NO_ACK_REQ, self, (ptl_pt_index_t)limits.max_pt_index + 1, 0, 0, NULL, 0),
         PTL_ARG_INVALID);
    CODE("put to any index", PtlPut(md, 0, 8, PTL_NO_ACK_REQ, self, PTL_PT_ANY, 0, 0, NULL, 0), PTL_ARG_INVALID);
    CODE("triggered put beyond the MD",
         PtlTriggeredPut(md, 0, BYTES + 1, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, ct, 1), PTL_ARG_INVALID);
    CODE("triggered atomic, wrong pair",
         PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, PTL_BOR, PTL_DOUBLE, ct, 1),
         PTL_ARG_INVALID);
    CODE("triggered inc of both", PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 1}, ct, 1), PTL_ARG_INVALID);
    CODE("queue too large", PtlEQAlloc(ni, PTL_SIZE_MAX, &made), PTL_NO_SPACE);
    EQUAL("nothing written", made, 4711);
}

/* An operation cannot mix interfaces. */
static void mixed(void) {
    ptl_handle_ni_t old = ni, other;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind_bits() ^ (PTL_NI_MATCHING | PTL_NI_NO_MATCHING), PTL_PID_ANY, NULL, NULL,
                    &other));
    if (logical)
        spin_set_map(other);
    ni = other;
    ptl_handle_md_t foreign = descriptor(memory, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_ct_t foreign_ct = counter();
    ni = old;
    ptl_process_t self = process(0);
    CODE("fetch with MDs of two interfaces",
         PtlFetchAtomic(md, 0, foreign, 0, 8, self, pt, 0, 0, NULL, 0, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
    CODE("swap with MDs of two interfaces",
         PtlSwap(foreign, 0, md, 0, 8, self, pt, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT8_T), PTL_ARG_INVALID);
    CODE("trigger of another interface",
         PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0, foreign_ct, 1), PTL_ARG_INVALID);
    CODE("counters of two interfaces", PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, foreign_ct, 1), PTL_ARG_INVALID);
    ptl_handle_ct_t both[2] = {ct, foreign_ct};
    ptl_size_t tests[2] = {1, 1};
    ptl_ct_event_t count;
    unsigned int at;
    CODE("poll of two interfaces", PtlCTPoll(both, tests, 2, 0, &count, &at), PTL_ARG_INVALID);
    CHECK(PtlNIFini(other));
}

int main(int argc, char **argv) {
    arguments(argc, argv);
    me = entry(memory, BYTES, PTL_ME_OP_PUT);
    le = list_entry(&me);
    outside("before PtlInit", 0x10000000);
    TRUE("handles compare outside", PtlHandleIsEqual(5, 5) && !PtlHandleIsEqual(5, 6));
    PtlFini(); /* one too many is ignored */
    start(argc, argv);
    eq = queue(64);
    ct = counter();
    md = descriptor(memory, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    pt = portal(eq, 0);
    me_handle = append(pt, entry(memory, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE), PTL_OVERFLOW_LIST, NULL);
    me.options |= PTL_ME_EVENT_LINK_DISABLE;
    le = list_entry(&me);
    handles();
    options();
    ptl_event_t event;
    while (PtlEQGet(eq, &event) == PTL_OK)
        TRUE("only links and searches", event.type == PTL_EVENT_LINK || event.type == PTL_EVENT_SEARCH);
    values();
    mixed();
    /* None of these calls leaves a trace. */
    while (PtlEQGet(eq, &event) == PTL_OK)
        EQUAL("only searches", event.type, PTL_EVENT_SEARCH);
    COUNTS("counter untouched", ct, 0, 0);
    CHECK(PtlCTInc(ct, (ptl_ct_event_t){100, 0}));
    settle();
    NO_MORE("nothing was posted to be triggered", eq);
    COUNTS("nothing was posted to be triggered", ct, 100, 0);
    CODE("nothing sent, nothing attached but one", unlink_entry(me_handle), PTL_OK);
    CODE("nothing attached", PtlPTFree(ni, pt), PTL_OK);
    CHECK(PtlNIFini(ni));
    PtlFini();
    outside("after PtlFini", ni);
    leave();
}
