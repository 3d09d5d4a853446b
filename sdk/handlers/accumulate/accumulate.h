/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulate: multiplies an incoming array of double complex numbers onto one in host memory, packet by packet, on the
 * card (sPIN §4.4.2, App. C.3.2).
 *
 *     ptl_me_t me = {.start = numbers, .length = bytes, .payload_handler = accumulate_payload, …};
 *     struct accumulate state = {.offset = 0};
 *     PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory);
 *     me.hpu_initial_state = &state, me.hpu_initial_state_length = sizeof state;
 *
 * With `struct accumulate_cache` and accumulate_cached the card keeps the array in HPU memory, as cards that cache
 * atomic operations do (§4.4.2); accumulate_flush then writes it to host memory. README.md shows both entries.
 *
 * The numbers of a message go to the entry's memory from `offset` on, whatever the sender's remote offset. The entry's
 * event is posted when all results are in host memory, or in HPU memory if that keeps them. Messages that overlap in
 * host memory must not be in flight at the same time, since one could read data that the other is about to replace; in
 * HPU memory they may overlap. A message that loses packets (flow control), or whose handler fails, is a failure in the
 * entry's event and counter; some numbers then keep their old values. */
#ifndef HANDLERS_ACCUMULATE_H
#define HANDLERS_ACCUMULATE_H

#include <spin.h>

/* HPU memory of the entry; set by the host, handlers only read it. */
struct accumulate {
    ptl_size_t offset; /* position of the array in the entry's memory, bytes */
};

/* Bytes of host memory that a handler processes at a time. They are on its stack, in the HPU memory of its context: the
 * paper's listing allocates them from a heap, which cards lack. */
enum { ACCUMULATE_CHUNK = 4096 };

/* onto[i] *= by[i], for one complex number. The card fuses multiplications and additions. */
static inline void accumulate_one(double *restrict onto, const double *restrict by) {
    double re = onto[0], im = onto[1];
    onto[0] = re * by[0] - im * by[1];
    onto[1] = re * by[1] + im * by[0];
}

/* onto[i] *= by[i], for `count` complex numbers of two doubles each. An iteration multiplies two numbers, which saves a
 * fifth of the cycles. */
static inline void accumulate_multiply(double *restrict onto, const double *restrict by, size_t count) {
    for (; count >= 2; count -= 2, onto += 4, by += 4) {
        accumulate_one(onto, by);
        accumulate_one(onto + 2, by + 2);
    }
    if (count == 1)
        accumulate_one(onto, by);
}

/* Payload handler: fetches the old numbers, multiplies, writes them back. Fails when the array does not fit the entry's
 * memory. */
__handler int accumulate_payload(const ptl_payload_t p, void *state) {
    const struct accumulate *a = state;
    double old[ACCUMULATE_CHUNK / sizeof(double)];
    for (uint32_t done = 0, length = p.length, part; done < length; done += part) {
        ptl_size_t at = a->offset + p.offset + done;
        part = length - done < sizeof old ? length - done : sizeof old;
        if (PtlHandlerDMAFromHostB(at, old, part, PTL_ME_HOST_MEM))
            return FAIL;
        accumulate_multiply(old, (const double *)(p.base + done), part / (2 * sizeof(double)));
        if (PtlHandlerDMAToHostB(old, at, part, PTL_ME_HOST_MEM))
            return FAIL;
    }
    return SUCCESS;
}

/* ---- The array in HPU memory ------------------------------------------------------------------------------------- */

enum { ACCUMULATE_CHUNKS = 64, ACCUMULATE_CACHE = ACCUMULATE_CHUNKS * ACCUMULATE_CHUNK };

/* State of a chunk: in host memory only, in use by a handler, or in HPU memory, which is then newer. */
enum accumulate_chunk { ACCUMULATE_AWAY, ACCUMULATE_BUSY, ACCUMULATE_HERE };

/* HPU memory of the entries for messages and for the flush. The host sets the first two fields, zeroes the states, and
 * allocates `bytes` more for the numbers. */
struct accumulate_cache {
    struct accumulate array;
    uint32_t bytes;                     /* length of the cached start of the array, at most ACCUMULATE_CACHE */
    uint32_t states[ACCUMULATE_CHUNKS]; /* enum accumulate_chunk */
    double numbers[];
};

/* Number of cached bytes of chunk `number`. */
static inline uint32_t accumulate_kept(const struct accumulate_cache *c, uint32_t number) {
    uint32_t rest = c->bytes - number * ACCUMULATE_CHUNK;
    return rest < ACCUMULATE_CHUNK ? rest : ACCUMULATE_CHUNK;
}

/* Address of chunk `number` in HPU memory, and its offset in the entry's memory. */
static inline double *accumulate_numbers(struct accumulate_cache *c, uint32_t number) {
    return c->numbers + number * (ACCUMULATE_CHUNK / sizeof(double));
}
static inline ptl_size_t accumulate_place(const struct accumulate_cache *c, uint32_t number) {
    return c->array.offset + number * ACCUMULATE_CHUNK;
}

/* Waits until no other handler uses a chunk, and takes it. Returns its state. */
static inline uint32_t accumulate_take(struct accumulate_cache *c, uint32_t number) {
    uint32_t state;
    while ((state = __atomic_exchange_n(&c->states[number], ACCUMULATE_BUSY, __ATOMIC_ACQUIRE)) == ACCUMULATE_BUSY)
        PtlHandlerYield();
    return state;
}

static inline void accumulate_leave(struct accumulate_cache *c, uint32_t number, enum accumulate_chunk state) {
    __atomic_store_n(&c->states[number], (uint32_t)state, __ATOMIC_RELEASE);
}

/* Payload handler: multiplies onto numbers cached in HPU memory. It fetches them when a message is the first to need
 * them. It leaves the rest of the array to accumulate_payload. Fails when the array does not fit the entry's memory. */
__handler int accumulate_cached(const ptl_payload_t p, void *state) {
    struct accumulate_cache *c = state;
    ptl_payload_t rest = p;
    while (rest.length > 0 && rest.offset < c->bytes) {
        uint32_t at = (uint32_t)rest.offset, number = at / ACCUMULATE_CHUNK, kept = accumulate_kept(c, number);
        uint32_t left = number * ACCUMULATE_CHUNK + kept - at, part = rest.length < left ? rest.length : left;
        double *numbers = accumulate_numbers(c, number);
        if (accumulate_take(c, number) == ACCUMULATE_AWAY &&
            PtlHandlerDMAFromHostB(accumulate_place(c, number), numbers, kept, PTL_ME_HOST_MEM)) {
            accumulate_leave(c, number, ACCUMULATE_AWAY);
            return FAIL;
        }
        accumulate_multiply(numbers + at % ACCUMULATE_CHUNK / sizeof(double), (const double *)rest.base,
                            part / (2 * sizeof(double)));
        accumulate_leave(c, number, ACCUMULATE_HERE);
        rest.base += part;
        rest.offset += part;
        rest.length -= part;
    }
    return rest.length > 0 ? accumulate_payload(rest, &c->array) : SUCCESS;
}

/* Header handler: writes the cached numbers to host memory. It belongs to an empty message, the flush, whose event is
 * posted when they are there; the host may then change the array. Products of messages without an event before the
 * flush may be missing. Fails when host memory cannot be written. */
__handler int accumulate_flush(const ptl_header_t h, void *state) {
    struct accumulate_cache *c = state;
    (void)h;
    for (uint32_t number = 0; number * ACCUMULATE_CHUNK < c->bytes; number++) {
        uint32_t failed = 0;
        if (accumulate_take(c, number) == ACCUMULATE_HERE)
            failed = PtlHandlerDMAToHostB(accumulate_numbers(c, number), accumulate_place(c, number),
                                          accumulate_kept(c, number), PTL_ME_HOST_MEM);
        accumulate_leave(c, number, ACCUMULATE_AWAY);
        if (failed)
            return FAIL;
    }
    return PROCEED;
}

#endif
