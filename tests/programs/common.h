/* What the test programs share: a rank's set-up, checks that end the program, events by name. */
#ifndef COMMON_H
#define COMMON_H

#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            fprintf(stderr, "%s:%d: rank %d: %s returned %d\n", __FILE__, __LINE__, spin_rank(), #call, rc_);          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, spin_rank(), #condition);              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { UNTOUCHED = 0xA5 }; /* a byte that no message has written */

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

static inline ptl_process_t rank(unsigned int number) { return (ptl_process_t){.rank = number}; }

static inline ptl_handle_md_t bind(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq,
                                   ptl_handle_ct_t ct) {
    ptl_md_t md = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = ct};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* An entry without handlers that takes messages from everybody. */
static inline ptl_me_t entry(void *start, ptl_size_t length, ptl_match_bits_t bits, unsigned int options) {
    ptl_me_t me = {.start = start, .length = length, .options = options, .match_bits = bits};
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.match_id.phys.nid = PTL_NID_ANY; /* of a rank: the same field */
    me.match_id.phys.pid = PTL_PID_ANY;
    me.hpu_memory = PTL_INVALID_HANDLE;
    return me;
}

static inline unsigned char pattern(size_t i, unsigned int seed) {
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

static inline void fill(unsigned char *data, size_t bytes, unsigned int seed) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = pattern(i, seed);
}

static inline int filled(const unsigned char *data, size_t bytes, unsigned int seed) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != pattern(i, seed))
            return 0;
    return 1;
}

static inline int untouched(const unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != UNTOUCHED)
            return 0;
    return 1;
}

static inline const char *event_name(ptl_event_kind_t kind) {
    static const char *const names[] = {
        "GET",          "GET_OVERFLOW",   "PUT",       "PUT_OVERFLOW", "ATOMIC",       "ATOMIC_OVERFLOW",
        "FETCH_ATOMIC", "FETCH_OVERFLOW", "REPLY",     "SEND",         "ACK",          "PT_DISABLED",
        "LINK",         "AUTO_UNLINK",    "AUTO_FREE", "SEARCH",       "HANDLER_ERROR"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static inline const char *fail_name(ptl_ni_fail_t fail) {
    static const char *const names[] = {"OK",           "UNDELIVERABLE", "DROPPED", "PT_DISABLED",  "PERM_VIOLATION",
                                        "OP_VIOLATION", "NO_MATCH",      "SEGV",    "HANDLER_FAIL", "HANDLER_TIMEOUT"};
    return fail < sizeof names / sizeof *names ? names[fail] : "?";
}

/* The next event, which must be of this kind. */
static inline ptl_event_t next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind) {
    ptl_event_t event;
    CHECK(PtlEQWait(eq, &event));
    if (event.type != kind) {
        fprintf(stderr, "rank %d: event %s (%s) instead of %s\n", spin_rank(), event_name(event.type),
                fail_name(event.ni_fail_type), event_name(kind));
        exit(1);
    }
    return event;
}

/* Ends an orderly rank. */
static inline int finish(void) {
    CHECK(PtlNIFini(ni));
    PtlFini();
    return 0;
}

/* A part of a program that is run by its name. */
struct test_case {
    const char *name;
    void (*run)(void);
};
#define CASE(function) {#function, function}

/* What main() returns: runs the case that the first argument names, and ends the rank. */
#define RUN_CASE(argc, argv, cases) run_case(argc, argv, cases, sizeof cases / sizeof *cases)
static inline int run_case(int argc, char **argv, const struct test_case *cases, size_t count) {
    for (size_t i = 0; argc > 1 && i < count; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        cases[i].run();
        CHECK(spin_barrier());
        return finish();
    }
    fprintf(stderr, "%s: no case %s\n", argv[0], argc > 1 ? argv[1] : "named");
    return 2;
}

#endif
