/* SPDX-License-Identifier: Apache-2.0 */
/* SplitMix64: random numbers that are equal on every computer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, 2014). */
#ifndef HANDLERS_COMMON_RANDOM_H
#define HANDLERS_COMMON_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Mixes the bits of `value`; equal values give equal numbers. */
static inline uint64_t random_mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* Advances `*state` and returns the next number. */
static inline uint64_t random_next(uint64_t *state) { return random_mix(*state += RANDOM_STEP); }

#endif
