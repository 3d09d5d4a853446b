/* SPDX-License-Identifier: Apache-2.0 */
/* All packets must be done. SPINKIT_PSPIN_X is the number of instructions of a handler that was compiled without
 * one. */
#include "../../common/case.h"

static uint32_t instructions;

static uint32_t make(struct packet *packet, uint32_t number, uint32_t size) {
    (void)number;
    set_word(packet, 0, instructions);
    return size;
}

int main(int argc, char **argv) {
    static const struct use_case use = {
        .program = "instructions",
        .payload = "instructions_ph",
        .defaults = {8, 256, 64},
        .header_bytes = sizeof(pkt_hdr_t),
        .least_data = 4,
        .most_bytes = 9216,
        .make = make,
    };
    const char *text = getenv("SPINKIT_PSPIN_X");
    if (text != NULL)
        instructions = (uint32_t)strtoul(text, NULL, 0);
    return run_case(&use, argc, argv);
}
