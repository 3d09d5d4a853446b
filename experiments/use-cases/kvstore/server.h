/* SPDX-License-Identifier: Apache-2.0 */
/* The server: work of its CPU beside its card (spin), instead of it (cpu), or for one-sided clients (rdma). */
#ifndef KVSTORE_SERVER_H
#define KVSTORE_SERVER_H

#include "shared.h"
#include <handlers/kvstore/host.h>
#include <pthread.h>

/* One core. `spin` and `rdma` use one. */
struct core {
    struct kv_host host; /* the first member: its operations get its address */
    ptl_handle_eq_t eq;
    pthread_t thread;
    uint8_t *requests;           /* cpu: a place for a request of each client */
    uint32_t *free_slots, count; /* cpu: slots of this core */
    uint32_t gifts[KV_GIFTS], gift_count;
    ptl_handle_ct_t done_ct;
    struct reply done;
    ptl_size_t asked; /* requests to the card */
    uint64_t busy_ps; /* busy time of this core */
    uint32_t tag;
    bool is_dead; /* the card no longer answers */
};

static struct core cores[MOST_CORES];
static uint8_t *store; /* index and slots */
static size_t store_bytes, slots_from;
static struct host_queue_ring *ring;

/* ---- A server with handlers -------------------------------------------------------------------------------------- */

static int ask_card(struct core *core, struct kv_request request) {
    ptl_ct_event_t counted;
    unsigned which;
    ptl_size_t next = core->asked + 1;
    int rc = PtlPut(core->host.copied, (ptl_size_t)(uintptr_t)&request, sizeof request, PTL_NO_ACK_REQ, rank_of(rank),
                    CONTROL_PT, KV_CONTROL, 0, NULL, 0);
    if (rc != PTL_OK || PtlCTPoll(&core->done_ct, &next, 1, PATIENCE_MS, &counted, &which) != PTL_OK ||
        counted.failure != 0)
        return 1;
    core->asked = next;
    return core->done.status;
}

static int swap_on_card(void *self, uint32_t word, uint64_t *head, uint64_t desired) {
    struct core *core = self;
    struct kv_request request = {.operation = KV_SWAP, .hash = word};
    memcpy(request.key, (uint64_t[]){*head, desired}, 2 * sizeof desired);
    int rc = ask_card(core, request);
    *head = core->done.value;
    return rc;
}

static int give_to_card(struct core *core) {
    struct kv_request request = {.operation = KV_GIVE, .bytes = core->gift_count};
    memcpy(request.key, core->gifts, sizeof core->gifts);
    core->gift_count = 0;
    return request.bytes > 0 ? ask_card(core, request) : 0;
}

static int retire_to_card(void *self, uint32_t slot) {
    struct core *core = self;
    core->gifts[core->gift_count++] = slot;
    return core->gift_count == KV_GIFTS ? give_to_card(core) : 0;
}

static int tell_card(void *self) {
    struct core *core = self;
    return ask_card(core, (struct kv_request){.operation = KV_LEVEL, .hash = core->host.level});
}

/* ---- A server whose clients own their slots (rdma) ------------------------------------------------------- */

static int retire_to_client(void *self, uint32_t slot) {
    struct core *core = self;
    return PtlPut(core->host.copied, 0, 0, PTL_NO_ACK_REQ, rank_of(servers + (int)(slot / slots_of_client())), PT, GIFT,
                  0, NULL, slot);
}

static int tell_clients(void *self) {
    struct core *core = self;
    __atomic_store_n((uint64_t *)store + LEVEL_WORD, core->host.level, __ATOMIC_RELEASE);
    return 0;
}

/* ---- A server whose CPU does everything -------------------------------------------------------------------------- */

static int retire_to_core(void *self, uint32_t slot) {
    struct core *core = self;
    core->free_slots[core->count++] = slot;
    return 0;
}

static int serve_client(struct core *core, const ptl_event_t *event) {
    const struct kv_request *request = event->start;
    uint32_t slot = 0;
    struct kv_item *item;
    if (request->operation == KV_GET)
        return kv_host_serve(&core->host, event->initiator, request, 0, 0);
    if (request->bytes > slot_bytes - sizeof *item - KV_TAIL)
        return kv_host_answer(&core->host, event->initiator, KV_TOO_LARGE, request->number);
    if (core->count == 0)
        return kv_host_answer(&core->host, event->initiator, KV_FULL, request->number);
    slot = core->free_slots[--core->count];
    item = kv_host_slot(&core->host, slot);
    *item = (struct kv_item){.tag = core->tag += MOST_CORES,
                             .hash = request->hash,
                             .bytes = request->bytes,
                             .is_live = request->operation != KV_DELETE,
                             .key_bytes = request->key_bytes};
    memcpy(item->key, request->key, sizeof item->key);
    memcpy(item + 1, request + 1, request->bytes);
    memcpy((uint8_t *)item + slot_bytes - KV_TAIL, &item->tag, sizeof item->tag);
    spin_host_copy(sizeof *item + request->bytes);
    return kv_host_serve(&core->host, event->initiator, request, slot, item->tag);
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static int serve_event(struct core *core, const ptl_event_t *event) {
    struct kv_record record;
    int failed = 0;
    if (event->type == PTL_EVENT_PT_DISABLED)
        return PtlPTEnable(ni, event->pt_index);
    if (event->type == PTL_EVENT_HANDLER_ERROR)
        fail("a handler failed: %d", event->ni_fail_type);
    if (mode == CPU)
        failed = serve_client(core, event);
    else if (mode == RDMA)
        failed = kv_tidy(&core->host, (uint32_t)event->hdr_data);
    do {
        while (!failed && mode == SPIN && host_queue_take(ring, queued, sizeof record, &record))
            failed = kv_host_serve(&core->host, rank_of((int)record.client), &record.request, (uint32_t)record.slot,
                                   record.tag);
        failed = failed || kv_grow(&core->host);
    } while (!failed && core->host.grows && mode != CPU);
    return failed || (mode == SPIN && give_to_card(core));
}

/* Serves until no request arrives for a long time. */
static void *serve(void *argument) {
    struct core *core = argument;
    ptl_event_t event;
    unsigned which;
    for (;;) {
        int rc = PtlEQPoll(&core->eq, 1, QUIET_MS, &event, &which);
        uint64_t from = spin_time_ps();
        if (rc == PTL_EQ_EMPTY)
            return NULL;
        if (rc == PTL_EQ_DROPPED)
            fail("the event queue of the server is full");
        if (rc != PTL_OK || serve_event(core, &event)) {
            if (!core->is_dead)
                fprintf(stderr, "rank %d: the card of this server does not answer any more\n", rank);
            core->is_dead = true;
            return NULL;
        }
        core->busy_ps += spin_time_ps() - from;
    }
}

/* One round on that many cores. */
static void serve_round(uint32_t count) {
    for (uint32_t i = 1; i < count; i++)
        if (pthread_create(&cores[i].thread, NULL, serve, &cores[i]) != 0)
            fail("no thread for a core");
    serve(&cores[0]);
    for (uint32_t i = 1; i < count; i++)
        pthread_join(cores[i].thread, NULL);
}

static void start_core(struct core *core, uint32_t part, uint32_t parts) {
    ptl_pt_index_t given, pt = PT + part;
    CHECK(PtlEQAlloc(ni, 8192, &core->eq));
    CHECK(PtlPTAlloc(ni, 0, core->eq, pt, &given));
    core->tag = 1 + part;
    core->host = (struct kv_host){.memory = store,
                                  .items = slots_from,
                                  .slot_bytes = slot_bytes,
                                  .packet = (uint32_t)limits.max_payload_size,
                                  .first = level,
                                  .level = level,
                                  .levels = levels,
                                  .part = part,
                                  .parts = parts,
                                  .limit = steps,
                                  .pt = PT,
                                  .md = bind_memory(store, store_bytes, 0, PTL_CT_NONE),
                                  .copied = bind_memory(NULL, PTL_SIZE_MAX, PTL_MD_VOLATILE, PTL_CT_NONE)};
    if (mode != CPU)
        return;
    core->host.retire = retire_to_core;
    core->free_slots = allocate(slots * sizeof *core->free_slots);
    for (uint32_t slot = part; slot < slots; slot += parts)
        core->free_slots[core->count++] = slot;
    core->requests = allocate((size_t)all_clients * slot_bytes);
    for (int i = 0; i < all_clients; i++)
        accept(pt, KV_WRITES + (ptl_match_bits_t)i, core->requests + (size_t)i * slot_bytes, slot_bytes, 0);
}

static void start_server(void) {
    store_bytes = kv_index_bytes(levels) + (size_t)slots * slot_bytes;
    slots_from = kv_index_bytes(levels);
    if (mode == SPIN && index_on_card) {
        store_bytes -= slots_from;
        slots_from = 0;
    }
    store = allocate(store_bytes);
    core_count = mode == CPU ? core_count : 1;
    for (uint32_t i = 0; i < core_count; i++)
        start_core(&cores[i], i, core_count);
    if (mode == SPIN) {
        struct kv_setup setup = {.memory = store,
                                 .bytes = store_bytes,
                                 .queued = queued,
                                 .slots = slots,
                                 .slot_bytes = slot_bytes,
                                 .level = level,
                                 .levels = levels,
                                 .steps = steps,
                                 .packet = (uint32_t)limits.max_payload_size,
                                 .index_on_card = index_on_card,
                                 .count = (uint32_t)all_clients};
        struct core *core = &cores[0];
        ptl_pt_index_t given;
        setup.ring = ring = allocate(host_queue_bytes(queued, sizeof(struct kv_record)));
        for (int i = 0; i < all_clients; i++)
            setup.clients[i] = rank_of(servers + i);
        core->host.retire = retire_to_card;
        core->host.grown = tell_card;
        core->host.swap = index_on_card ? swap_on_card : NULL;
        CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, CONTROL_PT, &given));
        CHECK(PtlCTAlloc(ni, &core->done_ct));
        append_entry(CONTROL_PT, KV_DONE, &core->done, sizeof core->done,
                     (ptl_me_t){.ct_handle = core->done_ct,
                                .options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                                .hpu_memory = PTL_INVALID_HANDLE});
        CHECK(kv_serve(ni, PT, CONTROL_PT, rank_of(rank), &setup));
        if (ask_card(core, (struct kv_request){.operation = KV_START, .bytes = slots}))
            fail("the card does not start");
    }
    if (mode == RDMA) {
        cores[0].host.retire = retire_to_client;
        cores[0].host.grown = tell_clients;
        tell_clients(&cores[0]);
        accept(PT, KV_CONTROL, NULL, 0, 0);
        accept(PT, MEMORY, store, store_bytes, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
    }
}

/* The number of records of this server, counted plainly; -1 when the index is on the card, out of the CPU's reach. */
static int64_t count_records(void) {
    int64_t count = 0;
    if (mode == SPIN && index_on_card)
        return -1;
    for (uint32_t i = 0; i < core_count; i++) {
        struct kv_host *host = &cores[i].host;
        for (uint32_t word = 1; word < 2u << levels; word++) {
            uint64_t head = ((uint64_t *)store)[word];
            if ((word & (core_count - 1)) != i || head & KV_MOVED)
                continue;
            for (uint64_t link = head & KV_LINK; link != 0; link = kv_host_slot(host, kv_link_slot(link))->next) {
                const struct kv_item *item = kv_host_slot(host, kv_link_slot(link));
                bool is_hidden = !item->is_live;
                for (uint64_t newer = head & KV_LINK; newer != link;
                     newer = kv_host_slot(host, kv_link_slot(newer))->next)
                    is_hidden |= kv_is(kv_host_slot(host, kv_link_slot(newer)),
                                       (kv_key){item->hash, item->key_bytes, item->key});
                count += !is_hidden;
                if (item->tag != kv_link_tag(link))
                    fail("an item is not that of its link");
            }
        }
    }
    return count;
}

#endif
