/* SPDX-License-Identifier: Apache-2.0 */
/* Two messages of two execution contexts, whose queues have the priorities of the arguments. Prints the packets of each that
 * were done when the first of them had half of its packets done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pspinsim.h"
#include "spin.h"

#define PACKETS 512

static uint32_t done[2], half[2];

static void fed_back(uint64_t message, uint64_t arrival, uint64_t submitted, uint64_t end) {
    (void)arrival;
    (void)submitted;
    (void)end;
    if (++done[message] == PACKETS / 2 && half[0] + half[1] == 0)
        memcpy(half, done, sizeof half);
}

int main(int argc, char **argv) {
    static uint8_t packet[64];
    pspin_conf_t conf;
    spin_ec_t ec;
    size_t size;
    memset(&ec, 0, sizeof ec);
    pspinsim_default_conf(&conf);
    conf.slm_files_path = "build/slm_files";
    if (pspinsim_init(argc, argv, &conf) != SPIN_SUCCESS)
        return 2;
    spin_nic_addr_t handler = 0;
    if (spin_find_handler_by_name("build/spinner", "spinner_ph", &handler, &size) != SPIN_SUCCESS)
        return 2;
    ec.ph_addr = handler;
    ec.ph_size = size;
    ec.handler_mem_addr = 0x1c300000;
    ec.handler_mem_size = 4096;
    pspinsim_cb_set_pkt_feedback(fed_back);
    for (int message = 1; message < argc; message++)
        pspinsim_set_fmq_prio(message - 1, atoi(argv[message]));
    for (uint32_t number = 0; number < 2 * PACKETS; number++) {
        ec.handler_mem_addr = 0x1c300000 + number % 2 * 4096;
        pspinsim_packet_add(&ec, number % 2, packet, sizeof packet, sizeof packet, number / 2 == PACKETS - 1, 1,
                            number % 2);
    }
    pspinsim_packet_eos();
    if (pspinsim_run() != SPIN_SUCCESS)
        return 1;
    printf("half %u %u\n", half[0], half[1]);
    return pspinsim_fini() == SPIN_SUCCESS ? 0 : 1;
}
