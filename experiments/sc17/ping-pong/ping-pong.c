/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong (sPIN §4.4.1, App. C.3.1): rank 0 sends a message to rank 1 and gets it back.
 *
 *   --mode rdma       rank 1's CPU sees the ping and posts the pong
 *   --mode triggered  rank 1's card answers from host memory (Portals 4 triggered put)
 *   --mode store      rank 1's handlers answer after the whole ping has arrived: from the card if it is one packet, else
 *                     from host memory
 *   --mode stream     rank 1's payload handlers answer every packet from the card
 *   --sizes N,N,…     message sizes in bytes
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "half_rtt_ps", "data_ok"}. */
#include "../../common/common.h"

enum { PT = 3, PING = 20, PONG = 10 };          /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 };     /* branch predictors of the HPUs settle; then every round is the same */
enum { MAX_BYTES = 1 << 22, UNTOUCHED = 0xA5 }; /* a byte that no message has written */

/* ---- On the card ------------------------------------------------------------------------------------------------ */

struct pingpong {
    ptl_process_t source;
    ptl_size_t length;
    uint32_t max_packet; /* set by the host: largest message that is one packet */
    uint8_t streaming;   /* set by the host */
    uint8_t stream;      /* this message is answered from the card */
};

__handler int ping_header(const ptl_header_t h, void *state) {
    struct pingpong *i = state;
    i->source = h.source_id;
    i->length = h.length;
    i->stream = i->streaming || h.length <= i->max_packet;
    return i->stream ? PROCESS_DATA : PROCEED;
}

__handler int ping_payload(const ptl_payload_t p, void *state) {
    struct pingpong *i = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, i->source, PONG, p.offset, NULL, 0);
    return SUCCESS;
}

__handler int ping_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct pingpong *i = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    if (!i->stream)
        PtlHandlerPutFromHost(0, i->length, 0, PTL_NO_ACK_REQ, i->source, PONG, 0, NULL, 0);
    return SUCCESS;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static const char usage[] = "ping-pong --mode rdma|triggered|store|stream --sizes BYTES[,BYTES...]";
enum mode { RDMA, TRIGGERED, STORE, STREAM, MODES };
static const char *const modes[MODES] = {"rdma", "triggered", "store", "stream"};

static unsigned char *sent, *received;

/* Seed of the data of a round. */
static unsigned seed(size_t bytes, unsigned round) { return (unsigned)bytes * ROUNDS + round; }

/* Returns whether everything from `from` on is unchanged. */
static bool untouched(const unsigned char *data, size_t from) {
    for (size_t i = from; i < MAX_BYTES; i++)
        if (data[i] != UNTOUCHED)
            return false;
    return true;
}

/* Sends each round's ping and waits for the pong. The last round counts. */
static void ping(enum mode mode, size_t bytes) {
    const ptl_process_t peer = {.rank = 1};
    ptl_me_t me = {.options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    uint64_t rtt_ps = 0;
    bool ok = true;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    ptl_handle_me_t entry = append_entry(PT, PONG, received, MAX_BYTES, me);
    ptl_handle_md_t md = bind_memory(sent, MAX_BYTES, 0, PTL_CT_NONE);
    memset(received, UNTOUCHED, MAX_BYTES);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < bytes; i++)
            sent[i] = pattern(i, seed(bytes, round));
        CHECK(spin_barrier()); /* rank 1 is ready */
        uint64_t start = spin_time_ps();
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PING, 0, NULL, 0));
        await_count(me.ct_handle, (round + 1) * bytes);
        rtt_ps = spin_time_ps() - start;
        ok &= is_pattern(received, bytes, seed(bytes, round)) && untouched(received, bytes);
    }
    CHECK(spin_barrier()); /* rank 1 has checked its side: it ends the run if that failed */
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"half_rtt_ps\":%llu,\"data_ok\":%s}\n", modes[mode], bytes,
           (unsigned long long)(rtt_ps / 2), verdict(ok));
    fflush(stdout);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(me.ct_handle));
}

/* Prepares the answers, and checks the data of each ping in host memory. */
static void pong(enum mode mode, size_t bytes) {
    const ptl_process_t peer = {.rank = 0};
    struct pingpong state = {.max_packet = (uint32_t)limits.max_payload_size, .streaming = mode == STREAM};
    ptl_me_t me = {.options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (mode == STORE || mode == STREAM) {
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
        me.header_handler = ping_header;
        me.payload_handler = ping_payload;
        me.completion_handler = ping_completion;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
    }
    ptl_handle_me_t entry = append_entry(PT, PING, received, MAX_BYTES, me);
    ptl_handle_md_t md = bind_memory(received, MAX_BYTES, 0, PTL_CT_NONE);
    memset(received, UNTOUCHED, MAX_BYTES);
    if (mode == TRIGGERED)
        for (unsigned round = 0; round < ROUNDS; round++)
            CHECK(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PONG, 0, NULL, 0, me.ct_handle,
                                  (round + 1) * bytes));
    /* Messages that the card answers without the host never reach host memory. */
    bool stored = mode == RDMA || mode == TRIGGERED || (mode == STORE && bytes > limits.max_payload_size);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CHECK(spin_barrier());
        await_count(me.ct_handle, (round + 1) * bytes);
        if (mode == RDMA)
            CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, PONG, 0, NULL, 0));
        if ((stored && !is_pattern(received, bytes, seed(bytes, round))) || !untouched(received, stored ? bytes : 0))
            fail("wrong data in round %u of %zu bytes", round, bytes);
    }
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(me.ct_handle));
    if (me.hpu_memory != PTL_INVALID_HANDLE)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
}

int main(int argc, char **argv) {
    enum mode mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = option(argc, argv, "--sizes", usage);
    size_t bytes;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    start(PT, NULL);
    sent = allocate(MAX_BYTES);
    received = allocate(MAX_BYTES);
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes > MAX_BYTES)
            fail("--sizes: expected 1 to %d", MAX_BYTES);
        (spin_rank() == 0 ? ping : pong)(mode, bytes);
    }
    finish();
    return exit_status;
}
