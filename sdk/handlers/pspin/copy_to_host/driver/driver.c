/* SPDX-License-Identifier: Apache-2.0 */
/* Each packet must arrive in its slot of host memory. */
#include "../../common/case.h"

static void prepare(void) { host_bytes = options.messages * options.packets * HOST_SLOT; }

static bool check(void) {
    bool is_right = true;
    for (uint32_t at = 0; is_right && at < arrived.count; at++)
        is_right = is_same(host + at * HOST_SLOT, arrived.all[at].bytes, arrived.all[at].length, "packet", at);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct use_case copy_to_host = {
        .program = "copy_to_host",
        .payload = "copy_to_host_ph",
        .defaults = {8, 32, 1024},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 1,
        .most_bytes = HOST_SLOT,
        .most_packets = HOST_SLOTS,
        .prepare = prepare,
        .make = make_random,
        .check = check,
    };
    return run_case(&copy_to_host, argc, argv);
}
