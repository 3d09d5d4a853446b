// SPDX-License-Identifier: Apache-2.0
// Handlers that use everything that the edge of the unit may stop: the HPU, its recovery, transfers and host commands.
#include "pspin.h"

_Alignas(64) static uint32_t data[64];

static uint64_t host(const handler_args_t *args) {
    return (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
}

__handler__ void finish(handler_args_t *args) { (void)args; }

__handler__ void spin(handler_args_t *args) {
    (void)args;
    for (;;)
        asm volatile("nop");
}

// An illegal access: the recovery resets the core.
__handler__ void fail(handler_args_t *args) {
    (void)args;
    *(volatile uint32_t *)0x40 = 1;
}

__handler__ void write_host(handler_args_t *args) {
    spin_cmd_t command;
    spin_dma_to_host(host(args), (uintptr_t)data, sizeof data, false, &command);
    spin_cmd_wait(command);
}

__handler__ void read_host(handler_args_t *args) {
    spin_cmd_t command;
    spin_dma_from_host(host(args), (uintptr_t)data, sizeof data, false, &command);
    spin_cmd_wait(command);
}

// Words of L2, so that an access to a remote memory is usually in flight.
__handler__ void count(handler_args_t *args) {
    (void)args;
    for (;;)
        for (volatile uint32_t *word = data; word < data + 64; word++)
            *word += 1;
}

void init_handlers(handler_fn *header, handler_fn *payload, handler_fn *completion, void **memory) {
    static const handler_fn all[] = {finish, spin, fail, write_host, read_host, count};
    (void)memory;
    *header = *payload = *completion = all[data[1] % 6];
}
