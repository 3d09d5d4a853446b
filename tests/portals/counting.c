/* conformance: ranks=1,2,4
 * Counting events: get, set, increment, wait, poll, bytes, failures, every option, several kinds on one counter. */
#include "ring.h"

enum { BYTES = 4096, LENGTH = 100 };
static unsigned char source[BYTES], target[BYTES];
static const ptl_ct_event_t one = {1, 0}, bad = {0, 1};

static void values(void) {
    ptl_handle_ct_t ct = counter();
    ptl_ct_event_t now, set = {5, 2}, both = {1, 1}, nothing = {0, 0}, ten = {10, 0};
    COUNTS("count starts at 0", ct, 0, 0);
    CHECK(PtlCTSet(ct, set));
    COUNTS("count set", ct, 5, 2);
    CHECK(PtlCTInc(ct, ten));
    COUNTS("count inc success", ct, 15, 2);
    CHECK(PtlCTInc(ct, bad));
    COUNTS("count inc failure", ct, 15, 3);
    CODE("count inc of both", PtlCTInc(ct, both), PTL_ARG_INVALID);
    COUNTS("count inc of both", ct, 15, 3);
    CODE("count inc of nothing", PtlCTInc(ct, nothing), PTL_OK);
    CHECK(PtlCTSet(ct, nothing));
    COUNTS("count reset", ct, 0, 0);

    CHECK(PtlCTSet(ct, ten));
    CODE("count wait, more than enough", PtlCTWait(ct, 3, &now), PTL_OK);
    EQUAL("count wait value", now.success, 10);
    CODE("count wait for 0", PtlCTWait(ct, 0, &now), PTL_OK);
    CHECK(PtlCTInc(ct, bad));
    CODE("count wait ends by a failure", PtlCTWait(ct, 1000, &now), PTL_OK);
    EQUAL("count wait failure", now.failure, 1);
    CHECK(PtlCTFree(ct));
    CODE("count freed", PtlCTGet(ct, &now), PTL_ARG_INVALID);
    CODE("count freed twice", PtlCTFree(ct), PTL_ARG_INVALID);
}

static void polls(void) {
    ptl_handle_ct_t cts[3] = {counter(), counter(), counter()};
    ptl_size_t tests[3] = {1, 2, 1};
    ptl_ct_event_t now;
    unsigned int which = 99;
    uint64_t before = spin_time_ps();
    CODE("count poll once", PtlCTPoll(cts, tests, 3, 0, &now, &which), PTL_CT_NONE_REACHED);
    uint64_t spent = spin_time_ps() - before;
    if (keeps_time("count poll with time 0 returns at once"))
        TRUE("count poll with time 0 returns at once", spent < 1000000);
    before = spin_time_ps();
    CODE("count poll times out", PtlCTPoll(cts, tests, 3, 2, &now, &which), PTL_CT_NONE_REACHED);
    TRUE("count poll waits its time", spin_time_ps() - before >= 2000000000u);
    CHECK(PtlCTInc(cts[1], one));
    CODE("count poll below the test", PtlCTPoll(cts, tests, 3, 0, &now, &which), PTL_CT_NONE_REACHED);
    CHECK(PtlCTInc(cts[1], one));
    CODE("count poll", PtlCTPoll(cts, tests, 3, PTL_TIME_FOREVER, &now, &which), PTL_OK);
    EQUAL("count poll which", which, 1);
    EQUAL("count poll value", now.success, 2);
    CHECK(PtlCTSet(cts[1], (ptl_ct_event_t){0, 0}));
    CHECK(PtlCTInc(cts[2], bad));
    CODE("count poll, a failure", PtlCTPoll(cts, tests, 3, 0, &now, &which), PTL_OK);
    EQUAL("count poll, a failure", which, 2);
    CODE("count poll of nothing", PtlCTPoll(cts, tests, 0, 0, &now, &which), PTL_ARG_INVALID);
    for (int i = 0; i < 3; i++)
        CHECK(PtlCTFree(cts[i]));
}

/* Counts of each MD option, alone and combined. */
static void descriptors(ptl_pt_index_t pt, ptl_pt_index_t nowhere) {
    static const unsigned int kinds[] = {PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_ACK, PTL_MD_EVENT_CT_REPLY};
    for (unsigned int set = 0; set < 8; set++)
        for (int bytes = 0; bytes < 2; bytes++)
            for (int silent = 0; silent < 2; silent++) {
                unsigned int options = (bytes ? PTL_MD_EVENT_CT_BYTES : 0) |
                                       (silent ? PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE : 0);
                for (int k = 0; k < 3; k++)
                    if (set >> k & 1)
                        options |= kinds[k];
                ptl_handle_ct_t ct = counter();
                ptl_handle_eq_t eq = queue(8);
                ptl_handle_md_t md = descriptor(source, BYTES, options, eq, ct);
                ptl_size_t unit = bytes ? LENGTH : 1;
                CHECK(PtlPut(md, 0, LENGTH, PTL_ACK_REQ, next(), pt, 0, 0, NULL, 0));
                settle();
                ptl_size_t success = ((set & 1) + (set >> 1 & 1)) * unit;
                COUNTS("count put", ct, success, 0);
                CHECK(PtlGet(md, 0, LENGTH, next(), pt, 0, 0, NULL));
                settle();
                success += (set >> 2 & 1) * unit;
                COUNTS("count get", ct, success, 0);
                /* Truncated: SEND counts the requested bytes, ACK the transferred ones. */
                CHECK(PtlPut(md, 0, LENGTH, PTL_ACK_REQ, next(), pt, 0, BYTES - 30, NULL, 0));
                settle();
                success += (set & 1) * unit + (set >> 1 & 1) * (bytes ? 30 : 1);
                COUNTS("count truncated", ct, success, 0);
                /* Failures count 1, in bytes too. */
                CHECK(PtlPut(md, 0, LENGTH, PTL_ACK_REQ, next(), nowhere, 0, 0, NULL, 0));
                CHECK(PtlGet(md, 0, LENGTH, next(), nowhere, 0, 0, NULL));
                settle();
                success += (set & 1) * unit;
                COUNTS("count failures", ct, success, (set >> 1 & 1) + (set >> 2 & 1));
                /* Full events: of successes unless disabled, of failures always. */
                ptl_event_t event;
                int events = 0;
                while (PtlEQGet(eq, &event) == PTL_OK)
                    events++;
                EQUAL("count leaves full events alone", events, silent ? 2 : 8);
                CHECK(PtlMDRelease(md));
                CHECK(PtlCTFree(ct));
                CHECK(PtlEQFree(eq));
            }
}

/* Entries count messages or bytes, whatever full events are disabled. */
static void entries(ptl_handle_md_t md) {
    static const unsigned int quiet[] = {0, PTL_ME_EVENT_COMM_DISABLE, PTL_ME_EVENT_SUCCESS_DISABLE};
    for (int i = 0; i < 3; i++)
        for (int bytes = 0; bytes < 2; bytes++)
            for (int counts = 0; counts < 2; counts++) {
                ptl_handle_eq_t eq = queue(8);
                ptl_pt_index_t pt = portal(eq, 0);
                ptl_me_t me = entry(target, BYTES,
                                    PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | quiet[i] |
                                        (counts ? PTL_ME_EVENT_CT_COMM : 0) | (bytes ? PTL_ME_EVENT_CT_BYTES : 0));
                me.ct_handle = counter();
                ptl_handle_me_t handle = append(pt, me, PTL_PRIORITY_LIST, NULL);
                barrier();
                CHECK(PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0));
                CHECK(PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, next(), pt, 0, BYTES - 10, NULL, 0));
                CHECK(PtlGet(md, 0, 7, next(), pt, 0, 0, NULL));
                CHECK(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_BOR, PTL_UINT64_T));
                settle();
                COUNTS("count of an entry", me.ct_handle, counts ? (bytes ? LENGTH + 10 + 7 + 8 : 4) : 0, 0);
                ptl_event_t event;
                int events = 0;
                while (PtlEQGet(eq, &event) == PTL_OK)
                    events++;
                EQUAL("count of an entry, full events", events, i ? 0 : 4);
                CHECK(unlink_entry(handle));
                CHECK(PtlPTFree(ni, pt));
                CHECK(PtlEQFree(eq));
                CHECK(PtlCTFree(me.ct_handle));
            }
}

/* A wait lasts until messages arrive; data precedes the count. */
static void waits(ptl_handle_md_t md) {
    ptl_pt_index_t pt = portal(PTL_EQ_NONE, 0);
    ptl_me_t me = entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
    ptl_ct_event_t now;
    me.ct_handle = counter();
    append(pt, me, PTL_PRIORITY_LIST, NULL);
    clear(target, BYTES);
    barrier();
    for (ptl_size_t at = 0; at < BYTES; at += 1024)
        CHECK(PtlPut(md, at, 1024, PTL_NO_ACK_REQ, next(), pt, 0, at, NULL, 0));
    CODE("count wait for bytes", PtlCTWait(me.ct_handle, BYTES, &now), PTL_OK);
    EQUAL("count wait for bytes", now.success, BYTES);
    FILLED("count wait, data is there", target, BYTES, 2);
    barrier();
}

int main(int argc, char **argv) {
    start(argc, argv);
    fill(source, BYTES, 2);
    ptl_pt_index_t pt = portal(PTL_EQ_NONE, 0);
    ptl_handle_md_t md = descriptor(source, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    append(pt, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET), PTL_PRIORITY_LIST, NULL);
    values();
    polls();
    descriptors(pt, (ptl_pt_index_t)limits.max_pt_index);
    fill(source, BYTES, 2);
    entries(md);
    fill(source, BYTES, 2);
    waits(md);
    return finish();
}
