/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the host side: effects and refusals. The names, types and sizes of the headers are those of the
 * published interface. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packets.h"
#include "pspinsim.h"
#include "spin.h"
#include "spin_hw_conf.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Types: a mismatch does not compile. */
static int (*const default_conf)(pspin_conf_t *) = pspinsim_default_conf;
static int (*const init)(int, char **, pspin_conf_t *) = pspinsim_init;
static int (*const run)(void) = pspinsim_run;
static int (*const run_tick)(uint8_t *) = pspinsim_run_tick;
static int (*const fini)(void) = pspinsim_fini;
static int (*const packet_add)(spin_ec_t *, uint32_t, uint8_t *, size_t, size_t, uint8_t, uint32_t,
                               uint64_t) = pspinsim_packet_add;
static int (*const trace_read)(const char *, const char *) = pspinsim_packet_trace_read;
static int (*const eos)(void) = pspinsim_packet_eos;
static int (*const set_out)(void (*)(uint8_t *, size_t)) = pspinsim_cb_set_pkt_out;
static int (*const set_feedback)(void (*)(uint64_t, uint64_t, uint64_t, uint64_t)) = pspinsim_cb_set_pkt_feedback;
static int (*const set_write)(void (*)(uint64_t, uint8_t *, size_t)) = pspinsim_cb_set_pcie_slv_write;
static int (*const set_read)(void (*)(uint64_t, uint8_t *, size_t)) = pspinsim_cb_set_pcie_slv_read;
static int (*const set_written)(void (*)(void *)) = pspinsim_cb_set_pcie_mst_write_completion;
static int (*const set_fetched)(void (*)(void *)) = pspinsim_cb_set_pcie_mst_read_completion;
static int (*const nicmem_write)(spin_nic_addr_t, void *, size_t, void *) = spin_nicmem_write;
static int (*const nicmem_read)(spin_nic_addr_t, void *, size_t, void *) = spin_nicmem_read;
static int (*const find)(const char *, const char *, spin_nic_addr_t *, size_t *) = spin_find_handler_by_name;

typedef char ec_is_packed[sizeof(spin_ec_t) == 76 ? 1 : -1];
typedef char headers_are_packed[sizeof(ip_hdr_t) == 20 && sizeof(udp_hdr_t) == 8 && sizeof(pkt_hdr_t) == 28 ? 1 : -1];
typedef char sizes[NUM_CLUSTERS == 4 && NUM_CORES == 8 && C_MSGID_WIDTH == 10 && PCIE_START_ADDR == 1ull << 60 &&
                           L1_CLUSTER_ACTUAL_MEM_SIZE == 0x100000 && L1_RUNTIME_OFFSET == 0x400 &&
                           L1_RUNTIME_SIZE == 0x4000 && L1_PKT_BUFF_SIZE == 0x8000 && L1_SCRATCHPAD_OFFSET == 0xC400 &&
                           L2_PKT_BUFF_START == 0x1c400000 && L2_PKT_BUFF_SIZE == 4 * 1024 * 1024
                       ? 1
                       : -1];

#define MEMORY 0x1c300000

static spin_ec_t ec;
static uint8_t packet[3000];
static uint32_t words[40], lengths[40], outs, feedbacks, to_add;
static uint64_t last_time, times[40];

static int add(uint32_t message, size_t size, uint8_t is_last, uint32_t wait) {
    return packet_add(&ec, message, packet, size, size, is_last, wait, 1000 + feedbacks);
}

static void out(uint8_t *data, size_t size) {
    memcpy(&words[outs % 40], data, 4);
    lengths[outs++ % 40] = (uint32_t)size;
}

/* A closed loop: each feedback adds the next packet, and the last one the end. */
static void feedback(uint64_t user, uint64_t nic_arrival, uint64_t pspin_arrival, uint64_t done) {
    (void)user;
    if (nic_arrival < pspin_arrival && pspin_arrival < done && done > last_time && done <= pspinsim_time())
        feedbacks++;
    last_time = done;
    times[feedbacks % 40] = nic_arrival;
    if (to_add > 0) {
        add(feedbacks, 64, 1, 0);
        if (--to_add == 0)
            eos();
    }
}

static int prepare(const char *handler) {
    pspin_conf_t conf;
    size_t size = 0;
    CHECK(default_conf(&conf) == SPIN_SUCCESS);
    conf.slm_files_path = "build/slm_files/";
    CHECK(init(0, NULL, &conf) == SPIN_SUCCESS);
    set_out(out);
    set_feedback(feedback);
    memset(&ec, 0, sizeof ec);
    ec.handler_mem_addr = MEMORY;
    ec.handler_mem_size = 4096;
    spin_nic_addr_t address = 0;
    CHECK(find("build/calls", handler, &address, &size) == SPIN_SUCCESS && address >= 0x1d000000 && size == 4096);
    ec.ph_addr = address;
    ec.ph_size = (mem_size_t)size;
    outs = feedbacks = to_add = 0;
    last_time = 0;
    return 0;
}

static int configuration(void) {
    pspin_conf_t conf;
    CHECK(default_conf(&conf) == SPIN_SUCCESS && default_conf(NULL) == SPIN_ERR);
    CHECK(conf.ni_conf.axi_aw_buffer == 32 && conf.ni_conf.axi_w_buffer == 32 && conf.ni_conf.axi_b_buffer == 32);
    CHECK(conf.no_conf.axi_ar_buffer == 32 && conf.no_conf.axi_r_buffer == 32 && conf.no_conf.network_G == 0);
    CHECK(conf.no_conf.max_pkt_size == 2048 && conf.no_conf.max_network_queue_len == 32);
    CHECK(conf.pcie_slv_conf.axi_aw_buffer == 32 && conf.pcie_slv_conf.axi_w_buffer == 32 &&
          conf.pcie_slv_conf.axi_ar_buffer == 32 && conf.pcie_slv_conf.axi_b_buffer == 32 &&
          conf.pcie_slv_conf.axi_r_buffer == 32);
    CHECK(conf.pcie_slv_conf.pcie_L == 2 && conf.pcie_slv_conf.pcie_G == 0.014782);
    CHECK(sizeof conf.no_conf.network_G == 8);
    return 0;
}

static int order(void) {
    uint8_t done;
    CHECK(run() == SPIN_ERR && run_tick(&done) == SPIN_ERR && fini() == SPIN_ERR);
    CHECK(packet_add(&ec, 0, packet, 64, 64, 1, 0, 0) == SPIN_ERR);
    unsetenv("PSPIN_HW");
    CHECK(init(0, NULL, NULL) == SPIN_ERR);
    return 0;
}

static int closed_loop(void) {
    uint32_t first = 40;
    pspin_conf_t conf;
    CHECK(prepare("calls_ph") == 0 && default_conf(&conf) == SPIN_SUCCESS);
    conf.slm_files_path = "build/slm_files";
    CHECK(init(0, NULL, &conf) == SPIN_ERR); /* there is one */
    CHECK(nicmem_write(MEMORY, &first, 4, NULL) == SPIN_SUCCESS);
    first = 0;
    to_add = 9;
    CHECK(add(0, 64, 1, 0) == SPIN_SUCCESS);
    CHECK(run() == SPIN_SUCCESS && feedbacks == 10 && outs == 10);
    for (uint32_t index = 0; index < 10; index++)
        CHECK(words[index] == 40 + index && lengths[index] == 12);
    return fini();
}

static int ticks(void) {
    uint8_t done = 0;
    uint32_t cycles = 0, read = 0;
    CHECK(prepare("calls_ph") == 0);
    uint64_t start = pspinsim_time();
    for (uint32_t index = 0; index < 3; index++)
        CHECK(add(index, 100, 1, 1000) == SPIN_SUCCESS);
    for (; cycles < 2500; cycles++)
        CHECK(run_tick(&done) == SPIN_SUCCESS && done == 0);
    CHECK(feedbacks == 3 && pspinsim_time() == start + 1000 * 2500);
    CHECK(times[2] == times[1] + 1000000 && times[3] == times[2] + 1000000);
    CHECK(nicmem_read(MEMORY, &read, 4, NULL) == SPIN_SUCCESS);
    CHECK(run_tick(&done) == SPIN_SUCCESS && run_tick(&done) == SPIN_SUCCESS && done == 0 && read == 3);
    CHECK(eos() == SPIN_SUCCESS && run_tick(&done) == SPIN_SUCCESS && done == 1);
    return fini();
}

static int trace(void) {
    CHECK(prepare("calls_ph") == 0);
    FILE *lines = fopen("packets.csv", "w"), *bytes = fopen("packets.bin", "w");
    CHECK(lines != NULL && bytes != NULL);
    for (uint32_t index = 0; index < 5; index++) {
        fprintf(lines, "%u,0,0,%u,4096,0,0,%u,4096,%u,64,%d,30\n", index % 2, ec.ph_addr, MEMORY, 64 + index,
                index >= 3);
        fwrite(packet, 64 + index, 1, bytes);
    }
    fclose(lines);
    fclose(bytes);
    CHECK(trace_read("packets.csv", "packets.bin") == SPIN_SUCCESS && eos() == SPIN_SUCCESS);
    CHECK(trace_read("packets.csv", "none.bin") == SPIN_ERR && trace_read("packets.bin", "packets.bin") == SPIN_ERR);
    CHECK(run() == SPIN_SUCCESS && feedbacks == 5 && outs == 5);
    remove("packets.csv");
    remove("packets.bin");
    return fini();
}

/* Puts are split into packets of at most 2048 bytes, including a header of 32 bytes. */
static int puts_are_cut(void) {
    static const size_t sizes[] = {1, 2016, 2017, 3000};
    static const uint32_t expected[] = {33, 2048, 2048, 33, 2048, 1016};
    CHECK(prepare("put_ph") == 0);
    for (uint32_t index = 0; index < 4; index++)
        CHECK(add(0, sizes[index], index == 3, 5000) == SPIN_SUCCESS);
    eos();
    CHECK(run() == SPIN_SUCCESS && outs == 6 && memcmp(lengths, expected, sizeof expected) == 0);
    return fini();
}

static int refused(void) {
    spin_nic_addr_t address = 77;
    size_t size = 78;
    CHECK(prepare("calls_ph") == 0);
    CHECK(find("build/calls", "nothing", &address, &size) == SPIN_SUCCESS && address == 77 && size == 78);
    CHECK(find("build/none", "calls_ph", &address, &size) == SPIN_ERR && find(NULL, "x", &address, &size) == SPIN_ERR);
    CHECK(find("Makefile", "calls_ph", &address, &size) == SPIN_ERR);
    CHECK(packet_add(NULL, 0, packet, 64, 64, 1, 0, 0) == SPIN_ERR);
    CHECK(packet_add(&ec, 0, NULL, 64, 64, 1, 0, 0) == SPIN_ERR);
    CHECK(packet_add(&ec, 0, packet, 0, 0, 1, 0, 0) == SPIN_ERR);
    CHECK(packet_add(&ec, 0, packet, 1 << 20, 64, 1, 0, 0) == SPIN_ERR);
    CHECK(nicmem_write(MEMORY, NULL, 4, NULL) == SPIN_ERR && nicmem_read(MEMORY, NULL, 4, NULL) == SPIN_ERR);
    /* More bytes in L1 than the packet has: all of it, and a message. */
    CHECK(packet_add(&ec, 4150502774u, packet, 64, 1u << 31, 1, 0, 0) == SPIN_SUCCESS);
    CHECK(run() == SPIN_ERR && feedbacks == 1); /* no end was announced */
    eos();
    CHECK(run() == SPIN_SUCCESS);
    /* Unmapped memory. */
    CHECK(nicmem_write(0x1000, packet, 4, NULL) == SPIN_SUCCESS && run() == SPIN_ERR);
    return fini();
}

int main(void) {
    (void)set_write;
    (void)set_read;
    (void)set_written;
    (void)set_fetched;
    int failed = configuration() + order() + closed_loop() + ticks() + trace() + puts_are_cut() + refused();
    printf(failed == 0 ? "all calls are right\n" : "failed\n");
    return failed;
}
