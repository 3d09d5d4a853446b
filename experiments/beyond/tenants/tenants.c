/* SPDX-License-Identifier: Apache-2.0 */
/* Two tenants on one card: messages for two portal table entries, whose payload handlers keep HPUs busy for different
 * times.
 *
 *   --mode both|lone  both tenants send, or only the one with short handlers
 *   --long N,N,…      iterations of the second tenant's handlers; those of the first have SHORT
 *
 * Rank 0 has the card, and ranks 1 and 2 send a message each; both messages cause the same number of iterations. Prints
 * one JSON object a line for each number: {"mode", "long", "jain", "time_ps", "data_ok"}. `jain` is Jain's index of the
 * cycles that the handlers of both tenants took until the first tenant had all its packets done; a lone tenant has 1.
 * `time_ps` is the time from the senders' start until all packets are done. */
#include "../../common/common.h"

enum { PT = 3, TENANTS = 2, BITS = 5 };
enum { MTU = 256 }; /* network.mtu_bytes of the runs */

enum { SHORT = 100, ITERATIONS = 250000 };

static const char usage[] = "tenants --mode both|lone --long ITERATIONS[,ITERATIONS...]";
enum mode { BOTH, LONE, MODES };
static const char *const modes[MODES] = {"both", "lone"};

/* HPU memory of all tenants. */
struct board {
    uint32_t work[TENANTS], packets[TENANTS];
    uint32_t done[TENANTS];
    uint32_t cycles[TENANTS]; /* of its handlers that have ended */
    uint32_t seen[TENANTS];   /* `cycles` when the first tenant had all of its packets done */
    uint32_t is_seen;
};

/* Returns the counter of cycles of the HPU. */
static inline uint32_t cycle(void) {
    uint32_t now = 0;
#ifdef __riscv
    __asm__ volatile("rdcycle %0" : "=r"(now));
#endif
    return now;
}

static inline int serve(struct board *board, uint32_t tenant) {
    uint32_t start = cycle();
    for (uint32_t left = board->work[tenant]; left > 0; left--)
        __asm__ volatile("" : "+r"(left));
    uint32_t cycles = __atomic_add_fetch(&board->cycles[tenant], cycle() - start, __ATOMIC_RELAXED);
    uint32_t done = __atomic_add_fetch(&board->done[tenant], 1, __ATOMIC_RELAXED);
    if (done == board->packets[tenant] && __atomic_fetch_add(&board->is_seen, 1, __ATOMIC_RELAXED) == 0) {
        board->seen[tenant] = cycles;
        board->seen[1 - tenant] = __atomic_load_n(&board->cycles[1 - tenant], __ATOMIC_RELAXED);
    }
    return SUCCESS;
}

__handler int first_payload(const ptl_payload_t p, void *state) {
    (void)p;
    return serve(state, 0);
}

__handler int second_payload(const ptl_payload_t p, void *state) {
    (void)p;
    return serve(state, 1);
}

__handler int done_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes;
    if (flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct board), PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

/* Receives the messages, and prints the result. */
static void target(const struct board *initial, enum mode mode) {
    struct board boards[TENANTS] = {0};
    const size_t tenants = mode == LONE ? 1 : TENANTS;
    ptl_handle_me_t entries[TENANTS];
    ptl_handle_ct_t counters[TENANTS];
    ptl_handle_any_t memory;
    CHECK(PtlHPUAllocMem(sizeof(struct board), ni, &memory));
    for (size_t tenant = 0; tenant < tenants; tenant++) {
        ptl_me_t me = {.start = &boards[tenant],
                       .length = sizeof(struct board),
                       .uid = PTL_UID_ANY,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = BITS,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .hpu_memory = memory};
        me.payload_handler = tenant == 0 ? first_payload : second_payload;
        me.completion_handler = done_completion;
        if (tenant == 0) {
            me.hpu_initial_state = initial;
            me.hpu_initial_state_length = sizeof *initial;
        }
        CHECK(PtlCTAlloc(ni, &counters[tenant]));
        me.ct_handle = counters[tenant];
        CHECK(PtlMEAppend(ni, PT + (ptl_pt_index_t)tenant, &me, PTL_PRIORITY_LIST, NULL, &entries[tenant]));
    }
    CHECK(spin_barrier());
    uint64_t start_ps = spin_time_ps();
    for (size_t tenant = 0; tenant < tenants; tenant++)
        await_count(counters[tenant], 1);
    uint64_t time_ps = spin_time_ps() - start_ps;
    double sum = 0, squares = 0;
    /* The tenant that ended last has written the final numbers. */
    const struct board *last = &boards[0];
    if (tenants > 1 && boards[1].done[0] + boards[1].done[1] > last->done[0] + last->done[1])
        last = &boards[1];
    bool is_right = true;
    for (size_t tenant = 0; tenant < tenants; tenant++) {
        is_right &= last->done[tenant] == initial->packets[tenant];
        sum += last->seen[tenant];
        squares += (double)last->seen[tenant] * last->seen[tenant];
    }
    printf("{\"mode\":\"%s\",\"long\":%u,\"jain\":%.4f,\"time_ps\":%llu,\"data_ok\":%s}\n", modes[mode],
           initial->work[1], sum * sum / ((double)tenants * squares), (unsigned long long)time_ps, verdict(is_right));
    fflush(stdout);
    for (size_t tenant = 0; tenant < tenants; tenant++) {
        CHECK(PtlMEUnlink(entries[tenant]));
        CHECK(PtlCTFree(counters[tenant]));
    }
    CHECK(PtlHPUFreeMem(&memory));
}

int main(int argc, char **argv) {
    enum mode mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *numbers = option(argc, argv, "--long", usage);
    ptl_pt_index_t given;
    size_t iterations;
    if (spin_size() != TENANTS + 1)
        fail("needs %d ranks", TENANTS + 1);
    start(PT, NULL);
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT + 1, &given));
    while (next_number(&numbers, &iterations)) {
        if (iterations == 0 || iterations > ITERATIONS)
            fail("--long: 1 to %d iterations", ITERATIONS);
        struct board initial = {.work = {SHORT, (uint32_t)iterations},
                                .packets = {ITERATIONS / SHORT, ITERATIONS / (uint32_t)iterations}};
        int rank = spin_rank();
        if (rank == 0) {
            target(&initial, mode);
        } else {
            size_t bytes = (size_t)initial.packets[rank - 1] * MTU;
            void *data = allocate(bytes);
            ptl_handle_md_t md = bind_memory(data, bytes, 0, PTL_CT_NONE);
            CHECK(spin_barrier());
            if (mode == BOTH || rank == 1)
                CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, PT + (ptl_pt_index_t)rank - 1,
                             BITS, 0, NULL, 0));
        }
        CHECK(spin_barrier());
    }
    finish();
    return exit_status;
}
