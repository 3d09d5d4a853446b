/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory is an array of the driver: the card reads and writes it by callbacks, in parts that do not cross 64 bytes. */
#include <stdio.h>
#include <string.h>

#include "gdriver.h"
#include "pspinsim.h"

#define ROOM 4096
#define PACKETS 64

static uint8_t source[PACKETS * ROOM], target[PACKETS * ROOM + 64], expected[PACKETS * ROOM + 64];
static uint32_t read_parts, write_parts, bad_parts;

static uint32_t fill(uint32_t message, uint32_t index, uint8_t *packet, uint32_t size, uint32_t *in_l1) {
    (void)message;
    uint32_t number = index % PACKETS;
    /* Lengths from 1 byte on, at any alignment on both sides. */
    uint32_t length = 1 + (131 * number) % (size - 12);
    uint32_t order[3] = {number * ROOM + 3 * number, sizeof source + number * ROOM + 5 * number % 67, length};
    memcpy(packet, order, sizeof order);
    for (uint32_t at = 0; at < length; at++)
        expected[order[1] - sizeof source + at] = source[order[0] + at] ^ 0x5A;
    *in_l1 = size;
    return size;
}

static void is_part(uint64_t address, size_t size) {
    bad_parts += size == 0 || size > 64 || address / 64 != (address + size - 1) / 64;
}

static void host_read(uint64_t address, uint8_t *data, size_t size) {
    read_parts++;
    is_part(address, size);
    memcpy(data, source + (address - GDRIVER_HOST_ADDR), size);
}

static void host_write(uint64_t address, uint8_t *data, size_t size) {
    write_parts++;
    is_part(address, size);
    memcpy(target + (address - GDRIVER_HOST_ADDR - sizeof source), data, size);
}

int main(int argc, char **argv) {
    int contexts;
    for (uint32_t at = 0; at < sizeof source; at++)
        source[at] = (uint8_t)(at * 2654435761u >> 24);
    if (gdriver_init(argc, argv, NULL, &contexts) != GDRIVER_OK)
        return EXIT_FAILURE;
    pspinsim_cb_set_pcie_slv_read(host_read);
    pspinsim_cb_set_pcie_slv_write(host_write);
    if (gdriver_add_ectx("build/host", NULL, "host_ph", NULL, fill, NULL, 0, NULL, 0) != GDRIVER_OK ||
        gdriver_run() != GDRIVER_OK || gdriver_fini() != GDRIVER_OK)
        return EXIT_FAILURE;
    int same = memcmp(target, expected, sizeof target) == 0;
    printf("%u parts read, %u written, %u bad, data %s\n", read_parts, write_parts, bad_parts,
           same ? "right" : "wrong");
    return same && bad_parts == 0 && read_parts > 0 && write_parts > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
