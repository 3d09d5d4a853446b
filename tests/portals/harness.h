/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of all C tests: checks, cases run by name, and set-up of most Portals programs.
 *
 * A check of `judge` and of the macros EQUAL, TRUE, SAME_BYTES and CODE has a name: a failing one prints file, line,
 * expected and actual value, and the program continues. A failing CHECK or EXPECT ends the program. Exit status: 0 all
 * held, 1 some did not, 77 not applicable. An MPI program includes <mpi.h> before this file. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MPI_VERSION
static inline int own_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}
static inline void end_program(int status) { MPI_Abort(MPI_COMM_WORLD, status); }
#else
#include <portals4.h>

/* Exported by the library beside Portals: the job as started by spinrun. */
extern int spin_rank(void);
extern int spin_size(void);
extern int spin_barrier(void);
extern int spin_set_map(ptl_handle_ni_t ni);
extern uint64_t spin_time_ps(void);
extern void spin_host_compute(uint64_t ns);

static inline int own_rank(void) { return spin_rank(); }
static inline void end_program(int status) { exit(status); }
#endif

enum { SKIPPED = 77, UNTOUCHED = 0xA5 /* a byte never written by a message */ };

static int failed_, passed_;

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
    printf("FAILED %s | %s:%d: rank %d: %s\n", name, file, line, own_rank(), why);
    fflush(stdout);
}

/* Prints the numbers of checks, and ends the program. */
static inline void leave(void) {
    printf("CHECKS %d passed %d failed\n", passed_, failed_);
    fflush(stdout);
    end_program(failed_ != 0);
}

static inline void skip_unless(int applicable) {
    if (applicable)
        return;
    printf("CHECKS 0 passed 0 failed\n");
    exit(SKIPPED);
}

/* Returns true in a simulated run. Reports in a live one (spinrun --live) that the checks of this name are left out,
 * because they are about time. */
static inline int keeps_time(const char *name) {
    if (getenv("SPIN_LIVE") == NULL)
        return 1;
    printf("TIMED %s\n", name);
    return 0;
}

static inline size_t difference(const void *a, const void *b, size_t length) {
    size_t at = 0;
    while (at < length && ((const unsigned char *)a)[at] == ((const unsigned char *)b)[at])
        at++;
    return at;
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

/* A condition required for the rest of the program. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            judge(0, __FILE__, __LINE__, __func__, "not so: %s", #condition);                                          \
            leave();                                                                                                   \
        }                                                                                                              \
    } while (0)

#ifndef MPI_VERSION

static inline const char *code_name(int code) {
    static const char *const names[] = {
        "PTL_OK",      "PTL_ARG_INVALID",  "PTL_CT_NONE_REACHED", "PTL_EQ_DROPPED", "PTL_EQ_EMPTY",   "PTL_FAIL",
        "PTL_IGNORED", "PTL_IN_USE",       "PTL_LIST_TOO_LONG",   "PTL_NO_INIT",    "PTL_NO_SPACE",   "PTL_PID_IN_USE",
        "PTL_PT_FULL", "PTL_PT_EQ_NEEDED", "PTL_PT_IN_USE",       "PTL_ABORTED",    "PTL_INTERRUPTED"};
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "no return code";
}

static inline const char *event_name(unsigned int kind) {
    static const char *const names[] = {
        "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC",       "ATOMIC_OVERFLOW",
        "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",          "PT_DISABLED",
        "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH",       "HANDLER_ERROR"};
    return kind < sizeof names / sizeof *names ? names[kind] : "no event";
}

static inline const char *fail_name(ptl_ni_fail_t fail) {
    static const char *const names[] = {"OK",           "UNDELIVERABLE", "DROPPED", "PT_DISABLED",  "PERM_VIOLATION",
                                        "OP_VIOLATION", "NO_MATCH",      "SEGV",    "HANDLER_FAIL", "HANDLER_TIMEOUT"};
    return fail < sizeof names / sizeof *names ? names[fail] : "?";
}

/* A call's return code. */
#define CODE(name, call, want)                                                                                         \
    do {                                                                                                               \
        int rc_ = (call), want_rc_ = (want);                                                                           \
        judge(rc_ == want_rc_, __FILE__, __LINE__, name, "%s: expected %s, got %s", #call, code_name(want_rc_),        \
              code_name(rc_));                                                                                         \
    } while (0)

/* A call required for the rest of the program. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            judge(0, __FILE__, __LINE__, "setup", "%s returned %s", #call, code_name(rc_));                            \
            leave();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* ---- One interface ----------------------------------------------------------------------------------------------- */

static ptl_handle_ni_t ni;
static ptl_ni_limits_t limits;

/* Opens the library and an interface; a logical one gets the job's map. */
static inline void open_interface(unsigned int options) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, &limits, &ni));
    if (options & PTL_NI_LOGICAL)
        CHECK(spin_set_map(ni));
}

/* Ends the program unless packets have the size assumed by its checks. */
static inline void needs_packets_of(ptl_size_t bytes) {
    if (limits.max_payload_size == bytes)
        return;
    fprintf(stderr, "rank %d: this program needs packets of %llu bytes: spinrun --set network.mtu_bytes=%llu\n",
            spin_rank(), (unsigned long long)bytes, (unsigned long long)bytes);
    exit(1);
}

/* Closes both. Returns the exit status of an orderly rank. */
static inline int close_interface(void) {
    CHECK(PtlNIFini(ni));
    PtlFini();
    return 0;
}

static inline ptl_process_t to_rank(unsigned int number) { return (ptl_process_t){.rank = number}; }

static inline ptl_handle_md_t descriptor(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq,
                                         ptl_handle_ct_t ct) {
    ptl_md_t md = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = ct};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* Returns an entry without handlers that accepts messages from all ranks. */
static inline ptl_me_t plain_entry(void *start, ptl_size_t length, ptl_match_bits_t bits, unsigned int options) {
    ptl_me_t me = {.start = start, .length = length, .options = options, .match_bits = bits};
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.match_id.phys.nid = PTL_NID_ANY; /* rank: the same field */
    me.match_id.phys.pid = PTL_PID_ANY;
    me.hpu_memory = PTL_INVALID_HANDLE;
    return me;
}

/* Waits for the next event, which must be of this kind. */
static inline ptl_event_t await_event(ptl_handle_eq_t eq, ptl_event_kind_t kind) {
    ptl_event_t event;
    CHECK(PtlEQWait(eq, &event));
    if (event.type != kind) {
        judge(0, __FILE__, __LINE__, "await_event", "event %s (%s) instead of %s", event_name(event.type),
              fail_name(event.ni_fail_type), event_name(kind));
        leave();
    }
    return event;
}

/* ---- Parts of a program, run by name ------------------------------------------------------------------------------ */

struct test_case {
    const char *name;
    void (*run)(void);
};
#define CASE(function) {#function, function}

/* Runs the case named by the first argument, and ends the rank. Returns the status of main(). */
#define RUN_CASE(argc, argv, cases) run_case(argc, argv, cases, sizeof cases / sizeof *cases)
static inline int run_case(int argc, char **argv, const struct test_case *cases, size_t count) {
    for (size_t i = 0; argc > 1 && i < count; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        cases[i].run();
        CHECK(spin_barrier());
        return close_interface();
    }
    fprintf(stderr, "%s: no case %s\n", argv[0], argc > 1 ? argv[1] : "named");
    return 2;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static inline unsigned char pattern(size_t i, unsigned int seed) {
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

static inline void fill(void *data, size_t length, unsigned int seed) {
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)data)[i] = pattern(i, seed);
}

/* Returns the index of the first byte that differs from `fill`; `length` if none. */
static inline size_t filled(const void *data, size_t length, unsigned int seed) {
    size_t i = 0;
    while (i < length && ((const unsigned char *)data)[i] == pattern(i, seed))
        i++;
    return i;
}

/* Returns the index of the first byte that is not UNTOUCHED; `length` if none. */
static inline size_t untouched(const void *data, size_t length) {
    size_t i = 0;
    while (i < length && ((const unsigned char *)data)[i] == UNTOUCHED)
        i++;
    return i;
}

static inline int is_filled(const void *data, size_t length, unsigned int seed) {
    return filled(data, length, seed) == length;
}

static inline int is_untouched(const void *data, size_t length) { return untouched(data, length) == length; }

#endif
#endif
