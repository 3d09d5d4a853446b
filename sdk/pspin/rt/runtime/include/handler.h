/* SPDX-License-Identifier: Apache-2.0 */
/* All parts of PsPIN's interface for handlers. */
#ifndef HANDLER_H
#define HANDLER_H

#include "hwsched.h"
#include "pspin.h"
#include "spin_conf.h"
#include "spin_dma.h"
#include "util.h"

#ifdef FPSPIN
#include "spin_host.h"
#endif

/* Finds the payload of an IPv4 packet with UDP at `pkt`, whose types are those of <packets.h>. */
#define GET_IP_UDP_PLD(pkt, pld_ptr, pld_len)                                                                          \
    {                                                                                                                  \
        ip_hdr_t *ip_hdr = (ip_hdr_t *)(pkt);                                                                          \
        (pld_ptr) = (void *)((uint8_t *)(pkt) + ip_hdr->ihl * 4 + sizeof(udp_hdr_t));                                  \
        (pld_len) = ip_hdr->length - sizeof(ip_hdr_t) - sizeof(udp_hdr_t);                                             \
    }

#endif
