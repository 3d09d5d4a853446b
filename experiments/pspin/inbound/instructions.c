/* SPDX-License-Identifier: Apache-2.0 */
/* A handler of X instructions that take a cycle each, besides its return. */
#include <handler.h>

__handler__ void instructions_ph(handler_args_t *args) {
    __asm__ volatile(".rept " STRINGIFY(X) "\n addi %0, %0, 1 \n .endr" : "+r"(args));
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = instructions_ph;
    *th = NULL;
    *handler_mem = NULL;
}
