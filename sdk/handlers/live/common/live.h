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
    if (packet->ip->version != 4 || header < sizeof(ip_hdr_t) || length < header || length > copied - sizeof(eth_hdr_t))
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

/* Bytes of an HPU's buffer for an answer: a frame of the largest size. */
#define LIVE_BUFFER 2048

/* Returns the HPU's buffer in the scratchpad of its cluster; NULL if the scratchpad is too small. */
static inline void *live_buffer(const handler_args_t *args) {
    const task_t *task = args->task;
    uint32_t cluster = args->cluster_id % 4, offset = args->hpu_id * LIVE_BUFFER;
    if (offset + LIVE_BUFFER > task->scratchpad_size[cluster])
        return NULL;
    return (uint8_t *)task->scratchpad[cluster] + offset;
}

/* Copies the headers of a request with a UDP header to `buffer`, for an answer that is longer than the request. The new
 * IP header has no options. Returns the place of the answer's data. */
static inline uint8_t *live_copy(const struct live_packet *request, const udp_hdr_t *udp, void *buffer,
                                 struct live_packet *answer) {
    answer->ethernet = buffer;
    answer->ip = (ip_hdr_t *)(answer->ethernet + 1);
    answer->payload = (uint8_t *)(answer->ip + 1);
    memcpy(answer->ethernet, request->ethernet, sizeof(eth_hdr_t));
    memcpy(answer->ip, request->ip, sizeof(ip_hdr_t));
    answer->ip->ihl = sizeof(ip_hdr_t) / 4;
    answer->ip->offset = 0;
    memcpy(answer->payload, udp, sizeof(udp_hdr_t));
    return answer->payload + sizeof(udp_hdr_t);
}

#endif
