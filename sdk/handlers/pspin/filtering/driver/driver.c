/* SPDX-License-Identifier: Apache-2.0 */
/* Filters 512 messages by a table of 65,536 entries, as PsPIN §IV-C does. Half of the entries are rules; seven of eight packets match
 * one. */
#include "../../common/case.h"
#include "../filtering.h"

#define RULES (FILTER_ENTRIES / 2)

static struct filter_entry table[FILTER_ENTRIES];
static uint32_t addresses[RULES];

/* Returns the rule of an address, or the empty entry for it. */
static struct filter_entry *entry_of(uint32_t address) {
    uint32_t place = filter_place(address);
    while (table[place].address != 0 && table[place].address != address)
        place = (place + 1) % FILTER_ENTRIES;
    return &table[place];
}

static void prepare(void) {
    for (uint32_t rules = 0; rules < RULES;) {
        uint32_t address = random_word();
        struct filter_entry *entry = entry_of(address);
        if (address == 0 || entry->address != 0)
            continue;
        *entry = (struct filter_entry){address, random_below(1 << 16)};
        addresses[rules++] = address;
    }
    image = table;
    image_bytes = sizeof table;
    host_bytes = options.messages * options.packets * HOST_SLOT;
}

static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    bool matches = random_below(8) != 0;
    header_of(packet)->ip_hdr.source_id = matches ? addresses[random_below(RULES)] : random_word();
    return make_random(packet, number, size);
}

static bool check(void) {
    static const uint8_t nothing[HOST_SLOT];
    for (uint32_t at = 0; at < arrived.count; at++) {
        struct packet *packet = &arrived.all[at];
        const struct filter_entry *rule = entry_of(header_of(packet)->ip_hdr.source_id);
        const void *expected = nothing;
        if (rule->address != 0) {
            header_of(packet)->udp_hdr.dst_port = (uint16_t)rule->port;
            header_of(packet)->udp_hdr.checksum = udp_checksum(packet);
            expected = packet->bytes;
        }
        if (!is_same(host + at * HOST_SLOT, expected, packet->length, "packet", at))
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static const struct use_case filtering = {
        .program = "filtering",
        .payload = "filtering_ph",
        .defaults = {512, 1, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 4,
        .most_bytes = HOST_SLOT,
        .most_packets = HOST_SLOTS,
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&filtering, argc, argv);
}
