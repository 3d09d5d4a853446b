/* SPDX-License-Identifier: Apache-2.0 */
/* Fault-tolerant broadcast (sPIN §5.4): every rank forwards the first copy of a message to the ranks at distances 1, 2, 4, …,
 * so that it reaches all survivors if fewer than log2 P ranks are dead.
 *
 *   --mode rdma       a rank's CPU sees the first copy in its memory and posts the puts to the neighbours
 *   --mode triggered  a rank's card sends them when the first copy is in memory (Portals 4 triggered puts)
 *   --mode spin       handlers forward and deliver the first copy of each packet, and drop the other copies
 *   --mode tree       handlers forward over a binomial tree, which tolerates no failure
 *
 *   --ranks P,P,… --bytes N     measures broadcasts of rank 0 to P ranks; ranks beyond wait. Prints a line with a JSON object for
 *                               each: {"mode", "bytes", "ranks", "time_ps", "missed", "data_ok"}. The time runs from the root's
 *                               start until the last rank's CPU sees that the message is in its memory.
 *   --rounds R --bytes N        R broadcasts, 50 us apart at least, the first by rank 0, the next by rank 1 … Every living rank
 *                               prints at the end {"rank", "delivered", "told", "wrong", "lives"}: the received rounds in
 *                               hexadecimal, the number of notifications of its CPU, and the state of its card.
 *   --links both                sends in both directions: to the ranks at distances -1, -2, -4, …, too
 *
 * After waiting for a millisecond, a rank continues without the message. */
#include "../../common/common.h"
#include <handlers/broadcast/broadcast.h>
#include <handlers/ft-broadcast/ft_broadcast.h>
#include <inttypes.h>

enum { RESULT = 3, DATA = 4 }; /* portal table indices */
enum { MAX_BYTES = 1 << 20, MAX_ROUNDS = 64 };
enum { WARM_UP = 2 };    /* broadcasts after which the branch predictors of the HPUs have settled */
enum { SEGMENT = 8192 }; /* without handlers: of 4 to 64 KiB the best */
enum { PATIENCE_MS = 1, PAUSE_NS = 50000 };

enum mode { RDMA, TRIGGERED, SPIN, TREE, MODES };
static const char *const modes[MODES] = {"rdma", "triggered", "spin", "tree"};
static const char usage[] = "ft-broadcast --mode rdma|triggered|spin|tree --bytes N (--ranks P[,P...] | --rounds R) "
                            "[--links one|both]";

static uint32_t rank, both;
static enum mode mode;
static size_t bytes;
static unsigned char *message; /* one for each round */
static ptl_handle_md_t md;
static size_t segment;     /* bytes of a segment; of a packet where handlers forward */
static uint64_t last_seen; /* when this rank's CPU saw that the last part was there */
static bool lives = true;  /* true while this rank's card works */

/* Returns whether a call that needs the card has worked; such calls fail once the card is dead. */
static bool works(int rc) {
    if (rc != PTL_OK && rc != PTL_CT_NONE_REACHED && rc != PTL_FAIL)
        fail("a call returned %d", rc);
    lives &= rc != PTL_FAIL;
    return rc == PTL_OK;
}

/* Number of segments of a message. */
static unsigned segments(void) { return (unsigned)((bytes + segment - 1) / segment); }

#ifdef DELIVER_COPIES
/* For the test of the checker: copies are not forwarded, but the host gets them. */
__handler int careless_header(const ptl_header_t h, void *state) {
    int decision = ft_broadcast_header(h, state);
    return decision == DROP_PENDING ? PROCEED : decision;
}
#endif

/* An entry for broadcasts among the first `ranks` ranks, and its count. */
struct group {
    uint32_t ranks, packet; /* the number of the next packet */
    ptl_match_bits_t bits;
    ptl_size_t expected;
    struct ft_broadcast state; /* initial state of the handlers */
    unsigned counters;
    ptl_handle_ct_t counter[MAX_BYTES / SEGMENT * (1 + WARM_UP)]; /* without handlers one for each segment */
};

/* Appends the entry with handlers. */
static void attach(struct group *group) {
    ptl_me_t me = {.hpu_memory = PTL_INVALID_HANDLE, .ct_handle = group->counter[0]};
    if (mode == SPIN) {
        group->state = (struct ft_broadcast){.bits = group->bits, .rank = rank, .ranks = group->ranks, .both = both};
        group->state.farthest = ft_broadcast_farthest(group->ranks);
        CHECK(ft_broadcast_attach(ni, &me, &group->state));
#ifdef DELIVER_COPIES
        me.header_handler = careless_header;
#endif
        append_entry(DATA, group->bits, message, MAX_BYTES, me);
        return;
    }
    struct broadcast state = {.rank = rank, .ranks = group->ranks, .reach = broadcast_reach(rank, group->ranks)};
    state.max_packet = (uint32_t)limits.max_payload_size;
    state.streaming = true;
    for (size_t offset = 0; offset < bytes; offset += segment) {
        ptl_me_t part = me;
        state.bits = group->bits + offset;
        CHECK(broadcast_attach(ni, &part, &state, broadcast_payload));
        append_entry(DATA, state.bits, message + offset, bytes - offset, part);
    }
}

static void open_group(struct group *group, uint32_t ranks, uint32_t number) {
    *group = (struct group){.ranks = ranks, .packet = 1, .bits = (ptl_match_bits_t)(number + 1) << 40};
    if (mode == SPIN || mode == TREE) {
        CHECK(PtlCTAlloc(ni, &group->counter[group->counters++]));
        attach(group);
    }
}

/* Bytes of the segment of a message from there on. */
static size_t segment_at(size_t from) { return bytes - from < segment ? bytes - from : segment; }

/* Appends the entries of a round without handlers: one for each segment, which receives every copy, with a separate
 * counter. */
static void expect_copies(struct group *group, size_t offset) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.uid = PTL_UID_ANY, .match_id.rank = PTL_RANK_ANY, .hpu_memory = PTL_INVALID_HANDLE};
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    group->bits += MAX_BYTES;
    for (size_t from = 0; from < bytes && lives; from += segment) {
        me.start = message + offset + from;
        me.length = segment_at(from);
        me.match_bits = group->bits + from;
        if (works(PtlCTAlloc(ni, &me.ct_handle))) {
            group->counter[group->counters++] = me.ct_handle;
            works(PtlMEAppend(ni, DATA, &me, PTL_PRIORITY_LIST, NULL, &handle));
        }
    }
}

/* Posts the put of a segment to a neighbour; with a counter, when that has counted the first copy. */
static void to_neighbour(const struct group *group, uint32_t distance, size_t offset, size_t from,
                         ptl_handle_ct_t first) {
    ptl_process_t to = ft_broadcast_neighbour(rank, group->ranks, distance);
    if (first == PTL_CT_NONE)
        works(PtlPut(md, offset + from, segment_at(from), PTL_NO_ACK_REQ, to, DATA, group->bits + from, 0, NULL, 0));
    else
        works(PtlTriggeredPut(md, offset + from, segment_at(from), PTL_NO_ACK_REQ, to, DATA, group->bits + from, 0,
                              NULL, 0, first, 1));
}

/* Sends it to all neighbours, the children in the tree of the root first. */
static void to_neighbours(const struct group *group, uint32_t root, size_t offset, size_t from, ptl_handle_ct_t first) {
    uint32_t farthest = ft_broadcast_farthest(group->ranks);
    uint32_t child = ft_broadcast_child(rank, group->ranks, root, farthest);
    for (uint32_t distance = child; distance > 0; distance /= 2)
        to_neighbour(group, distance, offset, from, first);
    for (uint32_t distance = farthest; distance > child; distance /= 2)
        to_neighbour(group, distance, offset, from, first);
    for (uint32_t distance = farthest; both && distance > 0; distance /= 2)
        to_neighbour(group, group->ranks - distance, offset, from, first);
}

/* Starts the round as its root. */
static void lead(struct group *group, size_t offset) {
    static struct ft_broadcast_tag tags[FT_BROADCAST_WINDOW];
    static ptl_iovec_t parts[2 * FT_BROADCAST_WINDOW];
    static struct ft_broadcast_message packets;
    ptl_md_t plain = {.eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    if (mode == SPIN) {
        if (packets.bytes > 0) /* those of the last round have left long ago */
            works(PtlMDRelease(packets.md));
        if (works(ft_broadcast_prepare(&packets, ni, plain, message + offset, bytes, limits.max_payload_size, offset,
                                       rank, group->packet, tags, parts)))
            works(ft_broadcast_send(&packets, &group->state, DATA));
    } else if (mode == TREE) {
        for (uint32_t distance = broadcast_reach(rank, group->ranks); distance > 0; distance /= 2)
            for (size_t from = 0; from < bytes; from += segment)
                works(PtlPut(md, offset + from, segment_at(from), PTL_NO_ACK_REQ,
                             broadcast_child(rank, group->ranks, 0, distance), DATA, group->bits + from, 0, NULL, 0));
    } else {
        for (size_t from = 0; from < bytes; from += segment)
            to_neighbours(group, rank, offset, from, PTL_CT_NONE);
    }
}

/* Waits for a message without handlers, segment by segment, and posts the forwards of this rank's CPU. Returns true
 * if it arrives. */
static bool follow(struct group *group, uint32_t root, size_t offset) {
    ptl_ct_event_t counted;
    ptl_size_t once = 1;
    unsigned which, at = group->counters - segments();
    for (size_t from = 0; from < bytes; from += segment, at++) {
        if (!works(PtlCTPoll(&group->counter[at], &once, 1, PATIENCE_MS, &counted, &which)))
            return false;
        last_seen = spin_time_ps();
        if (mode == RDMA)
            to_neighbours(group, root, offset, from, PTL_CT_NONE);
    }
    return true;
}

/* Waits for a message that handlers deliver. Returns true if it arrives. */
static bool receive(struct group *group) {
    ptl_ct_event_t counted;
    unsigned which;
    ptl_size_t expected = group->expected + segments();
    if (!works(PtlCTPoll(&group->counter[0], &expected, 1, PATIENCE_MS, &counted, &which)))
        return false;
    last_seen = spin_time_ps();
    group->expected = expected;
    return true;
}

/* Does a broadcast of `root`, whose data is at `offset` of the message. Returns whether this rank has it; `*time` is when the root
 * started, or when this rank's CPU saw that the message was there. */
static bool broadcast(struct group *group, uint32_t root, size_t offset, unsigned seed, uint64_t *time) {
    bool handlers = mode == SPIN || mode == TREE, has_come = rank == root && lives;
    for (size_t i = 0; i < bytes && lives; i++)
        message[offset + i] = rank == root ? pattern(i, seed) : 0;
    if (!handlers && lives)
        expect_copies(group, offset);
    for (size_t from = 0; mode == TRIGGERED && lives && rank != root && from < bytes; from += segment)
        to_neighbours(group, root, offset, from, group->counter[group->counters - segments() + from / segment]);
    CHECK(spin_barrier()); /* all are ready */
    *time = spin_time_ps();
    if (has_come)
        lead(group, offset);
    if (rank != root && lives)
        has_come = handlers ? receive(group) : follow(group, root, offset);
    if (rank != root)
        *time = last_seen;
    group->packet += segments();
    return has_come;
}

/* Returns whether the data of a round is complete and right. */
static bool is_right(size_t offset, unsigned seed) { return is_pattern(message + offset, bytes, seed); }

/* Measures broadcasts of rank 0 to all numbers of ranks in `list`. */
static void measure(const char *list) {
    static struct result {
        uint64_t end, missed;
    } result; /* rank 0: when the last rank had the message, and how many did not get it */
    ptl_handle_md_t result_md = bind_memory(&result, sizeof result, 0, PTL_CT_NONE);
    ptl_handle_ct_t told;
    ptl_size_t answers = 0;
    size_t ranks;
    CHECK(PtlCTAlloc(ni, &told));
    append_entry(RESULT, 0, &result.end, sizeof result.end,
                 (ptl_me_t){.ct_handle = told, .hpu_memory = PTL_INVALID_HANDLE});
    for (uint32_t number = 0; next_number(&list, &ranks); number++) {
        struct group group;
        if (ranks < 2 || ranks > (size_t)spin_size())
            fail("--ranks: %zu is not from 2 to the %d ranks of the job", ranks, spin_size());
        if (rank < ranks)
            open_group(&group, (uint32_t)ranks, number);
        uint64_t time = 0;
        bool has_come = false;
        for (unsigned seed = 1; seed <= 1 + WARM_UP; seed++) {
            if (rank < ranks)
                has_come = broadcast(&group, 0, 0, seed, &time);
            else
                CHECK(spin_barrier());
            spin_host_compute(PAUSE_NS); /* all copies have arrived */
            CHECK(spin_barrier());
            if (has_come && !is_right(0, seed))
                fail("wrong data of %zu bytes among %zu ranks", bytes, ranks);
        }
        result.end = time;
        CHECK(spin_barrier());
        if (rank > 0 && has_come)
            works(PtlAtomic(result_md, 0, sizeof result.end, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, RESULT, 0, 0,
                            NULL, 0, PTL_MAX, PTL_UINT64_T));
        if (rank == 0 && lives) {
            ptl_size_t all = answers + ranks - 1;
            ptl_ct_event_t counted = {.success = all};
            unsigned which;
            if (!works(PtlCTPoll(&told, &all, 1, PATIENCE_MS, &counted, &which)))
                works(PtlCTGet(told, &counted));
            result.missed = all - counted.success;
            answers = counted.success;
            printf("{\"mode\":\"%s\",\"bytes\":%zu,\"ranks\":%zu,\"time_ps\":%" PRIu64 ",\"missed\":%" PRIu64
                   ",\"data_ok\":%s}\n",
                   modes[mode], bytes, ranks, result.end - time, result.missed, verdict(result.missed == 0));
        }
        CHECK(spin_barrier());
    }
}

/* Does broadcasts of one rank after the other, among survivors. */
static void survive(size_t rounds) {
    struct group group;
    uint64_t delivered = 0, wrong = 0, time;
    open_group(&group, (uint32_t)spin_size(), 0);
    for (unsigned round = 0; round < rounds; round++) {
        bool has_come = broadcast(&group, round % group.ranks, round * bytes, round + 1, &time);
        delivered |= (uint64_t)has_come << round;
        spin_host_compute(PAUSE_NS);
        CHECK(spin_barrier());
    }
    ptl_ct_event_t counted;
    ptl_size_t told = 0;
    spin_host_compute(4000000); /* time after which every card gives up undeliverable messages */
    for (unsigned i = 0; i < group.counters && lives; i++)
        if (works(PtlCTGet(group.counter[i], &counted)))
            told += counted.success;
    for (unsigned round = 0; round < rounds; round++)
        wrong += (delivered >> round & 1) && !is_right(round * bytes, round + 1);
    printf("{\"rank\":%u,\"delivered\":\"%" PRIx64 "\",\"told\":%zu,\"wrong\":%" PRIu64 ",\"lives\":%s}\n", rank,
           delivered, (size_t)told, wrong, lives ? "true" : "false");
}

int main(int argc, char **argv) {
    static const char *const links[] = {"one", "both"};
    const char *size = option(argc, argv, "--bytes", usage), *rounds = argument(argc, argv, "--rounds");
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    both = (uint32_t)choice(option_or(argc, argv, "--links", "one"), links, 2, usage);
    size_t number = 1;
    start(RESULT, NULL);
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, DATA, &(ptl_pt_index_t){0}));
    rank = (uint32_t)spin_rank();
    if (!next_number(&size, &bytes) || bytes == 0 || bytes > MAX_BYTES ||
        (rounds != NULL &&
         (!next_number(&rounds, &number) || number == 0 || number > MAX_ROUNDS || number * bytes > MAX_BYTES)))
        fail("--bytes: expected 1 to %d, in all of at most %d rounds", MAX_BYTES, MAX_ROUNDS);
    if (ft_broadcast_packets(bytes, limits.max_payload_size) > FT_BROADCAST_WINDOW)
        fail("--bytes: a message has at most %d packets", FT_BROADCAST_WINDOW);
    segment = mode == SPIN   ? limits.max_payload_size - sizeof(struct ft_broadcast_tag)
              : mode == TREE ? limits.max_payload_size
                             : SEGMENT;
    if (mode == TREE && rounds != NULL && number > 1)
        fail("--rounds: the tree begins at rank 0, for one round");
    message = allocate(MAX_BYTES);
    md = bind_memory(message, MAX_BYTES, 0, PTL_CT_NONE);
    if (rounds != NULL)
        survive(number);
    else
        measure(option(argc, argv, "--ranks", usage));
    fflush(stdout);
    CHECK(spin_barrier());
    return exit_status;
}
