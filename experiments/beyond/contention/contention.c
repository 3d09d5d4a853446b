/* SPDX-License-Identifier: Apache-2.0 */
/* Cost of messages that share links: 64 ranks on a fat tree, with rank r on node r of the tree.
 *
 *   --mode incast              every rank sends to rank 0
 *   --mode victim              rank 63 sends to rank 1 while all others send to rank 0
 *   --mode permutation         rank r sends to rank r + 32 (modulo 64): every message crosses the bisection
 *   --mode broadcast-cpu       a binomial broadcast among the even ranks; the CPUs forward the message
 *   --mode broadcast-card      the same broadcast; payload handlers forward every packet
 *   --mode busy-broadcast-cpu, --mode busy-broadcast-card
 *                              the same with another job: the odd ranks send permutations all the time
 *   --mode incast-bound, --mode permutation-bound, --mode broadcast-bound
 *                              shortest time in which the bottleneck link can carry the bytes, computed
 *   --byte-ps G --taper T      for bounds: time of a byte on a link; hosts of a leaf switch for each of its uplinks
 *   --sizes BYTES[,BYTES...]   sizes of the measured messages
 *
 * `--sizes` comes first; `--mode` may follow several times, since it takes longer to start 64 ranks than to run them.
 * Prints a line with a JSON object for each mode and size: {"mode", "bytes", "time_ps", "data_ok"}. The time runs from
 * the start of the measured messages until the last of their receivers has the data in its memory. */
#include "../../common/common.h"
#include <handlers/broadcast/broadcast.h>

enum { RESULT = 3, LOAD = 4, DATA = 5 }; /* portal table indices; from DATA on, one for each measured mode */
enum { TAG = 1 << 24 };                  /* match bits; those of packets are larger */
enum { RANKS = 64, HALF = RANKS / 2 };
enum { MAX_BYTES = 1 << 18 };                        /* largest measured message */
enum { MAX_LOAD = RANKS * (MAX_BYTES + (1 << 16)) }; /* most other traffic to one rank */
enum { HEAD_START_NS = 10000 };                      /* time of other traffic before the measured messages */
enum { WARM_UP = 2 }; /* broadcasts after which the branch predictors of the HPUs have settled */

enum mode {
    INCAST,
    VICTIM,
    PERMUTATION,
    BROADCAST_CPU,
    BROADCAST_CARD,
    BUSY_CPU,
    BUSY_CARD,
    INCAST_BOUND,
    PERMUTATION_BOUND,
    BROADCAST_BOUND,
    MODES
};
static const char *const modes[MODES] = {"incast",
                                         "victim",
                                         "permutation",
                                         "broadcast-cpu",
                                         "broadcast-card",
                                         "busy-broadcast-cpu",
                                         "busy-broadcast-card",
                                         "incast-bound",
                                         "permutation-bound",
                                         "broadcast-bound"};
static const char usage[] = "contention --sizes BYTES[,BYTES...] --mode MODE [--byte-ps G] [--taper T] [--mode ...]";

/* Processes are numbered so that those of the broadcast are 0 to 31: process p is node 2 p of the tree, and process
 * 32 + p is node 2 p + 1. */
static uint32_t process; /* number of this process */
static uint32_t node;    /* node of the tree: the rank in the job */
static unsigned char *outgoing, *incoming, *incoming_load;
static ptl_handle_md_t outgoing_md, incoming_md;
static ptl_handle_ct_t loaded; /* bytes of other traffic that have arrived */
static ptl_size_t load_total;  /* bytes of other traffic that are expected, since the beginning */
static ptl_handle_ct_t told;   /* process 0: answers of the others */
static ptl_size_t answers;
static uint64_t ends[2]; /* when the last measured message, and the last of the other traffic, had arrived */
static ptl_handle_md_t ends_md;
static unsigned seed; /* seed of this measurement's data */

/* The mode that is measured. */
static enum mode mode;
static ptl_pt_index_t data;
static ptl_handle_ct_t arrived; /* bytes of measured messages that have arrived */
static ptl_size_t total;        /* bytes of measured messages that are expected, since the beginning */

static uint32_t process_of(uint32_t of_node) { return of_node / 2 + of_node % 2 * HALF; }

static uint32_t node_of(uint32_t of_process) { return of_process % HALF * 2 + of_process / HALF; }

static bool is_busy(void) { return mode == BUSY_CPU || mode == BUSY_CARD; }

static bool cards_send(void) { return mode == BROADCAST_CARD || mode == BUSY_CARD; }

/* Appends an entry for `bytes` of memory that counts messages, with handlers if `state` is not NULL. */
static void append(ptl_pt_index_t pt, void *memory, size_t bytes, ptl_match_bits_t bits, ptl_handle_ct_t ct,
                   struct broadcast *state) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = memory,
                   .length = bytes,
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = bits,
                   .hpu_memory = PTL_INVALID_HANDLE};
    if (state != NULL) {
        state->bits = bits;
        CHECK(PtlHPUAllocMem(sizeof *state, ni, &me.hpu_memory));
        me.hpu_initial_state = state;
        me.hpu_initial_state_length = sizeof *state;
        me.header_handler = broadcast_header;
        me.payload_handler = broadcast_payload;
        me.completion_handler = broadcast_completion;
    }
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Appends the entries for the measured messages: one, or where cards forward packets one for each packet. */
static void expect_messages(void) {
    size_t packet = limits.max_payload_size;
    struct broadcast state = {.rank = process,
                              .ranks = HALF,
                              .reach = broadcast_reach(process, HALF),
                              .max_packet = (uint32_t)packet,
                              .streaming = true};
    if (!cards_send())
        append(data, incoming, MAX_BYTES, TAG, arrived, NULL);
    else if (process > 0 && process < HALF)
        for (size_t offset = 0; offset < MAX_BYTES; offset += packet)
            append(data, incoming + offset, MAX_BYTES - offset, TAG + offset, arrived, &state);
}

static void send_message(ptl_handle_md_t md, uint32_t target, size_t bytes) {
    CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = target}, data, TAG, 0, NULL, 0));
}

static void send_load(uint32_t target, size_t bytes, size_t offset) {
    CHECK(PtlPut(outgoing_md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = target}, LOAD, TAG, offset, NULL, 0));
}

static void check(const unsigned char *memory, size_t bytes, uint32_t sender) {
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != pattern(i, seed * RANKS + sender))
            fail("%s: byte %zu of %zu from process %u is wrong", modes[mode], i, bytes, sender);
}

static void receive_message(size_t bytes) {
    await_count(arrived, total += bytes);
    ends[0] = spin_time_ps();
}

/* Receives other traffic from `senders` processes, beginning with number `first`. */
static void receive_load(size_t bytes, uint32_t first, uint32_t senders) {
    await_count(loaded, load_total += senders * bytes);
    ends[1] = spin_time_ps();
    for (uint32_t i = 0; i < senders; i++)
        check(incoming_load + i * bytes, bytes, first + i);
}

static void incast(size_t bytes) {
    if (process > 0)
        send_load(0, bytes, (process - 1) * bytes);
    else
        receive_load(bytes, 1, RANKS - 1);
    ends[0] = ends[1];
}

/* Process 63, the last node, sends to process 32, which is the neighbour of process 0 at its switch and takes part in
 * the incast; only the links between switches are shared. */
static void victim(size_t bytes, size_t load) {
    const uint32_t sender = RANKS - 1, receiver = HALF;
    if (process == sender) {
        spin_host_compute(HEAD_START_NS);
        send_message(outgoing_md, receiver, bytes);
    } else if (process > 0)
        send_load(0, load, (process - 1) * load);
    if (process == receiver) {
        receive_message(bytes);
        check(incoming, bytes, sender);
    }
    if (process == 0)
        receive_load(load, 1, RANKS - 2);
}

static void permutation(size_t bytes) {
    const uint32_t opposite = process_of((node + HALF) % RANKS);
    send_message(outgoing_md, opposite, bytes);
    receive_message(bytes);
    check(incoming, bytes, opposite);
}

/* Broadcasts among the first half of the processes; the others send permutations of `load` bytes if that is not 0. */
static void broadcast(size_t bytes, size_t load) {
    const uint32_t opposite = process_of((node + HALF) % RANKS);
    if (process >= HALF) {
        if (load > 0) {
            send_load(opposite, load, 0);
            receive_load(load, opposite, 1);
        }
        return;
    }
    if (process == 0 && load > 0)
        spin_host_compute(HEAD_START_NS);
    if (process > 0)
        receive_message(bytes);
    if (process == 0 || !cards_send())
        for (uint32_t distance = broadcast_reach(process, HALF); distance > 0; distance /= 2)
            send_message(process == 0 ? outgoing_md : incoming_md, process + distance, bytes);
    if (process > 0)
        check(incoming, bytes, 0);
}

/* Does one measurement. Returns its start; `ends` has its end. */
static uint64_t exchange(size_t bytes) {
    /* Other traffic must last longer than the measured messages; measure() checks this. */
    const size_t load = mode == VICTIM ? bytes + (1 << 16) : is_busy() ? 16 * bytes + (1 << 20) : 0;
    seed++;
    ends[0] = ends[1] = 0;
    for (size_t i = 0; i < (load > bytes ? load : bytes); i++)
        outgoing[i] = pattern(i, seed * RANKS + process);
    CHECK(spin_barrier()); /* all are ready */
    uint64_t start = spin_time_ps() + (load > 0 ? HEAD_START_NS * UINT64_C(1000) : 0);
    if (mode == INCAST)
        incast(bytes);
    else if (mode == VICTIM)
        victim(bytes, load);
    else if (mode == PERMUTATION)
        permutation(bytes);
    else
        broadcast(bytes, load);
    CHECK(spin_barrier()); /* all messages have arrived, so no process still reads or sends them */
    return start;
}

static void print(size_t bytes, uint64_t time_ps) {
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,\"data_ok\":true}\n", modes[mode], bytes,
           (unsigned long long)time_ps);
}

/* Takes the next size off a list. */
static bool next_size(const char **list, size_t *bytes) {
    if (!next_number(list, bytes))
        return false;
    if (*bytes == 0 || *bytes > MAX_BYTES)
        fail("--sizes: expected 1 to %d", MAX_BYTES);
    return true;
}

/* Measures messages of all sizes in `list`. */
static void measure(const char *list) {
    size_t bytes;
    total = 0;
    CHECK(PtlCTAlloc(ni, &arrived));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, data, &data));
    expect_messages();
    for (int i = 0; i < WARM_UP && cards_send(); i++)
        exchange(MAX_BYTES);
    while (next_size(&list, &bytes)) {
        uint64_t start = exchange(bytes);
        /* Process 0 determines the latest times of all, after the measurement. */
        if (process > 0)
            CHECK(PtlAtomic(ends_md, 0, sizeof ends, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, RESULT, 0, 0, NULL, 0,
                            PTL_MAX, PTL_UINT64_T));
        if (process == 0) {
            await_count(told, answers += RANKS - 1);
            if ((mode == VICTIM || is_busy()) && ends[1] < ends[0])
                fail("%s of %zu bytes lasts longer than the other traffic", modes[mode], bytes);
            print(bytes, ends[0] - start);
        }
        CHECK(spin_barrier()); /* process 0 has all answers */
    }
}

/* Bytes of the busiest link divided by its bandwidth: the link of process 0 in an incast and, with a message for each
 * child, in a broadcast; an uplink of a leaf switch in a permutation, or a rank's link if its load is no less. */
static void bound(const char *list, double byte_ps, double taper) {
    size_t bytes;
    uint32_t messages = RANKS - 1;
    if (mode == BROADCAST_BOUND)
        for (messages = 0; 1u << messages < HALF;)
            messages++;
    double share = mode == PERMUTATION_BOUND ? taper : messages;
    while (next_size(&list, &bytes))
        print(bytes, (uint64_t)(share * (double)bytes * byte_ps));
}

/* A positive number after `name` among the arguments from `from` up to the next --mode. */
static double number(int argc, char **argv, int from, const char *name) {
    for (int i = from; i + 1 < argc && strcmp(argv[i], "--mode") != 0; i += 2)
        if (strcmp(argv[i], name) == 0 && strtod(argv[i + 1], NULL) > 0)
            return strtod(argv[i + 1], NULL);
    fail("%s: expected %s and a positive number; usage: %s", modes[mode], name, usage);
}

/* Starts Portals with the numbers of processes that this program uses. */
static void start_processes(void) {
    ptl_pt_index_t given;
    ptl_process_t own, map[RANKS];
    if (spin_size() != RANKS)
        fail("expected %d ranks, these are %d", RANKS, spin_size());
    node = (uint32_t)spin_rank();
    process = process_of(node);
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    CHECK(PtlGetPhysId(ni, &own));
    for (uint32_t p = 0; p < RANKS; p++)
        map[p] = (ptl_process_t){.phys = {.nid = node_of(p), .pid = own.phys.pid}};
    CHECK(PtlSetMap(ni, RANKS, map));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, RESULT, &given));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, LOAD, &given));
}

int main(int argc, char **argv) {
    const char *list = option(argc, argv, "--sizes", usage);
    start_processes();
    outgoing = allocate(MAX_LOAD);
    incoming = allocate(MAX_BYTES);
    incoming_load = allocate(MAX_LOAD);
    outgoing_md = bind_memory(outgoing, MAX_LOAD, 0, PTL_CT_NONE);
    incoming_md = bind_memory(incoming, MAX_BYTES, 0, PTL_CT_NONE);
    ends_md = bind_memory(ends, sizeof ends, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &loaded));
    CHECK(PtlCTAlloc(ni, &told));
    append(LOAD, incoming_load, MAX_LOAD, TAG, loaded, NULL);
    ptl_handle_me_t handle;
    ptl_me_t result = {.start = ends,
                       .length = sizeof ends,
                       .ct_handle = told,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .match_id.rank = PTL_RANK_ANY,
                       .hpu_memory = PTL_INVALID_HANDLE};
    if (process == 0)
        CHECK(PtlMEAppend(ni, RESULT, &result, PTL_PRIORITY_LIST, NULL, &handle));
    data = DATA;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--mode") != 0)
            continue;
        mode = (enum mode)choice(argv[i + 1], modes, MODES, usage);
        if (mode < INCAST_BOUND) {
            measure(list);
            data++;
        } else if (process == 0)
            bound(list, number(argc, argv, i + 2, "--byte-ps"),
                  mode == PERMUTATION_BOUND ? number(argc, argv, i + 2, "--taper") : 1);
    }
    CHECK(spin_barrier()); /* no rank leaves with data that others still expect */
    finish();
    return 0;
}
