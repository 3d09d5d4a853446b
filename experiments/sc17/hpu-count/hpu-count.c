/* SPDX-License-Identifier: Apache-2.0 */
/* Number of HPUs that line rate needs (sPIN §4.4.2, Fig. 4): single-packet messages arrive back to back at handlers that take a
 * given time.
 *
 *   --mode count      number of HPUs in use for handlers of --handler-ns, on a card with enough HPUs
 *   --mode law        Little's law: the handler's time × the rate at which packets arrive, rounded up
 *   --mode time       the longest handler with which the HPUs keep up
 *   --mode law-time   the inverse of the law: the time between two packets × HPUs
 *   --mode interval   time between two arriving messages, with the shortest handlers
 *   --mode law-interval    the paper's max(g, G s)
 *   --mode port-interval   the same by the rules of the machine's ports, on which the other laws are based
 *   --sizes N,N,…     packet sizes in bytes
 *   --hpus N          HPUs of the card
 *   --handler-ns N    for count and law; handlers take whole cycles, so both round down to them
 *   --gap-ns X --byte-ps X --clock-ghz X   g, G and the HPUs' clock, for the laws
 *   --injection max|sum --overlaps reception|gap --match-ns X   rules of ports, and the time of a match
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "hpus", "handler_ps", "interval_ps", "data_ok"}.
 * "handler_ps" is the real time of handlers; a message reports a difference from the requested time. */
#include "../../common/common.h"

enum { PT = 3, WORK = 20, REPORT = 21 };   /* portal table index and match bits */
enum { MAX_BYTES = 1 << 16, ROUNDS = 32 }; /* rounds of a flood: packets for each HPU */

static const char usage[] = "hpu-count --mode count|law|time|law-time|interval|law-interval|port-interval --sizes "
                            "BYTES[,BYTES...] --hpus N [...]";
enum mode { COUNT, LAW, TIME, LAW_TIME, INTERVAL, LAW_INTERVAL, PORT_INTERVAL, MODES };
static const char *const modes[] = {"count", "law", "time", "law-time", "interval", "law-interval", "port-interval"};

/* ---- On the card ------------------------------------------------------------------------------------------------ */

struct work {
    uint32_t loops;               /* set by the host: how long a handler takes */
    uint32_t bytes[PTL_MAX_HPUS]; /* that each HPU has seen; the card gives work to the lowest free one */
};

__handler int work_payload(const ptl_payload_t p, void *state) {
    struct work *w = state;
    w->bytes[PTL_MY_HPU] += p.length;
    for (uint32_t i = w->loops; i > 0; i--)
        __asm__ volatile("");
    return SUCCESS;
}

__handler int report_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct work), PTL_ME_HOST_MEM) ? FAIL : SUCCESS;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

static ptl_handle_md_t md;
static uint32_t hpus;    /* HPUs of rank 1's card */
static struct work seen; /* rank 1: results of handlers in HPU memory */
static bool ok;

static ptl_handle_me_t append(ptl_match_bits_t bits, ptl_me_t me) {
    ptl_handle_me_t handle;
    me.uid = PTL_UID_ANY;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = bits;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
    return handle;
}

/* Both ranks: `packets` messages of `bytes` bytes arrive back to back. Rank 0's card sends them by itself, as triggered
 * puts, for its CPU would need o for each. Returns on rank 1 the time from the start to the last handler's end; on rank
 * 0 it returns 0. */
static uint64_t flood(size_t bytes, uint32_t packets, uint32_t loops) {
    const ptl_process_t peer = {.rank = 1};
    uint64_t time_ps = 0;
    ptl_handle_ct_t count;
    ptl_ct_event_t counted;
    CHECK(PtlCTAlloc(ni, &count));
    if (spin_rank() == 0) {
        for (uint32_t i = 0; i < packets; i++)
            CHECK(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, peer, PT, WORK, 0, NULL, 0, count, 1));
        CHECK(spin_barrier());
        CHECK(PtlCTInc(count, (ptl_ct_event_t){.success = 1}));
        CHECK(spin_barrier()); /* all have been handled */
        CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, PT, REPORT, 0, NULL, 0));
        CHECK(spin_barrier());
    } else {
        struct work start = {.loops = loops};
        uint64_t total = 0;
        ptl_me_t me = {.ct_handle = count, .payload_handler = work_payload, .hpu_initial_state = &start};
        me.hpu_initial_state_length = sizeof start;
        CHECK(PtlHPUAllocMem(sizeof start, ni, &me.hpu_memory));
        ptl_handle_me_t work = append(WORK, me);
        ptl_me_t last = {.start = &seen,
                         .length = sizeof seen,
                         .ct_handle = count,
                         .completion_handler = report_completion,
                         .hpu_memory = me.hpu_memory};
        ptl_handle_me_t report = append(REPORT, last);
        CHECK(spin_barrier());
        uint64_t start_ps = spin_time_ps();
        CHECK(PtlCTWait(count, packets, &counted));
        time_ps = spin_time_ps() - start_ps;
        CHECK(spin_barrier());
        CHECK(PtlCTWait(count, packets + 1, &counted));
        for (unsigned i = 0; i < PTL_MAX_HPUS; i++)
            total += seen.bytes[i];
        ok &= counted.failure == 0 && seen.loops == loops && total == (uint64_t)packets * bytes;
        CHECK(PtlMEUnlink(work));
        CHECK(PtlMEUnlink(report));
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
        CHECK(spin_barrier());
    }
    CHECK(PtlCTFree(count));
    return time_ps;
}

enum { LONG = 10000 }; /* loops with which no HPU ever idles in a flood of 8-byte packets */

/* Time to the end of a single packet. The first one warms up the branch predictors. */
static int64_t alone(uint32_t loops) {
    flood(8, 1, loops);
    return (int64_t)flood(8, 1, loops);
}

/* Duration of a handler in ps, measured on the simulated machine. With LONG loops a flood ends after as many turns as
 * each HPU has packets, so one turn more is one handler; with fewer loops a packet alone ends so much earlier. */
static int64_t duration(uint32_t loops) {
    static bool calibrated;
    static int64_t difference;
    if (!calibrated) {
        flood(8, 2 * hpus, LONG);
        int64_t two = (int64_t)flood(8, 2 * hpus, LONG), three = (int64_t)flood(8, 3 * hpus, LONG);
        difference = three - two - alone(LONG);
        calibrated = true;
    }
    return alone(loops) + difference;
}

/* Returns whether no packet waits for an HPU: a flood ends later than one of the shortest handlers by just as much as a packet
 * alone does, up to rounding. */
static bool keeps_up(size_t bytes, uint32_t loops) {
    enum { ROUNDING_PS = 100 };
    int64_t shortest = (int64_t)flood(bytes, hpus * ROUNDS, 0), later = alone(loops) - alone(0);
    return (int64_t)flood(bytes, hpus * ROUNDS, loops) - shortest <= later + ROUNDING_PS;
}

/* The most loops that take no longer than `handler_ps` (0: with which the HPUs keep up). Rank 0 decides otherwise than
 * rank 1, but sends the same floods. */
static uint32_t most(size_t bytes, int64_t handler_ps) {
    uint32_t low = 0, high = 1u << 14;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (handler_ps > 0 ? duration(middle) <= handler_ps : keeps_up(bytes, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Number of HPUs used by the latest flood: the card chooses the lowest free HPU. */
static uint32_t used(void) {
    uint32_t count = 0;
    while (count < PTL_MAX_HPUS && seen.bytes[count] != 0)
        count++;
    for (uint32_t i = count; i < PTL_MAX_HPUS; i++)
        ok &= seen.bytes[i] == 0;
    return count;
}

/* HPUs that handlers of `loops` need: how many a flood uses without that a packet waits, once branch predictors have
 * settled. */
static uint32_t needed(size_t bytes, uint32_t loops) {
    bool enough = keeps_up(bytes, loops);
    if (spin_rank() == 1 && !enough)
        fail("%zu B: more than %u HPUs are needed", bytes, hpus);
    flood(bytes, hpus * ROUNDS, loops);
    return used();
}

/* The time between two messages, ps: in the second half of a flood, which excludes the start. Handlers are so short
 * that no packet waits for an HPU. */
static double interval(size_t bytes) {
    if (spin_rank() == 1 && !keeps_up(bytes, 0))
        fail("%zu B: the shortest handlers are too long for %u HPUs", bytes, hpus);
    if (spin_rank() == 0)
        keeps_up(bytes, 0);
    uint32_t half = hpus * ROUNDS;
    int64_t one = (int64_t)flood(bytes, half, 0), two = (int64_t)flood(bytes, 2 * half, 0);
    return (double)(two - one) / half;
}

/* g and G in ps, and the rules of the machine's ports. */
struct ports {
    double gap_ps, byte_ps, match_ps;
    bool adds_gap;    /* network.injection: a sender is busy for g + (s - 1) G instead of max(g, G s) */
    bool waits_match; /* nic.match_overlaps: a receiver does nothing else while it matches */
};

static double larger(double one, double other) { return one > other ? one : other; }

/* The paper's time between two packets (§4.4.2). */
static double law_interval(const struct ports *ports, size_t bytes) {
    return larger(ports->gap_ps, (double)bytes * ports->byte_ps);
}

/* Expected time by the rules of the ports: the slower of sender and receiver. */
static double port_interval(const struct ports *ports, size_t bytes) {
    double last_byte = (double)(bytes - 1) * ports->byte_ps, law = law_interval(ports, bytes);
    double sends = ports->adds_gap ? ports->gap_ps + last_byte : law;
    double receives = ports->waits_match ? last_byte + larger(ports->match_ps, ports->gap_ps) : law;
    return larger(sends, receives);
}

static int64_t rounded_up(double number) {
    int64_t whole = (int64_t)number;
    return whole + (number > (double)whole);
}

/* Whole cycles that `handler_ps` has room for, in ps. */
static int64_t whole_cycles(int64_t handler_ps, double cycle_ps) {
    return (int64_t)((double)(int64_t)((double)handler_ps / cycle_ps) * cycle_ps);
}

/* Reports that no number of loops gives handlers of that many cycles. */
static void report_difference(int64_t reached_ps, int64_t handler_ps, double cycle_ps) {
    if (spin_rank() == 1 && (double)(whole_cycles(handler_ps, cycle_ps) - reached_ps) > cycle_ps / 2)
        fprintf(stderr, "hpu-count: there are no handlers of %.1f ns, these take %.1f ns\n", (double)handler_ps / 1e3,
                (double)reached_ps / 1e3);
}

static double number(int argc, char **argv, const char *name) { return atof(option(argc, argv, name, usage)); }

int main(int argc, char **argv) {
    enum mode mode = choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = option(argc, argv, "--sizes", usage);
    hpus = (uint32_t)number(argc, argv, "--hpus");
    int64_t handler_ps = (int64_t)(1000 * number(argc, argv, "--handler-ns"));
    static const char *const injections[] = {"max", "sum"}, *const overlaps[] = {"reception", "gap"};
    const struct ports ports = {
        .gap_ps = 1000 * number(argc, argv, "--gap-ns"),
        .byte_ps = number(argc, argv, "--byte-ps"),
        .match_ps = 1000 * number(argc, argv, "--match-ns"),
        .adds_gap = choice(option(argc, argv, "--injection", usage), injections, 2, usage) == 1,
        .waits_match = choice(option(argc, argv, "--overlaps", usage), overlaps, 2, usage) == 1,
    };
    double cycle_ps = 1000 / number(argc, argv, "--clock-ghz");
    uint32_t loops = 0;
    size_t bytes;
    if (spin_size() != 2 || hpus < 1 || hpus > PTL_MAX_HPUS)
        fail("needs 2 ranks, 1 to %d HPUs", PTL_MAX_HPUS);
    start(PT, NULL);
    md = bind_memory(allocate(MAX_BYTES), MAX_BYTES, 0, PTL_CT_NONE);
    ok = true;
    if (mode == COUNT) {
        loops = most(0, handler_ps);
        int64_t reached_ps = duration(loops);
        report_difference(reached_ps, handler_ps, cycle_ps);
        handler_ps = reached_ps;
    } else {
        handler_ps = whole_cycles(handler_ps, cycle_ps);
    }
    while (next_number(&sizes, &bytes)) {
        if (bytes < 8 || bytes > limits.max_payload_size)
            fail("%zu bytes: %s", bytes, usage);
        double interval_ps = mode == LAW_INTERVAL ? law_interval(&ports, bytes) : port_interval(&ports, bytes);
        int64_t count = hpus, time_ps = handler_ps;
        if (mode == COUNT)
            count = needed(bytes, loops);
        if (mode == LAW)
            count = rounded_up((double)handler_ps / interval_ps);
        if (mode == TIME)
            time_ps = duration(most(bytes, 0));
        if (mode == LAW_TIME)
            time_ps = (int64_t)(hpus * interval_ps);
        if (mode == INTERVAL)
            interval_ps = interval(bytes);
        if (spin_rank() == 0)
            continue;
        printf("{\"mode\":\"%s\",\"bytes\":%zu,\"hpus\":%lld,\"handler_ps\":%lld,\"interval_ps\":%.0f,"
               "\"data_ok\":%s}\n",
               modes[mode], bytes, (long long)count, (long long)time_ps, interval_ps, verdict(ok));
        fflush(stdout);
    }
    CHECK(PtlMDRelease(md));
    finish();
    return exit_status;
}
