/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong (sPIN App. C.3.1): rank 1's card answers a message of a packet from the device, and a longer one, which it
 * stores, from host memory. */
#include <spin/paper.h>

#include "listing_ping_pong.h"

#include "job.h"

enum { BITS = 10, MOST = 3 * PTL_MAX_SIZE };

static uint8_t ping[MOST], memory[MOST], expected[MOST];

int main(void) {
    static const ptl_size_t sizes[] = {8, PTL_MAX_SIZE, MOST};
    begin();
    ptl_me_t me = entry(BITS, memory, sizeof memory);
    pingpong_info_t state = {0};
    if (spin_rank() == 1) {
        me.header_handler = pingpong_header_handler;
        me.payload_handler = pingpong_payload_handler;
        me.completion_handler = pingpong_completion_handler;
    }
    append(me, &state, spin_rank() == 1 ? sizeof state : 0);
    for (unsigned int i = 0; i < 3; i++) {
        ptl_size_t size = sizes[i];
        spin_barrier();
        fill(expected, size, i);
        if (spin_rank() == 0) {
            memcpy(ping, expected, size);
            memset(memory, 0xee, sizeof memory);
            send_to(1, BITS, ping, size, 0);
            REQUIRE(await(BITS) == size);
            REQUIRE(memcmp(memory, expected, size) == 0);
        } else {
            memset(memory, 0, sizeof memory);
            REQUIRE(await(BITS) == size);
            /* In streaming mode, no byte is stored at the target. */
            static const uint8_t none[MOST];
            REQUIRE(memcmp(memory, size > PTL_MAX_SIZE ? expected : none, size) == 0);
        }
    }
    return end();
}
