/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store whose cards insert, get, update and delete (sPIN §5.4).
 *
 *     client ── (hash, length of key, key), value ──▶ server: header handler    takes a slot, writes key
 *                                                             payload handlers  write the value, packet by packet
 *                                                             completion        links the item by compare-and-swap
 *     client ◀──────────── status or value ────────── server
 *
 * The table is that of table.h. Items are in host memory; the index is there too, and handlers swap its words by DMA,
 * or on the card (PsPIN cards have no atomic operations in host memory). A handler that needs more than `steps` steps,
 * or finds a chain frozen, queues the request for the CPU (host.h), which answers the client. Setup: README.md. */
#ifndef HANDLERS_KVSTORE_H
#define HANDLERS_KVSTORE_H

#ifdef SPIN_H
#error "include handlers/kvstore/kvstore.h before spin.h: it defines the user header"
#endif

#include <handlers/kvstore/table.h>
#define PTL_USER_HEADER struct kv_request
#include <handlers/common/host_queue.h>
#include <handlers/common/reply.h>
#include <handlers/common/slots.h>
#include <spin.h>

/* Match bits; a client has a number below KV_CLIENTS, and one request at a time. */
enum kv_bits {
    KV_READS = 0x100,   /* clients to server: gets */
    KV_CONTROL = 0x101, /* the server's CPU to its card */
    KV_WRITES = 0x200,  /* + the client's number: inserts, updates, deletes */
    KV_STATUS = 0x300,  /* to a client, a reply; its value is the request's number */
    KV_VALUE = 0x301,   /* to a client: the item, or, if longer than a packet, its slot; hdr_data's low half is its
                           tag, the other half the request's number */
    KV_DONE = 0x302     /* the card to its CPU, a reply */
};
enum { KV_CLIENTS = 64 };

/* Requests of the CPU to its card (kv_request.operation). */
enum kv_control { KV_START = 16, KV_SWAP, KV_GIVE, KV_LEVEL };
enum { KV_GIFTS = KV_KEY / sizeof(uint32_t) }; /* limit of slots in a KV_GIVE */

/* Record in the queue to the CPU. */
struct kv_record {
    uint32_t number; /* number in the queue */
    uint32_t client; /* rank of the client */
    int32_t slot;    /* slot of the new item, SLOTS_NONE for gets */
    uint32_t tag;
    struct kv_request request;
};

/* Write of a client in progress. */
struct kv_message {
    struct kv_request request;
    ptl_process_t client;
    int32_t slot;
    uint32_t tag;
};

/* HPU memory, shared by all entries of the store. The host sets the fields before `tag`. */
struct kv {
    ptl_size_t items;      /* offset of the slots in host memory; the index precedes them, unless it is on the card */
    uint32_t slot_bytes;   /* a multiple of 8 */
    uint32_t packet;       /* limit of a packet in bytes */
    uint32_t level;        /* the index has 2^level chains */
    uint32_t steps;        /* limit of a handler's steps */
    uint32_t slots, index; /* offsets of free slots and index in this memory; index 0: in host memory */
    struct host_queue queue;
    uint32_t tag; /* tag of the next item */
    uint32_t handed_over;
    struct kv_message message[KV_CLIENTS] __attribute__((aligned(8)));
};

/* Bytes of host memory of a store, and of HPU memory. */
static inline size_t kv_index_bytes(uint32_t levels) { return (size_t)2 << levels << 3; }
static inline uint32_t kv_ring(uint32_t slots) {
    uint32_t capacity = 1;
    while (capacity < slots)
        capacity *= 2;
    return capacity;
}
static inline size_t kv_card_bytes(uint32_t slots, uint32_t levels, bool index_on_card) {
    size_t ring = (slots_bytes(kv_ring(slots)) + 7) & ~(size_t)7;
    return sizeof(struct kv) + ring + (index_on_card ? kv_index_bytes(levels) : 0);
}

/* ---- The table, for handlers ------------------------------------------------------------------------------------- */

static inline struct slots *kv_slots(struct kv *kv) { return (struct slots *)((uint8_t *)kv + kv->slots); }
static inline uint64_t *kv_index(struct kv *kv, uint32_t word) {
    return (uint64_t *)((uint8_t *)kv + kv->index) + word;
}
static inline ptl_size_t kv_place(const struct kv *kv, uint32_t slot) {
    return kv->items + (ptl_size_t)slot * kv->slot_bytes;
}

static inline int kv_card_load(void *self, uint32_t word, uint64_t *head) {
    struct kv *kv = self;
    if (kv->index)
        return PtlHandlerFAdd(kv_index(kv, word), head, 0);
    return PtlHandlerDMAFromHostB((ptl_size_t)word * 8, head, sizeof *head, PTL_ME_HOST_MEM);
}

static inline int kv_card_swap(void *self, uint32_t word, uint64_t *head, uint64_t desired) {
    struct kv *kv = self;
    if (!kv->index)
        return PtlHandlerDMACASB((ptl_size_t)word * 8, head, desired, PTL_ME_HOST_MEM);
    return PtlHandlerCAS(kv_index(kv, word), *head, desired) ? 0 : PtlHandlerFAdd(kv_index(kv, word), head, 0);
}

static inline int kv_card_item(void *self, uint32_t slot, struct kv_item *item) {
    return PtlHandlerDMAFromHostB(kv_place(self, slot), item, sizeof *item, PTL_ME_HOST_MEM);
}

static inline int kv_card_next(void *self, uint32_t slot, uint64_t next) {
    return PtlHandlerDMAToHostB(&next, kv_place(self, slot), sizeof next, PTL_ME_HOST_MEM);
}

static inline int kv_card_retire(void *self, uint32_t slot) {
    slots_give(kv_slots(self), slot);
    return 0;
}

static const kv_way kv_card = {kv_card_load, kv_card_swap, kv_card_item, kv_card_next, kv_card_retire};

/* Passes a request to the CPU. Returns KV_OK, KV_BUSY when the queue is full, or KV_LOST. */
static inline int kv_hand_over(struct kv *kv, const struct kv_request *request, ptl_process_t client, int32_t slot,
                               uint32_t tag) {
    struct kv_record record = {.client = client.rank, .slot = slot, .tag = tag, .request = *request};
    ptl_dma_h written;
    if (!host_queue_append(&kv->queue, &record, &written))
        return KV_BUSY;
    __atomic_fetch_add(&kv->handed_over, 1, __ATOMIC_RELAXED);
    return PtlHandlerDMAWait(written) ? KV_LOST : KV_OK;
}

static inline int kv_answer(ptl_process_t client, int status, uint32_t number) {
    return reply_send(client, KV_STATUS, (struct reply){.status = status, .value = number});
}

/* ---- Inserts, updates, deletes ----------------------------------------------------------------------------------- */

/* Header handler: allocates a slot and writes the item's first part. Notifies the client when no slot is free. */
__handler int kv_write_header(const ptl_header_t h, void *state) {
    struct kv *kv = state;
    const struct kv_request *request = &h.user_hdr;
    struct kv_message *message = &kv->message[h.match_bits - KV_WRITES];
    struct kv_item item = {.hash = request->hash,
                           .bytes = request->bytes,
                           .is_live = request->operation != KV_DELETE,
                           .key_bytes = request->key_bytes};
    message->slot = SLOTS_NONE;
    if (request->bytes != h.length - sizeof *request || request->key_bytes > KV_KEY ||
        request->bytes > kv->slot_bytes - sizeof item - KV_TAIL)
        return kv_answer(h.source_id, KV_TOO_LARGE, request->number) ? FAIL : DROP_PENDING;
    int32_t slot = slots_take(kv_slots(kv));
    if (slot == SLOTS_NONE)
        return kv_answer(h.source_id, KV_FULL, request->number) ? FAIL : DROP_PENDING;
    message->request = *request;
    message->client = h.source_id;
    message->slot = slot;
    message->tag = item.tag = __atomic_fetch_add(&kv->tag, 1, __ATOMIC_RELAXED);
    memcpy(item.key, request->key, sizeof item.key);
    if (sizeof item + item.bytes > kv->packet &&
        PtlHandlerDMAToHostB(&item.tag, kv_place(kv, slot) + kv->slot_bytes - KV_TAIL, sizeof item.tag,
                             PTL_ME_HOST_MEM))
        return FAIL;
    return PtlHandlerDMAToHostB(&item, kv_place(kv, slot), sizeof item, PTL_ME_HOST_MEM) ? FAIL : PROCESS_DATA;
}

/* The write accepted by the entry of a handler. Payload and completion handlers cannot identify their message, and all
 * entries share their HPU memory: so the counter of an entry, otherwise unused, holds the number of its client. */
static inline struct kv_message *kv_message(struct kv *kv) {
    ptl_ct_event_t client;
    return PtlHandlerCTGet(&client) ? NULL : &kv->message[client.success];
}

/* Payload handler: writes its part of the value. */
__handler int kv_write_payload(const ptl_payload_t p, void *state) {
    const struct kv_message *message = kv_message(state);
    ptl_size_t at = kv_place(state, message->slot) + sizeof(struct kv_item) + p.offset;
    return PtlHandlerDMAToHostB(p.base, at, p.length, PTL_ME_HOST_MEM) ? FAIL : SUCCESS;
}

/* Completion handler: links the item, or passes it to the CPU, which the event of the message then wakes. An incomplete
 * value is discarded: the client's acknowledgement reports it. */
__handler int kv_write_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct kv *kv = state;
    struct kv_message *message = kv_message(kv);
    const struct kv_request *request = &message->request;
    int32_t slot = message->slot;
    struct kv_place place;
    if (slot == SLOTS_NONE)
        return SUCCESS_PENDING;
    if (dropped_bytes > 0 || flow_control_triggered) {
        slots_give(kv_slots(kv), slot);
        return SUCCESS_PENDING;
    }
    int status = kv_write(&kv_card, kv, kv->level, kv->steps, request->operation,
                          (kv_key){request->hash, request->key_bytes, request->key}, slot, message->tag, &place);
    if (status == KV_CPU) {
        status = kv_hand_over(kv, request, message->client, slot, message->tag);
        if (status == KV_OK)
            return SUCCESS;
    }
    if (status != KV_OK && status != KV_LOST)
        slots_give(kv_slots(kv), slot);
    return status == KV_LOST || kv_answer(message->client, status, request->number) ? FAIL : SUCCESS_PENDING;
}

/* ---- Gets -------------------------------------------------------------------------------------------------------- */

/* Header handler: finds the item and sends it from host memory, or passes the request to the CPU. */
__handler int kv_read_header(const ptl_header_t h, void *state) {
    struct kv *kv = state;
    const struct kv_request *request = &h.user_hdr;
    struct kv_place place;
    int status = request->key_bytes > KV_KEY
                     ? KV_MISSING
                     : kv_find(&kv_card, kv, kv->level, kv->steps,
                               (kv_key){request->hash, request->key_bytes, request->key}, &place);
    if (status == KV_CPU) {
        status = kv_hand_over(kv, request, h.source_id, SLOTS_NONE, 0);
        if (status == KV_OK)
            return DROP;
    }
    if (status == KV_LOST)
        return FAIL;
    if (status != KV_OK)
        return kv_answer(h.source_id, status, request->number) ? FAIL : DROP_PENDING;
    ptl_size_t at = kv_place(kv, kv_link_slot(place.link)), bytes = sizeof place.item + place.item.bytes;
    ptl_hdr_data_t expected = (ptl_hdr_data_t)request->number << 32 | place.item.tag;
    if (bytes > kv->packet)
        bytes = kv->slot_bytes;
    if (PtlHandlerPutFromHost(at, bytes, 0, PTL_NO_ACK_REQ, h.source_id, KV_VALUE, 0, NULL, expected))
        return FAIL;
    return DROP_PENDING;
}

/* ---- Requests of the CPU to its card ----------------------------------------------------------------------------- */

/* Header handler: executes requests of the CPU. KV_START fills the list of free slots, `bytes` of them. KV_SWAP swaps
 * word `hash` of the index; the key has the expected and desired values, the reply the old one. KV_GIVE frees `bytes`
 * slots, listed in the key. KV_LEVEL announces that the index has grown to level `hash`. */
__handler int kv_control_header(const ptl_header_t h, void *state) {
    struct kv *kv = state;
    const struct kv_request *request = &h.user_hdr;
    struct reply reply = {.request = 0, .status = KV_OK};
    uint64_t words[2];
    uint32_t gifts[KV_GIFTS];
    switch (request->operation) {
    case KV_START: slots_init(kv_slots(kv), kv_ring(request->bytes), request->bytes); break;
    case KV_SWAP:
        memcpy(words, request->key, sizeof words);
        kv_card_swap(kv, request->hash, &words[0], words[1]);
        reply.value = words[0];
        break;
    case KV_GIVE:
        memcpy(gifts, request->key, sizeof gifts);
        for (uint32_t i = 0; i < request->bytes && i < KV_GIFTS; i++)
            slots_give(kv_slots(kv), gifts[i]);
        break;
    case KV_LEVEL: __atomic_store_n(&kv->level, request->hash, __ATOMIC_RELEASE); break;
    default: return FAIL;
    }
    return reply_send(h.source_id, KV_DONE, reply) ? FAIL : DROP_PENDING;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Store whose host memory is `memory`: the index (if it is not on the card), then the slots. */
struct kv_setup {
    void *memory;
    size_t bytes;
    struct host_queue_ring *ring; /* ring of the queue to the CPU, for `queued` records, a power of two */
    uint32_t queued;
    uint32_t slots, slot_bytes, level, levels, steps, packet;
    bool index_on_card;
    ptl_process_t clients[KV_CLIENTS];
    uint32_t count; /* number of clients */
};

/* Appends the entries of a server. Requests of its CPU to the card use `control`, a separate portal table index, so
 * that flow control on `pt` does not stop them. Returns PTL_OK, or the error of PtlHPUAllocMem, PtlCTAlloc, PtlCTSet or
 * PtlMEAppend. */
static inline int kv_serve(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_pt_index_t control, ptl_process_t self,
                           const struct kv_setup *setup) {
    size_t ring = (slots_bytes(kv_ring(setup->slots)) + 7) & ~(size_t)7;
    struct kv initial = {
        .items = setup->index_on_card ? 0 : kv_index_bytes(setup->levels),
        .slot_bytes = setup->slot_bytes,
        .packet = setup->packet,
        .level = setup->level,
        .steps = setup->steps,
        .tag = 1,
        .slots = sizeof initial,
        .index = setup->index_on_card ? (uint32_t)(sizeof initial + ring) : 0,
        .queue = {.options = PTL_HANDLER_HOST_MEM, .bytes = sizeof(struct kv_record), .capacity = setup->queued}};
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = setup->memory,
                   .length = setup->bytes,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = KV_READS,
                   .header_handler = kv_read_header,
                   .hpu_initial_state = &initial,
                   .hpu_initial_state_length = offsetof(struct kv, message),
                   .handler_host_mem_start = setup->ring,
                   .handler_host_mem_length = host_queue_bytes(setup->queued, sizeof(struct kv_record)),
                   .user_hdr_size = sizeof(struct kv_request)};
    int rc = PtlHPUAllocMem(kv_card_bytes(setup->slots, setup->levels, setup->index_on_card), ni, &me.hpu_memory);
    if (rc == PTL_OK)
        rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    me.hpu_initial_state = NULL;
    me.hpu_initial_state_length = 0;
    me.match_bits = KV_CONTROL;
    me.match_id = self;
    me.header_handler = kv_control_header;
    if (rc == PTL_OK)
        rc = PtlMEAppend(ni, control, &me, PTL_PRIORITY_LIST, NULL, &handle);
    me.header_handler = kv_write_header;
    me.payload_handler = kv_write_payload;
    me.completion_handler = kv_write_completion;
    for (uint32_t i = 0; i < setup->count && rc == PTL_OK; i++) {
        me.match_bits = KV_WRITES + i;
        me.match_id = setup->clients[i];
        rc = PtlCTAlloc(ni, &me.ct_handle);
        if (rc == PTL_OK)
            rc = PtlCTSet(me.ct_handle, (ptl_ct_event_t){.success = i});
        if (rc == PTL_OK)
            rc = PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
    }
    return rc;
}

#endif
