/* Posted calls: `posting mix` checks that results do not differ, `posting events` the same with known events, `posting
 * leave` ends a rank that has posted calls. */
#include "../portals/harness.h"
#include <spin.h>
#include <unistd.h>
#undef PtlMEAppend /* a plain program */

enum { ROUNDS = 40, SLOTS = 8 };

static volatile uint64_t table[ROUNDS + SLOTS];
static ptl_handle_ct_t arrived;
static ptl_pt_index_t pt;

static void open_table(void) {
    ptl_handle_me_t handle;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    CHECK(PtlCTAlloc(ni, &arrived));
    ptl_me_t me = {.start = (void *)table,
                   .length = sizeof table,
                   .ct_handle = arrived,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                   .match_id = {.rank = PTL_RANK_ANY}};
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
}

static void put(ptl_handle_md_t md, size_t length, unsigned int to, size_t at) {
    CHECK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, to_rank(to), pt, 0, at * sizeof *table, NULL, 0));
}

static void mix(void) {
    unsigned int own = (unsigned int)spin_rank(), other = 1 - own;
    ptl_ct_event_t counted;
    ptl_handle_ct_t replies;
    uint64_t value, kept = 0, sum = 1, fetched[SLOTS];
    ptl_handle_md_t small = descriptor(&value, sizeof value, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_md_t add = descriptor(&sum, sizeof sum, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_md_t plain = descriptor(&kept, sizeof kept, 0, PTL_EQ_NONE, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &replies));
    ptl_handle_md_t get = descriptor(fetched, sizeof fetched, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replies);
    /* Volatile data may be written again as soon as the put returns. */
    for (unsigned int i = 0; i < ROUNDS; i++) {
        value = 1000 * own + i;
        put(small, sizeof value, other, SLOTS + i);
        value = UINT64_MAX;
        if (i % 7 == 0)
            printf("rank %u: round %u at %llu ps\n", own, i, (unsigned long long)spin_time_ps());
    }
    for (unsigned int i = 0; i < SLOTS; i++)
        CHECK(PtlAtomic(add, 0, sizeof sum, PTL_NO_ACK_REQ, to_rank(other), pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    CHECK(PtlCTWait(arrived, ROUNDS + SLOTS, &counted));
    EXPECT(table[0] == SLOTS);
    for (unsigned int i = 0; i < ROUNDS; i++)
        EXPECT(table[SLOTS + i] == 1000 * other + i);
    CHECK(spin_barrier());
    for (unsigned int i = 0; i < SLOTS; i++)
        CHECK(PtlGet(get, i * sizeof *fetched, sizeof *fetched, to_rank(other), pt, 0, (SLOTS + i) * sizeof *table,
                     NULL));
    CHECK(PtlCTWait(replies, SLOTS, &counted));
    for (unsigned int i = 0; i < SLOTS; i++)
        EXPECT(fetched[i] == 1000 * own + i);
    /* A wait for memory, which only a posted put changes: from the own card, and then from the other rank's. */
    for (unsigned int to = own, i = 1; i < 4; i++, to = i == 3 ? other : own) {
        kept = i;
        if (to == other) /* which has found its own last one */
            CHECK(spin_barrier());
        put(plain, sizeof kept, to, 1);
        while (table[1] != i)
            ;
        printf("rank %u: found %u at %llu ps\n", own, i, (unsigned long long)spin_time_ps());
    }
    /* Acceptance for a descriptor does not extend to the next one, even if it has the same handle. */
    CHECK(PtlMDRelease(plain));
    plain = descriptor(&kept, sizeof kept / 2, 0, PTL_EQ_NONE, PTL_CT_NONE);
    EXPECT(PtlPut(plain, 0, sizeof kept, PTL_NO_ACK_REQ, to_rank(other), pt, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    put(plain, sizeof kept / 2, other, 2);
    for (unsigned int length = 1; length <= 5; length++) {
        int rc = PtlPut(plain, 0, length, PTL_NO_ACK_REQ, to_rank(other), pt, 0, 2 * sizeof *table, NULL, 0);
        EXPECT(rc == (length <= 4 ? PTL_OK : PTL_ARG_INVALID));
    }
    EXPECT(PtlPut(plain, 0, 1, PTL_NO_ACK_REQ, to_rank(2), pt, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    EXPECT(PtlPut(plain, 0, 1, PTL_CT_ACK_REQ, to_rank(other), pt, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    spin_host_compute(10000); /* until they have arrived */
    CHECK(spin_barrier());
}

/* A ring of ranks sends acknowledged messages, some at a time, and takes the events of both ends. */
static void events(void) {
    enum { MESSAGES = 300, WINDOW = 20 };
    unsigned int own = (unsigned int)spin_rank(), next = (own + 1) % (unsigned int)spin_size(), which;
    ptl_handle_eq_t eq;
    ptl_handle_me_t handle;
    ptl_pt_index_t index;
    ptl_event_t event;
    uint64_t value = own, count[2] = {0, 0};
    CHECK(PtlEQAlloc(ni, 4 * WINDOW, &eq));
    CHECK(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &index));
    ptl_me_t me = {.start = (void *)table,
                   .length = sizeof table,
                   .ct_handle = arrived,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id = {.rank = PTL_RANK_ANY}};
    CHECK(PtlMEAppend(ni, index, &me, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_handle_md_t md = descriptor(&value, sizeof value, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
    CHECK(spin_barrier());
    for (unsigned int i = 0; i < MESSAGES + WINDOW; i++) {
        for (unsigned int k = 0; k < 2 && i >= WINDOW; k++) {
            CHECK((i + k) % 2 ? PtlEQWait(eq, &event) : PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which));
            bool is_ack = event.type == PTL_EVENT_ACK;
            EXPECT(is_ack || (event.type == PTL_EVENT_PUT && event.hdr_data == count[0]));
            count[is_ack]++;
            spin_host_compute(is_ack ? 20 : 3);
        }
        if (i < MESSAGES)
            CHECK(PtlPut(md, 0, sizeof value, PTL_ACK_REQ, to_rank(next), index, 0, 0, NULL, i));
        if (i % 50 == 0)
            printf("rank %u: %u of its messages are acknowledged at %llu ps\n", own, (unsigned int)count[1],
                   (unsigned long long)spin_time_ps());
    }
    EXPECT(count[0] == MESSAGES && count[1] == MESSAGES);
    CHECK(spin_ct_await(arrived, MESSAGES));
    CHECK(spin_barrier());
    EXPECT(spin_ct_await(PTL_CT_NONE, 0) == PTL_ARG_INVALID);
    CHECK(PtlMEUnlink(handle));
    CHECK(PtlPTFree(ni, index));
}

/* The first put waits for its answer, the others do not. */
static void leave_early(void) {
    static const uint64_t value = 1;
    ptl_handle_md_t md = descriptor((void *)&value, sizeof value, 0, PTL_EQ_NONE, PTL_CT_NONE);
    if (spin_rank() == 1) {
        for (unsigned int i = 0; i < 4; i++)
            put(md, sizeof value, 0, i);
        _exit(0);
    }
}

int main(int argc, char **argv) {
    open_table();
    EXPECT(argc == 2);
    if (strcmp(argv[1], "mix") == 0)
        mix();
    else if (strcmp(argv[1], "events") == 0)
        events();
    else
        leave_early();
    return close_interface();
}
