/* SPDX-License-Identifier: Apache-2.0 */
/* Graph kernels whose cards filter the updates of vertices (sPIN §5.4): breadth-first search and shortest paths.
 *
 * The vertices of a graph are distributed. A rank that follows an edge to a vertex of another rank sends an update, and
 * most updates have no effect: the vertex was visited before, or a shorter path to it is known. The owner's handlers
 * perform the conditional update and pass only those with an effect; the CPU gets these from a ring in its memory and
 * decides, because it also follows edges between its own vertices, unknown to the card. */
#ifndef HANDLERS_GRAPH_H
#define HANDLERS_GRAPH_H

#include <spin.h>
#include <string.h>

/* Update of a vertex; messages consist of them. */
struct graph_update {
    uint32_t vertex; /* index among the vertices of its owner; GRAPH_NONE marks a free place of the ring */
    uint32_t value;  /* data for the CPU (breadth-first search), or the length of the path (shortest paths) */
};

#define GRAPH_NONE UINT32_MAX

/* In HPU memory. `state` has one bit for each vertex, set once visited (breadth-first search), or one word: the
 * complement of the shortest length (shortest paths), because HPU memory is zeroed. If the words of the vertices are in
 * host memory, it has bounds of some of them. */
struct graph {
    uint32_t vertices;
    uint32_t capacity;   /* updates in the ring, a power of two */
    uint32_t appended;   /* counts updates; wraps around */
    uint32_t taken;      /* updates taken by the CPU, as last read by the card */
    uint32_t cache_bits; /* logarithm of the number of bounds */
    uint32_t state[];
};

/* Entry's memory on the host. graph_serve_host appends the words of the vertices. */
struct graph_ring {
    uint32_t taken; /* updates taken by the CPU */
    uint32_t unused;
    struct graph_update updates[];
};

/* Words of state. */
static inline size_t graph_visited_words(uint32_t vertices) { return (vertices + 31) / 32; }
static inline size_t graph_distance_words(uint32_t vertices) { return vertices; }

static inline size_t graph_bytes(size_t words) { return sizeof(struct graph) + words * sizeof(uint32_t); }

static inline size_t graph_ring_bytes(uint32_t capacity) {
    return sizeof(struct graph_ring) + (size_t)capacity * sizeof(struct graph_update);
}

/* Word in host memory of a vertex that was not reached; others hold the value of the update that reached it. */
#define GRAPH_UNREACHED UINT64_MAX

/* Returns true if an update changes a word: the first one (breadth-first search, `visit`), or a shorter path. */
static inline bool graph_changes(bool visit, uint64_t word, uint32_t value) {
    return visit ? word == GRAPH_UNREACHED : value < word;
}

/* ---- Handlers ---------------------------------------------------------------------------------------------------- */

/* Appends updates to the ring, by one DMA write, or two at the ring's end. Reads the CPU's count only when the ring
 * seems full. Returns false if it is full. */
static inline bool graph_append(struct graph *graph, const struct graph_update *updates, uint32_t count) {
    uint32_t number = __atomic_load_n(&graph->appended, __ATOMIC_RELAXED);
    do {
        if (number + count - __atomic_load_n(&graph->taken, __ATOMIC_RELAXED) > graph->capacity) {
            uint32_t taken;
            if (PtlHandlerDMAFromHostB(0, &taken, sizeof taken, PTL_ME_HOST_MEM))
                return false;
            __atomic_store_n(&graph->taken, taken, __ATOMIC_RELAXED);
            if (number + count - taken > graph->capacity)
                return false;
        }
    } while (!__atomic_compare_exchange_n(&graph->appended, &number, number + count, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    for (uint32_t done = 0, part; done < count; done += part) {
        uint32_t place = (number + done) & (graph->capacity - 1), left = graph->capacity - place;
        part = count - done < left ? count - done : left;
        if (PtlHandlerDMAToHostB(updates + done, sizeof(struct graph_ring) + place * sizeof *updates,
                                 part * sizeof *updates, PTL_ME_HOST_MEM))
            return false;
    }
    return true;
}

/* Payload handler: passes the first update of each vertex (breadth-first search). It moves passing updates to the front
 * of the packet. Fails when a vertex does not exist or the ring is full. */
__handler int graph_visit(const ptl_payload_t p, void *memory) {
    struct graph *graph = memory;
    struct graph_update *updates = (struct graph_update *)p.base;
    uint32_t count = p.length / sizeof *updates, passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct graph_update update = updates[i];
        if (update.vertex >= graph->vertices)
            return FAIL;
        uint32_t *word = &graph->state[update.vertex / 32], bit = 1u << update.vertex % 32;
        if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0 &&
            (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit) == 0)
            updates[passed++] = update;
    }
    return passed == 0 || graph_append(graph, updates, passed) ? SUCCESS : FAIL;
}

/* Payload handler: passes an update shorter than all before to its vertex (shortest paths). Moves and fails in the same
 * way. */
__handler int graph_relax(const ptl_payload_t p, void *memory) {
    struct graph *graph = memory;
    struct graph_update *updates = (struct graph_update *)p.base;
    uint32_t count = p.length / sizeof *updates, passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct graph_update update = updates[i];
        if (update.vertex >= graph->vertices)
            return FAIL;
        uint32_t *word = &graph->state[update.vertex], known = __atomic_load_n(word, __ATOMIC_RELAXED);
        while (~update.value > known)
            if (__atomic_compare_exchange_n(word, &known, ~update.value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                updates[passed++] = update;
                break;
            }
    }
    return passed == 0 || graph_append(graph, updates, passed) ? SUCCESS : FAIL;
}

/* Card's cache of words in host memory: a word of `state` holds the upper bits of a vertex, and the complement of an
 * upper bound of the vertex's word; bounds stay valid because words only fall. Bounds of vertices at the same place
 * overwrite each other. Zero means no bound. */
enum { GRAPH_BOUND_BITS = 20, GRAPH_BOUND_MASK = (1 << GRAPH_BOUND_BITS) - 1 };

/* Returns true if an update certainly has no effect. */
static inline bool graph_is_known(const struct graph *graph, bool visit, struct graph_update update) {
    uint32_t value = visit ? 0 : update.value;
    uint32_t bound = __atomic_load_n(&graph->state[update.vertex & ((1u << graph->cache_bits) - 1)], __ATOMIC_RELAXED);
    return value < GRAPH_BOUND_MASK && bound >> GRAPH_BOUND_BITS == update.vertex >> graph->cache_bits &&
           (~bound & GRAPH_BOUND_MASK) <= value;
}

static inline void graph_remember(struct graph *graph, bool visit, uint32_t vertex, uint64_t word) {
    uint32_t upper = vertex >> graph->cache_bits, place = vertex & ((1u << graph->cache_bits) - 1);
    uint32_t bound = visit ? 0 : (uint32_t)word;
    if (word != GRAPH_UNREACHED && bound < GRAPH_BOUND_MASK && upper < 1u << (32 - GRAPH_BOUND_BITS))
        __atomic_store_n(&graph->state[place], upper << GRAPH_BOUND_BITS | (GRAPH_BOUND_MASK - bound),
                         __ATOMIC_RELAXED);
}

enum { GRAPH_AHEAD = 32 }; /* updates that a handler performs together, so that it waits for host memory only twice */

/* Performs updates in host memory, at most GRAPH_AHEAD. Reads the words before it tries a compare-and-swap, because
 * most updates have no effect. Moves those with an effect to `passed`, which may be `updates`, and adds their number to
 * `*count`. */
static inline int graph_swap(struct graph *graph, bool visit, const struct graph_update *updates, uint32_t part,
                             struct graph_update *passed, uint32_t *count) {
    const ptl_size_t words = graph_ring_bytes(graph->capacity);
    uint64_t known[GRAPH_AHEAD], before[GRAPH_AHEAD];
    ptl_dma_h dma[GRAPH_AHEAD];
    for (uint32_t i = 0; i < part; i++)
        if (PtlHandlerDMAFromHostNB(words + updates[i].vertex * sizeof *known, &known[i], sizeof *known,
                                    PTL_ME_HOST_MEM, &dma[i]))
            return FAIL;
    for (uint32_t i = 0; i < part; i++) {
        if (PtlHandlerDMAWait(dma[i]))
            return FAIL;
        before[i] = known[i];
        if (graph_changes(visit, before[i], updates[i].value) &&
            PtlHandlerDMACASNB(words + updates[i].vertex * sizeof *known, &known[i], updates[i].value, PTL_ME_HOST_MEM,
                               &dma[i]))
            return FAIL;
    }
    for (uint32_t i = 0; i < part; i++) {
        const struct graph_update update = updates[i];
        bool is_tried = graph_changes(visit, before[i], update.value);
        if (is_tried && PtlHandlerDMAWait(dma[i]))
            return FAIL;
        while (is_tried && known[i] != before[i] && graph_changes(visit, known[i], update.value)) {
            before[i] = known[i];
            if (PtlHandlerDMACASB(words + update.vertex * sizeof *known, &known[i], update.value, PTL_ME_HOST_MEM))
                return FAIL;
        }
        if (is_tried && known[i] == before[i]) {
            passed[(*count)++] = update;
            known[i] = update.value;
        }
        graph_remember(graph, visit, update.vertex, known[i]);
    }
    return SUCCESS;
}

/* Performs the updates of a packet in host memory, except for those known to have no effect. */
static inline int graph_update_host(const ptl_payload_t p, struct graph *graph, bool visit) {
    struct graph_update *updates = (struct graph_update *)p.base;
    uint32_t count = p.length / sizeof *updates, candidates = 0, passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct graph_update update = updates[i];
        if (update.vertex >= graph->vertices)
            return FAIL;
        if (!graph_is_known(graph, visit, update))
            updates[candidates++] = update;
    }
    for (uint32_t first = 0, part; first < candidates; first += part) {
        part = candidates - first < GRAPH_AHEAD ? candidates - first : GRAPH_AHEAD;
        if (graph_swap(graph, visit, updates + first, part, updates, &passed) != SUCCESS)
            return FAIL;
    }
    return passed == 0 || graph_append(graph, updates, passed) ? SUCCESS : FAIL;
}

/* Payload handler: like graph_visit, with the state in host memory. */
__handler int graph_visit_host(const ptl_payload_t p, void *memory) { return graph_update_host(p, memory, true); }

/* Payload handler: like graph_relax, with the state in host memory. */
__handler int graph_relax_host(const ptl_payload_t p, void *memory) { return graph_update_host(p, memory, false); }

/* Completion handler: fails when updates are missing, so that the sender and the counter see the failure. */
__handler int graph_completion(int dropped_bytes, bool flow_control_triggered, void *memory) {
    (void)memory;
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}

/* ---- Host -------------------------------------------------------------------------------------------------------- */

/* Appends an entry with `words` of state on the card, for graph_serve and graph_serve_host. */
static inline int graph_append_entry(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_me_t *me, const struct graph *start,
                                     size_t words, struct graph_ring *ring) {
    ptl_handle_me_t handle;
    me->start = ring;
    me->uid = PTL_UID_ANY;
    me->options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
    me->match_id.rank = PTL_RANK_ANY;
    me->completion_handler = graph_completion;
    me->hpu_initial_state = start;
    me->hpu_initial_state_length = sizeof *start;
    ring->taken = 0;
    for (uint32_t i = 0; i < start->capacity; i++)
        ring->updates[i].vertex = GRAPH_NONE;
    int rc = PtlHPUAllocMem(graph_bytes(words), ni, &me->hpu_memory);
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, me, PTL_PRIORITY_LIST, NULL, &handle);
}

/* Appends the entry for updates; `visit` selects the kernel. `counter` counts messages whose updates are done. `ring`
 * has room for `capacity` updates, a power of two. Returns PTL_OK, PTL_NO_SPACE when the card has no memory for the
 * state, or another error of PtlHPUAllocMem or PtlMEAppend. */
static inline int graph_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits, bool visit,
                              uint32_t vertices, struct graph_ring *ring, uint32_t capacity, ptl_handle_ct_t counter) {
    ptl_me_t me = {.length = graph_ring_bytes(capacity),
                   .ct_handle = counter,
                   .match_bits = bits,
                   .payload_handler = visit ? graph_visit : graph_relax};
    return graph_append_entry(ni, pt, &me, &(struct graph){.vertices = vertices, .capacity = capacity},
                              visit ? graph_visited_words(vertices) : graph_distance_words(vertices), ring);
}

/* Bytes of a ring with the words of the vertices after it. */
static inline size_t graph_host_bytes(uint32_t vertices, uint32_t capacity) {
    return graph_ring_bytes(capacity) + (size_t)vertices * sizeof(uint64_t);
}

/* Words of the vertices. */
static inline uint64_t *graph_words(struct graph_ring *ring, uint32_t capacity) {
    return (uint64_t *)((uint8_t *)ring + graph_ring_bytes(capacity));
}

/* Like graph_serve, but the state is in host memory: `ring` has graph_host_bytes. The card caches 2^cache_bits bounds,
 * of 4 bytes each. Cards must support atomic operations in host memory. */
static inline int graph_serve_host(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits, bool visit,
                                   uint32_t vertices, uint32_t cache_bits, struct graph_ring *ring, uint32_t capacity,
                                   ptl_handle_ct_t counter) {
    ptl_me_t me = {.length = graph_host_bytes(vertices, capacity),
                   .ct_handle = counter,
                   .match_bits = bits,
                   .payload_handler = visit ? graph_visit_host : graph_relax_host};
    memset(graph_words(ring, capacity), 0xff, vertices * sizeof(uint64_t));
    return graph_append_entry(ni, pt, &me,
                              &(struct graph){.vertices = vertices, .capacity = capacity, .cache_bits = cache_bits},
                              (size_t)1 << cache_bits, ring);
}

/* Performs an update of the CPU in the words shared with the handlers. Returns true if it has an effect. */
static inline bool graph_change(bool visit, uint64_t *word, uint32_t value) {
    uint64_t known = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (graph_changes(visit, known, value))
        if (__atomic_compare_exchange_n(word, &known, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* Takes the next update of the ring. Returns false if the ring is empty. */
static inline bool graph_take(struct graph_ring *ring, uint32_t capacity, struct graph_update *update) {
    struct graph_update *place = &ring->updates[ring->taken & (capacity - 1)];
    *update = *place;
    if (update->vertex == GRAPH_NONE)
        return false;
    place->vertex = GRAPH_NONE;
    ring->taken++;
    return true;
}

#endif
