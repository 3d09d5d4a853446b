/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host. */
#ifndef KVSTORE_H
#define KVSTORE_H

#include <packets.h>
#include <stdint.h>

#define KV_WAYS 4
#define KV_ENTRIES 500
#define KV_SETS (KV_ENTRIES / KV_WAYS)

/* Set of the cache in L2. */
struct kv_set {
    uint32_t state;
    uint32_t keys[KV_WAYS];
    uint32_t values[KV_WAYS];
};

/* State of a set: in use by an HPU; keys being changed; number of entries in use; number of replacements, which also
 * selects the next victim; number of updates. */
#define KV_BUSY 1u
#define KV_CHANGING 2u
#define KV_USED(state) ((state) >> 2 & 7)
#define KV_REPLACED(state) ((state) >> 5 & 0x3ff)
#define KV_VERSION(state) ((state) >> 15)
#define KV_STATE(version, replaced, used) ((version) << 15 | ((replaced) & 0x3ff) << 5 | (used) << 2)
/* Bits that change with the keys. */
#define KV_KEYS 0x7ffcu

/* Request, and the card's answer or the message to the host. */
struct kv_packet {
    pkt_hdr_t header;
    uint32_t operation;
    uint32_t key;
    uint32_t value;
    /* Version of the key's set made by an update. A read observed a version from `since` to `version`. */
    uint32_t since, version;
};

#define KV_READ 0u
#define KV_UPDATE 1u
/* Set in answers of the card. */
#define KV_ANSWERED 2u

/* Offset in host memory of the key and value replaced by a request, and of the requests that the card could not answer,
 * by IP identification. */
#define KV_REPLACED_PAIR(identification) ((identification) * 8)
#define KV_REPLACED_PAIRS (8 << 16)

#endif
