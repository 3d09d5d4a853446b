/* What the handlers and the host agree on. */
#ifndef KVSTORE_H
#define KVSTORE_H

#include <packets.h>
#include <stdint.h>

#define KV_WAYS 4
#define KV_ENTRIES 500
#define KV_SETS (KV_ENTRIES / KV_WAYS)

/* A set of the cache in L2. */
struct kv_set {
    /* Bit 0: an HPU changes the set. Bits 1 to 3: entries in use. Bits 4 and 5: the entry that is replaced next. From bit 6 on: how
     * often the set was changed. */
    uint32_t state;
    uint32_t keys[KV_WAYS];
    uint32_t values[KV_WAYS];
};

#define KV_BUSY 1u
#define KV_USED(state) ((state) >> 1 & 7)
#define KV_NEXT(state) ((state) >> 4 & 3)
#define KV_VERSION(state) ((state) >> 6)
#define KV_STATE(version, next, used) ((version) << 6 | (next) << 4 | (used) << 1)

/* A request, and the answer of the card or what goes to the host. */
struct kv_packet {
    pkt_hdr_t header;
    uint32_t operation;
    uint32_t key;
    uint32_t value;
    uint32_t version; /* of the key's set, which an update has made or a read has seen */
};

#define KV_READ 0u
#define KV_UPDATE 1u
/* The card has answered. */
#define KV_ANSWERED 2u

/* Where the host finds the key and the value that a request has replaced, and the requests that the card could not answer, by their
 * IP identification. */
#define KV_REPLACED(identification) ((identification) * 8)
#define KV_REPLACED_BYTES (8 << 16)

#endif
