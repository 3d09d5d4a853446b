/* SPDX-License-Identifier: Apache-2.0 */
/* Runs instructions of one cycle (PsPIN §IV-B2, Fig. 8): with -DX=n, exactly n in each handler; without, the number in
 * the first word of the packet's data, at most 2,048, plus those that read it. */
#include <card.h>

#ifndef X
#define MOST 2048
#endif

__handler__ void instructions_ph(handler_args_t *args) {
#ifdef X
    (void)args;
    __asm__ volatile(".rept " STRINGIFY(X) "\n c.addi a1, 1 \n .endr" ::: "a1");
#else
    uint32_t number = *packet_data(args->task);
    uint32_t bytes = MIN(number, MOST) * 2, target;
    __asm__ volatile("la %0, 77f \n sub %0, %0, %1 \n jr %0 \n .rept " STRINGIFY(MOST) "\n c.addi a1, 1 \n .endr \n 77:"
                     : "=&r"(target)
                     : "r"(bytes)
                     : "a1");
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = instructions_ph;
    *th = NULL;
    *handler_mem = NULL;
}
