/* SPDX-License-Identifier: Apache-2.0 */
/* Packet headers of programs for PsPIN's interface. Both the card and the host include this file.
 *
 * Published programs exchange IPv4 and UDP without Ethernet, in host byte order and with the version in the low bits of
 * the first byte. With -DFPSPIN, packets are those of FPsPIN: whole Ethernet frames in network byte order, and SLMP,
 * its protocol for messages over UDP. */
#ifndef PACKETS_H
#define PACKETS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ip_hdr {
#ifdef FPSPIN
    uint32_t ihl : 4; /* in words */
    uint32_t version : 4;
#else
    uint32_t version : 4;
    uint32_t ihl : 4; /* in words */
#endif
    uint32_t tos : 8;
    uint16_t length; /* length of the packet from this header on, in bytes */
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
    uint16_t length; /* length including this header, in bytes */
    uint16_t checksum;
} __attribute__((__packed__)) udp_hdr_t;

#ifdef FPSPIN
typedef struct mac_addr {
    uint8_t data[6];
} __attribute__((__packed__)) mac_addr_t;

typedef struct eth_hdr {
    mac_addr_t dest;
    mac_addr_t src;
    uint16_t length; /* or the type of the payload */
} __attribute__((__packed__)) eth_hdr_t;

typedef struct slmp_hdr {
    uint16_t flags;
    uint32_t msg_id;
    uint32_t pkt_off; /* offset of the payload within its message, in bytes */
} __attribute__((__packed__)) slmp_hdr_t;

typedef struct pkt_hdr {
    eth_hdr_t eth_hdr;
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
} __attribute__((__packed__)) pkt_hdr_t;

typedef struct slmp_pkt_hdr {
    eth_hdr_t eth_hdr;
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
    slmp_hdr_t slmp_hdr;
} __attribute__((__packed__)) slmp_pkt_hdr_t;

/* Flags of SLMP: the last packet of a message, a request for an acknowledgement, and an acknowledgement. */
#define MKEOM 0x8000
#define MKSYN 0x4000
#define MKACK 0x2000
#define EOM(flags) ((flags) & MKEOM)
#define SYN(flags) ((flags) & MKSYN)
#define ACK(flags) ((flags) & MKACK)

#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)
#define ntohl(x) __builtin_bswap32(x)

/* Bytes of payload of an SLMP packet, whose headers are at `hdrs`. */
#define SLMP_PAYLOAD_LEN(hdrs) (ntohs((hdrs)->udp_hdr.length) - sizeof(udp_hdr_t) - sizeof(slmp_hdr_t))

/* Returns the Internet checksum (RFC 1071) of some bytes, as stored in a header. */
static inline uint16_t ip_checksum(void *data, size_t length) {
    const uint8_t *bytes = (const uint8_t *)data;
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++)
        sum += (uint32_t)bytes[i] << (i % 2 * 8);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}
#else
typedef struct pkt_hdr {
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
} __attribute__((__packed__)) pkt_hdr_t;
#endif

#endif
