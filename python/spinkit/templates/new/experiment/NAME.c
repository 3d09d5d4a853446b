/* SPDX-License-Identifier: Apache-2.0 */
/* NAME: how long it takes until rank 1 has answered a message of rank 0.
 *
 *   --mode host       the CPU of rank 1 awaits the message and answers
 *   --mode card       a handler on the card of rank 1 answers each packet as it arrives
 *   --sizes N,N,…     message sizes in bytes
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "answer_ps", "data_ok"}. */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    ((call) == PTL_OK ? (void)0 : (fprintf(stderr, "rank %d: %s failed\n", spin_rank(), #call), exit(1)))

enum { MAX_BYTES = 1 << 20, REQUEST = 1, ANSWER = 2 }; /* match bits */

/* ---- On the card of rank 1 -------------------------------------------------------------------------------------- */

__handler int answer(const ptl_payload_t p, void *state) {
    (void)state;
    ptl_process_t peer = {.rank = 0};
    return PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, peer, ANSWER, p.offset, NULL, 0) ? FAIL
                                                                                                         : SUCCESS;
}

/* ---- On the hosts ----------------------------------------------------------------------------------------------- */

static unsigned char sent[MAX_BYTES], received[MAX_BYTES];
static ptl_handle_ni_t ni;
static int status; /* 1 after wrong data */

/* Appends an entry for messages with these match bits, with or without the handler; returns its counter of bytes. */
static ptl_handle_ct_t expect(ptl_match_bits_t bits, bool handled, ptl_handle_me_t *entry) {
    ptl_me_t me = {.start = received,
                   .length = MAX_BYTES,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = bits,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (handled) {
        CHECK(PtlHPUAllocMem(8, ni, &me.hpu_memory));
        me.payload_handler = answer;
    }
    CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, entry));
    return me.ct_handle;
}

static void await_bytes(ptl_handle_ct_t counter, size_t bytes) {
    ptl_ct_event_t count;
    CHECK(PtlCTWait(counter, bytes, &count));
    if (count.failure)
        fprintf(stderr, "rank %d: a message failed\n", spin_rank()), exit(1);
}

/* Rank 1 sends the received data back, so that rank 0 can compare it. */
static void measure(bool on_card, const char *mode, size_t bytes, ptl_handle_md_t memory) {
    int rank = spin_rank();
    ptl_process_t peer = {.rank = 1 - rank};
    ptl_handle_me_t entry;
    for (size_t i = 0; i < bytes; i++)
        sent[i] = (unsigned char)(7 * i + bytes);
    memset(received, 0, bytes);
    ptl_handle_ct_t counter = expect(rank == 0 ? ANSWER : REQUEST, on_card && rank == 1, &entry);
    CHECK(spin_barrier());
    uint64_t start = spin_time_ps();
    if (rank == 0)
        CHECK(PtlPut(memory, 0, bytes, PTL_NO_ACK_REQ, peer, 0, REQUEST, 0, NULL, 0));
    await_bytes(counter, bytes);
    if (rank == 1 && !on_card)
        CHECK(PtlPut(memory, 0, bytes, PTL_NO_ACK_REQ, peer, 0, ANSWER, 0, NULL, 0));
    if (rank == 0) {
        uint64_t taken = spin_time_ps() - start;
        bool is_right = memcmp(received, sent, bytes) == 0;
        printf("{\"mode\":\"%s\",\"bytes\":%zu,\"answer_ps\":%llu,\"data_ok\":%s}\n", mode, bytes,
               (unsigned long long)taken, is_right ? "true" : "false");
        fflush(stdout);
        status |= !is_right;
    }
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(counter));
}

int main(int argc, char **argv) {
    if (argc != 5 || strcmp(argv[1], "--mode") != 0 || strcmp(argv[3], "--sizes") != 0) {
        fprintf(stderr, "usage: NAME --mode host|card --sizes BYTES[,BYTES...]\n");
        return 2;
    }
    ptl_md_t md = {.length = MAX_BYTES, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t memory;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &(ptl_pt_index_t){0}));
    md.start = spin_rank() == 0 ? sent : received;
    CHECK(PtlMDBind(ni, &md, &memory));
    for (char *size = strtok(argv[4], ","); size != NULL; size = strtok(NULL, ",")) {
        size_t bytes = strtoull(size, NULL, 10);
        if (bytes < 1 || bytes > MAX_BYTES) {
            fprintf(stderr, "%s: a size must be 1 to %d\n", size, MAX_BYTES);
            return 2;
        }
        measure(strcmp(argv[2], "card") == 0, argv[2], bytes, memory);
    }
    CHECK(PtlNIFini(ni));
    PtlFini();
    return status;
}
