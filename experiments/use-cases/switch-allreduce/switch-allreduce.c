/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce of vectors of integers: in the switches of the network, or by the CPUs of the ranks.
 *
 *   --mode switch     handlers on the switches add (network.switch.handlers); the CPUs send, and wait for totals
 *   --mode ring       the CPUs add, in a ring: reduce-scatter, then all-gather
 *   --mode doubling   the CPUs add, by recursive doubling; needs a power of two ranks
 *   --bytes N,N,…     sizes of the vectors; each is reduced three times, and the last one is measured
 * and perhaps
 *   --piece N         ring, doubling: largest message in bytes; the pieces of a vector are in flight at the same time (16384)
 *   --slots N         switch: chunks in flight (32)
 *
 * Rank 0 prints one JSON object a line: {"mode", "bytes", "time_ps", "data_ok"}. The time runs from a barrier until the last
 * rank has the whole total. The CPUs of ring and doubling are charged for the memory that additions move. Every rank compares
 * its total with a serial sum. A rank without an expected message for 2 ms reports it; then all end. */
#include "../../common/common.h"
#include <handlers/switch-allreduce/switch_allreduce.h>

enum { PT = 3 };                           /* portal table index */
enum { TO_ADD = 1, TO_KEEP, TREE, TIMES }; /* match bits besides those of the library */
enum { WARM_UP = 2, PATIENCE_MS = 2 };

enum mode { SWITCH, RING, DOUBLING, MODES };
static const char *const modes[MODES] = {"switch", "ring", "doubling"};
static const char usage[] = "switch-allreduce --mode switch|ring|doubling --bytes N,N,... [--piece N] [--slots N]";

typedef switch_allreduce_t element;

static enum mode mode;
static int rank, ranks;
static size_t piece_bytes;
static ptl_handle_eq_t eq;
static bool is_broken; /* an expected message did not arrive */

/* Element `i` of a rank's vector. */
static element data_of(int of, size_t i) { return (element)((i * 31 + (size_t)of * 17) % 1000); }

/* Options of an entry that only counts messages. */
static ptl_me_t counts(ptl_handle_ct_t ct) {
    return (ptl_me_t){.options = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE, .ct_handle = ct};
}

/* ---- CPUs: ring and recursive doubling ----------------------------------------------------------------------------- */

/* Steps of the algorithm, and pieces of the data of a step. Data of step s, piece j has s * MOST_PIECES + j as its
 * hdr_data. */
enum { MOST_PIECES = 1 << 10 };
static size_t steps, pieces, block; /* block: bytes that a step sends */
static size_t *next;                /* the step for whose data each piece waits */
static bool *came;                  /* arrival of each step and piece */
static unsigned char *inbox,
    *sums; /* blocks that arrive, by step; vectors that are sent, by step (doubling) or one (ring) */
static ptl_handle_md_t out;

/* The peer that sends data of a step to this rank, or gets it from this rank. */
static int peer(size_t step, bool gets) {
    if (mode == DOUBLING)
        return rank ^ 1 << step;
    return (rank + (gets ? 1 : ranks - 1)) % ranks;
}

/* Which block of the vector a rank sends in a step of the ring. */
static size_t ring_block(int of, size_t step) { return ((size_t)of + 2 * (size_t)ranks - step) % (size_t)ranks; }

static size_t piece_length(size_t piece) {
    return block - piece * piece_bytes < piece_bytes ? block - piece * piece_bytes : piece_bytes;
}

static void send_piece(size_t step, size_t piece, size_t bytes) {
    bool adds = mode == DOUBLING || step < (size_t)ranks - 1;
    size_t of_ring = mode == RING ? ring_block(rank, step) * block : 0;
    size_t from = (mode == DOUBLING ? step * bytes : of_ring) + piece * piece_bytes;
    size_t to = (adds ? step * block : of_ring) + piece * piece_bytes;
    CHECK(PtlPut(out, from, piece_length(piece), PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)peer(step, true)},
                 PT, adds ? TO_ADD : TO_KEEP, to, NULL, step * MOST_PIECES + piece));
}

/* Processes the data of a step: adds it, and forwards the sum. */
static void take_piece(size_t step, size_t piece, size_t bytes) {
    bool adds = mode == DOUBLING || step < (size_t)ranks - 1;
    size_t length = piece_length(piece);
    if (adds) {
        size_t at = mode == RING ? ring_block(peer(step, false), step) * block : step * bytes;
        size_t to = mode == RING ? at : (step + 1) * bytes;
        const element *own = (const element *)(sums + at + piece * piece_bytes);
        const element *other = (const element *)(inbox + step * block + piece * piece_bytes);
        element *sum = (element *)(sums + to + piece * piece_bytes);
        for (size_t i = 0; i < length / sizeof(element); i++)
            sum[i] = own[i] + other[i];
        spin_host_memory(2 * length, length);
    }
    if (step + 1 < steps)
        send_piece(step + 1, piece, bytes);
}

/* Reduces the vector in `sums` by messages between CPUs. Returns where the total is. */
static const element *reduce_by_cpus(size_t bytes) {
    size_t left = steps * pieces;
    for (size_t piece = 0; piece < pieces; piece++) {
        next[piece] = 0;
        send_piece(0, piece, bytes);
    }
    while (left > 0) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which);
        if (rc == PTL_EQ_EMPTY) {
            size_t piece = 0;
            while (next[piece] == steps)
                piece++;
            fprintf(stderr, "rank %d: data of step %zu, piece %zu has not come from rank %d within %d ms\n", rank,
                    next[piece], piece, peer(next[piece], false), PATIENCE_MS);
            is_broken = true;
            break;
        }
        CHECK(rc);
        if (event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK)
            fail("an event of type %d with failure %d", (int)event.type, (int)event.ni_fail_type);
        came[event.hdr_data] = true;
        size_t piece = event.hdr_data % MOST_PIECES;
        while (next[piece] < steps && came[next[piece] * MOST_PIECES + piece]) {
            take_piece(next[piece]++, piece, bytes);
            left--;
        }
    }
    return (const element *)(sums + (mode == DOUBLING ? steps * bytes : 0));
}

/* ---- Switches ------------------------------------------------------------------------------------------------------ */

static struct switch_allreduce_tree tree;
static int slots, used[SWITCH_ALLREDUCE_SLOTS]; /* how many chunks each slot has had */
static ptl_handle_ct_t totals[SWITCH_ALLREDUCE_SLOTS], answered;
static uint32_t answer[SWITCH_ALLREDUCE_CHILDREN / 32];

/* Waits until a counter has counted. Returns whether it has in time. */
static bool await(ptl_handle_ct_t ct, ptl_size_t count) {
    ptl_ct_event_t counted;
    unsigned which;
    int rc = PtlCTPoll(&ct, &count, 1, PATIENCE_MS, &counted, &which);
    if (rc != PTL_OK && rc != PTL_CT_NONE_REACHED)
        fail("PtlCTPoll returned %d", rc);
    return rc == PTL_OK;
}

static void send_to(int which, uint32_t bits, size_t from, size_t bytes, ptl_hdr_data_t header) {
    CHECK(PtlPut(out, from, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)(ranks + which)}, PT, bits, 0,
                 NULL, header));
}

/* Finds the tree on rank 0, which attaches the handlers and sends it to the others. */
static void set_up_switches(size_t most) {
    ptl_handle_ct_t told;
    if (!switch_allreduce_make(&tree))
        fail("no memory for the tree");
    CHECK(PtlCTAlloc(ni, &told));
    CHECK(PtlCTAlloc(ni, &answered));
    append_entry(PT, TREE, tree.table, switch_allreduce_table(&tree), counts(told));
    append_entry(PT, SWITCH_ALLREDUCE_ANSWER, answer, sizeof answer, counts(answered));
    for (int slot = 0; slot < slots; slot++) {
        CHECK(PtlCTAlloc(ni, &totals[slot]));
        append_entry(PT, SWITCH_ALLREDUCE_TOTAL + (ptl_match_bits_t)slot, inbox, most, counts(totals[slot]));
    }
    spin_barrier();
    if (rank == 0) {
        const char *lack = switch_allreduce_find(&tree);
        if (lack != NULL)
            fail("%s", lack);
        int rc = switch_allreduce_attach(&tree, ni, PT, slots);
        if (rc == PTL_NO_SPACE)
            fail("the HPU memory of a switch has no room for %d slots: --slots N", slots);
        CHECK(rc);
        ptl_handle_md_t md = bind_memory(tree.table, switch_allreduce_table(&tree), 0, PTL_CT_NONE);
        for (int other = 1; other < ranks; other++)
            CHECK(PtlPut(md, 0, switch_allreduce_table(&tree), PTL_NO_ACK_REQ,
                         (ptl_process_t){.rank = (ptl_rank_t)other}, PT, TREE, 0, NULL, 0));
    } else if (!await(told, 1)) {
        fail("rank 0 has not told the tree of switches within %d ms", PATIENCE_MS);
    }
}

/* Prints the children that a switch waits for; returns true if there are any. */
static bool tell_missing(int which, int slot) {
    static ptl_size_t asked;
    char missing[8 * SWITCH_ALLREDUCE_CHILDREN] = "";
    bool is_leaf = tree.child_of[ranks + which] >= 0;
    memset(answer, 0, sizeof answer);
    send_to(which, SWITCH_ALLREDUCE_ASK + (uint32_t)slot, 0, 0, 0);
    if (!await(answered, ++asked)) {
        fprintf(stderr, "rank %d: switch %d does not answer\n", rank, which);
        return true;
    }
    if (answer[0] == 0 && answer[1] == 0)
        return false; /* all have arrived, and the sum has left */
    for (int other = 0; other < (is_leaf ? ranks : tree.switches); other++) {
        int number = tree.child_of[is_leaf ? other : ranks + other];
        bool is_child = is_leaf ? tree.leaf[other] == which : number >= 0;
        if (is_child && (answer[number / 32] >> number % 32 & 1) == 0)
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %d", other);
    }
    fprintf(stderr, "rank %d: switch %d has no data from %s%s\n", rank, which, is_leaf ? "rank" : "switch", missing);
    return missing[0] != '\0';
}

static size_t chunk_length(size_t chunk, size_t bytes) {
    return bytes - chunk * piece_bytes < piece_bytes ? bytes - chunk * piece_bytes : piece_bytes;
}

static void send_chunk(size_t chunk, size_t bytes) {
    size_t slot = chunk % (size_t)slots;
    ptl_hdr_data_t header = switch_allreduce_header((uint32_t)(chunk * piece_bytes), (uint32_t)tree.child_of[rank],
                                                    (uint32_t)used[slot]++ & 1);
    send_to(tree.leaf[rank], SWITCH_ALLREDUCE_UP + (uint32_t)slot, chunk * piece_bytes, chunk_length(chunk, bytes),
            header);
}

/* Reduces the vector in `sums` in the switches. Returns where the total is. */
static const element *reduce_in_switches(size_t bytes) {
    size_t chunks = (bytes + piece_bytes - 1) / piece_bytes;
    for (size_t chunk = 0; chunk < chunks && chunk < (size_t)slots; chunk++)
        send_chunk(chunk, bytes);
    for (size_t chunk = 0; chunk < chunks; chunk++) {
        size_t slot = chunk % (size_t)slots;
        if (!await(totals[slot], (ptl_size_t)used[slot])) {
            fprintf(stderr, "rank %d: the total of chunk %zu has not come within %d ms\n", rank, chunk, PATIENCE_MS);
            if (!tell_missing(tree.leaf[rank], (int)slot) && tree.table[0] != tree.leaf[rank])
                tell_missing(tree.table[0], (int)slot);
            is_broken = true;
            break;
        }
        if (chunk + (size_t)slots < chunks)
            send_chunk(chunk + (size_t)slots, bytes);
    }
    return (const element *)inbox;
}

/* ---- Measurement --------------------------------------------------------------------------------------------------- */

static uint64_t *ends; /* when each rank has its total (rank 0) */

/* Reduces a vector. Returns the time until the last rank has the total, on rank 0 only. */
static uint64_t reduce(size_t bytes, bool *is_right) {
    static ptl_handle_ct_t all;
    static ptl_size_t counted;
    static uint64_t own;
    static ptl_handle_md_t md;
    if (ends == NULL) {
        ends = (uint64_t *)allocate((size_t)ranks * sizeof *ends);
        CHECK(PtlCTAlloc(ni, &all));
        append_entry(PT, TIMES, ends, (size_t)ranks * sizeof *ends, counts(all));
        md = bind_memory(&own, sizeof own, 0, PTL_CT_NONE);
        spin_barrier();
    }
    for (size_t i = 0; i < bytes / sizeof(element); i++)
        ((element *)sums)[i] = data_of(rank, i);
    spin_barrier();
    uint64_t start = spin_time_ps();
    const element *total = mode == SWITCH ? reduce_in_switches(bytes) : reduce_by_cpus(bytes);
    own = spin_time_ps() - start;
    *is_right = !is_broken;
    for (size_t i = 0; i < bytes / sizeof(element) && *is_right; i++) {
        element sum = 0;
        for (int other = 0; other < ranks; other++)
            sum += data_of(other, i);
        *is_right = total[i] == sum;
    }
    if (!*is_right && !is_broken)
        fprintf(stderr, "rank %d: the total of %zu bytes is wrong\n", rank, bytes);
    CHECK(PtlPut(md, 0, sizeof own, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, PT, TIMES,
                 (ptl_size_t)rank * sizeof own, NULL, 0));
    if (rank == 0 && !await(all, counted += (ptl_size_t)ranks) && !is_broken) {
        fprintf(stderr, "rank 0: not all ranks have their totals within %d ms\n", PATIENCE_MS);
        is_broken = true;
    }
    uint64_t last = 0;
    for (int other = 0; other < ranks; other++)
        last = ends[other] > last ? ends[other] : last;
    spin_barrier();
    return last;
}

int main(int argc, char **argv) {
    size_t most = 0, bytes;
    bool is_right = true;
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    for (const char *list = option(argc, argv, "--bytes", usage); next_number(&list, &bytes);)
        most = bytes > most ? bytes : most;
    slots = atoi(option_or(argc, argv, "--slots", "32"));
    start(PT, mode == SWITCH ? NULL : &eq);
    rank = spin_rank();
    ranks = spin_size();
    size_t cut = strtoull(option_or(argc, argv, "--piece", "16384"), NULL, 10);
    piece_bytes = mode == SWITCH ? limits.max_payload_size : cut;
    if (piece_bytes > SWITCH_ALLREDUCE_CHUNK && mode == SWITCH)
        piece_bytes = SWITCH_ALLREDUCE_CHUNK;
    if (slots < 1 || slots > SWITCH_ALLREDUCE_SLOTS || piece_bytes == 0 || piece_bytes % sizeof(element) != 0)
        fail("--slots is 1 to %d, --piece a multiple of %zu", SWITCH_ALLREDUCE_SLOTS, sizeof(element));
    if (ranks == 1 || (mode == DOUBLING && (ranks & (ranks - 1)) != 0))
        fail("%s needs %s ranks", modes[mode], mode == DOUBLING ? "a power of two" : "at least 2");
    steps = mode == RING ? 2 * (size_t)ranks - 2 : 0;
    while (mode == DOUBLING && 1 << steps < ranks)
        steps++;
    sums = (unsigned char *)allocate((mode == DOUBLING ? steps + 1 : 1) * most);
    inbox = (unsigned char *)allocate((mode == DOUBLING ? steps : 1) * most);
    came = (bool *)allocate((steps + 1) * MOST_PIECES);
    next = (size_t *)allocate(MOST_PIECES * sizeof *next);
    out = bind_memory(sums, (mode == DOUBLING ? steps + 1 : 1) * most, 0, PTL_CT_NONE);
    if (mode == SWITCH) {
        set_up_switches(most);
    } else {
        append_entry(PT, TO_ADD, inbox, (mode == DOUBLING ? steps : 1) * most,
                     (ptl_me_t){.options = PTL_ME_EVENT_LINK_DISABLE, .ct_handle = PTL_CT_NONE});
        append_entry(PT, TO_KEEP, sums, most,
                     (ptl_me_t){.options = PTL_ME_EVENT_LINK_DISABLE, .ct_handle = PTL_CT_NONE});
    }
    for (const char *list = option(argc, argv, "--bytes", usage); next_number(&list, &bytes) && !is_broken;) {
        block = mode == RING ? bytes / (size_t)ranks : bytes;
        pieces = (block + piece_bytes - 1) / piece_bytes;
        if (bytes == 0 || bytes % ((mode == RING ? (size_t)ranks : 1) * sizeof(element)) != 0 || pieces > MOST_PIECES)
            fail("%zu bytes cannot be divided among the ranks", bytes);
        uint64_t time = 0;
        bool all_right = true;
        for (int round = 0; round <= WARM_UP && !is_broken; round++) {
            memset(came, 0, (steps + 1) * MOST_PIECES);
            time = reduce(bytes, &is_right);
            all_right = all_right && is_right;
        }
        if (rank == 0)
            printf("{\"mode\": \"%s\", \"bytes\": %zu, \"time_ps\": %llu, \"data_ok\": %s}\n", modes[mode], bytes,
                   (unsigned long long)time, verdict(all_right && !is_broken));
        is_broken = is_broken || !all_right;
    }
    spin_barrier();
    finish();
    return is_broken;
}
