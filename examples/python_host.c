/* The handlers of python_host.py, as a library: handlers are C, and the host program in Python calls these functions.
 * spincc -shared -fPIC examples/python_host.c -o libpython_host.so && spinrun -n 3 python3 examples/python_host.py */
#include "card.h"

static ptl_handle_ct_t messages;

/* Adds a message's numbers to those in the card's memory. */
__handler int add(const ptl_payload_t p, void *state) {
    double *sums = state;
    const double *values = (const double *)p.base;
    const uint32_t first = p.offset / sizeof *values, count = p.length / sizeof *values;
    for (uint32_t i = 0; i < count; i++)
        sums[first + i] += values[i]; /* only one message at a time: the ranks take turns */
    return PtlHandlerDMAToHostB(sums + first, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

void host_open(void) { card_open(NULL, 0); }

/* Attaches the handler; the sums go to `sums`, `count` numbers. */
void host_receive(double *sums, uint32_t count) {
    ptl_me_t me = card_entry(sums, count * sizeof *sums, 0);
    me.payload_handler = add;
    CHECK(PtlHPUAllocMem(count * sizeof *sums, ni, &me.hpu_memory));
    messages = card_append(&me);
}

/* Sends numbers to rank 0. The card reads them later: they must stay until all ranks have met. */
void host_send(const double *values, uint32_t count) {
    card_put(card_memory(values, count * sizeof *values), count * sizeof *values, 0, 0);
}

/* Waits until `count` messages have been handled. */
void host_wait(uint64_t count) { card_wait(messages, count); }

void host_close(void) { card_close(); }
