/* SPDX-License-Identifier: Apache-2.0 */
/* Each packet must return, with its ends exchanged. */
#include "../../common/case.h"

static bool check(void) {
    const struct packet **found = answers();
    bool is_right = found != NULL;
    for (uint32_t at = 0; is_right && at < arrived.count; at++) {
        struct packet *packet = &arrived.all[at];
#ifndef UNCHANGED
        swap_ends(packet);
#endif
        is_right = is_equal(found[at] ? found[at]->length : 0, packet->length, "length of the answer to packet", at) &&
                   is_same(found[at]->bytes, packet->bytes, packet->length, "the answer to packet", at);
    }
    free(found);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case udp_ping_pong = {
        .program = "udp_ping_pong",
        .payload = "udp_ping_pong_ph",
        .defaults = {8, 32, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 1,
        .most_bytes = 2048,
        .most_packets = HOST_SLOTS,
        .make = make_random,
        .check = check,
    };
    return run_case(&udp_ping_pong, argc, argv);
}
