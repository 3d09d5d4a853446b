/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each packet back: exchanges its ends, and issues the command (PsPIN §IV-B2). With -DFROM_L2, the packet is sent
 * from L2, to which the cluster's DMA engine copies the new ends first; with -DFROM_L2 -DUNCHANGED it is sent
 * unchanged, as measured in Fig. 9. */
#include <card.h>

__handler__ void udp_ping_pong_ph(handler_args_t *args) {
    task_t *task = args->task;
    pkt_hdr_t *header = packet_of(task);
    swap_ends(header, header);
#ifdef FROM_L2
    pkt_hdr_t *packet = task->l2_pkt_mem;
#ifndef UNCHANGED
    const uint32_t first = offsetof(pkt_hdr_t, ip_hdr.source_id), last = offsetof(pkt_hdr_t, udp_hdr.length);
    spin_dma_t copy;
    spin_dma((char *)header + first, (char *)packet + first, last - first, SPIN_DMA_LOC2EXT, 0, &copy);
    spin_dma_wait(copy);
#endif
#else
    pkt_hdr_t *packet = header;
#endif
    spin_send_packet(packet, header->ip_hdr.length, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = udp_ping_pong_ph;
    *th = NULL;
    *handler_mem = NULL;
}
