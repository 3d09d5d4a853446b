/* SPDX-License-Identifier: Apache-2.0 */
/* Answers `ping`: turns each ICMP echo request (RFC 792) into its reply and sends it back. */
#include "../common/live.h"

struct icmp {
    uint8_t type, code;
    uint16_t checksum;
    uint32_t rest;
} __attribute__((__packed__));

enum { REPLY = 0, REQUEST = 8 };

__handler__ void icmp_echo_ph(handler_args_t *args) {
    struct live_packet packet;
    if (!live_ip(args->task, &packet) || packet.size < sizeof(struct icmp))
        return;
    struct icmp *icmp = (struct icmp *)packet.payload;
    if (icmp->type != REQUEST)
        return;
    /* Only the type changes, so the checksum grows by its value (RFC 1624). */
    icmp->type = REPLY;
    uint32_t sum = icmp->checksum + REQUEST;
    icmp->checksum = (uint16_t)(sum + (sum >> 16));
    live_turn(&packet);
    live_send(&packet, packet.size);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = icmp_echo_ph;
    *th = NULL;
    *handler_mem = NULL;
}
