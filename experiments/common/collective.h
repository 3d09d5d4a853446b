/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that programs of collective operations share: numbers among their arguments, entries whose messages are
 * events, and the report of a rank that gives up: the missing rank, and its death if known. */
#ifndef EXPERIMENTS_COLLECTIVE_H
#define EXPERIMENTS_COLLECTIVE_H

#include "common.h"

enum { NOBODY = 0x7fffffff };

/* The number after `name`, or in `otherwise`; the program ends if it is not from `least` to `most`. */
static inline uint32_t number_between(int argc, char **argv, const char *name, const char *otherwise, size_t least,
                                      size_t most) {
    const char *list = option_or(argc, argv, name, otherwise);
    size_t found;
    if (!next_number(&list, &found) || found < least || found > most || *list != '\0') {
        fprintf(stderr, "%s: expected a number from %zu to %zu\n", name, least, most);
        exit(2);
    }
    return (uint32_t)found;
}

/* Appends an entry whose messages are events of the portal table entry. */
static inline void append_events(ptl_pt_index_t pt, ptl_match_bits_t bits, void *memory, size_t bytes) {
    append_plain(pt, bits, PTL_RANK_ANY, memory, bytes, PTL_ME_OP_PUT, PTL_CT_NONE);
}

/* Appends the entry that answers the question whether this rank lives. */
__attribute__((unused)) static void answer_pings(ptl_pt_index_t pt, ptl_match_bits_t bits) {
    append_plain(pt, bits, PTL_RANK_ANY, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE);
}

/* Ends the program if a call failed, as all do when this rank's card is dead. */
static inline void check_card(int rc) {
    if (rc == PTL_FAIL)
        fail("this rank's card has failed");
    CHECK(rc);
}

/* Waits for the final reports of the other ranks: `count` messages; a dead rank sends none. */
static inline void await_reports(ptl_handle_ct_t ct, ptl_size_t count, uint64_t patience_ps) {
    ptl_ct_event_t counted;
    unsigned which;
    int rc = PtlCTPoll(&ct, &count, 1, (ptl_time_t)(patience_ps / 1000000000), &counted, &which);
    if (rc == PTL_CT_NONE_REACHED || (rc == PTL_OK && counted.failure != 0))
        fail("the results of some ranks are lost: they have died before they sent them");
    check_card(rc);
}

/* Sends a rank an empty message; returns PTL_NI_OK if it answers, else the kind of failure. */
static inline int ping(ptl_pt_index_t pt, ptl_match_bits_t bits, uint32_t rank) {
    ptl_md_t md = {.options = PTL_MD_EVENT_SEND_DISABLE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    ptl_event_t event;
    unsigned which;
    CHECK(PtlEQAlloc(ni, 16, &md.eq_handle));
    CHECK(PtlMDBind(ni, &md, &handle));
    check_card(PtlPut(handle, 0, 0, PTL_ACK_REQ, (ptl_process_t){.rank = rank}, pt, bits, 0, NULL, 0));
    return PtlEQPoll(&md.eq_handle, 1, 10, &event, &which) == PTL_OK ? (int)event.ni_fail_type : PTL_NI_UNDELIVERABLE;
}

/* Ends the program because rank `missing` (NOBODY if unknown) did not send the expected message of operation
 * `number`. */
__attribute__((noreturn, unused)) static void end_without(uint32_t missing, const char *operation, uint32_t number,
                                                          uint64_t patience_ps, ptl_pt_index_t pt,
                                                          ptl_match_bits_t bits) {
    unsigned long long ms = patience_ps / 1000000000;
    bool is_known = missing != NOBODY && missing != (uint32_t)spin_rank();
    int answer = is_known ? ping(pt, bits, missing) : PTL_NI_OK;
    if (answer == PTL_NI_OK)
        spin_host_compute(1000000); /* ranks with more information print first */
    if (!is_known)
        fail("%s %u is not complete after %llu ms: this rank has sent all that it has", operation, number, ms);
    fail("%s %u is not complete after %llu ms: rank %u is missing: %s", operation, number, ms, missing,
         answer == PTL_NI_OK        ? "it answers, but waits itself or has lost packets"
         : answer == PTL_NI_DROPPED ? "its process has ended"
                                    : "its card does not answer");
}

#endif
