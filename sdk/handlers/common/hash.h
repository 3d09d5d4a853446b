/* SPDX-License-Identifier: Apache-2.0 */
/* Hash of bytes, the same on host and card (MurmurHash3's 32 bits, Appleby). */
#ifndef HANDLERS_COMMON_HASH_H
#define HANDLERS_COMMON_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hash_rotate(uint32_t value, int by) { return value << by | value >> (32 - by); }

/* Finalizer: every bit of the result depends on every bit of `value`. */
static inline uint32_t hash_mix(uint32_t value) {
    value = (value ^ value >> 16) * 0x85ebca6bu;
    value = (value ^ value >> 13) * 0xc2b2ae35u;
    return value ^ value >> 16;
}

/* Returns the hash of `bytes` bytes at `data`. Different seeds give independent hashes. */
static inline uint32_t hash_bytes(const void *data, uint32_t bytes, uint32_t seed) {
    const uint8_t *at = data;
    uint32_t hash = seed, word = 0;
    for (uint32_t left = bytes; left >= 4; left -= 4, at += 4) {
        memcpy(&word, at, 4);
        hash = hash_rotate(hash ^ hash_rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u, 13) * 5 + 0xe6546b64u;
    }
    word = 0;
    for (uint32_t i = bytes & 3; i > 0; i--)
        word = word << 8 | at[i - 1];
    hash ^= hash_rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u;
    return hash_mix(hash ^ bytes);
}

#endif
