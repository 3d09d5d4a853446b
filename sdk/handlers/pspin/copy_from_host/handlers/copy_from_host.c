/* SPDX-License-Identifier: Apache-2.0 */
/* Answers each packet with the contents of its slot in host memory, of the same size: copies it over the packet in L1
 * or, with -DTO_L2, in L2, and sends it. */
#include <card.h>

__handler__ void copy_from_host_ph(handler_args_t *args) {
    task_t *task = args->task;
    const pkt_hdr_t *header = packet_of(task);
#ifdef TO_L2
    void *packet = task->l2_pkt_mem;
#else
    void *packet = task->pkt_mem;
#endif
    uint32_t length = header->ip_hdr.length;
    spin_cmd_t copy;
    spin_dma_from_host(host_slot(task, header), (uintptr_t)packet, length, false, &copy);
    spin_cmd_wait(copy);
    spin_send_packet(packet, length, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = copy_from_host_ph;
    *th = NULL;
    *handler_mem = NULL;
}
