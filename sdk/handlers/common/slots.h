/* SPDX-License-Identifier: Apache-2.0 */
/* Allocator for slots of host memory, with its free list on the card: handlers allocate and free without the CPU.
 *
 * A ring of numbers, first in, first out, for any number of handlers at once. Allocation is one compare-and-swap.
 * Freeing takes two steps: a place is reserved and filled, and places become visible in order of reservation. */
#ifndef HANDLERS_COMMON_SLOTS_H
#define HANDLERS_COMMON_SLOTS_H

#include <spin.h>

enum { SLOTS_NONE = -1 };

/* State in HPU memory; `number` has `capacity` elements, a power of two. The counters wrap around. */
struct slots {
    uint32_t capacity;
    uint32_t taken;    /* slots allocated */
    uint32_t reserved; /* places reserved for freed slots */
    uint32_t given;    /* slots freed */
    uint32_t number[];
};

/* Bytes of a ring of `capacity` slots. */
static inline size_t slots_bytes(uint32_t capacity) { return sizeof(struct slots) + capacity * sizeof(uint32_t); }

/* Initializes a ring with the slots from 0 to `count` - 1; for the initial state of an entry. `capacity` is a power of
 * two, at least the largest number of slots free at once. */
static inline void slots_init(struct slots *slots, uint32_t capacity, uint32_t count) {
    *slots = (struct slots){.capacity = capacity, .reserved = count, .given = count};
    for (uint32_t i = 0; i < capacity; i++)
        slots->number[i] = i;
}

/* Takes a slot. Returns its number, or SLOTS_NONE when none is free. */
static inline int32_t slots_take(struct slots *slots) {
    uint32_t taken = __atomic_load_n(&slots->taken, __ATOMIC_RELAXED);
    for (;;) {
        if (taken == __atomic_load_n(&slots->given, __ATOMIC_ACQUIRE))
            return SLOTS_NONE;
        uint32_t number = __atomic_load_n(&slots->number[taken & (slots->capacity - 1)], __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&slots->taken, &taken, taken + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return (int32_t)number;
    }
}

/* Iterations of an empty loop between two polls of a counter, so that other HPUs get the memory's bank, too. */
enum { SLOTS_PAUSE = 64 };

/* Frees a slot. Waits for handlers that started to do so before. */
static inline void slots_give(struct slots *slots, uint32_t number) {
    uint32_t place = __atomic_fetch_add(&slots->reserved, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slots->number[place & (slots->capacity - 1)], number, __ATOMIC_RELAXED);
    while (__atomic_load_n(&slots->given, __ATOMIC_ACQUIRE) != place) {
        PtlHandlerYield();
        for (int i = 0; i < SLOTS_PAUSE; i++)
            __asm__ volatile("");
    }
    __atomic_store_n(&slots->given, place + 1, __ATOMIC_RELEASE);
}

#endif
