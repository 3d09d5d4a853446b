/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the handlers for real networks (spinkit pspin serve). They get whole Ethernet frames in network byte
 * order, as on FPsPIN. Headers begin at even addresses only, so fields are those of packed structures. */
#ifndef LIVE_H
#define LIVE_H

#ifndef FPSPIN
#define FPSPIN
#endif
#include <handler.h>
#include <packets.h>
#include <string.h>

/* Largest IP packet of an Ethernet network. */
#define LIVE_MTU 1500

/* Frame of a task, with IPv4. */
struct live_packet {
    eth_hdr_t *ethernet;
    ip_hdr_t *ip;
    uint8_t *payload; /* bytes after the IP header */
    uint32_t size;    /* number of these bytes, without the padding of short frames */
};

/* Finds the headers of a task's frame. Returns false if they are not whole: lengths of a frame may be anything. */
static inline bool live_ip(const task_t *task, struct live_packet *packet) {
    uint32_t copied = task->pkt_mem_size;
    if (copied < sizeof(eth_hdr_t) + sizeof(ip_hdr_t))
        return false;
    packet->ethernet = (eth_hdr_t *)task->pkt_mem;
    packet->ip = (ip_hdr_t *)(packet->ethernet + 1);
    uint32_t header = packet->ip->ihl * 4, length = ntohs(packet->ip->length);
    if (packet->ip->version != 4 || header < sizeof(ip_hdr_t) || length < header ||
        length > copied - sizeof(eth_hdr_t))
        return false;
    packet->payload = (uint8_t *)packet->ip + header;
    packet->size = length - header;
    return true;
}

/* Finds the UDP header and its payload. Returns NULL if they are not whole. */
static inline udp_hdr_t *live_udp(const struct live_packet *packet, uint8_t **data, uint32_t *size) {
    udp_hdr_t *udp = (udp_hdr_t *)packet->payload;
    if (packet->size < sizeof(*udp))
        return NULL;
    uint32_t length = ntohs(udp->length);
    if (length < sizeof(*udp) || length > packet->size)
        return NULL;
    *data = (uint8_t *)(udp + 1);
    *size = length - sizeof(*udp);
    return udp;
}

/* Exchanges source and destination of the Ethernet and IP headers. The checksum of IP stays correct. */
static inline void live_turn(struct live_packet *packet) {
    mac_addr_t mac = packet->ethernet->dest;
    packet->ethernet->dest = packet->ethernet->src;
    packet->ethernet->src = mac;
    uint32_t address = packet->ip->dest_id;
    packet->ip->dest_id = packet->ip->source_id;
    packet->ip->source_id = address;
}

/* Sends the packet with `size` bytes after its IP header. */
static inline void live_send(const struct live_packet *packet, uint32_t size) {
    spin_send_packet(packet->ethernet, (uint32_t)(packet->payload - (uint8_t *)packet->ethernet) + size, NULL);
}

/* Turns a request into its answer of `size` bytes after the UDP header, and sends it. The checksum of UDP is left out, as
 * IPv4 allows (RFC 768); IP gets a new one. */
static inline void live_answer_udp(struct live_packet *packet, udp_hdr_t *udp, uint32_t size) {
    live_turn(packet);
    uint16_t port = udp->dst_port;
    udp->dst_port = udp->src_port;
    udp->src_port = port;
    udp->length = htons(sizeof(*udp) + size);
    udp->checksum = 0;
    uint32_t header = packet->ip->ihl * 4;
    packet->ip->length = htons(header + sizeof(*udp) + size);
    packet->ip->ttl = 64;
    packet->ip->checksum = 0;
    packet->ip->checksum = ip_checksum(packet->ip, header);
    live_send(packet, sizeof(*udp) + size);
}

#endif
