/* SPDX-License-Identifier: Apache-2.0 */
/* RAID-5 (sPIN App. C.3.5): rank 0 writes to the data server, rank 1, whose card sends the difference to the parity
 * server, rank 2; the acknowledgement returns through rank 1. The user headers are the hdr_data of the messages. The
 * printed data server stores old ^ new, not the new data. */
#include <spin/paper.h>

#include "listing_raid.h"

#include "job.h"

enum { BLOCK = 4096, ACK = 30, WRITE = 40, READ = 41 };
enum { CLIENT = 0, DATA = 1, PARITY = 2 };

static uint8_t written[BLOCK], block[BLOCK], expected[BLOCK], memory[BLOCK], reply;

static void exclusive_or(uint8_t *to, const uint8_t *from) {
    for (int i = 0; i < BLOCK; i++)
        to[i] ^= from[i];
}

static void client(void) {
    append(entry(ACK, &reply, sizeof reply), NULL, 0);
    append(entry(READ, memory, sizeof memory), NULL, 0);
    spin_barrier();
    send_to(DATA, WRITE, written, BLOCK, 0);
    REQUIRE(await(ACK) == sizeof reply);
    REQUIRE(reply == SUCCESS);
    send_to(DATA, READ, NULL, 0, BLOCK - 16);
    REQUIRE(await(READ) == BLOCK - 16);
    REQUIRE(memcmp(memory, expected, BLOCK - 16) == 0);
}

static void data_server(void) {
    primary_info_t state = {.parity = PARITY};
    ptl_me_t me = entry(WRITE, block, sizeof block);
    me.header_handler = primary_write_header_handler;
    me.payload_handler = primary_write_payload_handler;
    append(me, &state, sizeof state);
    me = entry(READ, block, sizeof block);
    me.header_handler = primary_read_header_handler;
    append(me, &state, sizeof state);
    me = entry(ACK, &reply, sizeof reply);
    me.header_handler = primary_send_acknowledgement_header_handler;
    append(me, &state, sizeof state);
    spin_barrier();
    REQUIRE(await(WRITE) == BLOCK);
    REQUIRE(memcmp(block, expected, BLOCK) == 0);
    REQUIRE(await(ACK) == sizeof reply);
    REQUIRE(await(READ) == 0);
}

static void parity_server(void) {
    parity_info_t state = {0};
    ptl_me_t me = entry(PARITY_TAG, memory, sizeof memory);
    me.header_handler = parity_update_header_handler;
    me.payload_handler = parity_update_payload_handler;
    me.completion_handler = parity_update_completion_handler;
    fill(memory, BLOCK, 3);
    append(me, &state, sizeof state);
    spin_barrier();
    REQUIRE(await(PARITY_TAG) == BLOCK);
    uint8_t before[BLOCK];
    fill(before, BLOCK, 3);
    exclusive_or(expected, before);
    REQUIRE(memcmp(memory, expected, BLOCK) == 0);
}

int main(void) {
    begin();
    fill(written, BLOCK, 1);
    fill(block, BLOCK, 2);
    memcpy(expected, block, BLOCK);
    exclusive_or(expected, written);
    switch (spin_rank()) {
    case CLIENT: client(); break;
    case DATA: data_server(); break;
    default: parity_server();
    }
    return end();
}
