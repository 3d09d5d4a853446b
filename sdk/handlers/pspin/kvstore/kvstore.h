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
    uint32_t state;
    uint32_t keys[KV_WAYS];
    uint32_t values[KV_WAYS];
};

/* The state of a set: an HPU changes it; it changes which keys are there; entries in use; how often one was replaced, which also says
 * which is next; how often any was updated. */
#define KV_BUSY 1u
#define KV_CHANGING 2u
#define KV_USED(state) ((state) >> 2 & 7)
#define KV_REPLACED(state) ((state) >> 5 & 0x3ff)
#define KV_VERSION(state) ((state) >> 15)
#define KV_STATE(version, replaced, used) ((version) << 15 | ((replaced) & 0x3ff) << 5 | (used) << 2)
/* The part that changes with the keys. */
#define KV_KEYS 0x7ffcu

/* A request, and the answer of the card or what goes to the host. */
struct kv_packet {
    pkt_hdr_t header;
    uint32_t operation;
    uint32_t key;
    uint32_t value;
    /* The version of the key's set that an update has made. A read has seen one from `since` to `version`. */
    uint32_t since, version;
};

#define KV_READ 0u
#define KV_UPDATE 1u
/* The card has answered. */
#define KV_ANSWERED 2u

/* Where the host finds the key and the value that a request has replaced, and the requests that the card could not answer, by their
 * IP identification. */
#define KV_REPLACED_PAIR(identification) ((identification) * 8)
#define KV_REPLACED_PAIRS (8 << 16)

#endif
