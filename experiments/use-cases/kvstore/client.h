/* SPDX-License-Identifier: Apache-2.0 */
/* A client: sends requests and waits for answers (spin, cpu), or or uses one-sided gets, puts and swaps (rdma). */
#ifndef KVSTORE_CLIENT_H
#define KVSTORE_CLIENT_H

#include "shared.h"
#include <handlers/common/hash.h>

/* Number of times that a get without an answer, or a refused request, is sent. */
enum { MOST_REPEATS = 3, MOST_TRIES = 50 };

/* With RDMA an item's first bytes are fetched together, up to KNOWN bytes of its value. */
enum { KEY_BYTES = 20, KNOWN = 4096 };

/* A client's objects for one server (rdma). */
struct remote {
    uint32_t level;
    struct balance balance;
    uint32_t *free_slots, first, count; /* a ring: the slot that was free first is used first */
};

static struct {
    int number;
    ptl_handle_eq_t eq;
    ptl_handle_md_t md;       /* all memory */
    ptl_handle_md_t requests; /* the same for requests; acknowledgements are events only if they fail */
    uint8_t *request;         /* a request or an item, and the value */
    uint8_t *answer;          /* an item or its slot */
    struct reply reply;
    uint32_t count, tag; /* number of requests; tag of the next item */
    uint32_t cores;      /* cpu: serving cores of a server */
    bool is_alone;       /* a server no longer answers */
    struct remote *servers;
    int server;       /* rdma: server of the present request */
    uint64_t word;    /* rdma: that a get or swap has fetched */
    bool is_sent;     /* rdma: the new item is at its server */
    uint32_t retries; /* requests that were sent again */
} client;

static void address(ptl_size_t *at, const void *memory) { *at = (ptl_size_t)(uintptr_t)memory; }

static void start_client(void) {
    ptl_pt_index_t given;
    ptl_md_t all = {.length = PTL_SIZE_MAX, .options = PTL_MD_EVENT_SEND_DISABLE, .ct_handle = PTL_CT_NONE};
    client.number = rank - servers;
    client.cores = 1;
    client.tag = (uint32_t)(client.number + 1) << 24;
    client.request = allocate(slot_bytes);
    client.answer = allocate(slot_bytes);
    CHECK(PtlEQAlloc(ni, 1024, &client.eq));
    CHECK(PtlPTAlloc(ni, 0, client.eq, PT, &given));
    all.eq_handle = client.eq;
    CHECK(PtlMDBind(ni, &all, &client.md));
    all.options |= PTL_MD_EVENT_SUCCESS_DISABLE;
    CHECK(PtlMDBind(ni, &all, &client.requests));
    accept(PT, KV_STATUS, &client.reply, sizeof client.reply, 0);
    accept(PT, KV_VALUE, client.answer, slot_bytes, 0);
    accept(PT, GIFT, NULL, 0, 0);
    client.servers = allocate((size_t)servers * sizeof *client.servers);
    for (int i = 0; i < servers; i++) {
        struct remote *remote = &client.servers[i];
        remote->level = level;
        remote->free_slots = allocate(slots * sizeof *remote->free_slots);
        remote->count = slots_of_client();
        for (uint32_t slot = 0; slot < remote->count; slot++)
            remote->free_slots[slot] = (uint32_t)client.number * remote->count + slot;
    }
}

/* Waits for the next event. Returns whether one came. */
static bool await(ptl_event_t *event) {
    unsigned which;
    int rc = PtlEQPoll(&client.eq, 1, PATIENCE_MS, event, &which);
    if (rc == PTL_EQ_DROPPED)
        fail("the event queue of a client is full");
    client.is_alone = rc != PTL_OK;
    return rc == PTL_OK;
}

/* ---- Requests to a server ---------------------------------------------------------------------------------------- */

/* Returns whether client.answer has the item with this tag, from end to end. */
static bool is_whole(uint32_t tag, size_t bytes) {
    const uint8_t *tail = client.answer + slot_bytes - KV_TAIL;
    return ((const struct kv_item *)client.answer)->tag == tag &&
           (bytes <= limits.max_payload_size || memcmp(tail, &tag, sizeof tag) == 0);
}

/* Waits for the answer to request `number`. Returns its status; KV_BUSY when the server did not take the request, or
 * the slot was reused. */
static int await_answer(uint32_t number) {
    ptl_event_t event;
    while (await(&event)) {
        if (event.type == PTL_EVENT_ACK) {
            /* A header handler that refuses a request drops its value, and answers. */
            if (event.ni_fail_type != PTL_NI_OK && event.ni_fail_type != PTL_NI_DROPPED)
                return event.ni_fail_type == PTL_NI_PT_DISABLED ? KV_BUSY : KV_LOST;
        } else if (event.match_bits == KV_STATUS && client.reply.value == number) {
            return client.reply.status;
        } else if (event.match_bits == KV_VALUE && event.hdr_data >> 32 == number) {
            return is_whole((uint32_t)event.hdr_data, event.mlength) ? KV_OK : KV_BUSY;
        }
    }
    return KV_LOST;
}

/* Asks a server, and repeats this while it is busy. For inserts and updates the value is in client.request, behind
 * the request. A write is acknowledged, because flow control may refuse it; a get is not, and is sent again without
 * an answer. */
static int ask(enum kv_operation operation, kv_key key, int server, uint32_t bytes) {
    struct kv_request *request = (struct kv_request *)client.request;
    for (uint32_t tries = 1;; tries++, client.retries++) {
        *request = (struct kv_request){.number = ++client.count,
                                       .hash = key.hash,
                                       .bytes = bytes,
                                       .operation = (uint8_t)operation,
                                       .key_bytes = (uint8_t)key.bytes};
        memcpy(request->key, key.at, key.bytes);
        ptl_size_t at, length = sizeof *request + bytes;
        address(&at, request);
        ptl_match_bits_t bits =
            mode == SPIN && operation == KV_GET ? KV_READS : KV_WRITES + (ptl_match_bits_t)client.number;
        uint32_t core = operation == KV_GET ? (uint32_t)client.number : key.hash; /* all cores may read */
        ptl_pt_index_t pt = mode == CPU ? PT + (core & (client.cores - 1)) : PT;
        ptl_ack_req_t ack = operation == KV_GET ? PTL_NO_ACK_REQ : PTL_ACK_REQ;
        if (PtlPut(client.requests, at, length, ack, rank_of(server), pt, bits, 0, NULL, 0) != PTL_OK)
            return KV_LOST;
        int status = await_answer(request->number);
        bool may_repeat = status == KV_LOST && operation == KV_GET && tries < MOST_REPEATS;
        if (status != KV_BUSY && !may_repeat)
            return status;
        client.is_alone = tries == MOST_TRIES;
        if (client.is_alone)
            return KV_LOST;
        spin_host_compute(1000u << (tries < 8 ? tries : 8));
    }
}

/* ---- One-sided --------------------------------------------------------------------------------------------------- */

/* Waits for an event of this type. Returns 0 if it reports success. */
static int await_end(ptl_event_kind_t type) {
    ptl_event_t event;
    while (await(&event)) {
        if (event.type == type)
            return event.ni_fail_type != PTL_NI_OK;
        if (event.type == PTL_EVENT_PUT && event.match_bits == GIFT) {
            struct remote *remote = &client.servers[event.initiator.rank];
            remote->free_slots[(remote->first + remote->count++) % slots] = (uint32_t)event.hdr_data;
        } else if (event.ni_fail_type != PTL_NI_OK) {
            return 1;
        }
    }
    return 1;
}

static int fetch(void *to, size_t bytes, size_t from) {
    ptl_size_t at;
    address(&at, to);
    return PtlGet(client.md, at, bytes, rank_of(client.server), PT, MEMORY, from, NULL) || await_end(PTL_EVENT_REPLY);
}

/* Puts bytes to the store. */
static int put_bytes(const void *from, size_t bytes, size_t to, bool is_acknowledged) {
    ptl_size_t at;
    address(&at, from);
    return PtlPut(client.md, at, bytes, is_acknowledged ? PTL_ACK_REQ : PTL_NO_ACK_REQ, rank_of(client.server), PT,
                  MEMORY, to, NULL, 0);
}

static size_t remote_place(uint32_t slot) { return kv_index_bytes(levels) + (size_t)slot * slot_bytes; }

static int remote_load(void *self, uint32_t word, uint64_t *head) {
    (void)self;
    int rc = fetch(&client.word, sizeof client.word, (size_t)word * 8);
    *head = client.word;
    return rc;
}

static int remote_swap(void *self, uint32_t word, uint64_t *head, uint64_t desired) {
    static uint64_t wanted;
    ptl_size_t found, put;
    (void)self;
    wanted = desired;
    address(&found, &client.word);
    address(&put, &wanted);
    int rc = PtlSwap(client.md, found, client.md, put, sizeof wanted, rank_of(client.server), PT, MEMORY,
                     (ptl_size_t)word * 8, NULL, 0, head, PTL_CSWAP, PTL_UINT64_T) ||
             await_end(PTL_EVENT_REPLY);
    *head = client.word;
    return rc;
}

/* Bytes of a slot that are fetched together. */
static uint32_t ahead(void) {
    uint32_t bytes = sizeof(struct kv_item) + value_bytes, all = bytes > limits.max_payload_size ? slot_bytes : bytes;
    return value_bytes <= KNOWN ? all : sizeof(struct kv_item) + KNOWN;
}

static int remote_item(void *self, uint32_t slot, struct kv_item *item) {
    (void)self;
    int rc = fetch(client.answer, ahead(), remote_place(slot));
    memcpy(item, client.answer, sizeof *item);
    return rc;
}

/* Puts the whole item, or only its link if the item is already in place. A put of one packet and the following swap
 * stay in order; a long item, and before it the tag at the end of its slot, are acknowledged. */
static int remote_next(void *self, uint32_t slot, uint64_t next) {
    struct kv_item *item = (struct kv_item *)client.request;
    size_t bytes = client.is_sent ? sizeof next : sizeof *item + item->bytes;
    bool is_long = bytes > limits.max_payload_size;
    (void)self;
    item->next = next;
    client.is_sent = true;
    if (is_long && (put_bytes(&item->tag, sizeof item->tag, remote_place(slot) + slot_bytes - KV_TAIL, true) ||
                    await_end(PTL_EVENT_ACK)))
        return 1;
    return put_bytes(item, bytes, remote_place(slot), is_long) || (is_long && await_end(PTL_EVENT_ACK));
}

static int remote_retire(void *self, uint32_t slot) {
    struct remote *remote = self;
    remote->free_slots[(remote->first + remote->count++) % slots] = slot;
    return 0;
}

static const kv_way kv_remote = {remote_load, remote_swap, remote_item, remote_next, remote_retire};

/* Fetches the rest of a value, and of a long one the slot to its end. Returns KV_OK, KV_BUSY when the slot was
 * reused, or KV_LOST. */
static int fetch_rest(const struct kv_place *place) {
    uint32_t from = ahead(), bytes = sizeof place->item + place->item.bytes;
    uint32_t end = bytes > limits.max_payload_size ? slot_bytes : bytes;
    if (end > from && fetch(client.answer + from, end - from, remote_place(kv_link_slot(place->link)) + from))
        return KV_LOST;
    return is_whole(place->item.tag, bytes) ? KV_OK : KV_BUSY;
}

static int do_remotely(enum kv_operation operation, kv_key key, int server, uint32_t bytes) {
    struct remote *remote = &client.servers[server];
    struct kv_place place;
    int status;
    client.server = server;
    if (operation == KV_GET) {
        do {
            status = kv_find(&kv_remote, remote, remote->level, KV_NO_LIMIT, key, &place);
            if (status == KV_OK)
                status = fetch_rest(&place);
            client.retries += status == KV_BUSY || status == KV_CPU;
        } while (status == KV_BUSY || status == KV_CPU);
    } else {
        if (remote->count == 0)
            return KV_FULL;
        uint32_t slot = remote->free_slots[remote->first];
        struct kv_item *item = (struct kv_item *)client.request;
        remote->first = (remote->first + 1) % slots;
        remote->count--;
        *item = (struct kv_item){.tag = client.tag++,
                                 .hash = key.hash,
                                 .bytes = bytes,
                                 .is_live = operation != KV_DELETE,
                                 .key_bytes = (uint8_t)key.bytes};
        memcpy(item->key, key.at, key.bytes);
        client.is_sent = false;
        while ((status = kv_write(&kv_remote, remote, remote->level, KV_NO_LIMIT, operation, key, slot, item->tag,
                                  &place)) == KV_CPU)
            client.retries++;
        if (status != KV_OK && status != KV_LOST)
            remote_retire(remote, slot);
    }
    if (status == KV_LOST)
        return status;
    if (place.word >= 2u << remote->level) { /* the chain has moved: has the index of that level all chains? */
        uint64_t now;
        if (remote_load(remote, LEVEL_WORD, &now))
            return KV_LOST;
        remote->level = (uint32_t)now;
    }
    ptl_size_t nothing;
    address(&nothing, client.request);
    if (operation != KV_GET && place.steps > steps &&
        PtlPut(client.md, nothing, 0, PTL_NO_ACK_REQ, rank_of(server), PT, KV_CONTROL, 0, NULL, key.hash) != PTL_OK)
        return KV_LOST;
    return status;
}

/* ---- The store, as a client sees it ------------------------------------------------------------------------------ */

/* Executes one operation on record `record`. The value of an insert or update is generated from `*id`; that of a get
 * is tested, and sets `*id`. Returns the status. */
static int operate(enum kv_operation operation, uint64_t record, uint64_t *id) {
    char text[KEY_BYTES + 1];
    bool has_value = operation == KV_INSERT || operation == KV_UPDATE;
    snprintf(text, sizeof text, "user%016llx", (unsigned long long)record);
    kv_key key = {hash_bytes(text, KEY_BYTES, 2), KEY_BYTES, (const uint8_t *)text};
    int server = (int)(hash_bytes(text, KEY_BYTES, 1) % (uint32_t)servers);
    size_t head = mode == RDMA ? sizeof(struct kv_item) : sizeof(struct kv_request);
    if (has_value) {
        memcpy(client.request + head, id, sizeof *id);
        for (uint32_t i = sizeof *id; i < value_bytes; i++)
            client.request[head + i] = pattern(i, (unsigned)*id);
    }
    int status = (mode == RDMA ? do_remotely : ask)(operation, key, server, has_value ? value_bytes : 0);
    client.servers[server].balance.records += status == KV_OK ? (operation == KV_INSERT) - (operation == KV_DELETE) : 0;
    if (operation == KV_GET && status == KV_OK) {
        const struct kv_item *item = (const struct kv_item *)client.answer;
        const uint8_t *value = client.answer + sizeof *item;
        memcpy(id, value, sizeof *id);
        if (!kv_is(item, key) || item->bytes != value_bytes)
            fail("a get of %s returns another item", text);
        for (uint32_t i = sizeof *id; i < value_bytes; i++)
            if (value[i] != pattern(i, (unsigned)*id))
                fail("byte %u of the value of %s is %u, not %u", i, text, value[i], pattern(i, (unsigned)*id));
    }
    return status;
}

/* Sends a few bytes that the target's CPU reads later, and waits for their arrival. */
static void tell(int target, ptl_match_bits_t bits, const void *from, size_t bytes) {
    ptl_size_t at;
    ptl_event_t event;
    address(&at, from);
    if (PtlPut(client.md, at, bytes, PTL_ACK_REQ, rank_of(target), PT, bits + (ptl_match_bits_t)client.number, 0, NULL,
               0) == PTL_OK)
        while (await(&event) && event.type != PTL_EVENT_ACK)
            continue;
}

#endif
