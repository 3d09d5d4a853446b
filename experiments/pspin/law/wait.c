/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that takes X cycles, a multiple of 100, besides its call and its return. */
#include <handler.h>

__handler__ void wait_ph(handler_args_t *args) {
    /* A round is 96 additions, a subtraction, and a branch that takes three cycles. */
    uint32_t rounds = X / 100;
    __asm__ volatile("1: .rept 96 \n c.addi %1, 1 \n .endr \n addi %0, %0, -1 \n bnez %0, 1b"
                     : "+r"(rounds), "+r"(args));
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = wait_ph;
    *th = NULL;
    *handler_mem = NULL;
}
