/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the first word of its handler memory, and then makes it one larger. */
#include <handler.h>

__handler__ void calls_ph(handler_args_t *args) {
    volatile uint32_t *memory = (volatile uint32_t *)args->task->handler_mem;
    uint32_t *packet = (uint32_t *)args->task->pkt_mem;
    spin_cmd_t send;
    packet[0] = memory[0];
    packet[1] = args->task->flow_id;
    packet[2] = args->task->pkt_mem_size;
    spin_send_packet(packet, 12, &send);
    spin_cmd_wait(send);
    memory[0] = packet[0] + 1;
}

/* Puts the packet into the memory of another node. */
__handler__ void put_ph(handler_args_t *args) {
    spin_cmd_t put;
    spin_rdma_put(7, args->task->pkt_mem, args->task->pkt_mem_size, &put);
    spin_cmd_wait(put);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = calls_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
