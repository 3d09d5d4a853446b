/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the data of a message to the host in strided blocks, from L2 (PsPIN §IV-C, "scatter"). Handlers need only the
 * header; the data goes from the packet in L2 to the host, one command per block. */
#include <card.h>

#include "../strided_ddt.h"

__handler__ void strided_ddt_ph(handler_args_t *args) {
    task_t *task = args->task;
    const struct strided_ddt_header *header = packet_of(task);
    const struct strided_ddt *layout = task->handler_mem;
    uint32_t length = header->packet.ip_hdr.length;
    if (length <= sizeof(*header))
        return;
    uint32_t left = length - sizeof(*header);
    uintptr_t source = (uintptr_t)task->l2_pkt_mem + sizeof(*header);
    uint32_t block = layout->block_bytes, stride = layout->stride_bytes;
    uint32_t number = header->offset / block, within = header->offset % block;
    uint32_t start = number * stride + within;
    if (task->flow_id)
        start += task->flow_id * layout->message_bytes;
    uint64_t target = host_address(task, start);
    for (uint32_t bytes = MIN(block - within, left); left > 0; bytes = MIN(block, left)) {
        spin_dma_to_host(target, source, bytes, false, NULL);
        source += bytes;
        target += bytes + (stride - block);
        left -= bytes;
    }
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = strided_ddt_ph;
    *th = NULL;
    *handler_mem = NULL;
}
