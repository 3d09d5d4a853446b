/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast (sPIN App. C.3.3): rank 0 puts to itself, and the cards forward along a binomial tree. In streaming mode the
 * printed handlers forward packets and store none, so that data is compared at the leaves, the odd ranks, whose entries
 * have no handlers then. */
#include <spin/paper.h>

#include "listing_broadcast.h"

#include "job.h"

enum { STREAM = 10, MOST = 3 * PTL_MAX_SIZE };

static uint8_t root[MOST], memory[MOST], expected[MOST];

static void broadcast(ptl_size_t size, unsigned int seed) {
    bool stores = size > PTL_MAX_SIZE, is_leaf = spin_rank() % 2 == 1;
    bcast_info_t state = {.my_rank = spin_rank(), .p = spin_size()};
    ptl_me_t me = entry(STREAM, memory, sizeof memory);
    me.options |= PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
    if (stores || !is_leaf) {
        me.header_handler = bcast_header_handler;
        me.payload_handler = bcast_payload_handler;
        me.completion_handler = bcast_completion_handler;
    }
    memset(memory, 0, sizeof memory);
    append(me, &state, me.header_handler != NULL ? sizeof state : 0);
    fill(expected, size, seed);
    spin_barrier();
    if (spin_rank() == 0) {
        memcpy(root, expected, size);
        send_to(0, STREAM, root, size, 0);
    }
    REQUIRE(await(STREAM) == size);
    if (stores || is_leaf)
        REQUIRE(memcmp(memory, expected, size) == 0);
    spin_barrier();
}

int main(void) {
    begin();
    broadcast(8, 1);
    broadcast(PTL_MAX_SIZE, 2);
    broadcast(MOST, 3);
    return end();
}
