/* SPDX-License-Identifier: Apache-2.0 */
/* Table of the key-value store, for handlers, the server's CPU and one-sided RDMA (kvstore.h).
 *
 *     index: 64-bit words      items: slots of equal size in host memory
 *     [ head of chain ] ─────▶ [ next | tag | key | value ] ──▶ [ next | tag | key | value ] ──▶ 0
 *
 * A key's chain starts at the word indexed by the low bits of its hash. An item never changes once linked; every
 * insert, update and delete puts a new item (of a delete: a tombstone) at the head of the chain by one compare-
 * and-swap of the word, which is the moment at which it takes effect. A get reads the head, and takes the first item
 * with its key. Only the CPU shortens chains, and doubles the index, while all others continue:
 *
 *     it freezes the word (no other side swaps it then), removes hidden items, and writes the word, or those
 *     of the doubled index; the old word then says that the chain has moved.
 *
 * A slot may be reused during a read. So each use has a tag, which both the item and the link to it contain: a reader
 * that finds another tag restarts. All sides use only five operations (`kv_way`), which a handler executes by DMA, the
 * CPU by loads and stores, and an RDMA client by gets and puts. */
#ifndef HANDLERS_KVSTORE_TABLE_H
#define HANDLERS_KVSTORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KV_KEY = 40, KV_TAIL = 8 };     /* limit of a key in bytes; bytes at the end of a slot */
enum { KV_NO_LIMIT = 0xffffffff / 4 }; /* unlimited steps */

enum kv_operation { KV_GET, KV_INSERT, KV_UPDATE, KV_DELETE };

enum kv_status {
    KV_OK,
    KV_EXISTS,    /* insert: the key exists */
    KV_MISSING,   /* get, update or delete: the key is missing */
    KV_FULL,      /* no slot is free */
    KV_BUSY,      /* the queue to the CPU is full: retry */
    KV_TOO_LARGE, /* the value does not fit in a slot */
    KV_CPU,       /* too many steps, or a frozen chain: left to the CPU */
    KV_LOST       /* memory access failed, or no answer */
};

/* Request of a client; for inserts and updates the value follows. */
struct kv_request {
    uint32_t number; /* distinguishes requests of a client */
    uint32_t hash;   /* hash of the key */
    uint32_t bytes;  /* bytes of the value */
    uint8_t operation, key_bytes;
    uint16_t unused;
    uint8_t key[KV_KEY];
};

/* First bytes of a slot; the value follows. The last bytes of the slot repeat the tag (KV_TAIL), if header and value
 * exceed a packet. They are written first and read last: a reader that finds both tags has read one item. */
struct kv_item {
    uint64_t next; /* a link */
    uint32_t tag, hash, bytes;
    uint8_t is_live; /* 0: a tombstone */
    uint8_t key_bytes;
    uint16_t unused;
    uint8_t key[KV_KEY];
};

/* Word of the index: a link, and flags of the chain. A link is a slot's number + 1 and its tag; 0 ends a chain. */
#define KV_LINK 0x00ffffffffffffffull
#define KV_VERSION 0x3f00000000000000ull /* number of rebuilds of the chain: distinguishes a reused head */
#define KV_FROZEN 0x4000000000000000ull
#define KV_MOVED 0x8000000000000000ull

static inline uint64_t kv_link(uint32_t slot, uint32_t tag) { return (uint64_t)(slot + 1) << 32 | tag; }
static inline uint32_t kv_link_slot(uint64_t link) { return (uint32_t)(link >> 32 & 0xffffff) - 1; }
static inline uint32_t kv_link_tag(uint64_t link) { return (uint32_t)link; }

/* Returns the word of a chain in the index of 2^level chains; the indexes of all levels are consecutive. */
static inline uint32_t kv_word(uint32_t level, uint32_t hash) { return (1u << level) + (hash & ((1u << level) - 1)); }

/* The next two contain pointers: they are different types on host and card, which do not share them. */
#ifdef __SPIN_DEVICE__
#define kv_way kv_way_of_card
#define kv_key kv_key_of_card
#endif

/* Access methods of the table. All return 0, or another number on failure. */
typedef struct {
    int (*load)(void *self, uint32_t word, uint64_t *head);
    int (*swap)(void *self, uint32_t word, uint64_t *head,
                uint64_t desired); /* if it equals *head; *head receives the old value */
    int (*item)(void *self, uint32_t slot, struct kv_item *item);
    int (*next)(void *self, uint32_t slot, uint64_t next); /* writes the link of an item that is not linked yet */
    int (*retire)(void *self, uint32_t slot);              /* no link leads to the slot any longer */
} kv_way;

typedef struct {
    uint32_t hash, bytes;
    const uint8_t *at;
} kv_key;

/* Result of a walk along a chain. */
struct kv_place {
    uint32_t word;
    uint64_t head;       /* head of the chain at the start of the walk */
    uint64_t link;       /* link to `item`; 0: the chain has no item with the key */
    struct kv_item item; /* the newest one, perhaps a tombstone */
    uint32_t steps;      /* accesses to items and moved words */
};

static inline bool kv_is(const struct kv_item *item, kv_key key) {
    return item->hash == key.hash && item->key_bytes == key.bytes && memcmp(item->key, key.at, key.bytes) == 0;
}

/* Searches for a key, from the index of `level` on, in `most` steps. Returns KV_OK, KV_MISSING, KV_CPU or KV_LOST. */
static inline __attribute__((always_inline)) int kv_find(const kv_way *way, void *self, uint32_t level, uint32_t most,
                                                         kv_key key, struct kv_place *place) {
    for (place->steps = 0;;) {
        uint64_t again;
        bool changed = false;
        place->word = kv_word(level, key.hash);
        if (way->load(self, place->word, &place->head))
            return KV_LOST;
        if (place->head & KV_FROZEN)
            return KV_CPU;
        if (place->head & KV_MOVED) {
            level++;
            if (place->steps++ == most)
                return KV_CPU;
            continue;
        }
        for (place->link = place->head & KV_LINK; place->link != 0; place->link = place->item.next) {
            if (place->steps++ == most)
                return KV_CPU;
            if (way->item(self, kv_link_slot(place->link), &place->item))
                return KV_LOST;
            changed = place->item.tag != kv_link_tag(place->link);
            if (changed)
                break;
            if (kv_is(&place->item, key))
                return place->item.is_live ? KV_OK : KV_MISSING;
        }
        if (changed)
            continue;
        /* The CPU may have rebuilt the chain meanwhile, so that the walk missed the key. */
        if (place->head & KV_LINK) {
            if (way->load(self, place->word, &again))
                return KV_LOST;
            if (again != place->head)
                continue;
        }
        return KV_MISSING;
    }
}

/* Executes an insert, update or delete, whose item is complete in `slot` except for the link to the next one. Returns
 * KV_OK, KV_EXISTS, KV_MISSING, KV_CPU or KV_LOST; except for KV_OK, `slot` is not linked. */
static inline __attribute__((always_inline)) int kv_write(const kv_way *way, void *self, uint32_t level, uint32_t most,
                                                          enum kv_operation operation, kv_key key, uint32_t slot,
                                                          uint32_t tag, struct kv_place *place) {
    for (uint32_t steps = 0; steps <= most; steps += place->steps + 1) {
        int found = kv_find(way, self, level, most - steps, key, place);
        if (found == KV_CPU || found == KV_LOST)
            return found;
        if (operation == KV_INSERT && found == KV_OK)
            return KV_EXISTS;
        if (operation != KV_INSERT && found == KV_MISSING)
            return KV_MISSING;
        bool replaces = place->link != 0 && place->link == (place->head & KV_LINK);
        uint64_t head = place->head;
        if (way->next(self, slot, replaces ? place->item.next : head & KV_LINK) ||
            way->swap(self, place->word, &head, kv_link(slot, tag) | (head & KV_VERSION)))
            return KV_LOST;
        if (head == place->head)
            return replaces && way->retire(self, kv_link_slot(place->link)) ? KV_LOST : KV_OK;
    }
    return KV_CPU;
}

#endif
