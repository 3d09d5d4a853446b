/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that server and clients share: the arguments of the program, and entries. */
#ifndef KVSTORE_SHARED_H
#define KVSTORE_SHARED_H

#include <handlers/kvstore/kvstore.h> /* before spin.h */

#include "../../common/common.h"

/* Portal table indexes of a server's cores (a client has the first one), and the index for requests of a server's CPU
 * to its card. */
enum { PT = 3, MOST_CORES = 8, CONTROL_PT = PT + MOST_CORES };

/* Match bits beside those of kvstore.h; BALANCE and REPORT are the first of one for each client. */
enum { MEMORY = 0x400, GIFT = 0x401, BALANCE = 0x500, REPORT = 0x600 };

enum { PATIENCE_MS = 2 }; /* time limit of an answer: retries of a packet take 131 us */
enum { QUIET_MS = 1000 }; /* a server whose clients ask nothing for so long has no more to do */
enum { LEVEL_WORD = 0 };  /* rdma: the word of the index with its level; no chain has this number */

enum mode { RDMA, CPU, SPIN, MODES };
static const char *const modes[MODES] = {"rdma", "cpu", "spin"};

static enum mode mode;
static int rank, servers = 1, all_clients;
static uint32_t core_count = 1; /* cpu: of a server; a power of two */
static bool index_on_card;
static uint32_t level = 6, levels = 12, steps = 8, queued = 256, slots = 16384, value_bytes = 64, slot_bytes;

static inline ptl_process_t rank_of(int number) { return (ptl_process_t){.rank = (uint32_t)number}; }

/* With RDMA every client has private slots on every server. */
static inline uint32_t slots_of_client(void) { return slots / (uint32_t)all_clients; }

/* Last message of a client to every server. */
struct balance {
    int64_t records;   /* that it has inserted there, less those that it has deleted */
    uint64_t is_known; /* 0: it has not reported, or an answer is missing */
};

/* Appends an entry for puts of any rank, each of which is an event. */
static void accept(ptl_pt_index_t pt, ptl_match_bits_t bits, void *memory, size_t bytes, unsigned options) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = bits,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

#endif
