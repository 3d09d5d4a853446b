/* SPDX-License-Identifier: Apache-2.0 */
/* CPU part of a key-value server (kvstore.h): it serves requests without a limit of steps, removes hidden items, and
 * doubles the index, chain by chain, while clients continue. */
#ifndef HANDLERS_KVSTORE_HOST_H
#define HANDLERS_KVSTORE_HOST_H

#include <handlers/kvstore/kvstore.h>
#include <stdlib.h>

enum { KV_CROWDED = 4 }; /* a rebuilt chain with more items doubles the index */

struct kv_host {
    uint8_t *memory; /* memory of the store */
    size_t items;    /* offset of its slots */
    uint32_t slot_bytes, packet;
    uint32_t first, level, levels; /* levels of the index: initial, current, and limit */
    uint32_t part, parts; /* cores: each changes the chains whose number modulo `parts` is its `part`, and reads all */
    uint32_t limit;       /* a chain with more steps is rebuilt */
    bool grows;           /* the chains before `split` have moved to the index of the next level */
    uint32_t split;
    int (*swap)(void *self, uint32_t word, uint64_t *head, uint64_t desired); /* NULL: the index is in host memory */
    int (*retire)(void *self, uint32_t slot);
    int (*grown)(void *self); /* called when the index reaches `level`; or NULL */
    ptl_handle_md_t md;       /* the store's memory */
    ptl_handle_md_t copied;   /* all memory, with PTL_MD_VOLATILE */
    ptl_pt_index_t pt;
    uint32_t access_ns; /* time of an access to host memory, 0 until measured */
    uint32_t owed;      /* dependent accesses not yet charged to the CPU */
    uint64_t served, rebuilt;
    uint64_t crowded; /* chains that were too long while the index had its largest size */
};

static inline struct kv_item *kv_host_slot(const struct kv_host *host, uint32_t slot) {
    return (struct kv_item *)(host->memory + host->items + (size_t)slot * host->slot_bytes);
}

/* Charges the CPU for its accesses to the table: one latency of DRAM each, since tables exceed caches. */
static inline void kv_host_pay(struct kv_host *host) {
    if (host->access_ns == 0) {
        uint64_t from = spin_time_ps();
        spin_host_memory(sizeof(struct kv_item), 0);
        host->access_ns = (uint32_t)((spin_time_ps() - from + 500) / 1000);
    }
    spin_host_compute((uint64_t)host->owed * host->access_ns);
    host->owed = 0;
}

static inline int kv_host_swap(void *self, uint32_t word, uint64_t *head, uint64_t desired) {
    struct kv_host *host = self;
    if (host->swap != NULL)
        return host->swap(self, word, head, desired);
    __atomic_compare_exchange_n((uint64_t *)host->memory + word, head, desired, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return 0;
}

static inline int kv_host_load(void *self, uint32_t word, uint64_t *head) {
    struct kv_host *host = self;
    if (host->swap != NULL) {
        *head = 0;
        return host->swap(self, word, head, 0);
    }
    host->owed++;
    *head = __atomic_load_n((uint64_t *)host->memory + word, __ATOMIC_ACQUIRE);
    return 0;
}

static inline int kv_host_item(void *self, uint32_t slot, struct kv_item *item) {
    ((struct kv_host *)self)->owed++;
    *item = *kv_host_slot(self, slot);
    return 0;
}

static inline int kv_host_next(void *self, uint32_t slot, uint64_t next) {
    kv_host_slot(self, slot)->next = next;
    return 0;
}

static inline int kv_host_retire(void *self, uint32_t slot) { return ((struct kv_host *)self)->retire(self, slot); }

static const kv_way kv_cpu = {kv_host_load, kv_host_swap, kv_host_item, kv_host_next, kv_host_retire};

/* ---- Chains ------------------------------------------------------------------------------------------------------ */

/* Swaps a word without concurrent writers. */
static inline int kv_replace(struct kv_host *host, uint32_t word, uint64_t from, uint64_t to) {
    uint64_t found = from;
    return kv_host_swap(host, word, &found, to) || found != from;
}

/* Rebuilds a chain of the index of `level`: keeps the newest item of every key that is not deleted. With `splits` it
 * moves the items to the two chains of the next level. Writes the number of remaining items to *left. Returns 0, or 1
 * when memory is exhausted or the card does not answer. */
static inline int kv_rebuild(struct kv_host *host, uint32_t level, uint32_t chain, bool splits, uint32_t *left) {
    uint32_t word = (1u << level) + chain, count = 0, room = 16, kept = 0;
    uint64_t head, found, heads[2] = {0, 0};
    uint64_t *links = malloc(room * sizeof *links);
    if (links == NULL || kv_host_load(host, word, &head))
        return free(links), 1;
    for (found = head;; head = found) {
        if (kv_host_swap(host, word, &found, head | KV_FROZEN))
            return free(links), 1;
        if (found == head)
            break;
    }
    for (uint64_t link = head & KV_LINK; link != 0; link = kv_host_slot(host, kv_link_slot(link))->next) {
        if (count == room) {
            uint64_t *more = realloc(links, (room *= 2) * sizeof *links);
            if (more == NULL)
                return free(links), 1;
            links = more;
        }
        links[count++] = link;
        host->owed++;
    }
    kv_host_pay(host);
    for (uint32_t i = count; i-- > 0;) {
        struct kv_item *item = kv_host_slot(host, kv_link_slot(links[i]));
        bool is_hidden = !item->is_live;
        for (uint32_t j = 0; j < i && !is_hidden; j++)
            is_hidden =
                kv_is(kv_host_slot(host, kv_link_slot(links[j])), (kv_key){item->hash, item->key_bytes, item->key});
        if (is_hidden)
            continue;
        uint64_t *first = &heads[splits ? item->hash >> level & 1 : 0];
        item->next = *first;
        *first = links[i];
        links[i] = 0;
        kept++;
    }
    uint64_t version = (head + (KV_VERSION & -KV_VERSION)) & KV_VERSION;
    int failed = 0;
    if (splits) {
        failed = kv_replace(host, (2u << level) + chain, 0, heads[0] | version) ||
                 kv_replace(host, (2u << level) + (1u << level) + chain, 0, heads[1] | version);
        version = KV_MOVED;
    }
    failed = failed || kv_replace(host, word, head | KV_FROZEN, (splits ? 0 : heads[0]) | version);
    for (uint32_t i = 0; i < count && !failed; i++)
        failed = links[i] != 0 && host->retire(host, kv_link_slot(links[i]));
    free(links);
    host->rebuilt++;
    *left = kept;
    return failed;
}

/* Rebuilds the chain of a hash, and starts to double the index when it is crowded. */
static inline int kv_tidy(struct kv_host *host, uint32_t hash) {
    uint32_t level = host->level, chain = hash & ((1u << level) - 1), left;
    if (host->grows && chain / host->parts < host->split)
        chain = hash & ((1u << ++level) - 1);
    if (kv_rebuild(host, level, chain, false, &left))
        return 1;
    if (left > KV_CROWDED && level < host->levels)
        host->grows = true;
    else if (left > KV_CROWDED)
        host->crowded++;
    return 0;
}

/* Moves one chain, if the index is growing. */
static inline int kv_grow(struct kv_host *host) {
    uint32_t left;
    if (!host->grows)
        return 0;
    if (kv_rebuild(host, host->level, host->split * host->parts + host->part, true, &left))
        return 1;
    if (++host->split < (1u << host->level) / host->parts)
        return 0;
    host->grows = false;
    host->split = 0;
    host->level++;
    return host->grown != NULL && host->grown(host);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* Reports the outcome of a request to its client. */
static inline int kv_host_answer(struct kv_host *host, ptl_process_t client, int status, uint32_t number) {
    struct reply reply = {.request = 0, .status = status, .value = number};
    return PtlPut(host->copied, (ptl_size_t)(uintptr_t)&reply, sizeof reply, PTL_NO_ACK_REQ, client, host->pt,
                  KV_STATUS, 0, NULL, 0);
}

/* Serves a request; `slot` has the complete new item of a write, with this tag. Returns 0, or another number. */
static inline int kv_host_serve(struct kv_host *host, ptl_process_t client, const struct kv_request *request,
                                uint32_t slot, uint32_t tag) {
    kv_key key = {request->hash, request->key_bytes, request->key};
    struct kv_place place;
    uint32_t level = host->parts > 1 ? host->first : host->level; /* other cores may already have doubled their parts */
    int status;
    if (request->operation != KV_GET)
        status = kv_write(&kv_cpu, host, level, KV_NO_LIMIT, request->operation, key, slot, tag, &place);
    else /* another core may have frozen the chain */
        while ((status = kv_find(&kv_cpu, host, level, KV_NO_LIMIT, key, &place)) == KV_CPU)
            kv_host_pay(host);
    host->served++;
    kv_host_pay(host);
    if (status == KV_LOST || (request->operation != KV_GET && status != KV_OK && host->retire(host, slot)))
        return 1;
    if (request->operation == KV_GET && status == KV_OK) {
        ptl_size_t at = host->items + (ptl_size_t)kv_link_slot(place.link) * host->slot_bytes;
        ptl_size_t bytes = sizeof place.item + place.item.bytes;
        ptl_hdr_data_t expected = (ptl_hdr_data_t)request->number << 32 | place.item.tag;
        int rc = PtlPut(host->md, at, bytes > host->packet ? host->slot_bytes : bytes, PTL_NO_ACK_REQ, client, host->pt,
                        KV_VALUE, 0, NULL, expected);
        if (rc != PTL_OK)
            return rc;
    } else {
        int rc = kv_host_answer(host, client, status, request->number);
        if (rc != PTL_OK)
            return rc;
    }
    return place.steps > host->limit && (request->hash & (host->parts - 1)) == host->part ? kv_tidy(host, request->hash)
                                                                                          : 0;
}

#endif
