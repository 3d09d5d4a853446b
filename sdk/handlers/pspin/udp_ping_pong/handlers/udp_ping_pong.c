/* Sends each packet back: exchanges its ends, and gives the command (PsPIN §IV-B2). With -DFROM_L2, the packet is sent from L2, where
 * the new header is written first; with -DFROM_L2 -DUNCHANGED it is sent as it is there, which is what Fig. 9 measures. */
#include <card.h>

__handler__ void udp_ping_pong_ph(handler_args_t *args) {
    task_t *task = args->task;
    pkt_hdr_t *header = packet_of(task);
#ifdef FROM_L2
    pkt_hdr_t *packet = __builtin_assume_aligned(task->l2_pkt_mem, 4);
#else
    pkt_hdr_t *packet = header;
#endif
#ifdef UNCHANGED
    swap_ends(header, header);
#else
    swap_ends(header, packet);
#endif
    spin_send_packet(packet, header->ip_hdr.length, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = udp_ping_pong_ph;
    *th = NULL;
    *handler_mem = NULL;
}
