/* Free slots of host memory, whose numbers are kept on the card: handlers take and give them without the CPU.
 *
 * A ring of numbers, first in, first out, for any number of handlers at once. A slot is taken by one compare-and-swap. It is given
 * in two steps: a place is reserved and filled, and places become visible in the order of their reservation. */
#ifndef HANDLERS_COMMON_SLOTS_H
#define HANDLERS_COMMON_SLOTS_H

#include <spin.h>

enum { SLOTS_NONE = -1 };

/* In HPU memory; `number` has `capacity` elements, a power of two. The counters wrap around. */
struct slots {
    uint32_t capacity;
    uint32_t taken;    /* numbers that were taken */
    uint32_t reserved; /* places that were reserved for numbers that are given */
    uint32_t given;    /* numbers that can be taken */
    uint32_t number[];
};

/* Bytes of a ring of `capacity` slots. */
static inline size_t slots_bytes(uint32_t capacity) { return sizeof(struct slots) + capacity * sizeof(uint32_t); }

/* Makes a ring with the slots from 0 to `count` - 1; for the initial state of an entry. `capacity` is a power of two, at least the
 * number of slots that will ever be free at once. */
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

/* Turns of an empty loop between two looks at a counter, so that others get the memory's bank, too. */
enum { SLOTS_PAUSE = 64 };

/* Gives a slot back. Waits for handlers that have begun to do so before. */
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
