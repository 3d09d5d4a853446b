/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of a key-value store (PsPIN §IV-C, "key-value cache"). The card answers updates, and reads of cached keys;
 * other reads go to the host. An update of an uncached key replaces an entry of the key's set, which goes to the host
 * first. Updates of a set exclude each other. Reads do not lock: they restart when the keys of the set change
 * meanwhile. */
#include <card.h>

#include "../kvstore.h"

/* Returns the entry with a key, or the number of entries in use if none. */
static inline uint32_t entry_of(const volatile struct kv_set *set, uint32_t key, uint32_t used) {
    uint32_t entry = 0;
    while (entry < used && set->keys[entry] != key)
        entry++;
    return entry;
}

/* Reads a key. Returns true if the cache has it. */
static inline bool read_key(volatile struct kv_set *set, struct kv_packet *request) {
    uint32_t before, after, entry, value = 0, key = request->key;
    do {
        before = set->state;
        entry = entry_of(set, key, KV_USED(before));
        if (entry < KV_USED(before))
            value = set->values[entry];
        after = set->state;
    } while ((before & KV_CHANGING) || ((before ^ after) & (KV_KEYS | KV_CHANGING)));
    request->since = KV_VERSION(before);
    /* An update in progress may already have written its value. */
    request->version = KV_VERSION(after) + (after & KV_BUSY);
    if (entry == KV_USED(before))
        return false;
    request->value = value;
    return true;
}

/* Makes room for a key, and returns its entry. The caller holds the lock of the set. */
static inline uint32_t add_key(const task_t *task, volatile struct kv_set *set, uint32_t key, uint32_t place,
                               uint32_t *state) {
    uint32_t used = KV_USED(*state), replaced = KV_REPLACED(*state), entry = used;
    set->state = *state | KV_BUSY | KV_CHANGING;
    if (used == KV_WAYS) {
        entry = replaced++ % KV_WAYS;
        uint64_t pair = (uint64_t)set->values[entry] << 32 | set->keys[entry];
        spin_cmd_t written;
        spin_write_to_host(host_address(task, place), pair, &written);
        /* Reads that no longer find the key reach the host after it. */
        spin_cmd_wait(written);
    } else {
        used++;
    }
    set->keys[entry] = key;
    *state = KV_STATE(KV_VERSION(*state), replaced, used);
    return entry;
}

static inline void update_key(const task_t *task, volatile struct kv_set *set, struct kv_packet *request) {
    uint32_t key = request->key, value = request->value, place = request->header.ip_hdr.identification;
    /* The entry is looked up before the lock is taken, and again only if the keys changed meanwhile. */
    uint32_t before = set->state, entry = entry_of(set, key, KV_USED(before)), state;
    do
        state = amo_or(&set->state, KV_BUSY);
    while (state & KV_BUSY);
    if ((before ^ state) & KV_KEYS)
        entry = entry_of(set, key, KV_USED(state));
    if (entry == KV_USED(state))
        entry = add_key(task, set, key, KV_REPLACED_PAIR(place), &state);
    set->values[entry] = value;
    uint32_t version = KV_VERSION(state) + 1;
    set->state = KV_STATE(version, KV_REPLACED(state), KV_USED(state));
    request->since = request->version = version;
}

__handler__ void kvstore_ph(handler_args_t *args) {
    task_t *task = args->task;
    struct kv_packet *request = packet_of(task);
    if (task->pkt_mem_size < sizeof(*request))
        return;
    volatile struct kv_set *set = (struct kv_set *)task->handler_mem + request->key % KV_SETS;
    if (request->operation == KV_UPDATE) {
        update_key(task, set, request);
    } else if (!read_key(set, request)) {
        spin_dma_to_host(host_slot(task, &request->header) + KV_REPLACED_PAIRS, (uintptr_t)request, task->pkt_mem_size,
                         false, NULL);
        return;
    }
    request->operation |= KV_ANSWERED;
    swap_ends(&request->header, &request->header);
    request->header.udp_hdr.checksum = 0;
    spin_send_packet(request, task->pkt_mem_size, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = kvstore_ph;
    *th = NULL;
    *handler_mem = NULL;
}
