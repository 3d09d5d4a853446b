/* What every conformance program shares.
 *
 * A program is one feature group. Its ranks form a ring: each sends to `next` and receives from `prev`, so that the same
 * code runs with one process (sends to itself), two and more. The kind of interface comes from the arguments:
 *
 *     GROUP matching|non-matching logical|physical
 *
 * A check has a name. A failing one prints file, line, what was expected and what came, and the program goes on; a call
 * without which nothing can go on ends it. Exit status: 0 all held, 1 some did not, 77 not applicable to this kind. */
#ifndef HARNESS_H
#define HARNESS_H

#include <portals4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exported by the library beside Portals: the job as spinrun started it. */
extern int spin_rank(void);
extern int spin_size(void);
extern int spin_barrier(void);
extern int spin_set_map(ptl_handle_ni_t ni);
extern uint64_t spin_time_ps(void);
extern void spin_host_compute(uint64_t ns);

enum { SKIPPED = 77, PATIENCE_MS = 100, UNTOUCHED = 0xA5 };

static int me_, size_, failed_, passed_;
static int matching, logical;
static ptl_handle_ni_t ni;
static ptl_ni_limits_t limits;
static ptl_process_t *table; /* every rank by nid and pid */

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 5, 6))) static inline void judge(int holds, const char *file, int line, const char *name,
                                                               const char *form, ...) {
    if (holds) {
        passed_++;
        return;
    }
    va_list arguments;
    char why[256];
    va_start(arguments, form);
    vsnprintf(why, sizeof why, form, arguments);
    va_end(arguments);
    failed_++;
    printf("FAILED %s | %s:%d: rank %d: %s\n", name, file, line, me_, why);
    fflush(stdout);
}

/* Two integers, handles or pointers converted to integers. */
#define EQUAL(name, got, want)                                                                                         \
    do {                                                                                                               \
        unsigned long long got_ = (unsigned long long)(got), want_ = (unsigned long long)(want);                       \
        judge(got_ == want_, __FILE__, __LINE__, name, "%s: expected %llu (%#llx), got %llu (%#llx)", #got, want_,     \
              want_, got_, got_);                                                                                      \
    } while (0)

#define TRUE(name, condition) judge(!!(condition), __FILE__, __LINE__, name, "not so: %s", #condition)

#define SAME_BYTES(name, got, want, length)                                                                            \
    do {                                                                                                               \
        size_t at_ = difference(got, want, length);                                                                    \
        judge(at_ == (size_t)(length), __FILE__, __LINE__, name, "%s differs from %s at byte %zu of %zu", #got, #want, \
              at_, (size_t)(length));                                                                                  \
    } while (0)

static inline const char *code_name(int code) {
    static const char *const names[] = {
        "PTL_OK",      "PTL_ARG_INVALID",  "PTL_CT_NONE_REACHED", "PTL_EQ_DROPPED", "PTL_EQ_EMPTY",   "PTL_FAIL",
        "PTL_IGNORED", "PTL_IN_USE",       "PTL_LIST_TOO_LONG",   "PTL_NO_INIT",    "PTL_NO_SPACE",   "PTL_PID_IN_USE",
        "PTL_PT_FULL", "PTL_PT_EQ_NEEDED", "PTL_PT_IN_USE",       "PTL_ABORTED",    "PTL_INTERRUPTED"};
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "no return code";
}

static inline const char *event_name(int kind) {
    static const char *const names[] = {
        "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
        "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
        "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH"};
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : "no event";
}

/* A call's return code. */
#define CODE(name, call, want)                                                                                         \
    do {                                                                                                               \
        int rc_ = (call), want_rc_ = (want);                                                                           \
        judge(rc_ == want_rc_, __FILE__, __LINE__, name, "%s: expected %s, got %s", #call, code_name(want_rc_),        \
              code_name(rc_));                                                                                         \
    } while (0)

/* A call without which the program cannot go on. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            judge(0, __FILE__, __LINE__, "setup", "%s returned %s", #call, code_name(rc_));                            \
            leave();                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline size_t difference(const void *a, const void *b, size_t length) {
    size_t at = 0;
    while (at < length && ((const unsigned char *)a)[at] == ((const unsigned char *)b)[at])
        at++;
    return at;
}

/* ---- Start and end ----------------------------------------------------------------------------------------------- */

static inline void leave(void) {
    printf("CHECKS %d passed %d failed\n", passed_, failed_);
    fflush(stdout);
    exit(failed_ != 0);
}

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
static inline void barrier(void) { MUST(spin_barrier()); }

/* Reads the arguments; the library is not touched. */
static inline void arguments(int argc, char **argv) {
    matching = argc < 2 || strcmp(argv[1], "non-matching") != 0;
    logical = argc < 3 || strcmp(argv[2], "physical") != 0;
    me_ = spin_rank();
    size_ = spin_size();
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void skip_unless(int applicable) {
    if (applicable)
        return;
    printf("CHECKS 0 passed 0 failed\n");
    exit(SKIPPED);
}

static inline int same_process(ptl_process_t a, ptl_process_t b) {
    return logical ? a.rank == b.rank : a.phys.nid == b.phys.nid && a.phys.pid == b.phys.pid;
}

/* Opens the library and an interface of the kind asked for. The job's nids and pids are read from the map of a logical
 * interface of the other matching kind, which is closed again. */
static inline void open_with(int argc, char **argv, const ptl_ni_limits_t *desired) {
    ptl_handle_ni_t guide;
    ptl_size_t known;
    arguments(argc, argv);
    unsigned int other = matching ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING;
    MUST(PtlInit());
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, other | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &guide));
    MUST(spin_set_map(guide));
    table = calloc((size_t)size_, sizeof *table);
    MUST(PtlGetMap(guide, (ptl_size_t)size_, table, &known));
    MUST(PtlNIFini(guide));
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, kind_bits(), PTL_PID_ANY, desired, &limits, &ni));
    if (logical)
        MUST(PtlSetMap(ni, (ptl_size_t)size_, table));
}

static inline void start(int argc, char **argv) { open_with(argc, argv, NULL); }

/* Everybody is done; says how it went. */
static inline int finish(void) {
    barrier();
    MUST(PtlNIFini(ni));
    PtlFini();
    leave();
    return 0;
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static inline ptl_handle_eq_t queue(ptl_size_t count) {
    ptl_handle_eq_t eq;
    MUST(PtlEQAlloc(ni, count, &eq));
    return eq;
}

static inline ptl_handle_ct_t counter(void) {
    ptl_handle_ct_t ct;
    MUST(PtlCTAlloc(ni, &ct));
    return ct;
}

static inline ptl_pt_index_t portal(ptl_handle_eq_t eq, unsigned int options) {
    ptl_pt_index_t index;
    MUST(PtlPTAlloc(ni, options, eq, PTL_PT_ANY, &index));
    return index;
}

static inline ptl_handle_md_t descriptor(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq,
                                         ptl_handle_ct_t ct) {
    ptl_md_t md = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = ct};
    ptl_handle_md_t handle;
    MUST(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* An entry that takes everything from everybody; unused fields hold rubbish, as those of programs do. */
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
    MUST(append_code(pt, &me, list, user, &handle));
    return handle;
}

static inline int search(ptl_pt_index_t pt, ptl_me_t me, ptl_search_op_t op, void *user) {
    ptl_le_t le = list_entry(&me);
    return matching ? PtlMESearch(ni, pt, &me, op, user) : PtlLESearch(ni, pt, &le, op, user);
}

static inline int unlink_entry(ptl_handle_me_t handle) { return matching ? PtlMEUnlink(handle) : PtlLEUnlink(handle); }

/* ---- Events ------------------------------------------------------------------------------------------------------ */

#define NO_EVENT 255

/* The next event, which is waited for in simulated time only. */
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

/* Nothing (more) comes. */
#define NO_MORE(name, eq)                                                                                              \
    do {                                                                                                               \
        ptl_event_t more_;                                                                                             \
        int more_rc_ = PtlEQGet(eq, &more_);                                                                           \
        judge(more_rc_ == PTL_EQ_EMPTY, __FILE__, __LINE__, name, "expected an empty queue, got %s, event %s",         \
              code_name(more_rc_), more_rc_ == PTL_EQ_EMPTY ? "none" : event_name(more_.type));                        \
    } while (0)

/* What a counting event shows, at once. */
#define COUNTS(name, ct, want_success, want_failure)                                                                   \
    do {                                                                                                               \
        ptl_ct_event_t now_ = {0, 0};                                                                                  \
        unsigned long long s_ = (want_success), f_ = (want_failure);                                                   \
        int ct_rc_ = PtlCTGet(ct, &now_);                                                                              \
        judge(ct_rc_ == PTL_OK && now_.success == s_ && now_.failure == f_, __FILE__, __LINE__, name,                  \
              "%s: expected {%llu, %llu}, got %s {%llu, %llu}", #ct, s_, f_, code_name(ct_rc_),                        \
              (unsigned long long)now_.success, (unsigned long long)now_.failure);                                     \
    } while (0)

/* Waits until a counting event reaches a value, and then for what must not come any more. */
#define REACHES(name, ct, want_success, want_failure)                                                                  \
    do {                                                                                                               \
        await(ct, (want_success) + 0ull, want_failure);                                                                \
        COUNTS(name, ct, want_success, want_failure);                                                                  \
    } while (0)

static inline void await(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure) {
    ptl_ct_event_t now;
    for (int turn = 0; turn < 200; turn++) {
        if (PtlCTGet(ct, &now) != PTL_OK || (now.success >= success && now.failure >= failure))
            break;
        spin_host_compute(1000);
    }
}

/* Lets all that is under way arrive: messages, answers, what they trigger. */
static inline void settle(void) {
    spin_host_compute(100000);
    barrier();
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static inline unsigned char pattern(size_t i, unsigned int seed) {
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

static inline void fill(void *data, size_t length, unsigned int seed) {
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)data)[i] = pattern(i, seed);
}

/* The first byte that is not as `fill` left it; `length` when all are. */
static inline size_t filled(const void *data, size_t length, unsigned int seed) {
    size_t i = 0;
    while (i < length && ((const unsigned char *)data)[i] == pattern(i, seed))
        i++;
    return i;
}

static inline size_t untouched(const void *data, size_t length) {
    size_t i = 0;
    while (i < length && ((const unsigned char *)data)[i] == UNTOUCHED)
        i++;
    return i;
}

#define FILLED(name, data, length, seed) EQUAL(name, filled(data, length, seed), length)
#define INTACT(name, data, length) EQUAL(name, untouched(data, length), length)

static inline void clear(void *data, size_t length) { memset(data, UNTOUCHED, length); }

#endif
