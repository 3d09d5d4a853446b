/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each UDP datagram back to its sender (the echo service of RFC 862). */
#include "../common/live.h"

__handler__ void udp_echo_ph(handler_args_t *args) {
    struct live_packet packet;
    uint8_t *data;
    uint32_t size;
    if (!live_ip(args->task, &packet))
        return;
    udp_hdr_t *udp = live_udp(&packet, &data, &size);
    if (udp)
        live_answer_udp(&packet, udp, size);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = udp_echo_ph;
    *th = NULL;
    *handler_mem = NULL;
}
