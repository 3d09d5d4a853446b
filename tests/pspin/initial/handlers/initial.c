/* SPDX-License-Identifier: Apache-2.0 */
/* Static data, and a program with code that only older compilers accept. */
#include <handler.h>

volatile uint32_t table[4] __attribute__((section(".l2_handler_data"))) = {1, 2, 3, 4};
static uint32_t counter = 0x11223344;
static uint32_t zeroes[16];

__handler__ void initial_ph(handler_args_t *args) {
    uint32_t *words = (uint32_t)args->task->pkt_mem;
    zeroes[args->hpu_id] += words[0] + counter++;
    undeclared(zeroes);
}

int undeclared(uint32_t *values) { return table[0] += values[0]; }

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = initial_ph;
    *th = NULL;
    *handler_mem_ptr = (void *)table;
}
