/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers controlled by their packets, for all ways to wait and to end. With the runtime, this fits into the
 * instruction cache of the smallest unit. */
#include <handler.h>

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = *ph = *th = 0;
    *memory = 0;
}

/* Executes one of these instructions, all but two of which fail. Those two are in both of the cache's lines. */
__attribute__((noinline, aligned(32))) static void fail(uint32_t kind, volatile void *word) {
    uint32_t at;
    __asm__ volatile(".option push\n .option norvc\n"
                     "auipc %0, 0\n slli %1, %1, 2\n add %0, %0, %1\n jr 16(%0)\n"
                     "j 1f\n"
                     "sw zero, 4(zero)\n"
                     "lw zero, 8(zero)\n"
                     "ebreak\n"
                     "j 1f\n"
                     ".word 0\n"
                     "csrrw zero, 0xC00, zero\n"
                     "csrrs zero, 0x7FF, zero\n"
                     "amoadd.w zero, zero, (%2)\n"
                     "jr 16(zero)\n"
                     "ecall\n"
                     "sh zero, 3(%2)\n"
                     "1: .option pop\n"
                     : "=&r"(at), "+r"(kind)
                     : "r"(word)
                     : "memory");
}

/* Byte by byte: action and repeat count. */
__handler__ void steps_ph(handler_args_t *args) {
    const task_t *task = args->task;
    const uint8_t *packet = (const uint8_t *)task->pkt_mem;
    uint32_t size = task->pkt_mem_size < 8 ? task->pkt_mem_size : 8;
    volatile uint32_t *words = (volatile uint32_t *)task->scratchpad[0];
    volatile uint32_t *own = words + 16 * (1 + args->hpu_id);
    spin_cmd_t one = 0, other = 0;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t what = packet[i] & 7, often = packet[i] >> 4, all = packet[i] == 31;
        if (what == 0 || all)
            for (uint32_t round = 0; round < often; round++)
                words[round] += what;
        if (what == 1 || all)
            for (uint32_t round = 0; round < often; round++)
                __atomic_fetch_add((uint32_t *)words + (round & 3), 1, __ATOMIC_RELAXED);
        if (what == 2 || all) {
            own[often] = 1;
            other = one;
            spin_send_packet((void *)packet, 1 + often, &one);
        }
        if (what == 3 || all) {
            spin_cmd_wait(one);
            spin_cmd_wait(other);
        }
        if (what == 4)
            fail(often, (volatile uint8_t *)own + 2);
        if (what == 5)
            for (;;)
                own[0] += 1;
        if (what == 6 || all) {
            spin_dma_t copy;
            spin_dma((void *)packet, (void *)(own + 64), 4 * often, SPIN_DMA_EXT2LOC, 0, &copy);
        }
    }
    fail(0, own);
    fail(4, own);
}
