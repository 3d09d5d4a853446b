/* SPDX-License-Identifier: Apache-2.0 */
/* Each packet names an address in host memory and a length. The data is read, changed, and written to another
 * address. */
#include <handler.h>

typedef struct order {
    uint32_t from, to, size;
    uint8_t data[];
} order_t;

__handler__ void host_ph(handler_args_t *args) {
    task_t *task = args->task;
    order_t *order = (order_t *)task->pkt_mem;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    uint32_t card = (uint32_t)order->data;
    spin_cmd_t command;
    bool done = false;
    spin_dma_from_host(host + order->from, card, order->size, false, &command);
    spin_cmd_wait(command);
    for (uint32_t at = 0; at < order->size; at++)
        order->data[at] ^= 0x5A;
    spin_dma_to_host(host + order->to, card, order->size, true, &command);
    while (!done)
        spin_cmd_test(command, &done);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = host_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
