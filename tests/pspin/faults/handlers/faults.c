/* SPDX-License-Identifier: Apache-2.0 */
/* Forbidden actions of a handler, selected by the number of its message. */
#include <handler.h>

__handler__ void faults_ph(handler_args_t *args) {
    task_t *task = args->task;
    volatile uint32_t *memory = (volatile uint32_t *)task->handler_mem;
    spin_cmd_t command;
#ifdef END
    printf("%s\n", "the end");
    TERMINATE;
#endif
    switch (task->flow_id) {
    case 0: amo_add((volatile int32_t *)memory, 1); break;
    case 1: memory[task->handler_mem_size / 4] = 1; break;
    case 2:
        for (;;)
            __asm__ volatile("");
    case 3: amo_add((volatile int32_t *)((uintptr_t)memory + 2), 1); break;
    case 4: __asm__ volatile("ebreak"); break;
    case 5: ((handler_fn)0)(args); break;
    case 6: spin_send_packet((void *)0x1C400000, 64, &command); break;
    }
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = faults_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
#ifdef ENDLESS
    for (;;)
        __asm__ volatile("");
#endif
#ifdef FAULT
    *(volatile uint32_t *)0x1C400000 = 0;
#endif
    printf("ready: %d handlers\n", 1);
}
