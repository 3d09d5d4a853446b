/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce: every rank gets the sum of all ranks' vectors.
 *
 *   --mode spin|rdma|triggered    additions by handlers on the cards (the library's allreduce), CPUs, or triggered atomic operations
 *   --algorithm doubling|ring|tree|best
 *                                 `best` runs all three and prints the fastest
 *   --ranks P,P,…                 numbers of ranks up to that of the job; ranks beyond wait
 *   --bytes N,N,…                 size of the vectors
 * and perhaps
 *   --type int32|float|double     of the elements (float)
 *   --data exact|rounded          sums without rounding error, or with one that depends on the order of additions (exact)
 *   --in-order yes|no             the tree of the cards adds in a fixed order (no)
 *   --arity K                     children of a rank in the tree (4)
 *   --packet N                    bytes of the cards' packets at most (those of the network)
 *   --cores N                     of a CPU that share the additions (1)
 *   --row N                       all-reduces one after the other, without a barrier between them; the time is that of one (1)
 *   --skew NS --seed N            random delay of each start, up to NS (0)
 *   --patience MS                 simulated time after which a rank gives up, and names the missing rank (100)
 *
 * Prints a JSON object a line: {"mode", "algorithm", "type", "ranks", "bytes", "hpu_bytes", "time_ps", "bits", "data_ok"}. The time runs
 * from the common start until the last CPU sees the sum in its memory. `bits` is a hash of the sum, the same on all ranks. */
#include "../../common/collective.h"

enum { PT = 3, RESULTS = 100, PING = 101 }; /* portal table index, match bits */
enum { CARD = 64 };                         /* match bits of the cards, from here on */

static ptl_handle_eq_t events;

#include "triggered.h"

enum mode { SPIN, RDMA, TRIGGERED, MODES };
static const char *const modes[MODES] = {"spin", "rdma", "triggered"};
static const char usage[] =
    "allreduce --mode spin|rdma|triggered --algorithm doubling|ring|tree|best --ranks P,P,... --bytes N,N,... "
    "[--type int32|float|double] [--data exact|rounded] [--in-order yes|no] [--arity K] [--packet N] [--cores N] "
    "[--row N] [--skew NS] [--seed N] [--patience MS]";

enum { WARM_UP = 2 }; /* all-reduces until the branch predictors of the HPUs have settled */

static enum mode mode;
static uint32_t rank, arity, cores, row, skew, seed, most;
static bool in_order;
static ptl_handle_md_t nothing; /* empty memory */
static ptl_handle_ct_t counter; /* counts parts of the sum written by the card */

/* Maxima over all ranks, collected by rank 0: the end, the hash of the sum, and its complement. */
static struct result {
    uint64_t end, bits, not_bits;
} last;
static ptl_handle_md_t last_md;
static ptl_handle_ct_t told;

/* One run: an algorithm, a number of ranks and a size. */
static struct run {
    struct allreduce state;
    enum algorithm algorithm;
    uint32_t hpu_bytes, done;
    unsigned char *source, *sums;
} run;

/* ---- Missing answers ---------------------------------------------------------------------------------------------- */

static void give_up(uint32_t missing) { end_without(missing, "all-reduce", run.done, patience_ps, PT, PING); }

/* Asks this rank's card for the rank that it waits for. */
static uint32_t waits_for(void) {
    ptl_event_t event;
    unsigned which;
    CHECK(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = rank}, PT, CARD + ALLREDUCE_START, 0, NULL,
                 (ptl_hdr_data_t)ALLREDUCE_WHO << 32 | run.done));
    if (PtlEQPoll(&events, 1, 10, &event, &which) != PTL_OK)
        return NOBODY;
    return (uint32_t)event.hdr_data;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static void prepare_run(void) {
    const struct allreduce_algorithm *const handlers[] = {&allreduce_doubling, &allreduce_ring, &allreduce_tree};
    struct allreduce *a = &run.state;
    uint32_t packet = most < limits.max_payload_size ? most : (uint32_t)limits.max_payload_size;
    run.source = allocate(a->bytes);
    run.sums = allocate(a->bytes);
    run.done = 0;
    switch (run.algorithm) {
    case DOUBLING: run.hpu_bytes = allreduce_plan_doubling(a, packet); break;
    case RING: run.hpu_bytes = allreduce_plan_ring(a, packet); break;
    default: run.hpu_bytes = allreduce_plan_tree(a, packet);
    }
    answer_pings(PT, PING);
    CHECK(PtlCTAlloc(ni, &counter));
    if (mode == SPIN) {
        append_events(PT, CARD + ALLREDUCE_ANSWER, NULL, 0);
        CHECK(allreduce_attach(ni, PT, a, run.hpu_bytes, handlers[run.algorithm], run.source, run.sums, counter));
        return;
    }
    run.hpu_bytes = 0;
    prepare_cpu(a, run.algorithm, run.source, run.sums, cores, mode == RDMA);
    if (mode == TRIGGERED)
        prepare_triggered(a, run.algorithm);
}

static void reduce(void) {
    struct allreduce *a = &run.state;
    if (skew > 0)
        spin_host_compute(hash_mix(seed * 7919u + rank * 104729u + run.done) % skew);
    if (mode == RDMA)
        return reduce_by_cpu(a, run.algorithm, run.done);
    if (mode == TRIGGERED)
        return reduce_by_triggers(a, run.done);
    ptl_ct_event_t counted;
    ptl_size_t count = (ptl_size_t)a->told * (run.done + 1);
    unsigned which;
    check_card(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = rank}, PT, CARD + ALLREDUCE_START, 0, NULL,
                      run.done));
    int rc = PtlCTPoll(&counter, &count, 1, (ptl_time_t)(patience_ps / 1000000000), &counted, &which);
    if (rc == PTL_CT_NONE_REACHED)
        give_up(waits_for());
    check_card(rc);
}

/* Does some all-reduces in a row; returns the time of the first one's start. */
static uint64_t reduce_in_a_row(uint32_t count) {
    const struct allreduce *a = &run.state;
    size_t elements = a->bytes / type_bytes[type];
    bool is_fixed = mode == SPIN && (run.algorithm != TREE || in_order);
    uint64_t begun = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (size_t element = 0; element < elements; element++)
            store(run.source, element, value(element, rank, run.done));
        memset(run.sums, 0xff, a->bytes);
        if (i == 0) {
            CHECK(spin_barrier());
            begun = spin_time_ps();
        }
        reduce();
        last.end = spin_time_ps();
        if (mode != SPIN)
            await_sends();
        check_sum(run.sums, elements, a->ranks, run.done, run.algorithm, is_fixed ? a : NULL);
        if (mode == TRIGGERED)
            arm_next(a, run.done);
        run.done++;
    }
    last.bits = hash_bytes(run.sums, a->bytes, 1);
    last.not_bits = ~last.bits;
    return begun;
}

/* Measures one algorithm with `ranks` ranks and vectors of `bytes` bytes; returns the time of one all-reduce at rank 0. */
static uint64_t measure(uint32_t ranks, uint32_t bytes, enum algorithm algorithm) {
    uint64_t begun = 0;
    start(PT, &events);
    rank = (uint32_t)spin_rank();
    if (ranks > (uint32_t)spin_size())
        fail("--ranks: %u are more than the %d of the job", ranks, spin_size());
    nothing = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    last_md = bind_memory(&last, sizeof last, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &told));
    append_entry(PT, RESULTS, &last, sizeof last,
                 (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                            .ct_handle = told,
                            .hpu_memory = PTL_INVALID_HANDLE});
    last = (struct result){0};
    run.algorithm = algorithm;
    run.state = (struct allreduce){
        .bits = CARD, .rank = rank, .ranks = ranks, .type = type, .bytes = bytes, .arity = arity, .in_order = in_order};
    if (rank < ranks) {
        prepare_run();
        for (int i = 0; i < WARM_UP; i++)
            reduce_in_a_row(1);
        begun = reduce_in_a_row(row);
    } else {
        for (int i = 0; i <= WARM_UP; i++)
            CHECK(spin_barrier());
    }
    CHECK(spin_barrier());
    uint64_t bits = last.bits;
    if (rank > 0 && rank < ranks)
        check_card(PtlAtomic(last_md, 0, sizeof last, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, PT, RESULTS, 0, NULL,
                             0, PTL_MAX, PTL_UINT64_T));
    if (rank == 0) {
        await_reports(told, ranks - 1, patience_ps);
        if (last.bits != bits || last.not_bits != ~bits)
            fail("ranks have different sums");
    }
    CHECK(spin_barrier());
    free(run.source);
    free(run.sums);
    run.source = run.sums = NULL;
    finish();
    return (last.end - begun) / row;
}

static void print(enum algorithm algorithm, uint32_t ranks, uint32_t bytes, uint64_t time) {
    if (rank == 0)
        printf("{\"mode\":\"%s\",\"algorithm\":\"%s\",\"type\":\"%s\",\"ranks\":%u,\"bytes\":%u,\"hpu_bytes\":%u,"
               "\"time_ps\":%llu,"
               "\"bits\":\"%08x\",\"data_ok\":true}\n",
               modes[mode], algorithms[algorithm], types[type], ranks, bytes, run.hpu_bytes, (unsigned long long)time,
               (uint32_t)last.bits);
}

int main(int argc, char **argv) {
    const char *const yes_or_no[] = {"no", "yes"};
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    int algorithm = choice(option(argc, argv, "--algorithm", usage), algorithms, ALGORITHMS + 1, usage);
    type = (enum allreduce_type)choice(option_or(argc, argv, "--type", "float"), types, 3, usage);
    data = (enum data)choice(option_or(argc, argv, "--data", "exact"), kinds_of_data, DATA, usage);
    in_order = choice(option_or(argc, argv, "--in-order", "no"), yes_or_no, 2, usage) == 1;
    arity = number_between(argc, argv, "--arity", "4", 1, ALLREDUCE_ARITY);
    most = number_between(argc, argv, "--packet", "1073741824", 32, 1 << 30);
    cores = number_between(argc, argv, "--cores", "1", 1, 64);
    row = number_between(argc, argv, "--row", "1", 1, 1000);
    skew = number_between(argc, argv, "--skew", "0", 0, 1000000000);
    seed = number_between(argc, argv, "--seed", "1", 0, UINT32_MAX);
    patience_ps = number_between(argc, argv, "--patience", "100", 1, 1000000) * 1000000000ull;
    size_t ranks, bytes;
    for (const char *list = option(argc, argv, "--ranks", usage); next_number(&list, &ranks);)
        for (const char *sizes = option(argc, argv, "--bytes", usage); next_number(&sizes, &bytes);) {
            if (ranks < 2 || bytes == 0 || bytes % type_bytes[type] != 0 || bytes > 1 << 30) {
                fprintf(stderr, "%zu ranks, %zu bytes: expected at least 2 ranks, and whole elements\n", ranks, bytes);
                return 2;
            }
            enum algorithm best = algorithm == ALGORITHMS ? DOUBLING : (enum algorithm)algorithm;
            uint64_t time = measure((uint32_t)ranks, (uint32_t)bytes, best);
            for (int i = RING; i < ALGORITHMS && algorithm == ALGORITHMS; i++) {
                uint64_t other = measure((uint32_t)ranks, (uint32_t)bytes, (enum algorithm)i);
                if (other < time) {
                    time = other;
                    best = (enum algorithm)i;
                }
            }
            print(best, (uint32_t)ranks, (uint32_t)bytes, time);
        }
    return 0;
}
