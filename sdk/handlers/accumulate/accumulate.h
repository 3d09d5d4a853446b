/* Accumulate: multiplies an incoming array of double complex numbers onto one in host memory, packet by packet, on the
 * card (sPIN §4.4.2, App. C.3.2).
 *
 *     ptl_me_t me = {.start = numbers, .length = bytes, .payload_handler = accumulate_payload, …};
 *     struct accumulate state = {.offset = 0};
 *     PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory);
 *     me.hpu_initial_state = &state, me.hpu_initial_state_length = sizeof state;
 *
 * The numbers of a message go to the entry's memory from `offset` on, whatever the sender's remote offset. The entry's
 * event is posted when all results are in host memory. Messages that overlap in host memory must not be in flight at
 * the same time: one could read what the other is about to replace. A message that loses packets (flow control), or
 * whose handler fails, is a failure in the entry's event and counter; some of the numbers then keep their old values.
 * */
#ifndef HANDLERS_ACCUMULATE_H
#define HANDLERS_ACCUMULATE_H

#include <spin.h>

/* HPU memory of the entry; set by the host, handlers only read it. */
struct accumulate {
    ptl_size_t offset; /* position of the array in the entry's memory, bytes */
};

/* Bytes of host memory that a handler processes at a time. They are on its stack, which is HPU memory of its own
 * context: the paper's listing allocates them from a heap that cards do not have. */
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

#endif
