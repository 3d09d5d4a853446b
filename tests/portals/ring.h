/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the conformance programs beyond the harness.
 *
 * A program is one feature group. Its ranks form a ring: each sends to `next` and receives from `prev`, so that the
 * same code runs with one process (sends to itself), two and more. The kind of interface comes from the arguments:
 *
 *     GROUP matching|non-matching logical|physical */
#ifndef RING_H
#define RING_H

#include "harness.h"

enum { PATIENCE_MS = 10000, TURNS = 1000000 };

static int me_, size_;
static int matching, logical;
static ptl_process_t *table; /* every rank by nid and pid */

/* ---- Start and end ----------------------------------------------------------------------------------------------- */

static inline unsigned int kind_bits(void) {
    return (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) | (logical ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL);
}

static inline ptl_process_t process(int rank) {
    ptl_process_t named = {.rank = (ptl_rank_t)rank};
    return logical ? named : table[rank];
}

static inline int next_rank(void) { return (me_ + 1) % size_; }
static inline int prev_rank(void) { return (me_ + size_ - 1) % size_; }
static inline ptl_process_t next(void) { return process(next_rank()); }
static inline ptl_process_t prev(void) { return process(prev_rank()); }
static inline void barrier(void) { CHECK(spin_barrier()); }

/* Reads the arguments; the library is not touched. */
static inline void arguments(int argc, char **argv) {
    matching = argc < 2 || strcmp(argv[1], "non-matching") != 0;
    logical = argc < 3 || strcmp(argv[2], "physical") != 0;
    me_ = spin_rank();
    size_ = spin_size();
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline int same_process(ptl_process_t a, ptl_process_t b) {
    return logical ? a.rank == b.rank : a.phys.nid == b.phys.nid && a.phys.pid == b.phys.pid;
}

/* Opens the library and an interface of the requested kind. Reads the job's nids and pids from the map of a logical
 * interface of the other matching kind, which it closes again. */
static inline void open_with(int argc, char **argv, const ptl_ni_limits_t *desired) {
    ptl_handle_ni_t guide;
    ptl_size_t known;
    arguments(argc, argv);
    unsigned int other = matching ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, other | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &guide));
    CHECK(spin_set_map(guide));
    table = calloc((size_t)size_, sizeof *table);
    CHECK(PtlGetMap(guide, (ptl_size_t)size_, table, &known));
    CHECK(PtlNIFini(guide));
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, desired, &limits, &ni));
    if (logical)
        CHECK(PtlSetMap(ni, (ptl_size_t)size_, table));
}

static inline void start(int argc, char **argv) { open_with(argc, argv, NULL); }

/* Waits for all ranks and prints the result. */
static inline int finish(void) {
    barrier();
    close_interface();
    leave();
    return 0;
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static inline ptl_handle_eq_t queue(ptl_size_t count) {
    ptl_handle_eq_t eq;
    CHECK(PtlEQAlloc(ni, count, &eq));
    return eq;
}

static inline ptl_handle_ct_t counter(void) {
    ptl_handle_ct_t ct;
    CHECK(PtlCTAlloc(ni, &ct));
    return ct;
}

static inline ptl_pt_index_t portal(ptl_handle_eq_t eq, unsigned int options) {
    ptl_pt_index_t index;
    CHECK(PtlPTAlloc(ni, options, eq, PTL_PT_ANY, &index));
    return index;
}

/* Returns an entry that accepts everything from all ranks; unused fields hold garbage, as in programs. */
static inline ptl_me_t entry(void *start, ptl_size_t length, unsigned int options) {
    ptl_me_t me;
    memset(&me, 0xEE, sizeof me);
    me.start = start;
    me.length = length;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = options;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    if (logical)
        me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = 0;
    me.ignore_bits = ~(ptl_match_bits_t)0;
    if (options & PTL_ME_MANAGE_LOCAL)
        me.min_free = 0;
    return me;
}

static inline ptl_le_t list_entry(const ptl_me_t *me) {
    ptl_le_t le = {
        .start = me->start, .length = me->length, .ct_handle = me->ct_handle, .uid = me->uid, .options = me->options};
    return le;
}

static inline int append_code(ptl_pt_index_t pt, const ptl_me_t *me, ptl_list_t list, void *user,
                              ptl_handle_me_t *handle) {
    ptl_le_t le = list_entry(me);
    return matching ? PtlMEAppend(ni, pt, me, list, user, handle) : PtlLEAppend(ni, pt, &le, list, user, handle);
}

static inline ptl_handle_me_t append(ptl_pt_index_t pt, ptl_me_t me, ptl_list_t list, void *user) {
    ptl_handle_me_t handle;
    CHECK(append_code(pt, &me, list, user, &handle));
    return handle;
}

static inline int search(ptl_pt_index_t pt, ptl_me_t me, ptl_search_op_t op, void *user) {
    ptl_le_t le = list_entry(&me);
    return matching ? PtlMESearch(ni, pt, &me, op, user) : PtlLESearch(ni, pt, &le, op, user);
}

static inline int unlink_entry(ptl_handle_me_t handle) { return matching ? PtlMEUnlink(handle) : PtlLEUnlink(handle); }

/* ---- Events ------------------------------------------------------------------------------------------------------ */

#define NO_EVENT 255

/* Returns the next event, or one of type NO_EVENT after a wait that is long for a live run, too. */
static inline ptl_event_t next_event(ptl_handle_eq_t eq) {
    ptl_event_t event;
    unsigned int which;
    memset(&event, 0xDD, sizeof event);
    int rc = PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which);
    if (rc != PTL_OK)
        event.type = NO_EVENT;
    return event;
}

static inline ptl_event_t checked_event(const char *file, int line, const char *name, ptl_handle_eq_t eq, int kind) {
    ptl_event_t event = next_event(eq);
    judge(event.type == kind, file, line, name, "expected event %s, got %s", event_name(kind), event_name(event.type));
    return event;
}

/* Waits for an event, which must be of this kind. */
#define EVENT(name, eq, kind) checked_event(__FILE__, __LINE__, name, eq, kind)

/* Checks that no (further) event has arrived, before any rank goes on: a live rank would send at once. */
#define NO_MORE(name, eq)                                                                                              \
    do {                                                                                                               \
        ptl_event_t more_;                                                                                             \
        int more_rc_ = PtlEQGet(eq, &more_);                                                                           \
        judge(more_rc_ == PTL_EQ_EMPTY, __FILE__, __LINE__, name, "expected an empty queue, got %s, event %s",         \
              code_name(more_rc_), more_rc_ == PTL_EQ_EMPTY ? "none" : event_name(more_.type));                        \
        barrier();                                                                                                     \
    } while (0)

/* Checks the current value of a counting event. */
#define COUNTS(name, ct, want_success, want_failure)                                                                   \
    do {                                                                                                               \
        ptl_ct_event_t now_ = {0, 0};                                                                                  \
        unsigned long long s_ = (want_success), f_ = (want_failure);                                                   \
        int ct_rc_ = PtlCTGet(ct, &now_);                                                                              \
        judge(ct_rc_ == PTL_OK && now_.success == s_ && now_.failure == f_, __FILE__, __LINE__, name,                  \
              "%s: expected {%llu, %llu}, got %s {%llu, %llu}", #ct, s_, f_, code_name(ct_rc_),                        \
              (unsigned long long)now_.success, (unsigned long long)now_.failure);                                     \
    } while (0)

/* Waits until a counting event reaches a value, and then checks that it stays. */
#define REACHES(name, ct, want_success, want_failure)                                                                  \
    do {                                                                                                               \
        await(ct, (want_success) + 0ull, want_failure);                                                                \
        COUNTS(name, ct, want_success, want_failure);                                                                  \
    } while (0)

static inline void await(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure) {
    ptl_ct_event_t now;
    for (int turn = 0; turn < TURNS; turn++) {
        if (PtlCTGet(ct, &now) != PTL_OK || (now.success >= success && now.failure >= failure))
            break;
        spin_host_compute(1000);
    }
}

/* Lets everything in flight arrive: messages, answers, and operations triggered by them. */
static inline void settle(void) {
    spin_host_compute(100000);
    barrier();
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

#define FILLED(name, data, length, seed) EQUAL(name, filled(data, length, seed), length)
#define INTACT(name, data, length) EQUAL(name, untouched(data, length), length)

static inline void clear(void *data, size_t length) { memset(data, UNTOUCHED, length); }

#endif
