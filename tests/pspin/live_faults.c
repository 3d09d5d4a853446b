/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that fail in the way that the first byte of a datagram selects, for the tests of live cards; others echo. */
#define FPSPIN
#include <handler.h>
#include <packets.h>

static volatile uint32_t never;

static uint32_t deep(uint32_t turns) {
    volatile uint32_t room[256];
    room[turns % 256] = turns;
    return turns == never - 1 ? 0 : deep(turns + 1) + room[0];
}

__handler__ void live_faults_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint8_t *frame = task->pkt_mem;
    switch (frame[sizeof(pkt_hdr_t)]) {
    case 'w': *(volatile uint32_t *)0xd0000004 = 1; break;  /* wild store */
    case 'n': *(volatile uint32_t *)(never * 4) = 1; break; /* store to a null pointer */
    case 'l':
        for (;;)
            never = 0;
    case 'a': __builtin_trap();
    case 's': never = deep(0); break;
    case 'c': spin_send_packet((void *)0xd0000000, 64, NULL); break;
    case 'h': spin_write_to_host((uint64_t)1 << 62, 1, NULL); break;
#ifdef SPIN_NATIVE
    case 'o': /* open(2) of nothing */
        __asm__ volatile("syscall" ::"a"(2), "D"(0), "S"(0), "d"(0) : "rcx", "r11", "memory");
        break;
    case 'r': /* overwrites the runtime's memory in this thread's window */
        for (uint32_t at = 0; at < 64; at += 4)
            *(volatile uint32_t *)((uint8_t *)native_hpu() + at) = 0;
        *(volatile uint32_t *)0xd0000008 = 1;
        break;
#endif
    case 'p': printf("datagram of %d bytes\n", (int)task->pkt_mem_size); break;
    default: break;
    }
    spin_send_packet(frame, task->pkt_mem_size, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = live_faults_ph;
    *th = NULL;
    *handler_mem = NULL;
}
