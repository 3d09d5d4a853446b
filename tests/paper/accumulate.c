/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulate (sPIN App. C.3.2): rank 1's card multiplies complex numbers into its memory, packet by packet in parallel,
 * and returns a packet's result if asked to. */
#include <spin/paper.h>

#include "listing_accumulate.h"

#include "job.h"

enum { BITS = 10, FLOATS = 16 * 1024, FEW = 1024 };

static float factors[FLOATS], memory[FLOATS], expected[FLOATS], pong[FEW];

/* Multiplies in the order of the printed loop, whose second line reads the real part that the first has written and
 * subtracts: it is not the complex product. */
static void multiply(float *buf, const float *data, int count) {
    for (int j = 0; j < count; j += 2) {
        float real = data[j] * buf[j];
        float other = data[j + 1] * buf[j + 1];
        buf[j] = real - other;
        real = data[j] * buf[j + 1];
        other = data[j + 1] * buf[j];
        buf[j + 1] = real - other;
    }
}

int main(void) {
    begin();
    for (int i = 0; i < FLOATS; i++) {
        factors[i] = (float)(i % 7) - 3;
        expected[i] = memory[i] = (float)(i % 11) / 2;
    }
    accumulate_info_t state = {0};
    ptl_me_t me = entry(BITS, memory, sizeof memory);
    if (spin_rank() == 1) {
        me.header_handler = accumulate_header_handler;
        me.payload_handler = accumulate_payload_handler;
        append(me, &state, sizeof state);
        me.match_bits = BITS + 1;
        state.pong = true;
        append(me, &state, sizeof state);
    } else {
        me.start = pong;
        me.length = sizeof pong;
        append(me, NULL, 0);
    }
    spin_barrier();
    if (spin_rank() == 0) {
        send_to(1, BITS, factors, sizeof factors, 0);
    } else {
        REQUIRE(await(BITS) == sizeof factors);
        multiply(expected, factors, FLOATS);
        REQUIRE(memcmp(memory, expected, sizeof memory) == 0);
    }
    spin_barrier();
    multiply(expected, factors, FEW);
    if (spin_rank() == 0) {
        float twice[FEW];
        for (int i = 0; i < FEW; i++)
            twice[i] = (float)(i % 11) / 2;
        multiply(twice, factors, FEW);
        multiply(twice, factors, FEW);
        send_to(1, BITS + 1, factors, sizeof pong, 0);
        REQUIRE(await(BITS) == sizeof pong);
        REQUIRE(memcmp(pong, twice, sizeof pong) == 0);
    } else {
        REQUIRE(await(BITS + 1) == sizeof pong);
        REQUIRE(memcmp(memory, expected, sizeof memory) == 0);
    }
    return end();
}
