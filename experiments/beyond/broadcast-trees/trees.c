/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast of large messages over trees that pipeline them (sPIN §4.4.3): rank 0 sends a message to all others.
 *
 *   --cases N,N,…     numbers of ranks and message sizes, by their places in `cases`; ranks beyond wait
 *
 * Then, once or more often:
 *
 *   --mode rdma       a rank's CPU sees a segment of the message and posts it to the rank's children
 *   --mode triggered  a rank's card sends it from host memory when it has arrived (Portals 4 triggered puts)
 *   --mode stream     payload handlers forward every packet from the card
 *   --tree binomial|chain|double
 *   --segments N,N,…  sizes of segments in bytes, growing, 0 for the whole message. They are measured until the time
 *                     grows, and the fastest counts. In a double tree, segments go down one tree and the other in turn;
 *                     with streaming they are packets
 *
 * Prints a JSON object a line: {"mode", "tree", "case", "ranks", "bytes", "segment", "time_ps", "data_ok"}. The time runs
 * from the root's start until the last rank's CPU sees that the message is in its memory. */
#include "../../common/common.h"
#include <handlers/broadcast/trees.h>

enum { RESULT = 3, DATA = 4 }; /* portal table indices: one for results, and from DATA on for messages */
enum { TAG = 1 << 24 };        /* match bits; lower bits are the offset of a packet */
enum { MAX_BYTES = 1 << 22 };  /* below TAG */
enum { TREES = 2 };            /* most trees of a message */
enum { WARM_UP = 16 };         /* packets after which the branch predictors of the HPUs have settled */
enum { SEEDS = 1 << 8 };       /* number of different messages */
enum { PERIOD = 65521 };       /* bytes after which messages repeat: a prime, so that all packets differ */

static const struct {
    uint32_t ranks;
    size_t bytes;
} cases[] = {{16, 1 << 16}, {16, 1 << 19}, {16, MAX_BYTES}, {64, 1 << 16}, {64, 1 << 18}};
enum { CASES = sizeof cases / sizeof *cases };

enum mode { RDMA, TRIGGERED, STREAM, MODES };
static const char *const modes[MODES] = {"rdma", "triggered", "stream"};

/* A kind of tree. */
static const struct shape {
    broadcast_rule *child;
    uint32_t trees;
    uint32_t prompt; /* number of children that get a segment at once; the others get the message later */
    ptl_payload_handler_t payload;
} shapes[] = {
    {broadcast_binomial, 1, 1, broadcast_payload},
    {broadcast_chain, 1, 1, broadcast_chain_payload},
    {broadcast_binary, 2, 2, broadcast_binary_payload},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const char *const shape_names[SHAPES] = {"binomial", "chain", "double"};

static const char usage[] = "trees --cases N[,N...] --mode rdma|triggered|stream --tree binomial|chain|double "
                            "--segments N[,N...] [--mode ...]";

static uint32_t rank;
static unsigned char *message;  /* memory of receiving ranks */
static unsigned char *expected; /* the message number `seed` begins at byte `seed` */
static ptl_handle_md_t md;      /* where this rank sends from */
static ptl_handle_ct_t told;    /* counts writes to `last` */
static ptl_size_t answers;
static uint64_t last; /* rank 0: when the last rank had the message; elsewhere: when this one had it; then the time */
static ptl_handle_md_t last_md;
static unsigned seed;

/* The broadcast that is measured. */
static enum mode mode;
static const struct shape *shape;
static uint32_t ranks;
static size_t bytes, segment;
static struct broadcast places[TREES]; /* place of this rank in each tree */

/* Objects of this rank for it. */
static ptl_pt_index_t data;
static ptl_handle_ct_t arrived[TREES];
static ptl_size_t total[TREES]; /* bytes that have arrived in a tree */

static uint32_t tree_of(size_t offset) {
    return (uint32_t)(offset / (mode == STREAM ? limits.max_payload_size : segment)) % shape->trees;
}

static size_t segment_at(size_t offset) { return bytes - offset < segment ? bytes - offset : segment; }

/* Streamed packets count together, as no operation waits for those of one tree. */
static ptl_handle_ct_t counter(uint32_t tree) { return arrived[mode == STREAM ? 0 : tree]; }

/* Appends an entry for the bytes from `offset` on. */
static ptl_handle_me_t append(size_t offset) {
    struct broadcast state = places[tree_of(offset)];
    ptl_me_t me = {
        .ct_handle = counter(tree_of(offset)), .options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    state.bits = TAG + offset;
    if (mode == STREAM)
        CHECK(broadcast_attach(ni, &me, &state, shape->payload));
    return append_entry(data, state.bits, message + offset, MAX_BYTES - offset, me);
}

/* Gives this rank its places in a tree of `ranks` ranks. */
static void join(void) {
    for (uint32_t tree = 0; tree < shape->trees; tree++) {
        uint32_t place = broadcast_place(rank, ranks, tree);
        places[tree] = (struct broadcast){.rank = place,
                                          .ranks = ranks,
                                          .reach = broadcast_reach(place, ranks),
                                          .max_packet = (uint32_t)limits.max_payload_size,
                                          .streaming = mode == STREAM,
                                          .tree = (uint8_t)tree};
        total[tree] = 0;
        CHECK(PtlCTAlloc(ni, &arrived[tree]));
    }
}

/* Sends the segment at `offset` to child number `i`, if there is one; with a threshold, once that many bytes have arrived
 * in its tree. */
static void send(size_t offset, uint32_t i, ptl_size_t threshold) {
    const struct broadcast *b = &places[tree_of(offset)];
    int32_t place = shape->child(b, i);
    if (place == BROADCAST_NONE)
        return;
    size_t start = rank == 0 ? seed + offset : offset, length = segment_at(offset);
    /* Streamed packets have entries; otherwise trees have. */
    size_t entry = mode == STREAM ? offset : tree_of(offset) * segment;
    ptl_process_t child = broadcast_process(b, (uint32_t)place);
    ptl_match_bits_t bits = TAG + entry;
    if (threshold == 0)
        CHECK(PtlPut(md, start, length, PTL_NO_ACK_REQ, child, data, bits, offset - entry, NULL, 0));
    else
        CHECK(PtlTriggeredPut(md, start, length, PTL_NO_ACK_REQ, child, data, bits, offset - entry, NULL, 0,
                              counter(tree_of(offset)), threshold));
}

/* Sends the message to the children from number `from` on, one child after the other, with or without a threshold. */
static void send_all(uint32_t from, ptl_size_t threshold) {
    for (uint32_t i = from; shape->child(&places[0], i) != BROADCAST_NONE; i++)
        for (size_t offset = 0; offset < bytes; offset += segment)
            send(offset, i, threshold);
}

/* Sends the message from the root. A card that streams to several children needs a packet longer than it takes to arrive:
 * they get the segments in turn, so that its packet buffer does not overflow. */
static void lead(void) {
    if (mode != STREAM)
        send_all(0, 0);
    for (size_t offset = 0; offset < bytes && mode == STREAM; offset += segment)
        for (uint32_t i = 0; shape->child(&places[tree_of(offset)], i) != BROADCAST_NONE; i++)
            send(offset, i, 0);
}

/* Prepares triggered puts of a rank that forwards. */
static void prepare(void) {
    ptl_size_t threshold[TREES] = {total[0], total[1]};
    for (size_t offset = 0; offset < bytes; offset += segment) {
        threshold[tree_of(offset)] += segment_at(offset);
        for (uint32_t i = 0; i < shape->prompt; i++)
            send(offset, i, threshold[tree_of(offset)]);
    }
    send_all(shape->prompt, threshold[0]);
}

/* Posts each segment, of any tree, after its arrival. */
static void forward(void) {
    size_t next[TREES] = {0, segment};
    ptl_size_t tests[TREES] = {total[0], total[1]};
    for (;;) {
        ptl_handle_ct_t counters[TREES];
        ptl_size_t thresholds[TREES];
        uint32_t trees[TREES], waiting = 0;
        for (uint32_t tree = 0; tree < shape->trees; tree++)
            if (next[tree] < bytes) {
                counters[waiting] = arrived[tree];
                thresholds[waiting] = tests[tree] + segment_at(next[tree]);
                trees[waiting++] = tree;
            }
        if (waiting == 0)
            break;
        ptl_ct_event_t event;
        unsigned which;
        CHECK(PtlCTPoll(counters, thresholds, waiting, PTL_TIME_FOREVER, &event, &which));
        uint32_t tree = trees[which];
        for (uint32_t i = 0; i < shape->prompt; i++)
            send(next[tree], i, 0);
        tests[tree] = thresholds[which];
        next[tree] += shape->trees * segment;
    }
    send_all(shape->prompt, 0);
}

/* Does the part of a rank that receives; returns the time at which it had the message. */
static uint64_t follow(void) {
    memset(message, 0, bytes);
    if (mode == TRIGGERED)
        prepare();
    CHECK(spin_barrier());
    if (mode == RDMA)
        forward();
    if (mode == STREAM)
        await_count(arrived[0], total[0] += bytes);
    else
        for (size_t offset = 0; offset < bytes; offset += segment)
            total[tree_of(offset)] += segment_at(offset);
    for (uint32_t tree = 0; tree < shape->trees && mode == TRIGGERED; tree++)
        await_count(arrived[tree], total[tree]);
    uint64_t end = spin_time_ps();
    if (memcmp(message, expected + seed, bytes) != 0)
        fail("wrong data of %zu bytes in a tree of %u", bytes, ranks);
    return end;
}

/* Does one broadcast; returns the time at which the root started, or at which this rank had the message. */
static uint64_t broadcast(void) {
    seed = (seed + 1) % SEEDS;
    CHECK(spin_barrier()); /* no rank still reads or sends the last message */
    if (rank > 0 && rank < ranks)
        return follow();
    CHECK(spin_barrier());
    uint64_t start = spin_time_ps();
    if (rank == 0)
        lead();
    return start;
}

/* Measures one broadcast. */
static uint64_t measure(void) {
    ptl_handle_me_t entries[TREES];
    bool takes_part = rank < ranks;
    if (takes_part && mode != STREAM) {
        join();
        for (uint32_t tree = 0; tree < shape->trees && rank > 0; tree++)
            entries[tree] = append(tree * segment);
    }
    uint64_t begun = last = broadcast();
    CHECK(spin_barrier());
    /* The root's card determines the latest time of all ranks, after the measurement. */
    if (takes_part && rank > 0)
        CHECK(PtlAtomic(last_md, 0, sizeof last, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, RESULT, 0, 0, NULL, 0,
                        PTL_MAX, PTL_UINT64_T));
    await_count(told, answers += rank == 0 ? ranks - 1 : 1);
    /* All ranks must agree on the next measurement. */
    if (rank == 0) {
        last -= begun;
        for (uint32_t other = 1; other < (uint32_t)spin_size(); other++)
            CHECK(
                PtlPut(last_md, 0, sizeof last, PTL_NO_ACK_REQ, (ptl_process_t){.rank = other}, RESULT, 0, 0, NULL, 0));
    }
    CHECK(spin_barrier());
    for (uint32_t tree = 0; tree < shape->trees && takes_part && mode != STREAM; tree++) {
        if (rank > 0)
            CHECK(PtlMEUnlink(entries[tree]));
        CHECK(PtlCTFree(arrived[tree]));
    }
    return last;
}

/* The largest message in trees of more than `least` ranks. */
static size_t largest(uint32_t least) {
    size_t most = 0;
    for (size_t i = 0; i < CASES; i++)
        if (cases[i].ranks > least && cases[i].bytes > most)
            most = cases[i].bytes;
    return most;
}

/* Prepares this rank's card to stream messages of all sizes: each packet has an entry, since it is a message. A first
 * broadcast warms up the branch predictors. */
static void prepare_streams(void) {
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, ++data, &data));
    if (rank < ranks) {
        size_t end = rank > 0 ? largest(ranks - 1) : 0;
        join();
        for (size_t offset = 0; offset < end; offset += limits.max_payload_size)
            append(offset);
    }
    segment = limits.max_payload_size;
    bytes = WARM_UP * segment;
    broadcast();
}

/* Measures all segments, and prints the fastest. */
static void tune(size_t number, const char *segments, const char *tree) {
    uint64_t best = UINT64_MAX;
    size_t chosen = 0, size;
    while (next_number(&segments, &size)) {
        if (size % limits.max_payload_size != 0)
            fail("--segments: %zu is no multiple of the %zu bytes of a packet", size, (size_t)limits.max_payload_size);
        if (size > bytes)
            continue;
        segment = size > 0 ? size : bytes;
        if (mode == STREAM && shape->trees > 1 && segment != limits.max_payload_size)
            fail("--segments: several trees stream packets, of %zu bytes here", (size_t)limits.max_payload_size);
        uint64_t time = measure();
        if (time >= best)
            break;
        best = time;
        chosen = segment;
    }
    if (best == UINT64_MAX)
        fail("--segments: all are longer than a message of %zu bytes", bytes);
    if (rank == 0)
        printf("{\"mode\":\"%s\",\"tree\":\"%s\",\"case\":%zu,\"ranks\":%u,\"bytes\":%zu,\"segment\":%zu,"
               "\"time_ps\":%llu,\"data_ok\":true}\n",
               modes[mode], tree, number, ranks, bytes, chosen, (unsigned long long)best);
}

/* Measures a kind of tree in all cases of a list. */
static void measure_tree(const char *list, const char *segments, const char *tree) {
    uint32_t streams = 0; /* number of ranks for which cards are prepared */
    for (size_t number; next_number(&list, &number);) {
        if (number >= CASES || cases[number].ranks > (uint32_t)spin_size())
            fail("--cases: %zu is not below %d, or has more ranks than the %d of the job", number, CASES, spin_size());
        ranks = cases[number].ranks;
        if (mode == STREAM && streams != ranks) {
            prepare_streams();
            streams = ranks;
        }
        bytes = cases[number].bytes;
        tune(number, segments, tree);
    }
}

int main(int argc, char **argv) {
    const char *list = option(argc, argv, "--cases", usage);
    start(RESULT, NULL);
    rank = (uint32_t)spin_rank();
    data = DATA;
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, data, &data));
    expected = allocate(MAX_BYTES + SEEDS);
    message = rank == 0 ? expected : allocate(MAX_BYTES);
    size_t most = largest(rank) + SEEDS;
    for (size_t i = 0; i < most; i++)
        expected[i] = i < PERIOD ? pattern(i, 0) : expected[i - PERIOD];
    md = bind_memory(message, rank == 0 ? MAX_BYTES + SEEDS : MAX_BYTES, 0, PTL_CT_NONE);
    last_md = bind_memory(&last, sizeof last, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &told));
    append_entry(RESULT, 0, &last, sizeof last, (ptl_me_t){.ct_handle = told, .hpu_memory = PTL_INVALID_HANDLE});
    for (int i = 3; i + 5 < argc; i += 6) {
        char **group = argv + i - 1;
        const char *tree = option(7, group, "--tree", usage);
        mode = (enum mode)choice(option(7, group, "--mode", usage), modes, MODES, usage);
        shape = &shapes[choice(tree, shape_names, SHAPES, usage)];
        measure_tree(list, option(7, group, "--segments", usage), tree);
    }
    finish();
    return 0;
}
