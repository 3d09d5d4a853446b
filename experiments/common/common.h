/* SPDX-License-Identifier: Apache-2.0 */
/* Library of the experiments' programs: checked calls, test data, arguments, start and end. */
#ifndef EXPERIMENTS_COMMON_H
#define EXPERIMENTS_COMMON_H

#include <spin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program, and with it the run, with a message that names this rank. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "rank %d: ", spin_rank());
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* Makes a call that must return PTL_OK. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK)                                                                                             \
            fail("%s:%d: %s returned %d", __FILE__, __LINE__, #call, rc_);                                             \
    } while (0)

/* The status with which main ends the program. */
__attribute__((unused)) static int exit_status;

/* The value of "data_ok" in a result. After a wrong one the program ends with status 1. */
__attribute__((unused)) static const char *verdict(bool is_right) {
    if (!is_right)
        exit_status = 1;
    return is_right ? "true" : "false";
}

/* Memory that the program keeps to its end, filled with zeros. */
static inline void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fail("no memory for %zu bytes", bytes);
    return memory;
}

/* Byte `i` of the test data number `seed`; adjacent bytes, and data of other seeds, differ. */
static inline unsigned char pattern(size_t i, unsigned seed) {
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

/* Returns whether `data` begins with `bytes` bytes of test data. */
__attribute__((unused)) static bool is_pattern(const unsigned char *data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != pattern(i, seed))
            return false;
    return true;
}

/* The argument after `name`, or NULL. */
static inline const char *argument(int argc, char **argv, const char *name) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

/* The argument after `name`; if it is missing, the program ends and prints `usage`. */
static inline const char *option(int argc, char **argv, const char *name, const char *usage) {
    const char *found = argument(argc, argv, name);
    if (found != NULL)
        return found;
    fprintf(stderr, "usage: %s\n", usage);
    exit(2);
}

/* The argument after `name`, or `otherwise` if it is missing. */
__attribute__((unused)) static inline const char *option_or(int argc, char **argv, const char *name,
                                                            const char *otherwise) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

/* The index of `word` among `count` words; if it is none of them, the program ends and prints `usage`. */
static inline int choice(const char *word, const char *const *words, int count, const char *usage) {
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    fprintf(stderr, "%s: not understood; usage: %s\n", word, usage);
    exit(2);
}

/* Removes the first number from a comma-separated list; returns false when the list is empty. */
static inline bool next_number(const char **list, size_t *number) {
    char *end;
    if (**list == '\0')
        return false;
    *number = strtoull(*list, &end, 10);
    if (end == *list || (*end != ',' && *end != '\0')) {
        fprintf(stderr, "%s: not a list of numbers\n", *list);
        exit(2);
    }
    *list = *end == ',' ? end + 1 : end;
    return true;
}

/* This process's interface, and its limits. */
static ptl_handle_ni_t ni;
static ptl_ni_limits_t limits;

/* Starts Portals with a matching, logical interface of all ranks and the portal table entry `pt`, whose events go to
 * `eq` if that is not NULL. */
__attribute__((unused)) static void start(ptl_pt_index_t pt, ptl_handle_eq_t *eq) {
    ptl_pt_index_t given;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    CHECK(spin_set_map(ni));
    if (eq != NULL)
        CHECK(PtlEQAlloc(ni, 4096, eq));
    CHECK(PtlPTAlloc(ni, 0, eq == NULL ? PTL_EQ_NONE : *eq, pt, &given));
}

/* Ends Portals; this frees all objects of the process. */
__attribute__((unused)) static void finish(void) {
    fflush(stdout);
    CHECK(PtlNIFini(ni));
    PtlFini();
}

/* Binds memory to send from; `options` (PTL_MD_EVENT_CT_…) select the events that `ct` counts (PTL_CT_NONE: none). */
__attribute__((unused)) static ptl_handle_md_t bind_memory(void *memory, size_t bytes, unsigned options,
                                                           ptl_handle_ct_t ct) {
    ptl_md_t md = {.start = memory, .length = bytes, .options = options, .eq_handle = PTL_EQ_NONE, .ct_handle = ct};
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* Appends the entry `me` for puts of any rank with these match bits to `memory`. Its counter counts messages, or bytes if
 * me.options has PTL_ME_EVENT_CT_BYTES. */
__attribute__((unused)) static ptl_handle_me_t append_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, void *memory,
                                                            size_t bytes, ptl_me_t me) {
    ptl_handle_me_t handle;
    me.start = memory;
    me.length = bytes;
    me.uid = PTL_UID_ANY;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = bits;
    me.options |= PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

/* Appends an entry without handlers that `from` (or PTL_RANK_ANY) may access, with the given options. */
__attribute__((unused)) static void append_plain(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_rank_t from,
                                                 void *memory, size_t bytes, unsigned options, ptl_handle_ct_t ct) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = options | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = from,
                   .match_bits = bits,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Waits until `ct` has counted `count`; ends the program if something that it counts has failed. */
__attribute__((unused)) static void await_count(ptl_handle_ct_t ct, ptl_size_t count) {
    int rc = spin_ct_await(ct, count);
    if (rc == PTL_FAIL) {
        ptl_ct_event_t counted;
        CHECK(PtlCTGet(ct, &counted));
        fail("%zu messages or operations failed", (size_t)counted.failure);
    }
    CHECK(rc);
}

#endif
