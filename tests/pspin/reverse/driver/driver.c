/* SPDX-License-Identifier: Apache-2.0 */
/* Packets with different bytes; returned ones must have them in reverse order. */
#include <stdio.h>
#include <string.h>

#include "gdriver.h"
#include "pspinsim.h"

static uint32_t came, wrong;

static uint8_t byte_of(uint32_t packet, uint32_t at) { return (uint8_t)(31 * packet + 7 * at + at / 256); }

static uint32_t fill(uint32_t message, uint32_t index, uint8_t *packet, uint32_t size, uint32_t *in_l1) {
    memcpy(packet, &index, sizeof index);
    for (uint32_t at = sizeof index; at < size; at++)
        packet[at] = byte_of(index, at);
    return size;
}

static void out(uint8_t *packet, size_t size) {
    uint32_t index = 0;
    for (uint32_t at = 0; at < sizeof index; at++)
        index |= (uint32_t)packet[size - 1 - at] << 8 * at;
    came++;
    for (uint32_t at = sizeof index; at < size; at++)
        wrong += packet[size - 1 - at] != byte_of(index, at);
}

int main(int argc, char **argv) {
    int contexts;
    if (gdriver_init(argc, argv, NULL, &contexts) != GDRIVER_OK)
        return EXIT_FAILURE;
    pspinsim_cb_set_pkt_out(out);
    if (gdriver_add_ectx("build/reverse", NULL, "reverse_ph", NULL, fill, NULL, 0, NULL, 0) != GDRIVER_OK ||
        gdriver_run() != GDRIVER_OK || gdriver_fini() != GDRIVER_OK)
        return EXIT_FAILURE;
    printf("%u packets came back, %u wrong bytes\n", came, wrong);
    return came > 0 && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
