/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong (sPIN §4.4.1) in many rounds, for runs whose destination has noise (`spinrun --noise … --noise-ranks 1`).
 *
 *   --mode cpu        rank 1's CPU sees the ping and posts the pong
 *   --mode triggered  rank 1's card answers from host memory (Portals 4 triggered put)
 *   --mode handler    rank 1's payload handlers answer every packet from the card
 *   --rounds N        number of round trips that are measured
 *   --sizes N,N,…     message sizes in bytes
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "mean_half_rtt_ps", "longest_half_rtt_ps", "data_ok"}. */
#include "../../common/common.h"

enum { PT = 3, PING = 20, PONG = 10 }; /* portal table index and match bits */
enum { WARM_UP = 2 };                  /* rounds after which the branch predictors of the HPUs have settled */
enum { MAX_BYTES = 1 << 20 };

static const char usage[] = "noise --mode cpu|triggered|handler --rounds N --sizes BYTES[,BYTES...]";
enum mode { CPU, TRIGGERED, HANDLER };
static const char *const modes[] = {"cpu", "triggered", "handler"};

__handler int answer_payload(const ptl_payload_t p, void *state) {
    const ptl_process_t *source = state;
    int refused = PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, *source, PONG, p.offset, NULL, 0);
    return refused == 0 ? SUCCESS : FAIL;
}

static void ping(enum mode mode, unsigned rounds, size_t bytes, unsigned char *sent, unsigned char *received) {
    ptl_me_t me = {.options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    uint64_t total = 0, longest = 0;
    bool ok = true;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    ptl_handle_me_t entry = append_entry(PT, PONG, received, MAX_BYTES, me);
    ptl_handle_md_t md = bind_memory(sent, MAX_BYTES, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < WARM_UP + rounds; round++) {
        for (size_t i = 0; i < bytes; i++)
            sent[i] = pattern(i, round);
        CHECK(spin_barrier()); /* rank 1 is ready */
        uint64_t begun = spin_time_ps();
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PT, PING, 0, NULL, 0));
        await_count(me.ct_handle, (round + 1) * bytes);
        uint64_t taken = spin_time_ps() - begun;
        ok &= is_pattern(received, bytes, round);
        if (round >= WARM_UP) {
            total += taken;
            longest = taken > longest ? taken : longest;
        }
    }
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"mean_half_rtt_ps\":%llu,\"longest_half_rtt_ps\":%llu,\"data_ok\":%s}\n",
           modes[mode], bytes, (unsigned long long)(total / rounds / 2), (unsigned long long)(longest / 2),
           verdict(ok));
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(me.ct_handle));
}

static void pong(enum mode mode, unsigned rounds, size_t bytes, unsigned char *memory) {
    const ptl_process_t source = {.rank = 0};
    ptl_me_t me = {.options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (mode == HANDLER) {
        CHECK(PtlHPUAllocMem(sizeof source, ni, &me.hpu_memory));
        me.hpu_initial_state = &source;
        me.hpu_initial_state_length = sizeof source;
        me.payload_handler = answer_payload;
    }
    ptl_handle_me_t entry = append_entry(PT, PING, memory, MAX_BYTES, me);
    ptl_handle_md_t md = bind_memory(memory, MAX_BYTES, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < WARM_UP + rounds; round++) {
        ptl_size_t arrived = (round + 1) * bytes;
        if (mode == TRIGGERED)
            CHECK(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, source, PT, PONG, 0, NULL, 0, me.ct_handle, arrived));
        CHECK(spin_barrier());
        await_count(me.ct_handle, arrived);
        if (mode == CPU)
            CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, source, PT, PONG, 0, NULL, 0));
    }
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMDRelease(md));
    CHECK(PtlCTFree(me.ct_handle));
}

int main(int argc, char **argv) {
    enum mode mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, 3, usage);
    const char *sizes = option(argc, argv, "--sizes", usage), *count = option(argc, argv, "--rounds", usage);
    size_t bytes, rounds;
    if (!next_number(&count, &rounds) || rounds == 0 || rounds > 1000000)
        fail("--rounds: expected 1 to 1000000");
    start(PT, NULL);
    unsigned char *sent = allocate(MAX_BYTES), *received = allocate(MAX_BYTES);
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes > MAX_BYTES)
            fail("--sizes: expected 1 to %d", MAX_BYTES);
        if (spin_rank() == 0)
            ping(mode, (unsigned)rounds, bytes, sent, received);
        else
            pong(mode, (unsigned)rounds, bytes, received);
    }
    finish();
    return exit_status;
}
