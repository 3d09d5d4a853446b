/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first search and shortest paths on Kronecker graphs whose vertices are distributed (sPIN §5.4).
 *
 *   --kernel bfs|sssp
 *   --mode rdma     large messages of updates are deposited in the memory of their owner, whose CPU executes them
 *   --mode atomic   every update is an atomic minimum in the memory of its owner (Portals 4), which reads all words to find
 *                   the changes
 *   --mode spin     handlers of the owner's card execute the conditional updates; its CPU gets only effective ones
 *   --scales S,S,…  2^S vertices
 * and perhaps
 *   --state card|host  place of the vertices' state (spin): memory of the card, or by DMA memory of the host, which has room
 *                   for graphs of any size
 *   --cache N       with --state host, the card caches bounds of 2^N vertices
 *   --filter yes    the sender omits updates that an earlier one makes ineffective
 *   --look-ns N     time of a core to look up the latest update of a vertex (filter); 0 by default
 *   --batch N       updates of a message; for handlers at most a packet
 *   --window N      messages from a rank to a card that may be unacknowledged (spin); by default as many as the packets of
 *                   all ranks fit into the card's packet buffer
 *   --ring N        places for updates in the ring of a card (spin); by default one for each edge of the owner
 *   --cores N       cores that share the work of a rank's CPU ideally
 *   --edge-ns N, --update-ns N   times of a core to follow an edge, and to execute an update in its cache
 *   --delta N       width of the distances that are settled together (sssp)
 *   --root N        the search begins at the Nth vertex with an edge
 *
 * Prints one JSON object a line: {"mode", "scale", …, "time_ps", "data_ok"}. The time runs from the first vertex until all ranks
 * know that no work is left. Rank 0 then collects all results and compares them with a serial run. */
#include "kronecker.h"

#include "../../common/common.h"
#include <handlers/graph/graph.h>

enum { PT = 3, PATIENCE_MS = 20 };
enum { BUFFERED_BYTES = 960 * 1024 }; /* part of a card's packet buffer shared by all senders */
enum {
    UPDATES = 10,
    NEWS = 20,
    RESULTS = 30
}; /* match bits; those of news are NEWS + 2 * step + parity of the round */

enum mode { RDMA, ATOMIC, SPIN, MODES };
static const char *const modes[MODES] = {"rdma", "atomic", "spin"};
enum kernel { BFS, SSSP, KERNELS };
static const char *const kernels[KERNELS] = {"bfs", "sssp"};
static const char usage[] =
    "graph --kernel bfs|sssp --mode rdma|atomic|spin --scales S,S,... [--filter yes|no] [--state card|host] "
    "[--look-ns N] [--cache N] [--batch N] [--window N] [--ring N] [--cores N] [--edge-ns N] [--update-ns N] "
    "[--delta N] [--root N]";

/* The two steps that end a round: every rank announces its number of sent messages (with rdma in the last message),
 * and then its remaining work. */
enum step { SENT, LEFT, STEPS };

struct news {
    uint32_t round;    /* from 1 on, so that zeros mean no message */
    uint32_t messages; /* SENT: to the receiver, in all rounds */
    uint32_t left;     /* LEFT: vertices whose edges are to be followed */
    uint32_t nearest;  /* LEFT: the least distance of them */
};

/* State of a vertex. */
struct vertex {
    uint32_t distance; /* levels, or the length of the shortest path */
    uint32_t parent;   /* breadth-first search */
};

/* Counters of a rank, collected with the results. */
struct work {
    uint64_t updates; /* that it has sent */
    uint64_t passed;  /* that its CPU has received */
};

static enum mode mode;
static enum kernel kernel;
static bool filter;
static enum place { ON_CARD, IN_HOST } place; /* place of the handlers' state */
static const char *const places[] = {"card", "host"};
static size_t batch, window_wanted, ring_updates, cores, edge_ns, update_ns, look_ns, delta, root_number, cache_bits;
static uint32_t rank, ranks;
static size_t message_updates, window; /* updates of a message; messages to a card that may be unacknowledged */

static struct kronecker_rows rows;
static struct vertex *vertices;
static uint32_t *list, *next_list, listed, next_listed; /* vertices whose edges are followed in this round, and later */
static uint8_t *is_listed;
static uint32_t *best_sent; /* of each vertex of the graph: the least distance that this rank has sent */
static uint32_t round_number;
static struct work work;

/* For each rank: updates to it, and where updates from it arrive. */
static struct peer {
    struct graph_update *out, *in;
    uint32_t filled, flushed; /* updates in `out`, and sent ones of these */
    uint32_t messages;        /* messages to it, in all rounds; rdma: in this one */
    ptl_handle_md_t md;
    ptl_handle_ct_t acks;
} *peers;

static ptl_handle_eq_t arrivals;
static ptl_handle_ct_t updates_made, results_arrived, news_arrived[STEPS][2];
static struct news *news[STEPS][2], *own_news;
static ptl_handle_md_t news_md;
static struct graph_ring *ring;
static uint32_t ring_capacity;
static uint64_t *words; /* atomic: distance << 32 | parent; with a state in host memory those of graph_words */
static uint32_t messages_made, messages_expected, sources_done; /* rdma, in this round */

/* ---- Work of the CPU ------------------------------------------------------------------------------------------- */

static uint64_t edges_followed, updates_seen, looks, bytes_read, bytes_written; /* that are not charged yet */

/* Charges the CPU for its work since the last call. Its work overlaps with its accesses to memory. */
static void charge(void) {
    uint64_t begin = spin_time_ps();
    if (bytes_read + bytes_written > 0)
        spin_host_memory(bytes_read, bytes_written);
    uint64_t ns = (edges_followed * edge_ns + updates_seen * update_ns + looks * look_ns) / cores,
             passed = (spin_time_ps() - begin) / 1000;
    if (ns > passed)
        spin_host_compute(ns - passed);
    edges_followed = updates_seen = looks = bytes_read = bytes_written = 0;
}

static uint32_t distance_of(uint32_t vertex) { return vertices[vertex].distance; }

/* Makes an update of an own vertex, if it changes something. */
static void apply(uint32_t vertex, uint32_t distance, uint32_t parent) {
    updates_seen++;
    if (vertex >= rows.vertices)
        fail("an update of vertex %u of %u", vertex, rows.vertices);
    if (distance >= vertices[vertex].distance)
        return;
    vertices[vertex] = (struct vertex){distance, parent};
    if (!is_listed[vertex])
        next_list[next_listed++] = vertex;
    is_listed[vertex] = 1;
}

/* Makes an update along an edge between own vertices. When handlers change the same words, one atomic operation decides
 * whether it is theirs or the CPU's that changes something. */
static void apply_own(uint32_t vertex, uint32_t distance, uint32_t parent) {
    if (mode == SPIN && place == IN_HOST &&
        !graph_change(kernel == BFS, &words[vertex], kernel == BFS ? parent : distance))
        updates_seen++;
    else
        apply(vertex, distance, parent);
}

/* Executes updates of other ranks. */
static void apply_update(struct graph_update update) {
    work.passed++;
    if (kernel == BFS)
        apply(update.vertex, round_number, update.value);
    else
        apply(update.vertex, update.value, 0);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

/* Makes a call that fails only when the card of this rank is dead. */
#define SEND(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != PTL_OK)                                                                                          \
            fail("round %u: the card of this rank is dead", round_number);                                             \
    } while (0)

/* Waits until `ct` has counted `count`; returns false when that takes too long or when something has failed. */
static bool await(ptl_handle_ct_t ct, ptl_size_t count) {
    ptl_ct_event_t event;
    unsigned which;
    int rc = PtlCTPoll(&ct, &count, 1, PATIENCE_MS, &event, &which);
    if (rc == PTL_CT_NONE_REACHED)
        return false;
    if (rc == PTL_FAIL)
        fail("round %u: the card of this rank is dead", round_number);
    CHECK(rc);
    return event.failure == 0;
}

/* ---- Updates to other ranks -------------------------------------------------------------------------------------- */

/* Executes the updates of arrived messages (rdma), without waiting if `wait` is false; returns true if there was one. */
static bool receive(bool wait) {
    ptl_event_t event;
    unsigned which;
    int rc = wait ? PtlEQPoll(&arrivals, 1, PATIENCE_MS, &event, &which) : PtlEQGet(arrivals, &event);
    if (rc == PTL_EQ_EMPTY)
        return false;
    if (rc == PTL_EQ_DROPPED)
        fail("round %u: more messages arrived than the event queue has room for: use larger batches", round_number);
    if (rc == PTL_FAIL)
        fail("round %u: the card of this rank is dead", round_number);
    CHECK(rc);
    if (event.ni_fail_type != PTL_NI_OK)
        fail("round %u: updates from rank %u were lost: failure %d", round_number, event.initiator.rank,
             event.ni_fail_type);
    const struct graph_update *updates = peers[event.initiator.rank].in + event.remote_offset / sizeof *updates;
    for (size_t i = 0; i < event.mlength / sizeof *updates; i++)
        apply_update(updates[i]);
    bytes_read += event.mlength;
    messages_made++;
    messages_expected += (uint32_t)event.hdr_data;
    sources_done += event.hdr_data != 0;
    charge();
    return true;
}

/* Takes the updates that handlers passed (spin). */
static void take_passed(void) {
    struct graph_update update;
    while (graph_take(ring, ring_capacity, &update)) {
        apply_update(update);
        bytes_read += sizeof update;
    }
}

/* Sends the remaining updates to a rank. With rdma the last message of a round has the number of messages. */
static void flush(uint32_t to, bool is_last) {
    struct peer *peer = &peers[to];
    size_t bytes = (peer->filled - peer->flushed) * sizeof *peer->out, at = peer->flushed * sizeof *peer->out;
    ptl_process_t target = {.rank = to};
    is_last = is_last && mode == RDMA && to != rank;
    if (bytes == 0 && !is_last)
        return;
    charge();
    if (mode == SPIN && peer->messages >= window && !await(peer->acks, peer->messages - window + 1))
        fail("round %u: rank %u does not take updates: its results are lost", round_number, to);
    SEND(PtlPut(peer->md, at, bytes, mode == SPIN ? PTL_CT_ACK_REQ : PTL_NO_ACK_REQ, target, PT, UPDATES,
                mode == SPIN ? 0 : at, NULL, is_last ? peer->messages + 1 : 0));
    peer->messages++;
    peer->flushed = peer->filled;
    while (mode == RDMA && receive(false)) {
    }
    if (mode == SPIN)
        take_passed();
}

/* Changes the word of a vertex of another rank (atomic). */
static void minimize(uint32_t to, uint32_t vertex, uint32_t distance, uint32_t parent) {
    struct peer *peer = &peers[to];
    uint64_t *word = (uint64_t *)peer->out + peer->filled++;
    *word = (uint64_t)distance << 32 | parent;
    SEND(PtlAtomic(peer->md, (peer->filled - 1) * sizeof *word, sizeof *word, PTL_CT_ACK_REQ,
                   (ptl_process_t){.rank = to}, PT, UPDATES, vertex * sizeof *word, NULL, 0, PTL_MIN, PTL_UINT64_T));
    peer->messages++;
}

/* Follows the edges of an own vertex. */
static void follow(uint32_t vertex) {
    const uint32_t name = vertex * ranks + rank;
    for (uint32_t i = rows.begin[vertex]; i < rows.begin[vertex + 1]; i++) {
        uint32_t to = rows.to[i], owner = to % ranks;
        uint32_t distance = kernel == BFS ? round_number : distance_of(vertex) + rows.weight[i];
        edges_followed++;
        bytes_read += sizeof *rows.to + (kernel == SSSP ? sizeof *rows.weight : 0);
        if (owner == rank) {
            apply_own(to / ranks, distance, name);
            continue;
        }
        if (filter) {
            looks++;
            if (best_sent[to] <= distance)
                continue;
            best_sent[to] = distance;
        }
        work.updates++;
        bytes_written += sizeof(struct graph_update);
        if (mode == ATOMIC) {
            minimize(owner, to / ranks, distance, name);
            continue;
        }
        struct peer *peer = &peers[owner];
        peer->out[peer->filled++] = (struct graph_update){to / ranks, kernel == BFS ? name : distance};
        if (peer->filled - peer->flushed == message_updates)
            flush(owner, false);
    }
    if (mode == ATOMIC)
        charge();
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------ */

/* Sends a number to every other rank and waits for theirs; returns the array of all ranks' numbers. */
static const struct news *exchange(enum step step, struct news mine) {
    unsigned parity = round_number % 2;
    struct news *all = news[step][parity];
    mine.round = round_number;
    for (uint32_t to = 0; to < ranks; to++) {
        struct news *out = &own_news[(parity * STEPS + step) * ranks + to];
        *out = mine;
        if (step == SENT)
            out->messages = peers[to].messages;
        if (to == rank)
            all[rank] = *out;
        else
            SEND(PtlPut(news_md, (size_t)((uint8_t *)out - (uint8_t *)own_news), sizeof *out, PTL_NO_ACK_REQ,
                        (ptl_process_t){.rank = to}, PT, NEWS + 2 * step + parity, rank * sizeof *out, NULL, 0));
    }
    if (!await(news_arrived[step][parity], (ptl_size_t)(ranks - 1) * ((round_number + 1) / 2)))
        for (uint32_t from = 0; from < ranks; from++)
            if (all[from].round != round_number)
                fail("round %u: rank %u is silent: the results of its vertices are lost", round_number, from);
    return all;
}

/* Waits until all updates of this round from other ranks are made; the CPU makes those that are left to it. */
static void finish_updates(void) {
    uint32_t sent = 0;
    if (mode == ATOMIC)
        for (uint32_t to = 0; to < ranks; to++)
            if (to != rank && !await(peers[to].acks, peers[to].messages))
                fail("round %u: rank %u does not take updates: its results are lost", round_number, to);
    const struct news *all = mode == RDMA ? NULL : exchange(SENT, (struct news){0});
    for (uint32_t from = 0; from < ranks && all != NULL; from++)
        sent += from == rank ? 0 : all[from].messages;
    while (mode == RDMA && (sources_done < ranks - 1 || messages_made < messages_expected))
        if (!receive(true))
            fail("round %u: updates from %u of %u ranks are missing: the results of their vertices are lost",
                 round_number, ranks - 1 - sources_done, ranks - 1);
    if (mode == SPIN && !await(updates_made, sent))
        fail("round %u: updates were lost: the ring of %u is full (--ring), or packets were dropped", round_number,
             ring_capacity);
    if (mode == SPIN)
        take_passed();
    for (uint32_t i = 0; mode == ATOMIC && i < rows.vertices; i++)
        if (words[i] >> 32 < vertices[i].distance) {
            work.passed++;
            apply(i, (uint32_t)(words[i] >> 32), (uint32_t)words[i]);
        }
    bytes_read += mode == ATOMIC ? rows.vertices * sizeof *words : 0;
    charge();
    for (uint32_t to = 0; to < ranks; to++)
        peers[to].filled = peers[to].flushed = 0;
    for (uint32_t to = 0; to < ranks && mode == RDMA; to++)
        peers[to].messages = 0;
    messages_made = messages_expected = sources_done = 0;
}

/* Follows the edges of vertices nearer than `limit`; keeps the others for later. */
static void follow_nearer(uint32_t limit) {
    uint32_t *swapped = list;
    list = next_list;
    next_list = swapped;
    listed = next_listed;
    next_listed = 0;
    for (uint32_t i = 0; i < listed; i++) {
        uint32_t vertex = list[i];
        if (distance_of(vertex) >= limit) {
            next_list[next_listed++] = vertex;
            continue;
        }
        is_listed[vertex] = 0;
        follow(vertex);
    }
    for (uint32_t to = 0; to < ranks && mode != ATOMIC; to++)
        flush(to, true);
    charge();
}

/* Searches from the vertex `root`; returns when no rank has work left. */
static void search(uint32_t root) {
    uint32_t limit = kernel == BFS ? GRAPH_NONE : (uint32_t)delta;
    round_number = 0;
    if (root % ranks == rank)
        apply_own(root / ranks, 0, root);
    for (uint32_t left = 1; left > 0;) {
        round_number++;
        follow_nearer(limit);
        finish_updates();
        struct news mine = {.left = next_listed, .nearest = GRAPH_NONE};
        for (uint32_t i = 0; i < next_listed; i++)
            mine.nearest = distance_of(next_list[i]) < mine.nearest ? distance_of(next_list[i]) : mine.nearest;
        const struct news *all = exchange(LEFT, mine);
        uint32_t nearest = GRAPH_NONE;
        left = 0;
        for (uint32_t from = 0; from < ranks; from++) {
            left += all[from].left;
            nearest = all[from].nearest < nearest ? all[from].nearest : nearest;
        }
        if (kernel == SSSP && nearest >= limit)
            limit = nearest + (uint32_t)delta;
    }
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* The distances of all vertices from `root`, by a plain queue: a vertex enters it whenever a shorter path to it is found. */
static uint32_t *serial_distances(const struct kronecker_rows *graph, uint32_t root) {
    uint32_t count = graph->vertices, *distances = allocate(count * sizeof *distances), *queue, first = 0, queued = 1;
    uint8_t *is_queued = allocate(count);
    queue = allocate(count * sizeof *queue);
    memset(distances, 0xff, count * sizeof *distances);
    distances[root] = 0;
    for (queue[0] = root; queued > 0; queued--, first = (first + 1) % count) {
        uint32_t vertex = queue[first];
        is_queued[vertex] = 0;
        for (uint32_t i = graph->begin[vertex]; i < graph->begin[vertex + 1]; i++) {
            uint32_t to = graph->to[i], distance = distances[vertex] + (kernel == BFS ? 1 : graph->weight[i]);
            if (distance >= distances[to])
                continue;
            distances[to] = distance;
            if (!is_queued[to])
                queue[(first + queued++) % count] = to;
            is_queued[to] = 1;
        }
    }
    free(queue);
    free(is_queued);
    return distances;
}

static bool are_neighbours(const struct kronecker_rows *graph, uint32_t one, uint32_t other) {
    for (uint32_t i = graph->begin[one]; i < graph->begin[one + 1]; i++)
        if (graph->to[i] == other)
            return true;
    return false;
}

/* Compares all results with a serial run; returns the number of edges of the vertices that were reached. */
static uint64_t check(const struct vertex *results, uint32_t stride, const struct kronecker_rows *graph,
                      uint32_t root) {
    uint32_t *distances = serial_distances(graph, root);
    uint64_t edges = 0;
    for (uint32_t i = 0; i < graph->vertices; i++) {
        const struct vertex *found = &results[i % ranks * stride + i / ranks];
        if (found->distance != distances[i])
            fail("the distance of vertex %u is %u, not %u", i, found->distance, distances[i]);
        if (distances[i] == GRAPH_NONE)
            continue;
        edges += graph->begin[i + 1] - graph->begin[i];
        if (kernel == BFS && i != root &&
            (distances[found->parent] + 1 != distances[i] || !are_neighbours(graph, i, found->parent)))
            fail("vertex %u cannot be the parent of vertex %u", found->parent, i);
    }
    free(distances);
    return edges / 2;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

static ptl_handle_ct_t expect(ptl_match_bits_t bits, void *memory, size_t bytes) {
    ptl_me_t me = {.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE, .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    append_entry(PT, bits, memory, bytes, me);
    return me.ct_handle;
}

/* Allocates memory for the updates to and from each rank: one for each edge, because a round follows an edge at most
 * once. */
static void prepare_peers(void) {
    peers = allocate(ranks * sizeof *peers);
    for (uint32_t i = 0; i < rows.begin[rows.vertices]; i++)
        peers[rows.to[i] % ranks].filled++;
    for (uint32_t i = 0; i < ranks; i++) {
        struct peer *peer = &peers[i];
        size_t bytes = (peer->filled + 1) * sizeof *peer->out;
        ptl_handle_me_t handle;
        ptl_me_t me = {.length = bytes,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id.rank = i,
                       .match_bits = UPDATES,
                       .hpu_memory = PTL_INVALID_HANDLE};
        peer->filled = 0;
        peer->out = allocate(bytes);
        CHECK(PtlCTAlloc(ni, &peer->acks));
        peer->md = bind_memory(peer->out, bytes, mode == RDMA ? 0 : PTL_MD_EVENT_CT_ACK,
                               mode == RDMA ? PTL_CT_NONE : peer->acks);
        if (mode != RDMA || i == rank)
            continue;
        me.start = peer->in = allocate(bytes);
        CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
    }
}

/* Prepares the card for updates. The ring has room for all edges of the rank, unless the user sets a smaller size. */
static void prepare_card(void) {
    uint32_t capacity = 64;
    while (capacity < (ring_updates != 0 ? ring_updates : rows.begin[rows.vertices]))
        capacity *= 2;
    ring_capacity = capacity;
    ring = allocate(graph_host_bytes(rows.vertices, capacity));
    words = graph_words(ring, capacity);
    CHECK(PtlCTAlloc(ni, &updates_made));
    int rc = place == IN_HOST
                 ? graph_serve_host(ni, PT, UPDATES, kernel == BFS, rows.vertices, (uint32_t)cache_bits, ring, capacity,
                                    updates_made)
                 : graph_serve(ni, PT, UPDATES, kernel == BFS, rows.vertices, ring, capacity, updates_made);
    if (rc == PTL_NO_SPACE)
        fail("the card has no memory for the state of %u vertices: use more ranks, --state host, or "
             "accelerator.memory_bytes",
             rows.vertices);
    CHECK(rc);
}

static void prepare_words(void) {
    words = allocate((rows.vertices + 1) * sizeof *words);
    memset(words, 0xff, rows.vertices * sizeof *words);
    append_entry(PT, UPDATES, words, rows.vertices * sizeof *words,
                 (ptl_me_t){.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                            .ct_handle = PTL_CT_NONE,
                            .hpu_memory = PTL_INVALID_HANDLE});
}

static void prepare(unsigned scale) {
    start(PT, &arrivals);
    message_updates = batch;
    if (mode == SPIN && batch > limits.max_payload_size / sizeof(struct graph_update))
        message_updates = limits.max_payload_size / sizeof(struct graph_update);
    window = window_wanted != 0 ? window_wanted : BUFFERED_BYTES / limits.max_payload_size / ranks;
    window += window == 0;
    rows = kronecker_rows(scale, rank, ranks);
    vertices = allocate((rows.vertices + 1) * sizeof *vertices);
    memset(vertices, 0xff, rows.vertices * sizeof *vertices);
    list = allocate((rows.vertices + 1) * sizeof *list);
    next_list = allocate((rows.vertices + 1) * sizeof *next_list);
    is_listed = allocate(rows.vertices + 1);
    best_sent = allocate(sizeof *best_sent << scale);
    memset(best_sent, 0xff, sizeof *best_sent << scale);
    listed = next_listed = messages_made = messages_expected = sources_done = 0;
    work = (struct work){0, 0};
    prepare_peers();
    if (mode == SPIN)
        prepare_card();
    if (mode == ATOMIC)
        prepare_words();
    own_news = allocate(2 * STEPS * ranks * sizeof *own_news);
    news_md = bind_memory(own_news, 2 * STEPS * ranks * sizeof *own_news, 0, PTL_CT_NONE);
    for (int step = 0; step < STEPS; step++)
        for (int parity = 0; parity < 2; parity++) {
            news[step][parity] = allocate(ranks * sizeof(struct news));
            news_arrived[step][parity] =
                expect(NEWS + 2 * step + parity, news[step][parity], ranks * sizeof(struct news));
        }
}

static void release(void) {
    finish();
    for (uint32_t i = 0; i < ranks; i++) {
        free(peers[i].out);
        free(peers[i].in);
    }
    for (int i = 0; i < 2 * STEPS; i++)
        free(news[i / 2][i % 2]);
    void *rest[] = {
        vertices, list, next_list, is_listed, best_sent, peers, own_news, ring, mode == ATOMIC ? words : NULL};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        free(rest[i]);
    ring = NULL;
    kronecker_free(rows);
}

/* The Nth vertex that has an edge, in the order of names. */
static uint32_t find_root(unsigned scale) {
    uint8_t *has_edge = allocate((size_t)1 << scale);
    uint32_t root = 0;
    for (uint64_t i = 0; i < (uint64_t)KRONECKER_FACTOR << scale; i++) {
        struct kronecker_edge edge = kronecker_edge(i, scale);
        has_edge[edge.from] |= edge.from != edge.to;
        has_edge[edge.to] |= edge.from != edge.to;
    }
    for (size_t left = root_number; root < 1u << scale; root++)
        if (has_edge[root] && left-- == 0)
            break;
    if (root == 1u << scale)
        fail("--root %zu: the graph has fewer vertices with edges", root_number);
    free(has_edge);
    return root;
}

static void measure(unsigned scale) {
    prepare(scale);
    uint32_t root = find_root(scale), stride = ((1u << scale) + ranks - 1) / ranks;
    size_t share = stride * sizeof(struct vertex), bytes = share + sizeof(struct work);
    struct vertex *results = allocate(rank == 0 ? ranks * bytes : bytes);
    if (rank == 0)
        results_arrived = expect(RESULTS, results, ranks * bytes);
    CHECK(spin_barrier());
    uint64_t begin = spin_time_ps();
    search(root);
    uint64_t time = spin_time_ps() - begin;
    if (rank != 0) {
        memcpy(results, vertices, rows.vertices * sizeof *vertices);
        memcpy((uint8_t *)results + share, &work, sizeof work);
        ptl_handle_md_t md = bind_memory(results, bytes, 0, PTL_CT_NONE);
        CHECK(PtlPut(md, 0, share, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, PT, RESULTS, rank * share, NULL, 0));
        CHECK(PtlPut(md, share, sizeof work, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, PT, RESULTS,
                     ranks * share + rank * sizeof work, NULL, 0));
    } else {
        struct kronecker_rows graph = kronecker_rows(scale, 0, 1);
        const struct work *all = (struct work *)((uint8_t *)results + ranks * share);
        if (!await(results_arrived, 2 * (ranks - 1)))
            fail("not all ranks sent their results");
        memcpy(results, vertices, rows.vertices * sizeof *vertices);
        for (uint32_t i = 1; i < ranks; i++) {
            work.updates += all[i].updates;
            work.passed += all[i].passed;
        }
        uint64_t edges = check(results, stride, &graph, root);
        printf("{\"kernel\":\"%s\",\"mode\":\"%s\",\"scale\":%u,\"ranks\":%u,\"edges\":%llu,\"rounds\":%u,\"updates\":%"
               "llu,"
               "\"passed\":%llu,\"time_ps\":%llu,\"teps\":%llu,\"data_ok\":true}\n",
               kernels[kernel], modes[mode], scale, ranks, (unsigned long long)edges, round_number,
               (unsigned long long)work.updates, (unsigned long long)work.passed, (unsigned long long)time,
               (unsigned long long)(edges * 1e12 / time));
        kronecker_free(graph);
    }
    CHECK(spin_barrier());
    free(results);
    release();
}

static size_t number_or(int argc, char **argv, const char *name, const char *otherwise) {
    const char *list_of_one = option_or(argc, argv, name, otherwise);
    size_t number = 0;
    if (!next_number(&list_of_one, &number))
        fprintf(stderr, "%s: expected a number\n", name), exit(2);
    return number;
}

int main(int argc, char **argv) {
    static const char *const answers[] = {"no", "yes"};
    kernel = (enum kernel)choice(option(argc, argv, "--kernel", usage), kernels, KERNELS, usage);
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    filter = choice(option_or(argc, argv, "--filter", "no"), answers, 2, usage) == 1;
    place = (enum place)choice(option_or(argc, argv, "--state", "card"), places, 2, usage);
    const char *scales = option(argc, argv, "--scales", usage);
    cores = number_or(argc, argv, "--cores", "1");
    edge_ns = number_or(argc, argv, "--edge-ns", "2");
    update_ns = number_or(argc, argv, "--update-ns", "2");
    look_ns = number_or(argc, argv, "--look-ns", "0");
    delta = number_or(argc, argv, "--delta", "64");
    ring_updates = number_or(argc, argv, "--ring", "0");
    root_number = number_or(argc, argv, "--root", "0");
    window_wanted = number_or(argc, argv, "--window", "0");
    batch = number_or(argc, argv, "--batch", "1024");
    cache_bits = number_or(argc, argv, "--cache", "12");
    rank = (uint32_t)spin_rank();
    ranks = (uint32_t)spin_size();
    if (cores == 0 || delta == 0 || batch == 0)
        fail("--cores, --delta and --batch must be at least 1");
    if (cache_bits > 24)
        fail("--cache: from 0 to 24");
    for (size_t scale; next_number(&scales, &scale);) {
        if (scale < 2 || scale > 20)
            fail("--scales: from 2 to 20");
        measure((unsigned)scale);
    }
    return 0;
}
