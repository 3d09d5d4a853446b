/* Graph kernels whose cards filter the updates of vertices (sPIN §5.4): breadth-first search and shortest paths.
 *
 * The vertices of a graph are distributed. A rank that follows an edge to a vertex of another rank sends an update, and most
 * updates change nothing: the vertex was visited before, or a shorter path to it is known. The owner's handlers make the
 * conditional update and let only those pass that change something; the CPU finds these in a ring in its memory and decides,
 * because it also follows edges between its own vertices, of which the card does not know. */
#ifndef HANDLERS_GRAPH_H
#define HANDLERS_GRAPH_H

#include <spin.h>
#include <string.h>

/* An update; messages consist of them. */
struct graph_update {
    uint32_t vertex; /* its number among the vertices of its owner; GRAPH_NONE marks a free place of the ring */
    uint32_t value;  /* whatever the CPU needs (breadth-first search), or the length of the path (shortest paths) */
};

#define GRAPH_NONE UINT32_MAX

/* In HPU memory. `state` has one bit for each vertex, which says that it was visited (breadth-first search), or one word: the
 * complement of the shortest length (shortest paths), because HPU memory is filled with zeros. */
struct graph {
    uint32_t vertices;
    uint32_t capacity; /* updates in the ring, a power of two */
    uint32_t appended; /* counts updates; wraps around */
    uint32_t taken;    /* updates that the CPU has taken, as far as the card knows */
    uint32_t state[];
};

/* In host memory: the entry's memory. */
struct graph_ring {
    uint32_t taken; /* updates that the CPU has taken */
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

/* ---- Handlers ---------------------------------------------------------------------------------------------------- */

/* Appends updates to the ring, by one DMA write, or two where the ring ends. Reads how many the CPU has taken only when the
 * ring seems to be full. Returns whether there was room. */
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

/* Payload handler: lets the first update of each vertex pass (breadth-first search). It moves updates that pass to the front of
 * the packet. Fails when a vertex does not exist or the ring is full. */
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

/* Payload handler: lets an update pass that is shorter than all before to its vertex (shortest paths). Moves and fails
 * likewise. */
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

/* Completion handler: fails when updates are missing, so that the sender and the counter are told. */
__handler int graph_completion(int dropped_bytes, bool flow_control_triggered, void *memory) {
    (void)memory;
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}

/* ---- Host -------------------------------------------------------------------------------------------------------- */

/* Appends the entry for updates: `visit` says which kernel. `counter` counts messages whose updates have been made. `ring` has
 * room for `capacity` updates, a power of two. Returns PTL_OK, PTL_NO_SPACE when the card has no memory for the state, or
 * another error of PtlHPUAllocMem or PtlMEAppend. */
static inline int graph_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits, bool visit,
                              uint32_t vertices, struct graph_ring *ring, uint32_t capacity, ptl_handle_ct_t counter) {
    struct graph start = {.vertices = vertices, .capacity = capacity};
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = ring,
                   .length = graph_ring_bytes(capacity),
                   .ct_handle = counter,
                   .uid = PTL_UID_ANY,
                   .options =
                       PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = bits,
                   .payload_handler = visit ? graph_visit : graph_relax,
                   .completion_handler = graph_completion,
                   .hpu_initial_state = &start,
                   .hpu_initial_state_length = sizeof start};
    int rc = PtlHPUAllocMem(graph_bytes(visit ? graph_visited_words(vertices) : graph_distance_words(vertices)), ni,
                            &me.hpu_memory);
    ring->taken = 0;
    for (uint32_t i = 0; i < capacity; i++)
        ring->updates[i].vertex = GRAPH_NONE;
    return rc != PTL_OK ? rc : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

/* Takes the next update of the ring. Returns whether there was one. */
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
