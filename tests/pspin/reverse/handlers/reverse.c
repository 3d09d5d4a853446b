/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each packet back with its bytes in reverse order. */
#include <handler.h>

__handler__ void reverse_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint8_t *bytes = (uint8_t *)task->pkt_mem;
    uint32_t size = task->pkt_mem_size;
    spin_cmd_t send;
    for (uint32_t at = 0; at < size / 2; at++) {
        uint8_t byte = bytes[at];
        bytes[at] = bytes[size - 1 - at];
        bytes[size - 1 - at] = byte;
    }
    spin_send_packet(bytes, size, &send);
    spin_cmd_wait(send);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = reverse_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
