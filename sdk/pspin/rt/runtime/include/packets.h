/* Headers of the packets that programs for PsPIN's interface exchange: IPv4 and UDP without Ethernet, in host byte order and with
 * the version in the low bits of the first byte. Both the card and the host include this file. */
#ifndef PACKETS_H
#define PACKETS_H

#include <stdint.h>

typedef struct ip_hdr {
    uint32_t version : 4;
    uint32_t ihl : 4; /* in words */
    uint32_t tos : 8;
    uint16_t length; /* of the packet with this header, in bytes */
    uint16_t identification;
    uint16_t offset;
    uint8_t ttl;
    uint8_t protocol;
    uint16_t checksum;
    uint32_t source_id;
    uint32_t dest_id;
} __attribute__((__packed__)) ip_hdr_t;

typedef struct udp_hdr {
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t length; /* with this header, in bytes */
    uint16_t checksum;
} __attribute__((__packed__)) udp_hdr_t;

typedef struct pkt_hdr {
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
} __attribute__((__packed__)) pkt_hdr_t;

#endif
