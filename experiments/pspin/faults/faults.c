/* SPDX-License-Identifier: Apache-2.0 */
/* A payload handler that fails for every eighth packet of a message in the way of -DCASE.
 *
 * 0 none is bad  1 it never returns  2 it writes where it may not  3 its stack is larger than that of an HPU  4 it jumps into data
 * All others take X cycles. */
#include <handler.h>

/* Generated packets have their number within the message behind their headers, most significant byte first. */
#define NUMBER(packet) ((packet)[28 + 7])

/* Has a frame of 2 KiB, whose far end it uses. */
static __attribute__((noinline)) void deep(void) {
    uint32_t frame[512];
    __asm__ volatile("sw zero, 0(%0)" ::"r"(frame) : "memory");
}

__handler__ void faults_ph(handler_args_t *args) {
    const uint8_t *packet = args->task->pkt_mem;
    if (CASE != 0 && NUMBER(packet) % 8 == 5) {
        if (CASE == 1)
            for (;;)
                __asm__ volatile("");
        if (CASE == 2)
            *(volatile uint32_t *)(uintptr_t)0x1D000000 = 1;
        if (CASE == 3)
            deep();
        if (CASE == 4)
            ((void (*)(void))(uintptr_t)packet)();
    }
    __asm__ volatile(".rept " STRINGIFY(X) " \n c.addi a1, 1 \n .endr" ::: "a1");
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = faults_ph;
    *th = NULL;
    *handler_mem = NULL;
}
