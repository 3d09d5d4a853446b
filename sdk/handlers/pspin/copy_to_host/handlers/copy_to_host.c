/* SPDX-License-Identifier: Apache-2.0 */
/* Copies each packet to its slot in host memory (PsPIN §IV-B2), from L1 or, with -DFROM_L2, from L2. */
#include <card.h>

__handler__ void copy_to_host_ph(handler_args_t *args) {
    task_t *task = args->task;
    const pkt_hdr_t *header = packet_of(task);
#ifdef FROM_L2
    const void *packet = task->l2_pkt_mem;
#else
    const void *packet = header;
#endif
    spin_dma_to_host(host_slot(task, header), (uintptr_t)packet, header->ip_hdr.length, false, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = copy_to_host_ph;
    *th = NULL;
    *handler_mem = NULL;
}
