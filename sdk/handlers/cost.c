/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the library's handlers (cost.h), except those of services and of collectives of all ranks. */
#include <handlers/matching/matching.h> /* before spin.h */

#include "cost.h"
#include <handlers/accumulate/accumulate.h>
#include <handlers/broadcast/trees.h>
#include <handlers/common/hash.h>
#include <handlers/common/host_queue.h>
#include <handlers/common/lock.h>
#include <handlers/common/reply.h>
#include <handlers/common/slots.h>
#include <handlers/datatype/datatype.h>
#include <handlers/ft-broadcast/ft_broadcast.h>
#include <handlers/graph/graph.h>
#include <handlers/raid5/raid5.h>
#include <handlers/reed-solomon/reed_solomon.h>

static void accumulate(void) {
    struct accumulate state = {.offset = 0};
    append((ptl_me_t){.match_bits = BITS, .payload_handler = accumulate_payload}, &state, sizeof state);
}

static void accumulate_keeps(void) {
    struct accumulate_cache cache = {.bytes = PACKET};
    ptl_me_t me = {.match_bits = BITS, .payload_handler = accumulate_cached};
    me.hpu_initial_state = &cache;
    me.hpu_initial_state_length = sizeof cache;
    CHECK(PtlHPUAllocMem(sizeof cache + PACKET, ni, &me.hpu_memory));
    append_entry(me);
    append_entry((ptl_me_t){.match_bits = FLUSH, .header_handler = accumulate_flush, .hpu_memory = me.hpu_memory});
}

static void flushed_packet(void) {
    one_packet();
    spin_host_compute(PATIENCE_NS);
    put(0, FLUSH, 0);
}

/* First of two ranks in a tree rooted at the card: its one child is the peer. */
static void broadcast(bool streaming, ptl_me_t me) {
    struct broadcast state = {.bits = BITS, .ranks = 2, .root = CARD, .reach = broadcast_reach(0, 2)};
    state.max_packet = PACKET;
    state.streaming = streaming;
    me.match_bits = BITS;
    append(me, &state, sizeof state);
}

static const ptl_me_t binomial = {.header_handler = broadcast_header,
                                  .payload_handler = broadcast_payload,
                                  .completion_handler = broadcast_completion};
static void broadcast_streams(void) { broadcast(true, binomial); }
static void broadcast_stores(void) { broadcast(false, binomial); }
static void broadcast_chain_tree(void) { broadcast(true, (ptl_me_t){.payload_handler = broadcast_chain_payload}); }
static void broadcast_binary_tree(void) { broadcast(true, (ptl_me_t){.payload_handler = broadcast_binary_payload}); }

/* The second of two ranks, which sends a copy back to the root. */
static void ft_broadcast(void) {
    struct ft_broadcast state = {.bits = BITS, .rank = CARD, .ranks = 2, .farthest = ft_broadcast_farthest(2)};
    ptl_me_t me = {.match_bits = BITS, .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(ft_broadcast_attach(ni, &me, &state));
    append_entry(me);
}

static void ft_broadcast_packet(uint32_t number) {
    *(struct ft_broadcast_tag *)memory = (struct ft_broadcast_tag){.id = ft_broadcast_id(PEER, number)};
    put(PACKET, BITS, ft_broadcast_id(PEER, number));
}

static void first_copy(void) {
    static uint32_t number;
    ft_broadcast_packet(++number);
}

static void other_copies(void) { ft_broadcast_packet(0); }

static void datatype(uint32_t block) {
    struct datatype_vector state = {.offset = 0, .block = block, .stride = 2 * block};
    append((ptl_me_t){.match_bits = BITS, .payload_handler = datatype_unpack}, &state, sizeof state);
}

static void datatype_one(void) { datatype(PACKET); }
static void datatype_many(void) { datatype(PACKET / 16); }

/* Blocks that fill one packet of datatype_send. */
static void datatype_packs(void) {
    struct datatype_sender state = {
        .vector = {.block = PACKET / 16, .stride = PACKET / 8}, .bits = BITS, .target = PEER, .packet = PACKET};
    state.length = datatype_step(PACKET);
    append((ptl_me_t){.match_bits = BITS, .header_handler = datatype_send}, &state, sizeof state);
}

static void datatype_packet(void) {
    struct datatype_vector state = {.offset = 0, .block = PACKET / 16, .stride = PACKET / 8};
    append((ptl_me_t){.match_bits = BITS, .payload_handler = datatype_unpack_packet}, &state, sizeof state);
}

/* Packet of updates that have an effect in the first round only, as most updates of a search have none. */
enum { UPDATES = PACKET / sizeof(struct graph_update) };
static void graph(ptl_me_t me) {
    struct graph state = {.vertices = UPDATES, .capacity = UPDATES};
    me.match_bits = BITS;
    append(me, &state, sizeof state);
}

static void graph_visits(void) {
    graph((ptl_me_t){.payload_handler = graph_visit, .completion_handler = graph_completion});
}

static void graph_relaxes(void) {
    graph((ptl_me_t){.payload_handler = graph_relax, .completion_handler = graph_completion});
}

/* The card has bounds of all vertices after the first round; the words are zeros, so that updates have no effect. */
static void graph_host(ptl_payload_handler_t handler) {
    struct graph state = {.vertices = UPDATES, .capacity = UPDATES / 2, .cache_bits = 9};
    ptl_me_t me = {.match_bits = BITS, .payload_handler = handler, .completion_handler = graph_completion};
    me.hpu_initial_state = &state;
    me.hpu_initial_state_length = sizeof state;
    CHECK(PtlHPUAllocMem(graph_bytes(UPDATES), ni, &me.hpu_memory));
    append_entry(me);
}

static void graph_visits_host(void) { graph_host(graph_visit_host); }
static void graph_relaxes_host(void) { graph_host(graph_relax_host); }

static void put_updates(void) {
    struct graph_update *updates = memory;
    for (uint32_t i = 0; i < UPDATES; i++)
        updates[i] = (struct graph_update){.vertex = i * 77 % UPDATES, .value = i};
    one_packet();
}

static void empty(void) { put(0, BITS, 0); }

/* One segment, added by the card as the second of some ranks: the peer starts it, and sends its own. */
static void matching(ptl_size_t eager) {
    struct matching state = {.eager = eager, .room = MEMORY};
    ptl_me_t me = {.match_bits = BITS, .header_handler = matching_header, .payload_handler = matching_payload};
    me.user_hdr_size = sizeof(struct matching_long);
    append(me, &state, sizeof state);
}

static void matching_short(void) { matching(PACKET); }

/* Sends one packet of user header and data; the rest of the data is at the peer. */
enum { FIRST = PACKET - sizeof(struct matching_long) };
static void matching_longer(void) { matching(FIRST); }
static void put_first(void) {
    *(struct matching_long *)memory = (struct matching_long){.total = MEMORY, .source_bits = BITS};
    one_packet();
}

static void raid5_data(void) {
    CHECK(raid5_serve(ni, PT, RAID5_WRITE, memory, MEMORY, peer, ROUNDS));
    CHECK(raid5_serve_reads(ni, PT, memory, MEMORY));
}

static void raid5_parity(void) { CHECK(raid5_serve(ni, PT, RAID5_DIFF, memory, MEMORY, peer, ROUNDS)); }

static void raid5_write(void) { put(2 * PACKET, RAID5_WRITE, 0); }
static void raid5_read(void) { put(0, RAID5_READ, raid5_wanted(PACKET, 0)); }
static void raid5_ack(void) { put(0, RAID5_ACK, PEER); }
static void raid5_diff(void) { put(PACKET, RAID5_DIFF, PEER); }

/* The parts of `common` are not handlers: each is measured in a handler that does nothing else. */
enum { SLOTS = 16, RECORDS = 64, RECORD = 16 };
struct parts {
    struct host_queue queue;
    uint32_t lock, hash;
    uint32_t record[RECORD / sizeof(uint32_t)];
    uint8_t slots[sizeof(struct slots) + SLOTS * sizeof(uint32_t)];
};

/* Header handler: does nothing, as a baseline. */
__handler int common_nothing(const ptl_header_t h, void *state) {
    (void)h;
    (void)state;
    return DROP_PENDING;
}

/* Header handler: computes the hash of 16 bytes. */
__handler int common_hash(const ptl_header_t h, void *state) {
    struct parts *parts = state;
    parts->hash = hash_bytes(parts->record, RECORD, (uint32_t)h.hdr_data);
    return DROP_PENDING;
}

/* Header handler: takes a free lock, and releases it. */
__handler int common_lock(const ptl_header_t h, void *state) {
    struct parts *parts = state;
    (void)h;
    lock_take(&parts->lock);
    lock_give(&parts->lock);
    return DROP_PENDING;
}

/* Header handler: allocates a slot and frees it. */
__handler int common_slots(const ptl_header_t h, void *state) {
    struct parts *parts = state;
    struct slots *slots = (struct slots *)parts->slots;
    int32_t slot = slots_take(slots);
    (void)h;
    if (slot == SLOTS_NONE)
        return FAIL;
    slots_give(slots, slot);
    return DROP_PENDING;
}

/* Header handler: appends a record of 16 bytes to a queue with room. */
__handler int common_queue(const ptl_header_t h, void *state) {
    struct parts *parts = state;
    ptl_dma_h written;
    (void)h;
    if (!host_queue_append(&parts->queue, parts->record, &written))
        return FAIL;
    return PtlHandlerDMAWait(written) == 0 ? DROP_PENDING : FAIL;
}

/* Header handler: sends a reply. */
__handler int common_reply(const ptl_header_t h, void *state) {
    const struct reply reply = {.request = 1, .value = h.hdr_data};
    (void)state;
    return reply_send(h.source_id, BITS, reply) == 0 ? DROP_PENDING : FAIL;
}

static void part(ptl_header_handler_t handler) {
    struct parts parts = {.queue = {.bytes = RECORD, .capacity = RECORDS}};
    slots_init((struct slots *)parts.slots, SLOTS, SLOTS);
    append((ptl_me_t){.match_bits = BITS, .header_handler = handler}, &parts, sizeof parts);
}

static void nothing(void) { part(common_nothing); }
static void hash(void) { part(common_hash); }
static void lock(void) { part(common_lock); }
static void slots(void) { part(common_slots); }
static void queue(void) { part(common_queue); }
static void reply(void) { part(common_reply); }

/* Data node 3 of 4, with two parity nodes: the second difference is multiplied by 2 three times. */
static void reed_solomon_data(void) {
    const ptl_process_t parities[] = {peer, peer};
    CHECK(reed_solomon_serve(ni, PT, memory, MEMORY, 3, parities, 2, ROUNDS));
}

/* The card replaces the first of four nodes, all of which are the peer. */
static void reed_solomon_replaces(void) {
    struct reed_solomon_rebuild state = {.bytes = MEMORY, .count = 4};
    for (uint32_t i = 0; i < state.count; i++)
        state.survivor[i] = peer;
    append((ptl_me_t){.match_bits = REED_SOLOMON_REBUILD, .header_handler = reed_solomon_rebuild_header}, &state,
           sizeof state);
}

static void reed_solomon_rebuilds(void) { put(0, REED_SOLOMON_REBUILD, PACKET / 2); }

static const struct test cases[] = {
    {"accumulate", "accumulate", "256 complex numbers", STATE(struct accumulate), accumulate, one_packet},
    {"accumulate-cached", "accumulate", "256 numbers that HPU memory has", STATE(struct accumulate_cache),
     accumulate_keeps, one_packet},
    {"accumulate-flush", "accumulate", "256 numbers, then a flush", STATE(struct accumulate_cache), accumulate_keeps,
     flushed_packet},
    {"broadcast-stream", "broadcast", "streaming, one child", STATE(struct broadcast), broadcast_streams, one_packet},
    {"broadcast-store", "broadcast", "stored two packets, one child", STATE(struct broadcast), broadcast_stores,
     two_packets},
    {"broadcast-chain", "broadcast", "chain", STATE(struct broadcast), broadcast_chain_tree, one_packet},
    {"broadcast-binary", "broadcast", "binary tree, one child", STATE(struct broadcast), broadcast_binary_tree,
     one_packet},
    {"common-nothing", "common", "empty", STATE(struct host_queue), nothing, empty},
    {"common-hash", "common", "empty", STATE(struct host_queue), hash, empty},
    {"common-lock", "common", "empty", STATE(struct host_queue), lock, empty},
    {"common-slots", "common", "empty", STATE(struct host_queue), slots, empty},
    {"common-queue", "common", "empty", STATE(struct host_queue), queue, empty},
    {"common-reply", "common", "empty", STATE(struct host_queue), reply, empty},
    {"datatype-one", "datatype", "one block", STATE(struct datatype_vector), datatype_one, one_packet},
    {"datatype-many", "datatype", "16 blocks of 256 B", STATE(struct datatype_vector), datatype_many, one_packet},
    {"datatype-packet", "datatype", "16 blocks of 256 B", STATE(struct datatype_vector), datatype_packet, one_packet},
    {"datatype-packs", "datatype", "a packet from 16 blocks of 256 B", STATE(struct datatype_sender), datatype_packs,
     empty},
    {"graph-visit", "graph", "512 updates of visited vertices", STATE(struct graph), graph_visits, put_updates},
    {"graph-relax", "graph", "512 updates that are no shorter", STATE(struct graph), graph_relaxes, put_updates},
    {"graph-visit-host", "graph", "512 updates of vertices that the card knows", STATE(struct graph), graph_visits_host,
     put_updates},
    {"graph-relax-host", "graph", "512 updates that the card knows to be no shorter", STATE(struct graph),
     graph_relaxes_host, put_updates},
    {"ft-broadcast-first", "ft-broadcast", "first copy, one copy to send", STATE(struct ft_broadcast), ft_broadcast,
     first_copy},
    {"ft-broadcast-copy", "ft-broadcast", "another copy", STATE(struct ft_broadcast), ft_broadcast, other_copies},
    {"matching-short", "matching", "short message", STATE(struct matching), matching_short, one_packet},
    {"matching-long", "matching", "long message", STATE(struct matching), matching_longer, put_first},
    {"raid5-write", "raid5", "write of two packets", STATE(struct raid5), raid5_data, raid5_write},
    {"raid5-read", "raid5", "read", STATE(struct raid5), raid5_data, raid5_read},
    {"raid5-ack", "raid5", "acknowledgement", STATE(struct raid5), raid5_data, raid5_ack},
    {"raid5-diff", "raid5", "difference, uncontended", STATE(struct raid5), raid5_parity, raid5_diff},
    {"reed-solomon-write", "reed-solomon", "write of two packets", STATE(struct reed_solomon), reed_solomon_data,
     raid5_write},
    {"reed-solomon-rebuild", "reed-solomon", "2 KiB from four nodes", STATE(struct reed_solomon_rebuild),
     reed_solomon_replaces, reed_solomon_rebuilds},
};

int main(int argc, char **argv) { return cost(argc, argv, cases, sizeof cases / sizeof *cases); }
