/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier by dissemination: in round n each rank signals the rank 2^n ahead, and waits for the rank 2^n behind.
 *
 *   --mode spin|rdma|triggered    rounds by handlers on the cards (the library's barrier), CPUs, or triggered puts of the cards
 *   --ranks P,P,…                 numbers of ranks up to that of the job; ranks beyond wait
 * and perhaps
 *   --row N                       barriers one after the other; the time is that of one (1)
 *   --skew NS --seed N            random delay of each entry, up to NS (0)
 *   --patience MS                 simulated time after which a rank gives up, and names the missing rank (100)
 *   --broken yes                  CPUs and triggered puts leave one round early: the check must detect it (no)
 *
 * Prints a JSON object a line: {"mode", "ranks", "time_ps", "data_ok"}. The time runs from the common start until the last CPU has
 * left. No rank may leave a barrier before the last one enters it: rank 0 compares these times. Further barriers with one very late
 * rank (each rank, or 16 of them) test this check. */
#include "../../common/collective.h"
#include <handlers/barrier/barrier.h>
#include <handlers/common/hash.h>

enum { PT = 3, RESULTS = 100, PING = 101 }; /* portal table index, match bits */
enum { CARD = 64, ROUND = 128 };            /* match bits; from ROUND on, of rounds in two sets */
enum { ROUNDS = 32, WARM_UP = 2, MOST = 64 };
enum { LATE = 16, LATE_NS = 500000 }; /* most barriers with one late rank; its delay */

enum mode { SPIN, RDMA, TRIGGERED, MODES };
static const char *const modes[MODES] = {"spin", "rdma", "triggered"};
static const char usage[] = "barrier --mode spin|rdma|triggered --ranks P,P,... [--row N] [--skew NS] [--seed N] "
                            "[--patience MS] [--broken yes]";

static enum mode mode;
static uint32_t rank, row, skew, seed, done;
static uint64_t patience_ps;
static bool is_broken;
static ptl_handle_eq_t events;
static ptl_handle_md_t nothing;
static ptl_handle_ct_t left, counts[2][ROUNDS];
static uint32_t seen[2][ROUNDS];
static struct barrier state;

/* Times of the measured barriers, the largest of all ranks: when it was entered, and the complement of when it was left. */
static struct times {
    uint64_t end, entered[MOST + LATE], not_left[MOST + LATE];
} times;
static ptl_handle_md_t times_md;
static ptl_handle_ct_t told;

static void give_up(uint32_t missing) { end_without(missing, "barrier", done, patience_ps, PT, PING); }

static uint32_t rounds(void) {
    uint32_t count = 0;
    while (1u << count < state.ranks)
        count++;
    return is_broken && count > 1 ? count - 1 : count;
}

static ptl_process_t ahead(uint32_t round) { return (ptl_process_t){.rank = (rank + (1u << round)) % state.ranks}; }

static bool await_counter(ptl_handle_ct_t ct, ptl_size_t count) {
    ptl_ct_event_t counted;
    unsigned which;
    int rc = PtlCTPoll(&ct, &count, 1, (ptl_time_t)(patience_ps / 1000000000), &counted, &which);
    if (rc == PTL_CT_NONE_REACHED)
        return false;
    check_card(rc);
    return counted.failure == 0;
}

static void by_cards(void) {
    ptl_event_t event;
    unsigned which;
    check_card(
        PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = rank}, PT, CARD, 0, NULL, barrier_enter(done)));
    if (await_counter(left, done + 1))
        return;
    check_card(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, (ptl_process_t){.rank = rank}, PT, CARD, 0, NULL,
                      (ptl_hdr_data_t)BARRIER_WHO << 32 | done));
    give_up(PtlEQPoll(&events, 1, 10, &event, &which) == PTL_OK ? (uint32_t)event.hdr_data : NOBODY);
}

static void by_cpus(void) {
    ptl_event_t event;
    unsigned which;
    for (uint32_t round = 0; round < rounds(); round++) {
        check_card(
            PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, ahead(round), PT, ROUND, 0, NULL, (done & 1) * ROUNDS + round));
        while (seen[done & 1][round] < done / 2 + 1) {
            int rc = PtlEQPoll(&events, 1, (ptl_time_t)(patience_ps / 1000000000), &event, &which);
            if (rc == PTL_EQ_EMPTY || (rc == PTL_OK && event.ni_fail_type != PTL_NI_OK))
                give_up(barrier_behind(&state, round));
            check_card(rc);
            seen[event.hdr_data / ROUNDS][event.hdr_data % ROUNDS]++;
        }
    }
}

/* Sets up all rounds of a barrier except the first: each begins when this rank (one count) and the rank behind
 * (another) have reached the previous round. */
static void arm(uint32_t number) {
    uint32_t set = number & 1;
    ptl_size_t count = 2 * (number / 2 + 1);
    for (uint32_t round = 1; round < rounds(); round++) {
        CHECK(PtlTriggeredPut(nothing, 0, 0, PTL_NO_ACK_REQ, ahead(round), PT, ROUND + set * ROUNDS + round, 0, NULL, 0,
                              counts[set][round - 1], count));
        CHECK(PtlTriggeredCTInc(counts[set][round], (ptl_ct_event_t){.success = 1}, counts[set][round - 1], count));
    }
}

static void by_triggers(void) {
    uint32_t set = done & 1, last = rounds() - 1;
    ptl_size_t count = 2 * (done / 2 + 1);
    check_card(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, ahead(0), PT, ROUND + set * ROUNDS, 0, NULL, 0));
    CHECK(PtlCTInc(counts[set][0], (ptl_ct_event_t){.success = 1}));
    if (!await_counter(counts[set][last], count)) {
        ptl_ct_event_t counted = {.success = count};
        uint32_t round = 0;
        for (; round <= last && counted.success >= count; round++)
            CHECK(PtlCTGet(counts[set][round], &counted));
        give_up(barrier_behind(&state, round - 1));
    }
}

static void prepare(uint32_t ranks) {
    ptl_me_t me = {.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE, .hpu_memory = PTL_INVALID_HANDLE};
    state = (struct barrier){.bits = CARD, .rank = rank, .ranks = ranks};
    memset(seen, 0, sizeof seen);
    done = 0;
    answer_pings(PT, PING);
    CHECK(PtlCTAlloc(ni, &left));
    if (mode == SPIN) {
        append_events(PT, CARD + BARRIER_ANSWER, NULL, 0);
        CHECK(barrier_attach(ni, PT, state, left));
    } else if (mode == RDMA) {
        append_events(PT, ROUND, NULL, 0);
    } else {
        for (uint32_t set = 0; set < 2; set++)
            for (uint32_t round = 0; round < rounds(); round++) {
                CHECK(PtlCTAlloc(ni, &counts[set][round]));
                me.ct_handle = counts[set][round];
                append_entry(PT, ROUND + set * ROUNDS + round, NULL, 0, me);
            }
        arm(0);
        arm(1);
    }
}

/* Meets once. */
static void meet(void) {
    if (mode == SPIN)
        by_cards();
    else if (mode == RDMA)
        by_cpus();
    else
        by_triggers();
    if (mode == TRIGGERED)
        arm(done + 2);
    done++;
}

/* Meets once and notes when this rank has entered and left. Returns when it has left. */
static uint64_t meet_timed(uint32_t i) {
    times.entered[i] = spin_time_ps();
    meet();
    uint64_t end = spin_time_ps();
    times.not_left[i] = ~end;
    return end;
}

static void measure(uint32_t ranks) {
    uint64_t begun = 0;
    start(PT, &events);
    rank = (uint32_t)spin_rank();
    if (ranks < 2 || ranks > (uint32_t)spin_size())
        fail("--ranks: expected 2 to %d", spin_size());
    nothing = bind_memory(NULL, 0, 0, PTL_CT_NONE);
    times_md = bind_memory(&times, sizeof times, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &told));
    append_entry(PT, RESULTS, &times, sizeof times,
                 (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                            .ct_handle = told,
                            .hpu_memory = PTL_INVALID_HANDLE});
    memset(&times, 0, sizeof times);
    if (rank < ranks)
        prepare(ranks);
    CHECK(spin_barrier());
    for (int i = 0; i < WARM_UP && rank < ranks; i++)
        meet();
    CHECK(spin_barrier());
    begun = spin_time_ps();
    for (uint32_t i = 0; i < row && rank < ranks; i++) {
        if (skew > 0)
            spin_host_compute(hash_mix(seed * 7919u + rank * 104729u + i) % skew);
        times.end = meet_timed(i);
    }
    CHECK(spin_barrier());
    uint32_t late = ranks < LATE ? ranks : LATE;
    for (uint32_t i = 0; i < late && rank < ranks; i++) {
        if (rank == i * ranks / late)
            spin_host_compute(LATE_NS);
        meet_timed(row + i);
    }
    CHECK(spin_barrier());
    if (rank > 0 && rank < ranks)
        for (size_t at = 0; at < sizeof times; at += 8 * (size_t)8)
            check_card(PtlAtomic(times_md, at, sizeof times - at < 64 ? sizeof times - at : 64, PTL_NO_ACK_REQ,
                                 (ptl_process_t){.rank = 0}, PT, RESULTS, at, NULL, 0, PTL_MAX, PTL_UINT64_T));
    if (rank == 0) {
        await_reports(told, (ptl_size_t)(ranks - 1) * ((sizeof times + 63) / 64), patience_ps);
        for (uint32_t i = 0; i < row + late; i++)
            if (times.entered[i] > ~times.not_left[i])
                fail("a rank has left barrier %u at %llu ps, before another one entered it at %llu ps", i,
                     (unsigned long long)~times.not_left[i], (unsigned long long)times.entered[i]);
        printf("{\"mode\":\"%s\",\"ranks\":%u,\"time_ps\":%llu,\"data_ok\":true}\n", modes[mode], ranks,
               (unsigned long long)((times.end - begun) / row));
    }
    CHECK(spin_barrier());
    finish();
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    row = number_between(argc, argv, "--row", "1", 1, MOST);
    skew = number_between(argc, argv, "--skew", "0", 0, 1000000000);
    seed = number_between(argc, argv, "--seed", "1", 0, UINT32_MAX);
    patience_ps = number_between(argc, argv, "--patience", "100", 1, 1000000) * 1000000000ull;
    is_broken = strcmp(option_or(argc, argv, "--broken", "no"), "yes") == 0;
    size_t ranks;
    for (const char *list = option(argc, argv, "--ranks", usage); next_number(&list, &ranks);)
        measure((uint32_t)ranks);
    return 0;
}
