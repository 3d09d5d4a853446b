/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast (sPIN §4.4.3, App. C.3.3): rank 0 sends a message to ranks 1 … P-1 over a binomial tree.
 *
 *   --mode rdma       a rank's CPU sees the message and posts it to the rank's children
 *   --mode triggered  a rank's card sends it from host memory when it has arrived (Portals 4 triggered puts)
 *   --mode rdma-segments, triggered-segments
 *                     the same, but in segments: the first child gets each when it has arrived, then the next child
 *   --mode store      handlers send it: from the card if it is one packet, else from host memory
 *   --mode stream     payload handlers forward every packet from the card
 *   --mode listing    the same, by the handlers of the paper's listing
 *   --bytes N         size of the message
 *   --ranks P,P,…     numbers of ranks, powers of two up to that of the job; ranks beyond wait
 *
 * After `--ranks`, `--mode M --bytes N` may be repeated: starting many ranks takes longer than a broadcast.
 * Prints a line with a JSON object for each of these and each number of ranks: {"mode", "bytes", "ranks", "forwarding",
 * "time_ps", "triggered_puts", "hpu_bytes", "data_ok"}. The time runs from the root's start until the last rank's CPU sees
 * that the message is in its memory. `forwarding` is the number of ranks that forward on the longest path; the next two are
 * the most triggered puts and bytes of HPU memory that a card needs. */
#include "../../common/common.h"
#include "listing.h"
#include <handlers/broadcast/broadcast.h>

enum { RESULT = 3, DATA = 4 }; /* portal table indices: one for results, and from DATA on one for each curve */
enum { TAG = 1 << 24 };        /* match bits; smaller ones are those of packets */
enum { MAX_BYTES = 1 << 20 };  /* below TAG */
enum { WARM_UP = 2 };          /* broadcasts after which the branch predictors of the HPUs have settled */

enum { SEGMENT = 8192 }; /* bytes of a segment */

enum mode { RDMA, TRIGGERED, RDMA_SEGMENTS, TRIGGERED_SEGMENTS, STORE, STREAM, LISTING, MODES };
static const char *const modes[MODES] = {"rdma",  "triggered", "rdma-segments", "triggered-segments",
                                         "store", "stream",    "listing"};
static const char usage[] = "broadcast --ranks P[,P...] --mode MODE --bytes N [--mode ...]; MODE is one of "
                            "rdma|triggered|rdma-segments|triggered-segments|store|stream|listing";

static uint32_t rank;
static unsigned char *message;
static ptl_handle_md_t md;
static ptl_handle_ct_t told; /* rank 0: when another rank had the message */
static ptl_size_t answers;
/* Rank 0: when the last rank had the message, and the most that a card needed. Elsewhere: the same of this rank. */
static struct result {
    uint64_t end, triggered_puts, hpu_bytes;
} last;
static ptl_handle_md_t last_md;

/* The name of the curve that is measured. */
static enum mode mode;
static size_t bytes;
static ptl_pt_index_t data;
static ptl_handle_ct_t arrived; /* bytes of the message */
static ptl_size_t total;        /* bytes that have arrived */

/* Entries for the message, and their HPU memory. */
static struct entry {
    ptl_handle_me_t me;
    ptl_hpu_md_h hpu_memory;
} *entries;
static size_t entry_count;

/* Appends the entries for the message in a tree of `ranks` ranks: one, or when packets are streamed one for each
 * packet. */
static void expect_message(uint32_t ranks) {
    struct broadcast state = {.rank = rank,
                              .ranks = ranks,
                              .reach = broadcast_reach(rank, ranks),
                              .max_packet = (uint32_t)limits.max_payload_size,
                              .streaming = mode == STREAM};
    struct listing listing = {.my_rank = rank, .p = ranks};
    size_t step = mode == STREAM || mode == LISTING ? limits.max_payload_size : bytes;
    for (size_t offset = 0; offset < bytes; offset += step) {
        ptl_me_t me = {.ct_handle = arrived, .options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
        state.bits = listing.bits = TAG + offset;
        if (mode == LISTING)
            CHECK(listing_attach(ni, &me, &listing));
        else if (mode == STORE || mode == STREAM)
            CHECK(broadcast_attach(ni, &me, &state, broadcast_payload));
        if (mode >= STORE)
            last.hpu_bytes += mode == LISTING ? sizeof listing : sizeof state;
        ptl_handle_me_t handle = append_entry(data, state.bits, message + offset, bytes - offset, me);
        entries[entry_count++] = (struct entry){.me = handle, .hpu_memory = me.hpu_memory};
    }
}

/* Removes the entries for the message. */
static void expect_no_message(void) {
    for (size_t i = 0; i < entry_count; i++) {
        CHECK(PtlMEUnlink(entries[i].me));
        if (mode >= STORE)
            CHECK(PtlHPUFreeMem(&entries[i].hpu_memory));
    }
    entry_count = 0;
}

/* Bytes of the part of the message from `offset` on that CPUs and triggered puts forward at once. */
static size_t part_at(size_t offset) {
    size_t part = mode == RDMA_SEGMENTS || mode == TRIGGERED_SEGMENTS ? SEGMENT : bytes, left = bytes - offset;
    return left < part ? left : part;
}

/* Sends the part of the message from `offset` on to the child at a distance; with a threshold, once that many bytes have
 * arrived. */
static void to_child(uint32_t ranks, uint32_t distance, size_t offset, ptl_size_t threshold) {
    ptl_process_t child = broadcast_child(rank, ranks, 0, distance);
    size_t length = part_at(offset);
    if (threshold == 0)
        CHECK(PtlPut(md, offset, length, PTL_NO_ACK_REQ, child, data, TAG, offset, NULL, 0));
    else {
        CHECK(
            PtlTriggeredPut(md, offset, length, PTL_NO_ACK_REQ, child, data, TAG, offset, NULL, 0, arrived, threshold));
        last.triggered_puts++;
    }
}

/* Sends the message to the children from distance `from` down, one after the other. */
static void to_children(uint32_t ranks, uint32_t from, ptl_size_t threshold) {
    for (uint32_t distance = from; distance > 0; distance /= 2)
        for (size_t offset = 0; offset < bytes; offset += part_at(offset))
            to_child(ranks, distance, offset, threshold);
}

/* Does the root's part; returns the time of its start. */
static uint64_t lead(uint32_t ranks, unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        message[i] = pattern(i, seed);
    CHECK(spin_barrier()); /* all are ready */
    uint64_t start = spin_time_ps();
    to_children(ranks, broadcast_reach(rank, ranks), 0);
    return start;
}

/* Does the part of the other ranks; returns the time at which the message had arrived. */
static uint64_t follow(uint32_t ranks, unsigned seed) {
    ptl_ct_event_t counted;
    uint64_t end = 0;
    uint32_t reach = broadcast_reach(rank, ranks);
    bool posts = mode == RDMA || mode == RDMA_SEGMENTS, triggered = mode == TRIGGERED || mode == TRIGGERED_SEGMENTS;
    memset(message, 0, bytes);
    for (size_t offset = 0; offset < bytes && triggered && reach > 0; offset += part_at(offset))
        to_child(ranks, reach, offset, total + offset + part_at(offset));
    if (triggered)
        to_children(ranks, reach / 2, total + bytes);
    CHECK(spin_barrier());
    for (size_t offset = 0, part; offset < bytes; offset += part) {
        part = posts ? part_at(offset) : bytes;
        CHECK(PtlCTWait(arrived, total + offset + part, &counted));
        end = spin_time_ps();
        if (posts && reach > 0)
            to_child(ranks, reach, offset, 0);
    }
    if (posts)
        to_children(ranks, reach / 2, 0);
    total += bytes;
    if (counted.success != total || counted.failure != 0)
        fail("%zu and %zu arrivals, expected %zu", (size_t)counted.success, (size_t)counted.failure, (size_t)total);
    for (size_t i = 0; i < bytes; i++)
        if (message[i] != pattern(i, seed))
            fail("wrong byte %zu of %zu in a tree of %u", i, bytes, ranks);
    return end;
}

/* Does one broadcast; returns the time at which the root started, or at which this rank had the message. */
static uint64_t broadcast(uint32_t ranks) {
    static unsigned seed;
    seed++;
    CHECK(spin_barrier()); /* the last message has reached all ranks, so no rank still reads or sends it */
    last.triggered_puts = 0;
    if (rank == 0)
        return lead(ranks, seed);
    if (rank < ranks)
        return follow(ranks, seed);
    CHECK(spin_barrier());
    return 0;
}

/* Measures trees of all sizes in `list`, with one mode and message size. */
static void measure(const char *list) {
    size_t ranks;
    total = 0;
    last.hpu_bytes = 0;
    CHECK(PtlCTAlloc(ni, &arrived));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, data, &data));
    if (rank > 0 && mode != LISTING)
        expect_message((uint32_t)spin_size());
    for (int i = 0; i < WARM_UP && (mode == STORE || mode == STREAM); i++)
        broadcast((uint32_t)spin_size());
    while (next_number(&list, &ranks)) {
        if (ranks < 2 || ranks > (size_t)spin_size() || (ranks & (ranks - 1)) != 0)
            fail("--ranks: %zu is no power of two from 2 to the %d ranks of the job", ranks, spin_size());
        /* The listing's loop depends on the number of ranks. */
        if (rank > 0 && rank < ranks && mode == LISTING)
            expect_message((uint32_t)ranks);
        for (int i = 0; i < WARM_UP && mode == LISTING; i++)
            broadcast((uint32_t)ranks);
        uint32_t forwarding = 0;
        uint64_t begun = last.end = broadcast((uint32_t)ranks);
        CHECK(spin_barrier());
        /* The root's card determines the latest time of all ranks, after the measurement. */
        if (rank > 0 && rank < ranks)
            CHECK(PtlAtomic(last_md, 0, sizeof last, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, RESULT, 0, 0, NULL, 0,
                            PTL_MAX, PTL_UINT64_T));
        if (rank == 0) {
            await_count(told, answers += ranks - 1);
            while (4u << forwarding <= ranks)
                forwarding++;
            printf("{\"mode\":\"%s\",\"bytes\":%zu,\"ranks\":%zu,\"forwarding\":%u,\"time_ps\":%llu,"
                   "\"triggered_puts\":%llu,\"hpu_bytes\":%llu,\"data_ok\":true}\n",
                   modes[mode], bytes, ranks, forwarding, (unsigned long long)(last.end - begun),
                   (unsigned long long)last.triggered_puts, (unsigned long long)last.hpu_bytes);
        }
        if (mode == LISTING) {
            CHECK(spin_barrier()); /* the root has the results and no handler uses an entry */
            expect_no_message();
            last.hpu_bytes = 0;
        }
    }
    entry_count = 0;
    CHECK(spin_barrier()); /* no rank leaves with data that others still expect */
}

int main(int argc, char **argv) {
    const char *list = option(argc, argv, "--ranks", usage);
    start(RESULT, NULL);
    rank = (uint32_t)spin_rank();
    message = allocate(MAX_BYTES);
    entries = allocate((MAX_BYTES / limits.max_payload_size + 1) * sizeof *entries);
    md = bind_memory(message, MAX_BYTES, 0, PTL_CT_NONE);
    last_md = bind_memory(&last, sizeof last, 0, PTL_CT_NONE);
    CHECK(PtlCTAlloc(ni, &told));
    if (rank == 0)
        append_entry(RESULT, 0, &last, sizeof last, (ptl_me_t){.ct_handle = told, .hpu_memory = PTL_INVALID_HANDLE});
    data = DATA;
    for (int i = 3; i + 3 < argc; i += 4, data++) {
        const char *size = option(argc - i + 1, argv + i - 1, "--bytes", usage);
        mode = (enum mode)choice(option(argc - i + 1, argv + i - 1, "--mode", usage), modes, MODES, usage);
        if (!next_number(&size, &bytes) || bytes == 0 || bytes > MAX_BYTES)
            fail("--bytes: expected 1 to %d", MAX_BYTES);
        measure(list);
    }
    finish();
    return 0;
}
