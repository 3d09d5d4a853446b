/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to each packet must equal the contents of its slot in host memory. */
#include "../../common/case.h"

static void prepare(void) { host_bytes = options.messages * options.packets * HOST_SLOT; }

/* Data for the card has the packet's identification, and its data with all bits inverted. `--flip` changes it, because
 * the card does not read the packet's data. */
static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    uint8_t *place = host + (arrived.count - 1) * HOST_SLOT;
    make_random(packet, number, size);
    memcpy(place, packet->bytes, sizeof(pkt_hdr_t));
    for (uint32_t at = sizeof(pkt_hdr_t); at < size; at++)
        place[at] = (uint8_t)~packet->bytes[at];
    if (flip == (long)arrived.count - 1)
        place[sizeof(pkt_hdr_t)] ^= 1;
    return size;
}

static bool check(void) {
    const struct packet **found = answers();
    bool is_right = found != NULL;
    for (uint32_t at = 0; is_right && at < arrived.count; at++) {
        uint8_t *data = arrived.all[at].bytes + sizeof(pkt_hdr_t);
        uint32_t length = arrived.all[at].length, bytes = length - (uint32_t)sizeof(pkt_hdr_t);
        for (uint32_t byte = 0; byte < bytes; byte++)
            data[byte] = (uint8_t)~data[byte];
        is_right = is_equal(found[at] ? found[at]->length : 0, length, "length of the answer to packet", at) &&
                   is_same(found[at]->bytes + sizeof(pkt_hdr_t), data, bytes, "data of the answer to packet", at);
    }
    free(found);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case copy_from_host = {
        .program = "copy_from_host",
        .payload = "copy_from_host_ph",
        .defaults = {8, 32, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 1,
        .most_bytes = 2048,
        .most_packets = HOST_SLOTS,
        .prepare = prepare,
        .make = make,
        .check = check,
    };
    return run_case(&copy_from_host, argc, argv);
}
