/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host: the table of the rules, and its hash. */
#ifndef FILTERING_H
#define FILTERING_H

#include <stdint.h>

/* A rule is at the index given by the hash of its address, or after it, without an empty entry (address 0) between. */
#define FILTER_ENTRIES 65536

struct filter_entry {
    uint32_t address; /* source of the packets */
    uint32_t port;    /* their new destination */
};

/* Hashes eight bytes, so that collisions are unpredictable without the second four: one round of Jenkins' mix ("Hash
 * functions", Dr. Dobb's Journal, 1997). */
#define FILTER_SECRET 0x5bd1e995u
#define FILTER_MIX(a, b, c, shift) ((a) - (b) - (c)) ^ (shift)

static inline uint32_t filter_place(uint32_t address) {
    uint32_t a = 0x9e3779b9u + address, b = 0x9e3779b9u + FILTER_SECRET, c = 8;
    a = FILTER_MIX(a, b, c, c >> 13);
    b = FILTER_MIX(b, c, a, a << 8);
    c = FILTER_MIX(c, a, b, b >> 13);
    a = FILTER_MIX(a, b, c, c >> 12);
    b = FILTER_MIX(b, c, a, a << 16);
    c = FILTER_MIX(c, a, b, b >> 5);
    a = FILTER_MIX(a, b, c, c >> 3);
    b = FILTER_MIX(b, c, a, a << 10);
    c = FILTER_MIX(c, a, b, b >> 15);
    return c % FILTER_ENTRIES;
}

#endif
