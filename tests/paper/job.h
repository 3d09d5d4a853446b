/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of the programs around the paper's listings: one interface, portal table entry and event queue a rank. */
#include <stdio.h>
#include <string.h>

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static ptl_pt_index_t pt;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d: %s:%d: not true: %s\n", spin_rank(), __FILE__, __LINE__, #condition);            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void begin(void) {
    REQUIRE(PtlInit() == PTL_OK);
    REQUIRE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
    REQUIRE(spin_set_map(ni) == PTL_OK);
    REQUIRE(PtlEQAlloc(ni, 64, &eq) == PTL_OK);
    REQUIRE(PtlPTAlloc(ni, 0, eq, 0, &pt) == PTL_OK);
}

/* Returns an entry without handlers. Its counter also counts the puts of handlers. */
static ptl_me_t entry(ptl_match_bits_t bits, void *start, ptl_size_t length) {
    ptl_me_t me = {.start = start,
                   .length = length,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = bits,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE};
    REQUIRE(PtlCTAlloc(ni, &me.ct_handle) == PTL_OK);
    return me;
}

/* Appends an entry; with handlers, allocates their HPU memory and initialises it with `state`. */
static void append(ptl_me_t me, const void *state, ptl_size_t bytes) {
    ptl_handle_me_t handle;
    if (bytes != 0) {
        REQUIRE(PtlHPUAllocMem(bytes, ni, &me.hpu_memory) == PTL_OK);
        me.hpu_initial_state = state;
        me.hpu_initial_state_length = bytes;
    }
    REQUIRE(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle) == PTL_OK);
}

/* Sends `length` bytes; the data may change once the message's event or answer arrives. */
static void send_to(ptl_process_t target, ptl_match_bits_t bits, void *data, ptl_size_t length,
                    ptl_hdr_data_t hdr_data) {
    ptl_md_t md = {.start = data, .length = length, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    REQUIRE(PtlMDBind(ni, &md, &handle) == PTL_OK);
    REQUIRE(PtlPut(handle, 0, length, PTL_NO_ACK_REQ, target, pt, bits, 0, NULL, hdr_data) == PTL_OK);
}

/* Waits for the next message; it must have `bits`, and be delivered without an error. Returns its length. */
static ptl_size_t await(ptl_match_bits_t bits) {
    ptl_event_t event;
    REQUIRE(PtlEQWait(eq, &event) == PTL_OK);
    REQUIRE(event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK && event.match_bits == bits);
    return event.mlength;
}

/* Fills memory with bytes that differ at every position and for every seed. */
static inline void fill(void *memory, size_t bytes, unsigned int seed) {
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = (uint8_t)(seed * 29 + i * 7 + i / 251);
}

static int end(void) {
    spin_barrier();
    PtlFini();
    return 0;
}
