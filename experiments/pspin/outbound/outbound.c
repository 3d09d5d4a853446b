/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that move each packet out of the unit: MODE_send exchanges its addresses and ports and sends it back, MODE_host copies it to
 * the host. FROM_L2 takes the packet from L2 instead of L1, as it came. */
#include <handler.h>
#include <packets.h>

#ifdef FROM_L2
#define PACKET(task) ((task)->l2_pkt_mem)
#else
#define PACKET(task) ((task)->pkt_mem)
#endif

#ifdef MODE_send
__handler__ void outbound_ph(handler_args_t *args) {
    task_t *task = args->task;
    pkt_hdr_t *header = __builtin_assume_aligned(task->pkt_mem, 4);
    uint32_t source = header->ip_hdr.source_id;
    uint16_t port = header->udp_hdr.src_port;
    header->ip_hdr.source_id = header->ip_hdr.dest_id;
    header->ip_hdr.dest_id = source;
    header->udp_hdr.src_port = header->udp_hdr.dst_port;
    header->udp_hdr.dst_port = port;
    spin_send_packet(PACKET(task), task->pkt_mem_size, NULL);
}
#else
__handler__ void outbound_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_dma_to_host(host, (uintptr_t)PACKET(task), task->pkt_mem_size, false, NULL);
}
#endif

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = outbound_ph;
    *th = NULL;
    *handler_mem = NULL;
}
