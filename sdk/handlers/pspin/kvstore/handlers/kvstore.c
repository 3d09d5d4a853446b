/* A cache of a key-value store (PsPIN §IV-C, "key-value cache"). The card answers updates, and reads of keys that it has; other reads
 * go to the host. An update of a key that it does not have replaces an entry of the key's set, which goes to the host first.
 * Updates of a set exclude each other; reads do not lock, but start again when the set has changed meanwhile. */
#include <card.h>

#include "../kvstore.h"

/* The entry with a key, or `used` if there is none. */
static inline uint32_t entry_of(const volatile struct kv_set *set, uint32_t key, uint32_t used) {
    uint32_t entry = 0;
    while (entry < used && set->keys[entry] != key)
        entry++;
    return entry;
}

/* Returns whether the cache has the key. */
static inline bool read_key(volatile struct kv_set *set, struct kv_packet *request) {
    uint32_t state, entry, value = 0;
    do {
        state = set->state;
        entry = entry_of(set, request->key, KV_USED(state));
        if (entry < KV_USED(state))
            value = set->values[entry];
    } while ((state & KV_BUSY) || set->state != state);
    request->version = KV_VERSION(state);
    if (entry == KV_USED(state))
        return false;
    request->value = value;
    return true;
}

static inline void update_key(const task_t *task, volatile struct kv_set *set, struct kv_packet *request) {
    uint32_t state;
    do
        state = amo_or(&set->state, KV_BUSY);
    while (state & KV_BUSY);
    uint32_t used = KV_USED(state), next = KV_NEXT(state);
    uint32_t entry = entry_of(set, request->key, used);
    if (entry == used) {
        if (used == KV_WAYS) {
            entry = next;
            next = (next + 1) % KV_WAYS;
            uint64_t replaced = (uint64_t)set->values[entry] << 32 | set->keys[entry];
            uint32_t place = KV_REPLACED(request->header.ip_hdr.identification);
            spin_cmd_t written;
            spin_write_to_host(host_address(task, place), replaced, &written);
            /* A read that does not find the key any more reaches the host after it. */
            spin_cmd_wait(written);
        } else {
            used++;
        }
        set->keys[entry] = request->key;
    }
    set->values[entry] = request->value;
    request->version = KV_VERSION(state) + 1;
    set->state = KV_STATE(request->version, next, used);
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
        spin_dma_to_host(host_slot(task, &request->header) + KV_REPLACED_BYTES, (uintptr_t)request, task->pkt_mem_size,
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
