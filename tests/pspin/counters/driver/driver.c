/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in the card's memory must be those of the packets that were sent, and each message must tell the host its number. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gdriver.h"
#include "pspinsim.h"

static uint32_t packets, bytes, largest, told, wrong, writes_done, reads_done;
static const uint32_t image[6] = {1000, 2000, 0, 3000, 0, 0};

static uint32_t fill(uint32_t message, uint32_t index, uint8_t *packet, uint32_t size, uint32_t *in_l1) {
    uint32_t length = size - (7 * message + index) % (size / 2);
    memset(packet, 0xEE, length);
    packets++;
    bytes += length;
    largest = length > largest ? length : largest;
    *in_l1 = length;
    return length;
}

static void host_write(uint64_t address, uint8_t *data, size_t size) {
    uint64_t value, message = (address - GDRIVER_HOST_ADDR) / 8;
    memcpy(&value, data, sizeof value);
    told++;
    wrong += size != 8 || value != (message << 32 | 0xC0DE);
}

static void write_done(void *user) { writes_done += user == NULL; }
static void read_done(void *user) { reads_done += user == &reads_done; }

static int check(const char *name, uint32_t found, uint32_t expected) {
    if (found != expected)
        fprintf(stderr, "%s: %" PRIu32 " instead of %" PRIu32 "\n", name, found, expected);
    return found != expected;
}

int main(int argc, char **argv) {
    uint32_t memory[6];
    int contexts;
    if (gdriver_init(argc, argv, NULL, &contexts) != GDRIVER_OK)
        return EXIT_FAILURE;
    pspinsim_cb_set_pcie_slv_write(host_write);
    pspinsim_cb_set_pcie_mst_write_completion(write_done);
    pspinsim_cb_set_pcie_mst_read_completion(read_done);
    if (gdriver_add_ectx("build/counters", NULL, "counters_ph", "counters_th", fill, (void *)image, sizeof image, NULL,
                         0) != GDRIVER_OK ||
        gdriver_run() != GDRIVER_OK)
        return EXIT_FAILURE;
    uint64_t before = pspinsim_time();
    spin_nicmem_read(GDRIVER_L2_ADDR, memory, sizeof memory, &reads_done);
    if (pspinsim_run() != SPIN_SUCCESS || pspinsim_time() <= before)
        return EXIT_FAILURE;
    if (gdriver_fini() != GDRIVER_OK)
        return EXIT_FAILURE;
    int failed = check("packets", memory[0], 1000 + packets) + check("bytes", memory[1], 2000 + bytes) +
                 check("largest", memory[2], largest) + check("locked", memory[3], 3000 + packets) +
                 check("in scratchpads", memory[4], NUM_CLUSTERS * packets) + check("lock", memory[5], 0) +
                 check("wrong messages", wrong, 0) + check("writes", writes_done, 1) + check("reads", reads_done, 1);
    printf("%" PRIu32 " packets, %" PRIu32 " messages\n", packets, told);
    return told > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
