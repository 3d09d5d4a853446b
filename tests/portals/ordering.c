/* conformance: ranks=1,2,4
 * Messages from one process to another: order of matching and of data, for every pair of operations. */
#include "ring.h"

enum { BYTES = 30000, WORDS = 8 };
static unsigned char source[2][BYTES], target[BYTES];
static uint64_t word[4], cell[WORDS], fetched[WORDS];
static ptl_handle_md_t md, into, big[2];
static ptl_pt_index_t pt, large;
static ptl_handle_ct_t replies;

static void put(int from) { CHECK(PtlPut(md, 8 * (ptl_size_t)from, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0)); }
static void nothing(void) { CHECK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0)); }
static void get(int to) { CHECK(PtlGet(into, 8 * (ptl_size_t)to, 8, next(), pt, 0, 0, NULL)); }
static void add(int from) {
    CHECK(PtlAtomic(md, 8 * (ptl_size_t)from, 8, PTL_NO_ACK_REQ, next(), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
}
static void fetch_add(int to, int from) {
    CHECK(PtlFetchAtomic(into, 8 * (ptl_size_t)to, md, 8 * (ptl_size_t)from, 8, next(), pt, 0, 0, NULL, 0, PTL_SUM,
                         PTL_UINT64_T));
}
static void swap(int to, int from) {
    CHECK(PtlSwap(into, 8 * (ptl_size_t)to, md, 8 * (ptl_size_t)from, 8, next(), pt, 0, 0, NULL, 0, NULL, PTL_SWAP,
                  PTL_UINT64_T));
}

static void begin(uint64_t value) {
    settle();
    cell[0] = value;
    memset(fetched, 0, sizeof fetched);
    for (int i = 0; i < 4; i++)
        word[i] = 10u * (unsigned)i;
    barrier();
}

static void small(void) {
    begin(1);
    for (int i = 0; i < 4; i++)
        put(i);
    settle();
    EQUAL("write after write", cell[0], 30);

    begin(7);
    get(0);
    put(1);
    get(1);
    put(2);
    settle();
    EQUAL("read before write", fetched[0], 7);
    EQUAL("read after write", fetched[1], 10);
    EQUAL("last write", cell[0], 20);

    begin(5);
    add(1); /* 15 */
    put(2); /* 20 */
    settle();
    EQUAL("write after atomic", cell[0], 20);
    begin(5);
    put(1); /* 10 */
    add(2); /* 30 */
    get(0);
    add(3);
    settle();
    EQUAL("read after atomic", fetched[0], 30);
    EQUAL("atomic after write", cell[0], 60);

    begin(100);
    fetch_add(0, 1); /* 100 -> 110 */
    put(2);          /* 20 */
    fetch_add(1, 3); /* 20 -> 50 */
    swap(2, 1);      /* 50 -> 10 */
    get(3);
    put(3);
    settle();
    EQUAL("fetch first", fetched[0], 100);
    EQUAL("fetch after write", fetched[1], 20);
    EQUAL("swap after fetch", fetched[2], 50);
    EQUAL("read after swap", fetched[3], 10);
    EQUAL("write at last", cell[0], 30);

    /* Messages without data between those with some. */
    begin(3);
    nothing();
    put(1);
    nothing();
    get(0);
    nothing();
    put(2);
    nothing();
    settle();
    EQUAL("between empty messages, read", fetched[0], 10);
    EQUAL("between empty messages, write", cell[0], 20);
}

/* Whole messages: the second overwrites the first, and a read in between sees only the first. */
static void whole(void) {
    static unsigned char seen[BYTES];
    ptl_handle_md_t look = descriptor(seen, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    settle();
    if (!(limits.features & PTL_TOTAL_DATA_ORDERING))
        return;
    CHECK(PtlPut(big[0], 0, BYTES, PTL_NO_ACK_REQ, next(), large, 0, 0, NULL, 0));
    CHECK(PtlGet(look, 0, BYTES, next(), large, 0, 0, NULL));
    CHECK(PtlPut(big[1], 0, BYTES, PTL_NO_ACK_REQ, next(), large, 0, 0, NULL, 0));
    CHECK(PtlPut(big[0], 0, 64, PTL_NO_ACK_REQ, next(), large, 0, 0, NULL, 0));
    settle();
    FILLED("total order, read", seen, BYTES, 1);
    FILLED("total order, last small write", target, 64, 1);
    SAME_BYTES("total order, last large write", target + 64, source[1] + 64, BYTES - 64);
}

/* The order of matching: a mix of kinds and lengths takes use-once entries in the order of the calls. */
static void matches(void) {
    enum { MESSAGES = 30 };
    ptl_handle_eq_t eq = queue(64);
    ptl_pt_index_t once = portal(eq, 0);
    for (uintptr_t i = 0; i < MESSAGES; i++)
        append(once,
               entry(target, BYTES,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                         PTL_ME_EVENT_UNLINK_DISABLE),
               PTL_PRIORITY_LIST, (void *)i);
    settle();
    for (ptl_size_t i = 0; i < MESSAGES; i++) {
        ptl_size_t length = i % 5 == 0 ? BYTES - 64 : i % 5 == 1 ? 0 : 8 * i;
        if (i % 3 == 0)
            CHECK(PtlPut(big[0], 0, length, PTL_NO_ACK_REQ, next(), once, 0, i, NULL, 0));
        if (i % 3 == 1)
            CHECK(PtlGet(big[1], 0, length, next(), once, 0, i, NULL));
        if (i % 3 == 2)
            CHECK(PtlAtomic(big[0], 0, 16, PTL_NO_ACK_REQ, next(), once, 0, i, NULL, 0, PTL_MAX, PTL_UINT8_T));
    }
    settle();
    settle();
    unsigned int seen = 0;
    for (int i = 0; i < MESSAGES; i++) { /* events may be in another order */
        ptl_event_t event = next_event(eq);
        EQUAL("order of matching", (uintptr_t)event.user_ptr, event.remote_offset);
        seen |= 1u << ((uintptr_t)event.user_ptr & 31);
    }
    EQUAL("every message matched", seen, (1u << MESSAGES) - 1);
}

/* The data reported by an acknowledged write or a reply is visible to all. */
static void completion(void) {
    ptl_handle_ct_t acks = counter();
    ptl_handle_md_t acked = descriptor(source[0], BYTES, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acks);
    ptl_ct_event_t now;
    settle();
    clear(target, BYTES);
    barrier();
    CHECK(PtlPut(acked, 0, BYTES, PTL_CT_ACK_REQ, next(), large, 0, 0, NULL, 0));
    CHECK(PtlCTWait(acks, 1, &now));
    barrier(); /* without delay: the acknowledgement is valid now */
    FILLED("acknowledged data is there", target, BYTES, 1);
    memset(fetched, 0, sizeof fetched);
    cell[0] = 77;
    barrier();
    CHECK(PtlCTSet(replies, (ptl_ct_event_t){0, 0}));
    get(0);
    CHECK(PtlCTWait(replies, 1, &now));
    EQUAL("replied data is there", fetched[0], 77);
}

int main(int argc, char **argv) {
    start(argc, argv);
    fill(source[0], BYTES, 1);
    fill(source[1], BYTES, 2);
    replies = counter();
    md = descriptor(word, sizeof word, 0, PTL_EQ_NONE, PTL_CT_NONE);
    into = descriptor(fetched, sizeof fetched, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replies);
    for (int i = 0; i < 2; i++)
        big[i] = descriptor(source[i], BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
    pt = portal(PTL_EQ_NONE, 0);
    large = portal(PTL_EQ_NONE, 0);
    append(pt, entry(cell, sizeof cell, PTL_ME_OP_PUT | PTL_ME_OP_GET), PTL_PRIORITY_LIST, NULL);
    append(large, entry(target, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET), PTL_PRIORITY_LIST, NULL);
    small();
    whole();
    completion();
    matches();
    return finish();
}
