/* SPDX-License-Identifier: Apache-2.0 */
/* All packets must be done. */
#include "../../common/case.h"

int main(int argc, char **argv) {
    static const struct use_case empty = {
        .program = "empty",
        .payload = "empty_ph",
        .defaults = {8, 256, 64},
        .header_bytes = sizeof(pkt_hdr_t),
        .most_bytes = 9216,
    };
    return run_case(&empty, argc, argv);
}
