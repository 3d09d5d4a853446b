/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the source address of each packet in a table in L2; a packet with a rule gets its destination port and goes
 * to the host, others are dropped (PsPIN §IV-C, "packet filtering/rewriting"). */
#include <card.h>

#include "../filtering.h"

/* The rule for an address, or NULL. */
static inline const struct filter_entry *rule_for(const struct filter_entry *table, uint32_t address) {
    for (uint32_t place = filter_place(address), tries = 0; tries < FILTER_ENTRIES; tries++) {
        const struct filter_entry *entry = &table[(place + tries) % FILTER_ENTRIES];
        uint32_t found = entry->address;
        if (found == address)
            return entry;
        if (found == 0)
            return NULL;
    }
    return NULL;
}

/* Returns the checksum of a packet after a change of a half-word (RFC 1624); 0 means no checksum. */
static inline uint16_t changed_checksum(uint16_t checksum, uint16_t before, uint16_t after) {
    if (checksum == 0)
        return 0;
    uint32_t sum = (checksum ^ 0xffffu) + (before ^ 0xffffu) + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16)) & 0xffff;
    return sum ? sum : 0xffff;
}

__handler__ void filtering_ph(handler_args_t *args) {
    task_t *task = args->task;
    pkt_hdr_t *header = packet_of(task);
    uint32_t address = header->ip_hdr.source_id;
    if (address == 0)
        return;
    const struct filter_entry *rule = rule_for(task->handler_mem, address);
    if (rule == NULL)
        return;
    uint16_t port = rule->port;
    udp_hdr_t *udp = &header->udp_hdr;
    udp->checksum = changed_checksum(udp->checksum, udp->dst_port, port);
    udp->dst_port = port;
    spin_dma_to_host(host_slot(task, header), (uintptr_t)header, task->pkt_mem_size, false, NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = filtering_ph;
    *th = NULL;
    *handler_mem = NULL;
}
