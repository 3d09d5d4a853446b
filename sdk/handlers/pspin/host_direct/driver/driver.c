/* SPDX-License-Identifier: Apache-2.0 */
/* The first eight bytes of each packet's data must arrive in their slot of host memory. */
#include "../../common/case.h"
#include "../host_direct.h"

static void prepare(void) { host_bytes = HOST_DIRECT_PLACE(options.messages * options.packets); }

static bool check(void) {
    bool is_right = true;
    for (uint32_t at = 0; is_right && at < arrived.count; at++)
        is_right = is_same(host + HOST_DIRECT_PLACE(at), arrived.all[at].bytes + use_case->header_bytes, 8,
                           "data of packet", at);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case host_direct = {
        .program = "host_direct",
        .payload = "host_direct_ph",
        .defaults = {8, 32, 64},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 8,
        .most_bytes = 9216,
        .most_packets = HOST_SLOTS,
        .prepare = prepare,
        .make = make_random,
        .check = check,
    };
    return run_case(&host_direct, argc, argv);
}
