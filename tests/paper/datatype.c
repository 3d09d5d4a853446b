/* SPDX-License-Identifier: Apache-2.0 */
/* Strided datatype (sPIN App. C.3.4): rank 1's card writes `count` blocks of vlen bytes with gaps of `stride` bytes. */
#include <spin/paper.h>

#include "listing_datatype.h"

#include "job.h"

enum { BITS = 10, MOST = 64 * 1024 };

static uint8_t packed[MOST], memory[2 * MOST], expected[2 * MOST];

static void unpack(ptl_size_t vlen, ptl_size_t stride, ptl_size_t count) {
    ptl_size_t room = count * (vlen + stride);
    REQUIRE(vlen * count <= sizeof packed && room <= sizeof memory);
    fill(packed, sizeof packed, (unsigned int)vlen);
    memset(memory, 0xee, sizeof memory);
    memset(expected, 0xee, sizeof expected);
    for (ptl_size_t i = 0; i < count; i++)
        memcpy(expected + i * (vlen + stride), packed + i * vlen, vlen);
    if (spin_rank() == 1) {
        ddtvec_info_t state = {.vlen = vlen, .stride = stride};
        ptl_me_t me = entry(BITS, memory, room);
        me.options |= PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
        me.payload_handler = ddtvec_payload_handler;
        append(me, &state, sizeof state);
    }
    spin_barrier();
    if (spin_rank() == 0)
        send_to(1, BITS, packed, vlen * count, 0);
    else {
        REQUIRE(await(BITS) == vlen * count);
        REQUIRE(memcmp(memory, expected, sizeof memory) == 0);
    }
    spin_barrier();
}

int main(void) {
    begin();
    unpack(1536, 1024, 8);
    unpack(4096, 4096, 8);
    unpack(100, 28, 500);
    unpack(10000, 1, 5);
    return end();
}
